"""Pages that are missing or wrong, looked for again."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upstream_stand_in import (
    NO_KEY,
    PROSE,
    entry,
    later,
    names,
    pages_of,
    says,
)
from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.pageindex_runtime.windows import bounds, likely_pages, window

TEXTS = ["toc", "Alpha", "middle", "Beta", "end"]
TOC = [
    {"structure": "1", "title": "Alpha", "page": 1},
    {"structure": "2", "title": "Beta", "page": 3},
    {"structure": "3", "title": "Gone", "page": None},
]


def by_number(**answers: Any) -> Any:
    upstream = names(
        **{
            "toc_transformer": says(TOC),
            "toc_index_extractor": says([entry("Alpha", 2, "1")]),
            "add_page_number_to_toc": says([]),
            **answers,
        }
    )
    return upstream["process_toc_with_page_numbers"]("toc", [0], pages_of(TEXTS))


def test_printed_pages_are_moved_by_the_offset() -> None:
    """What has no printed page is looked for behind its neighbour."""
    found = by_number(add_page_number_to_toc=says([entry("Gone", 5, "3")]))

    assert [2, 4, 5] == [e["physical_index"] for e in found]


def test_a_way_without_anything_located_gives_up() -> None:
    """A refused question is no located section; nor is a document of a ToC alone."""
    with pytest.raises(VectorlessRagError, match="no section found by its title"):
        by_number(toc_index_extractor=says(PROSE))
    with pytest.raises(VectorlessRagError, match="no section found"):
        names(toc_transformer=says(TOC))["process_toc_with_page_numbers"](
            "toc", [0], pages_of(["toc"])
        )


@pytest.mark.parametrize("question", ["toc_index_extractor", "add_page_number_to_toc"])
def test_a_failure_that_ends_the_run_is_raised(question: str) -> None:
    """It is no answer about a page."""
    with pytest.raises(VectorlessRagError, match="credentials"):
        by_number(**{question: says(NO_KEY)})


def test_a_refused_search_leaves_entries_open() -> None:
    """And so does an answer about a page that was not shown."""
    for answer in (PROSE, [entry("Gone", 1, "3")], [entry("Gone", None, "3")]):
        found = by_number(add_page_number_to_toc=says(answer))

        assert found[-1]["physical_index"] is None


def fixed(*answers: Any, **more: Any) -> Any:
    upstream = names(single_toc_item_index_fixer=later(says(*answers)), **more)
    entries = [entry("Alpha", 2), entry("Beta", 3), entry("end", 5)]
    wrong = [
        {"list_index": 1, "title": "Beta", "page_number": 3},
        {"list_index": 9, "title": "stray", "page_number": 1},
    ]
    return asyncio.run(
        upstream["fix_incorrect_toc_with_retries"](entries, pages_of(TEXTS), wrong)
    )


def test_a_confirmed_page_repairs_its_entry() -> None:
    """A place that is not in the list stays what it is."""
    entries, still = fixed(4)

    assert [2, 4, 5] == [e["physical_index"] for e in entries]
    assert [9] == [result["list_index"] for result in still]


@pytest.mark.parametrize("answer", [None, 1, 3, PROSE])
def test_anything_else_leaves_it_open(answer: Any) -> None:
    """No page, one that was not shown, one that is not confirmed, or a failure."""
    entries, still = fixed(answer)

    assert [2, None, 5] == [e["physical_index"] for e in entries]
    assert 2 == len(still)


def test_nothing_wrong_costs_nothing() -> None:
    """The loop ends before it begins."""
    upstream = names(single_toc_item_index_fixer=later(says(NO_KEY)))
    repair = upstream["fix_incorrect_toc_with_retries"]

    assert ([], []) == asyncio.run(repair([], pages_of(TEXTS), []))
    once = upstream["fix_incorrect_toc"]
    assert ([], []) == asyncio.run(once([], pages_of(TEXTS), []))


@given(st.lists(st.none() | st.integers(-2, 9), min_size=1, max_size=5), st.data())
def test_bounds_lie_in_the_document(
    pages: list[int | None], data: st.DataObject
) -> None:
    """Whatever the neighbours say."""
    place = data.draw(st.integers(0, len(pages) - 1))

    low, high = bounds([entry("x", p) for p in pages], place, {place}, (3, 6))

    assert low >= 3
    assert high <= 6


def test_likely_pages_come_first() -> None:
    """A line that opens with the title, the title itself, its words, the rest."""
    pages = pages_of(
        ["nothing", "of results", "see our results of 1999", "Our Results\nx"]
    )

    assert [4, 3, 2, 1] == likely_pages("Our results", pages, [1, 2, 3, 4], 1)
    assert [1, 2] == likely_pages("…", pages, [2, 1], 1)


def test_a_window_is_bounded_and_in_order() -> None:
    """The likeliest pages that fit, shown in the order of the document."""
    pages = pages_of(["word " * 12_000, "short", "word " * 30_000])

    text, shown = window(names(), pages, [2, 1, 3], start=1, model=None)
    alone, first = window(names(), pages, [3, 1], start=1, model=None)

    assert ([1, 2], True) == (shown, text.index("short") > 12_000)
    assert [3] == first
    assert names()["count_tokens"](alone, None) <= 20_000
    assert ("", []) == window(names(), pages, [], start=1, model=None)


def test_no_page_to_show_is_no_question() -> None:
    """Neighbours in the wrong order leave no window."""
    upstream = names(add_page_number_to_toc=says(NO_KEY))
    entries = [entry("Alpha", 4), entry("Beta"), entry("end", 2)]

    found = upstream["process_none_page_numbers"](entries, pages_of(TEXTS))

    assert [4, None, 2] == [e["physical_index"] for e in found]
