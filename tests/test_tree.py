"""Only a page tree of the document passes, and nothing of it is lost."""

import json
from typing import Any

import pytest
from hypothesis import given

from strategies import page_texts
from strategies_tree import Raw, every, patient, raw_trees
from vectorless_rag.canon import canonical
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.records import one_line, storable
from vectorless_rag.tree import (
    MAX_DEPTH,
    Degraded,
    Node,
    count,
    height,
    outline,
    read_tree,
    walk,
)


def section(first: Any = 1, last: Any = 1, **fields: Any) -> Raw:
    return {"title": "SECRET", "start_index": first, "end_index": last, **fields}


def nest(levels: int) -> Raw:
    node = section(node_id="deep")
    for _ in range(levels - 1):
        node = section(nodes=[node])
    return node


def spelled(tree: tuple[Node, ...]) -> list[Any]:
    return [node.to_json() for node in tree]


@patient
@given(raw_trees())
def test_a_tree_reads_back(drawn: tuple[list[Raw], int]) -> None:
    """What was read once can be stored, and is read again, as it is."""
    tree = read_tree(*drawn)
    written = canonical(spelled(tree))

    assert (tree, False) == (
        read_tree(json.loads(written), drawn[1]),
        b"\\u0000" in written,
    )


@patient
@given(raw_trees())
def test_no_section_is_lost_or_moved(drawn: tuple[list[Raw], int]) -> None:
    """Every section stays, with its pages and an id, at its place."""
    raw, pages = drawn
    nodes = [node for _, node in walk(read_tree(raw, pages))]

    assert [(n["start_index"], n["end_index"]) for n in every(raw)] == [
        (node.start_index, node.end_index) for node in nodes
    ]
    assert len(nodes) == len({node.node_id for node in nodes})


@patient
@given(page_texts)
def test_a_text_that_can_be_stored_is_not_changed_again(text: str) -> None:
    """Cleaning twice is cleaning once."""
    assert (storable(text), one_line(text)) == (
        storable(storable(text)),
        one_line(one_line(text)),
    )


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        pytest.param("a\ufffdb", "a\0b", id="nul"),
        pytest.param("a\ufffdb", "a\ud800b", id="high-half"),
        pytest.param("a\ufffdb", "a\udfffb", id="low-half"),
        pytest.param("\U0001f600", "\ud83d\ude00", id="two-halves"),
        pytest.param("\ufffd\ufffd", "\ude00\ud83d", id="halves-swapped"),
        pytest.param("\ufeff tab\tline\n", "\ufeff tab\tline\n", id="untouched"),
    ],
)
def test_only_what_no_file_can_hold_is_replaced(expected: str, text: str) -> None:
    """Evidence keeps everything else, line breaks and marks included."""
    assert expected == storable(text)


@pytest.mark.parametrize(
    ("expected", "title"),
    [
        ("One line", " One\n\t line\u2028 "),
        ("\ufffd[2J red", "\x1b[2J red"),
        ("", " \n "),
    ],
)
def test_titles_are_one_line(expected: str, title: str) -> None:
    """A title can neither break a line nor command a terminal."""
    (node,) = read_tree([section(title=title)], 1)

    assert expected == node.title


def test_missing_ids_are_numbered_in_reading_order() -> None:
    """One id missing: all are given anew."""
    raw = [section(nodes=[section(node_id="0007"), section()]), section()]
    tree = read_tree(raw, 1)

    assert ["0000", "0001", "0002", "0003"] == [n.node_id for _, n in walk(tree)]


@pytest.mark.parametrize(
    ("expected", "given_"),
    [
        pytest.param(("s", "s", "s"), {"summary": "s"}, id="summary-only"),
        pytest.param(("d", "d", "d"), {"direct_summary": "d"}, id="direct-only"),
        pytest.param(
            ("d", "t", "t"),
            {"summary": "s", "direct_summary": "d", "subtree_summary": "t"},
            id="all",
        ),
        pytest.param(("", "", ""), {"summary": None}, id="none"),
    ],
)
def test_a_leaf_has_one_summary_unless_told_otherwise(
    expected: tuple[str, str, str], given_: Raw
) -> None:
    """A leaf's own pages are its whole subtree."""
    (node,) = read_tree([section(**given_)], 1)

    assert expected == (node.direct_summary, node.subtree_summary, node.summary)


def test_a_parent_without_a_direct_summary_has_none() -> None:
    """What the children say is not passed off as the parent's own pages."""
    (node,) = read_tree([section(summary="s", nodes=[section()])], 1)

    assert ("", "s") == (node.direct_summary, node.subtree_summary)


def test_what_fell_back_is_kept() -> None:
    """Marks, merged titles and unknown fields: the last are passed over."""
    raw = section(
        degraded=[{"code": "pageindex_timeout", "what": "summary"}],
        key_items=["Merged\ntitle"],
        appear_start="yes",
    )
    (node,) = read_tree([raw], 1)

    assert (
        (Degraded(code="pageindex_timeout", what="summary"),),
        ("Merged title",),
    ) == (
        node.degraded,
        node.key_items,
    )


def test_children_may_reach_outside_their_parent() -> None:
    """PageIndex writes such trees; a page counts as reached through any node."""
    (root,) = read_tree([section(1, 1, nodes=[section(2, 3)])], 3)

    assert (1, 3) == (root.end_index, root.nodes[0].end_index)


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        pytest.param({"nodes": []}, r"tree: not a list", id="not-a-list"),
        pytest.param(["x"], r"tree\[0\]: not an object", id="not-an-object"),
        pytest.param(
            [section(nodes=[section(), 7])],
            r"tree\[0\]\.nodes\[1\]: not an object",
            id="child-not-an-object",
        ),
        pytest.param([section(nodes="x")], r"tree\[0\]\.nodes: not", id="nodes-a-text"),
        pytest.param([section("1")], r"start_index is not a whole", id="page-a-text"),
        pytest.param(
            [section(first=True)], r"start_index is not a whole", id="page-a-bool"
        ),
        pytest.param([section(1, 1.0)], r"end_index is not a whole", id="page-a-float"),
        pytest.param([section(1, None)], r"end_index is not a whole", id="page-none"),
        pytest.param([section(0, 9)], r"tree\[0\]: pages 0 to 9 of 9", id="page-zero"),
        pytest.param([section(1, 10)], r"pages 1 to 10 of 9", id="past-the-end"),
        pytest.param([section(3, 2)], r"pages 3 to 2 of 9", id="backwards"),
        pytest.param(
            [section(1, 9, node_id="0001"), section(-1, 2, node_id="0002")],
            r"tree\[1\] \(node 0002\): pages -1 to 2",
            id="names-the-id",
        ),
        pytest.param([section(title=None)], r"title is not a text", id="title-none"),
        pytest.param([section(summary=1)], r"summary is not a text", id="summary-int"),
        pytest.param([section(key_items="x")], r"key_items is not a", id="key-items"),
        pytest.param([section(key_items=[1])], r"tree\[0\]: key_items", id="key-item"),
        pytest.param([section(degraded=["x"])], r"degraded is malf", id="mark"),
        pytest.param(
            [section(degraded=[{"code": "A sentence.", "what": "x"}])],
            r"degraded is malformed",
            id="mark-with-prose",
        ),
        pytest.param(
            [section(1, 9, nodes=[section(5, 5), section(4, 9)])],
            r"tree\[0\]\.nodes\[0\]: starts on page 5, the next on 4",
            id="siblings-swapped",
        ),
        pytest.param(
            [section(5, 9), section(1, 4)],
            r"tree\[0\]: starts on page 5, the next on 1",
            id="roots-swapped",
        ),
        pytest.param(
            [section(1, 9, node_id="7", nodes=[section(node_id="7")])],
            r"tree\[0\]\.nodes\[0\]: node_id 7 is used twice",
            id="id-twice",
        ),
        pytest.param([section(node_id="a b")], r"node_id is malformed", id="id-prose"),
        pytest.param([section(node_id=7)], r"node_id is malformed", id="id-a-number"),
        pytest.param([section(2, 9)], r"no node reaches pages 1\.", id="first-page"),
        pytest.param([section(1, 7)], r"reaches pages 8-9\.", id="last-pages"),
        pytest.param(
            [section(2, 2), section(4, 4), section(7, 8)],
            r"reaches pages 1, 3, 5-6, 9\.",
            id="gaps",
        ),
    ],
)
def test_malformed_trees_are_refused(raw: Any, why: str) -> None:
    """Each defect is named with its place, and no title is quoted."""
    with pytest.raises(VectorlessRagError, match=why) as caught:
        read_tree(raw, 9)

    assert (Code.INVALID_TREE, False) == (
        caught.value.code,
        "SECRET" in str(caught.value),
    )


def test_many_gaps_are_counted() -> None:
    """A message stays one line."""
    raw = [section(page, page) for page in range(2, 40, 2)]

    with pytest.raises(VectorlessRagError, match=r"9 and 15 more gaps"):
        read_tree(raw, 39)


def test_no_section_at_all_is_its_own_failure() -> None:
    """An empty tree is no malformed tree."""
    with pytest.raises(VectorlessRagError, match="No sections were found"):
        read_tree([], 3)


def test_depth_has_a_limit() -> None:
    """The deepest tree that passes is spelled; one more level is refused."""
    tree = read_tree([nest(MAX_DEPTH)], 1)

    assert (MAX_DEPTH, True) == (height(tree), len(canonical(spelled(tree))) > 0)
    with pytest.raises(VectorlessRagError, match="more than 64 levels"):
        read_tree([nest(MAX_DEPTH + 1)], 1)


def test_a_hostile_depth_exhausts_no_stack() -> None:
    """A hundred thousand levels are refused like 65."""
    with pytest.raises(VectorlessRagError, match="more than 64 levels"):
        read_tree([nest(100_000)], 1)


def test_a_node_that_contains_itself_is_refused() -> None:
    """Cycles end, and so do trees that double at every level."""
    node = section()
    node["nodes"] = [node]
    twin = section()

    with pytest.raises(
        VectorlessRagError, match=r"tree\[0\]\.nodes\[0\]: occurs twice"
    ):
        read_tree([node], 1)
    with pytest.raises(VectorlessRagError, match=r"tree\[1\]: occurs twice"):
        read_tree([twin, twin], 1)


def test_the_outline_shows_titles_and_pages() -> None:
    """One line a node, indented by depth."""
    raw = [section(1, 3, title="A", nodes=[section(2, 2, title=" ")]), section(3, 3)]

    assert ["A  [1-3]", "  (untitled)  [2]", "SECRET  [3]"] == list(
        outline(read_tree(raw, 3))
    )


def test_no_nodes_have_no_height() -> None:
    """Counting needs no special case for nothing."""
    assert (0, 0, []) == (count(()), height(()), list(outline(())))
