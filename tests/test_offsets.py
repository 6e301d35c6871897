"""From printed page numbers to physical ones."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upstream_stand_in import entry
from vectorless_rag.pageindex_runtime.offsets import (
    add_page_offset_to_toc_json,
    calculate_page_offset,
    match,
    matching_pairs,
    place_by_finding,
    place_by_offset,
    without_printed_pages,
)


def toc(*rows: tuple[Any, str, Any]) -> list[dict[str, Any]]:
    return [{"structure": c, "title": t, "page": p} for c, t, p in rows]


EXERCISES = toc(("1", "Intro", 1), ("1.1", "Exercises", 3), ("2.1", "Exercises", 9))


@pytest.mark.parametrize(
    ("found", "page"),
    [
        (entry("exercises", 1, "2.1."), 9),
        (entry("Exercises", 1), None),
        (entry("INTRO", 1, "7"), 1),
        (entry("Ghost", 1), None),
    ],
    ids=["by number", "which one", "only one", "none"],
)
def test_a_located_entry_is_matched_or_not(
    found: dict[str, Any], page: int | None
) -> None:
    """By title and number, by a title that stands once, or not at all."""
    entry_found = match(found, EXERCISES, [found])

    assert page == (entry_found or {}).get("page")


def test_two_located_twins_match_no_single_entry() -> None:
    """One heading found twice is not known to be the section."""
    twins = [entry("Intro", 2), entry("Intro", 9)]

    assert [] == matching_pairs(EXERCISES, twins, 1)


def test_pages_before_the_text_make_no_pair() -> None:
    """The table of contents lists the titles itself."""
    located = [entry("Intro", 1, "1"), entry("Exercises", None, "1.1")]

    assert [] == matching_pairs(EXERCISES, located, 2)
    assert [None] * 3 == [
        e["physical_index"] for e in place_by_finding(EXERCISES, located, 2)
    ]


@given(
    st.lists(
        st.tuples(
            st.none() | st.integers(1, 9) | st.booleans() | st.text(max_size=2),
            st.integers(1, 20),
        ),
        max_size=9,
    )
)
def test_the_offset_is_one_that_most_pairs_have(pairs: list[tuple[Any, int]]) -> None:
    """Labels, None and truth values have no vote."""
    votes = [p - n for n, p in pairs if type(n) is int]

    offset = calculate_page_offset([{"page": n, "physical_index": p} for n, p in pairs])

    if not votes:
        assert offset is None
        return
    assert offset is not None
    assert max(map(votes.count, votes)) == votes.count(offset)


def test_an_offset_places_numbers_and_leaves_labels_open() -> None:
    """Pages that do not exist stay open too."""
    rows = toc(("1", "A", 1), ("2", "B", "xii"), ("3", "C", 99))

    placed = place_by_offset(rows, 4, (1, 20))

    assert [5, None, None] == [e["physical_index"] for e in placed]
    assert all("page" not in e for e in placed)
    assert [{"structure": "1", "title": "A"}] == without_printed_pages(rows[:1])


def test_printed_numbers_are_moved_in_place() -> None:
    """Labels stay, and without an offset everything does."""
    rows = toc(("1", "A", 1), ("2", "B", "xii"))

    assert rows == add_page_offset_to_toc_json(rows, None)
    assert [5, None] == [
        e.get("physical_index") for e in add_page_offset_to_toc_json(rows, 4)
    ]
    assert [None, "xii"] == [e.get("page") for e in rows]
