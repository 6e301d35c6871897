"""A Markdown file loses nothing, and only headings are headings."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patches.scripted import MODEL, provider
from patches.tree_under_test import page_index_md


def tree_of(tmp_path: Path, text: str, **options: Any) -> Any:
    path = tmp_path / "a.md"
    path.write_text(text)
    told = {"if_add_node_text": "yes", "model": MODEL, **options}
    with provider(generate_node_summary="A summary.") as script:
        result = asyncio.run(page_index_md.md_to_tree(str(path), **told))
    return result["structure"], script


def outline(nodes: list[Any]) -> list[Any]:
    """Titles; a title and what is below it where there is anything."""
    return [
        (node["title"], outline(node["nodes"])) if node.get("nodes") else node["title"]
        for node in nodes
    ]


CODE = "# One\n{0}\n# not a heading\n{0}\n## A"
FILES = [
    pytest.param(CODE.format("~~~"), [("One", ["A"])], id="tildes"),
    pytest.param(CODE.format("````"), [("One", ["A"])], id="four-backticks"),
    pytest.param("# One\n~~~\n```\n# x\n~~~\n## A", [("One", ["A"])], id="two-fences"),
    pytest.param(
        "Title\n=====\n\nbody\n\nSub\n---\n\nx", [("Title", ["Sub"])], id="underlined"
    ),
    pytest.param(
        "# One\n## A\n### A1\n**Note**\n### A2\ntext",
        [("One", [("A", [("A1", ["Note"]), "A2"])])],
        id="bold",
    ),
    pytest.param("# One\n\n---\n\n- a\n---\n", ["One"], id="rules"),
    pytest.param("# One ##\ntext\n## C#", [("One", ["C#"])], id="closing-hashes"),
]


@pytest.mark.parametrize(("text", "found"), FILES)
def test_headings_of_a_file(tmp_path: Path, text: str, found: list[Any]) -> None:
    """With hashes, underlined or bold, and none inside code."""
    assert found == outline(tree_of(tmp_path, text)[0])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Important preface text.\n\n# One\nbody", ["Important preface text.", "One"]),
        ("Just text\nmore text", ["Just text"]),
        ("First\n## A\n# One", ["First", "A", "One"]),
        ("---\ntitle: x\n---\n# One", ["title: x", "One"]),
    ],
    ids=["preface", "no-heading", "lower-first", "front-matter"],
)
def test_text_before_the_first_heading_is_kept(
    tmp_path: Path, text: str, found: list[Any]
) -> None:
    """It is a node of its own, named by its first line."""
    tree, _ = tree_of(tmp_path, text)

    assert found == outline(tree)
    assert " ".join(text.partition("#")[0].split()) in " ".join(tree[0]["text"].split())


def test_thinning_has_a_threshold_of_its_own(tmp_path: Path) -> None:
    """Small sections are merged into their parent, as asked, with no more said."""
    tree, _ = tree_of(tmp_path, "# One\n## A\ntext\n## B\ntext", if_thinning=True)

    assert ["One"] == outline(tree)
    assert "## B" in tree[0]["text"]


def test_summaries_have_a_threshold_of_their_own(tmp_path: Path) -> None:
    """A short text is its own summary; a long one is summarised."""
    long = "many words " * 400
    tree, script = tree_of(
        tmp_path, f"# One\nshort\n# Two\n{long}", if_add_node_summary="yes"
    )

    assert ["# One\nshort", "A summary."] == [node["summary"] for node in tree]
    assert 1 == len(script.asked)


lines = st.sampled_from(
    [
        "", "text", "# One", "## A", "### A1", "**Note**", "~~~", "```", "====", "---",
        "- item", "# ", "#x", "> quoted", "    # code", "****", "\u200b", "text ##",
    ]
)  # fmt: skip


@given(st.lists(lines, max_size=12))
def test_any_file_keeps_its_text(rows: list[str]) -> None:
    """Nodes in a row hold every line once, in order (holds before too)"""
    found, kept = page_index_md.extract_nodes_from_markdown("\n".join(rows))
    nodes = page_index_md.extract_node_text_content(found, kept)

    numbers = [heading["line_num"] for heading in found]
    assert sorted(set(numbers)) == numbers
    assert all(heading["node_title"].strip() for heading in found)
    assert (rows or [""]) == kept
    if nodes and not any(row.strip() for row in kept[: numbers[0] - 1]):
        whole = "\n".join(kept[numbers[0] - 1 :])
        assert whole.split() == "\n".join(n["text"] for n in nodes).split()
