"""Sections hang under the right parent and have the right pages."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patches.good_model import outline, titles
from patches.scripted import MODEL, outcome, provider
from patches.tree_under_test import classic, tree_optimize, utils
from pdfs import pdf

Row = tuple[Any, str, int]


def assembled(rows: list[Row], last: int, opens: str = "yes") -> Any:
    entries = [
        {
            "structure": code,
            "title": title,
            "physical_index": page,
            "appear_start": opens,
        }
        for code, title, page in rows
    ]
    return outcome(
        lambda: utils.cover_subtree_ranges(utils.post_processing(entries, last))
    )


def test_a_skipped_level_still_has_a_parent() -> None:
    """A section hangs under the nearest one above it, listed before or after."""
    rows = [("1", "A", 1), ("1.1.1", "B", 2), ("1.1.2", "C", 3)]
    rows += [("2.3", "D", 4), ("2", "E", 5)]

    tree = assembled(rows, 6)

    below = [(node["title"], titles(node.get("nodes") or [])) for node in tree]
    assert [("A", ["B", "C"]), ("E", ["D"])] == below


def test_parents_are_found_in_a_bare_list_too() -> None:
    """The list needs no pages to become a tree."""
    rows = [
        {"structure": code, "title": title, "start_index": 1, "end_index": 1}
        for code, title in [("1", "A"), ("1.1.1", "B")]
    ]

    tree = utils.list_to_tree(rows)

    assert [("A", ["B"])] == [(n["title"], titles(n.get("nodes") or [])) for n in tree]


@pytest.mark.parametrize("code", ["1.", 1, " 1 ", "01"])
def test_a_number_is_one_number_in_any_spelling(code: Any) -> None:
    """1., 1 and "1" are the same parent."""
    tree = assembled([(code, "A", 1), ("1.1", "B", 2)], 3)

    assert ["A"] == [node["title"] for node in tree]
    assert ["B"] == titles(tree[0]["nodes"])


def test_numbering_that_starts_again_takes_no_older_children() -> None:
    """The second volume's sections do not hang under the first volume's."""
    rows = [
        ("1", "Vol A ch.1", 1),
        ("1.1", "A 1.1", 2),
        ("2", "Vol A ch.2", 40),
        ("1", "Vol B ch.1", 60),
        ("2.1", "B 2.1", 90),
    ]

    tree = assembled(rows, 120)

    (node,) = [n for n in tree if n["title"] == "Vol A ch.2"]
    assert (59, []) == (node["end_index"], node.get("nodes") or [])
    assert "B 2.1" in titles(tree)


def test_entries_out_of_order_get_their_own_pages() -> None:
    """Pages decide the order, and so where each section ends."""
    rows = [(None, "A", 1), (None, "B", 30), (None, "C", 10), (None, "D", 40)]

    tree = assembled(rows, 50)

    wanted = [("A", 1, 9), ("C", 10, 29), ("B", 30, 39), ("D", 40, 50)]
    assert wanted == outline(tree)


def test_the_preface_adopts_no_real_section() -> None:
    """Front matter stays with the front matter."""
    entries = [
        {"structure": "0.1", "title": "Foreword", "physical_index": 3},
        {"structure": "0", "title": "Front matter", "physical_index": 4},
        {"structure": "1", "title": "Ch1", "physical_index": 6},
    ]

    tree = utils.post_processing(utils.add_preface_if_needed(entries), 10)

    (preface,) = [node for node in tree if node["title"] == "Preface"]
    assert [] == (preface.get("nodes") or [])
    assert {"Preface", "Foreword", "Front matter", "Ch1"} == set(titles(tree))


def test_a_preface_is_made_wherever_the_pages_before_are_free() -> None:
    """An entry without a page does not hide that the first pages are free."""
    entries = [
        {"structure": None, "title": "Lost", "physical_index": None},
        {"structure": "1", "title": "Ch1", "physical_index": 3},
    ]

    found = outcome(lambda: utils.add_preface_if_needed(entries))

    assert isinstance(found, list)
    assert "Preface" == found[0]["title"]


def merged_and_expanded(*, with_ids: bool) -> tuple[int, int]:
    structure: list[dict[str, Any]] = [
        {
            "title": "A",
            "start_index": 1,
            "end_index": 2,
            "nodes": [
                {"title": "a1", "start_index": 1, "end_index": 1},
                {"title": "a2", "start_index": 2, "end_index": 2},
            ],
        },
        {"title": "B", "start_index": 3, "end_index": 30},
    ]
    if with_ids:
        utils.write_node_id(structure)
    pages = [f"Heading {n}\n" + "body " * 40 for n in range(1, 31)]
    answer = {"subsections": [{"title": f"Heading {n}", "page": n} for n in (10, 20)]}
    with provider(expand=answer):
        result = asyncio.run(
            tree_optimize.optimize(
                structure,
                pages,
                [page.splitlines() for page in pages],
                model=MODEL,
                page_count=30,
                summary_words=1,
            )
        )
    return result["merges"], result["expands"]


def test_decisions_do_not_need_ids() -> None:
    """A tree without node ids is merged and expanded like one with them."""
    assert [(1, 1), (1, 1)] == [
        merged_and_expanded(with_ids=with_ids) for with_ids in (True, False)
    ]


def test_small_sections_stay_sections(tmp_path: Any) -> None:
    """Nobody asked for merging, so three sections of one policy are three nodes."""
    path = pdf(tmp_path / "a.pdf", ["a", "b", "c"])
    named = [
        {
            "structure": code,
            "title": title,
            "physical_index": f"<physical_index_{page}>",
        }
        for code, title, page in [
            ("1", "Policy", 1),
            ("1.1", "Scope", 1),
            ("1.2", "Duties", 2),
            ("1.3", "Sanctions", 3),
        ]
    ]
    options = utils.ConfigLoader().load({"model": MODEL, "if_add_node_summary": "no"})

    with provider(
        toc_detector_single_page={"toc_detected": "no"},
        generate_toc_init=named,
        check_title_appearance={"answer": "yes"},
        check_title_appearance_in_start={"start_begin": "no"},
    ):
        result = classic.page_index_main(
            str(path), options, page_list=[("text", 5)] * 3
        )

    assert {"Policy", "Scope", "Duties", "Sanctions"} <= set(
        titles(result["structure"])
    )


def test_marks_survive_the_assembly() -> None:
    """What an entry says about itself, its node says (holds before too)"""
    mark = {"code": "not_found", "what": "location"}
    entry = {"structure": "1", "title": "A", "physical_index": 1, "degraded": [mark]}

    (node,) = utils.post_processing([entry], 2)

    assert [mark] == node["degraded"]


codes = (
    st.none()
    | st.integers(0, 3)
    | st.sampled_from(
        ["1", "1.", "1.1", "1.1.1", "2", "2.1", "0", "A", "A.1", "3.2", ""]
    )
)
rows = st.lists(
    st.tuples(codes, st.sampled_from(["S", "T", "U"]), st.none() | st.integers(1, 9)),
    max_size=8,
)


@given(rows, st.sampled_from(["yes", "no"]))
def test_any_entries_make_a_tree(drawn: list[Row], opens: str) -> None:
    """Every placed entry is one node; ranges are real; siblings stand in order."""
    tree = assembled(drawn, 9, opens)

    assert isinstance(tree, list)
    placed = sorted(title for _, title, page in drawn if page is not None)
    assert placed == sorted(titles(tree))

    def check(nodes: list[dict[str, Any]]) -> None:
        starts = [node["start_index"] for node in nodes]
        assert sorted(starts) == starts
        for node in nodes:
            assert 1 <= node["start_index"] <= node["end_index"] <= 9
            check(node.get("nodes") or [])

    check(tree)
