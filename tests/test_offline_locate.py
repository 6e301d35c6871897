"""Titles are found where they stand as headings, and nowhere else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies_offline import page_texts, titles
from vectorless_rag.pageindex_runtime.offline.body import Page, body_of
from vectorless_rag.pageindex_runtime.offline.locate import (
    Index,
    locate,
    opens,
    stands_in,
    titles_of,
    without_label,
)

PROSE = "This is a line of running text that mentions spatial points and lines."


def index_of(*pages: str) -> Index:
    """Index pages counted from 1."""
    return Index(body_of([Page(n, text) for n, text in enumerate(pages, start=1)]))


@pytest.mark.parametrize(
    ("title", "page"),
    [
        pytest.param("2 Spatial points", "2 Spatial points", id="as-it-is"),
        pytest.param("2 Spatial points", "2. SPATIAL  POINTS", id="another-spelling"),
        pytest.param("Settingup quilt", "3.1 Setting up quilt", id="spaces-and-label"),
        pytest.param("3 Modifying it", "Chapter 3\nModifying it", id="two-lines"),
        pytest.param("2 Spatial points", "Spatial points", id="label-dropped"),
        pytest.param("A very long title", "A very\nlong\ntitle", id="wrapped"),
        pytest.param("1. Aims", "1. Aims. We describe them.", id="run-in"),
        pytest.param("The aims of this text", "The aims of this text are", id="words"),
        pytest.param("الملحقات", "الملحقات٢.", id="label-behind"),
        pytest.param("総則", "第一章 総則", id="han"),
    ],
)
def test_headings_are_found(title: str, page: str) -> None:
    """Spelling, spaces, labels and line breaks may differ."""
    assert stands_in(title, index_of(f"Something else.\n{page}"))


@pytest.mark.parametrize(
    ("title", "page"),
    [
        pytest.param("Spatial points", PROSE, id="in-a-sentence"),
        pytest.param("Lines", "Lines of text go on here.", id="one-word-run-in"),
        pytest.param("2", "2 Spatial points", id="number-alone"),
        pytest.param("2.", "2. Spatial points", id="label-alone"),
        pytest.param("!", "! first", id="no-letter"),
        pytest.param("3 Foo", "Contents\n1 Bar .... 1\n3 Foo .... 3", id="in-a-toc"),
        pytest.param("3 Foo", "Contents\n3 Foo\n4 Bar", id="in-a-toc-without-pages"),
        pytest.param("Spatial", "Temporal", id="absent"),
        pytest.param("Foo Bar", "Foo", id="half"),
    ],
)
def test_other_mentions_are_not(title: str, page: str) -> None:
    """A sentence, a number or a row of a table of contents is no heading."""
    assert not stands_in(title, index_of(page))


def test_a_heading_does_not_go_over_the_page() -> None:
    """Lines of two pages are never one heading."""
    assert not stands_in("Very long title", index_of("Very long", "title"))


def test_repeated_titles_take_the_place_that_fits() -> None:
    """Of several places, the one in the order of the table is taken."""
    index = index_of(
        f"1 One\n{PROSE}\nExercises\n{PROSE}\nIt ends.",
        f"2 Two\n{PROSE} Or so.\nExercises\nMore\nAnd more",
        "3 Three\nOnce\nExercises\nLess\nAnd less",
    )
    found = locate(["1 One", "2 Two", "Exercises", "3 Three", "Exercises"], index)

    assert [1, 2, 2, 3, 3] == [index.page(at) for at in found if at is not None]


def test_titles_out_of_order_are_left_open() -> None:
    """The most titles that stand in order are placed, the others are not."""
    index = index_of("1 One", "2 Two", "3 Three")
    found = locate(["3 Three", "1 One", "2 Two", "Nowhere"], index)

    assert [None, 1, 2, None] == [None if at is None else at + 1 for at in found]


def test_no_titles_have_no_places() -> None:
    """Nothing asked, nothing found."""
    assert [] == locate([], index_of("1 One"))


@pytest.mark.parametrize(
    "page",
    [
        pytest.param("2 Foo\nText", id="first-line"),
        pytest.param("17\n2 Foo\nText", id="behind-a-page-number"),
        pytest.param("Achim Zeileis 3\n2 Foo\nText", id="behind-a-header"),
        pytest.param("Chapter 2\nFoo\nText", id="two-lines"),
    ],
)
def test_the_first_content_opens_the_page(page: str) -> None:
    """Page numbers and running headers are no content."""
    assert opens("2 Foo", index_of(page))


@pytest.mark.parametrize(
    "page",
    [
        pytest.param("Text.\n2 Foo", id="second-line"),
        pytest.param("Header 3\nText.\n2 Foo", id="third-line"),
        pytest.param("2 Bar", id="absent"),
        pytest.param("", id="blank"),
    ],
)
def test_other_places_do_not(page: str) -> None:
    """A title below other content does not open its page."""
    assert not opens("2 Foo", index_of(page))


def test_labels_do_not_tell_titles_apart() -> None:
    """A title with its number and without are one."""
    assert titles_of("2.1 Foo bar") & titles_of("Foo Bar")
    assert not titles_of("2.1 Foo bar") & titles_of("2.1 Foo")


@pytest.mark.parametrize(
    ("title", "bare"),
    [
        ("2.1 Foo", "Foo"),
        ("Foo", "Foo"),
        ("١-١.مقدمة", "مقدمة"),
        ("مقدمة ١.", "مقدمة"),
        ("", ""),
    ],
)
def test_labels_are_taken_off(title: str, bare: str) -> None:
    """From right to left, a label can stand on either side."""
    assert bare == without_label(title)


@given(st.lists(titles, max_size=5), st.lists(page_texts, max_size=3))
def test_places_are_lines_in_order(asked: list[str], pages: list[str]) -> None:
    """Whatever is asked, places are lines that exist, one behind the other."""
    index = index_of(*pages)
    found = [at for at in locate(asked, index) if at is not None]

    assert sorted(set(found)) == found
    assert all(0 <= at < len(index.body) for at in found)
