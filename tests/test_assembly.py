"""From entries to a tree."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from upstream_stand_in import entry
from vectorless_rag.pageindex_runtime.assembly import (
    MAX_LEVELS,
    add_preface_if_needed,
    list_to_tree,
    path_of,
    post_processing,
)
from vectorless_rag.pageindex_runtime.page_text import children_of, walk

codes = st.sampled_from(
    [None, "1", "1.", 1, "1.1", "1.1.1", "2", "2.1", "0", "A", "A.1", "x.y", ""]
) | st.integers(1, 99).map(lambda levels: ".".join("1" * levels))
rows = st.lists(
    st.builds(entry, st.sampled_from("STU"), st.none() | st.integers(1, 9), codes),
    max_size=9,
)


def tree_of(*entries: tuple[Any, str]) -> list[Any]:
    def spell(node: dict[str, Any]) -> Any:
        below = [spell(child) for child in children_of(node)]
        return (node["title"], below) if below else node["title"]

    return [spell(n) for n in list_to_tree([entry(t, 1, c) for c, t in entries])]


def test_parents_are_found_by_number() -> None:
    """Across a missing level, and behind their own sections."""
    assert [("A", ["B"])] == tree_of(("1", "A"), ("1.1.1", "B"))
    assert [("B", ["A"])] == tree_of(("2.3", "A"), ("2", "B"))
    assert ["A", "B"] == tree_of((None, "A"), ("2.3", "B"))


def test_a_new_start_of_the_numbering_cuts_it() -> None:
    """A repeated or a smaller number starts anew; a letter does not."""
    again = tree_of(("1", "A"), ("2", "B"), ("1", "C"), ("2.1", "D"))

    assert ["A", "B", "C", "D"] == again
    assert ["A", ("B", ["C"])] == tree_of(("3", "A"), ("A", "B"), ("A.1", "C"))
    assert ["A", "B", "C"] == tree_of(("2", "A"), ("1", "B"), ("2.1", "C"))


def test_numbers_are_compared_part_by_part() -> None:
    """Leading zeros and points make no difference."""
    assert ("1", "2") == path_of("01.2.")
    assert ("0",) == path_of(0)
    assert () == path_of(None)


@given(rows, st.sampled_from(["yes", "no"]))
def test_every_placed_entry_is_one_node(
    entries: list[dict[str, Any]], opens: str
) -> None:
    """With a range that is one, in the order of pages."""
    for each in entries:
        each["appear_start"] = opens

    nodes = list(walk(post_processing(entries, 9)))

    assert sorted(e["title"] for e in entries if e["physical_index"]) == sorted(
        n["title"] for n in nodes
    )
    assert all(1 <= n["start_index"] <= n["end_index"] <= 9 for n in nodes)


@given(rows)
def test_siblings_and_parts_stand_in_page_order(entries: list[dict[str, Any]]) -> None:
    """No part begins before what it lies in, however the numbers are mixed up."""

    def check(nodes: list[dict[str, Any]], from_page: int) -> None:
        starts = [node["start_index"] for node in nodes]
        assert sorted(starts) == starts
        assert all(start >= from_page for start in starts)
        for node in nodes:
            check(list(children_of(node)), node["start_index"])

    check(post_processing(entries, 9), 1)


def test_a_section_begins_where_its_parts_begin() -> None:
    """A section listed behind its own parts takes their first page."""
    rows = [entry("Part", 2, "1.1.1"), entry("Other", 3, "2"), entry("Own", 4, "2.1")]
    tree = post_processing([*rows, entry("Late", 5, "1.1")], 9)
    late = post_processing([entry("Part", 2, "1.1"), entry("Whole", 5, "1")], 9)

    assert ["Part", "Other", "Late"] == [node["title"] for node in tree]
    assert [("Whole", 2)] == [(n["title"], n["start_index"]) for n in late]


def test_numbers_make_no_tree_that_is_too_deep_to_be_kept() -> None:
    """A hundred levels of numbers are as many levels as may be."""
    deep = [entry(f"S{n}", n, ".".join("1" * n)) for n in range(1, 101)]

    assert MAX_LEVELS == _height(list_to_tree(deep))


def _height(nodes: list[Any]) -> int:
    return max((1 + _height(list(children_of(node))) for node in nodes), default=0)


def test_a_preface_stands_where_pages_are_free() -> None:
    """Not where the first page is taken, nor where nothing is placed."""
    assert "Preface" == add_preface_if_needed([entry("A"), entry("B", 3)])[0]["title"]
    assert 1 == len(add_preface_if_needed([entry("A", 1)]))
    assert 1 == len(add_preface_if_needed([entry("A")]))
    assert add_preface_if_needed(None) is None
