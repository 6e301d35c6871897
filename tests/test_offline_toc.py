"""Tables of contents are told from other pages, and read as printed."""

import re

import pytest
from hypothesis import given

from strategies_offline import PrintedToc, page_texts, printed_tocs
from vectorless_rag.pageindex_runtime.offline.entries import read_page
from vectorless_rag.pageindex_runtime.offline.text import squeeze
from vectorless_rag.pageindex_runtime.offline.toc import follows, scan

PROSE = "This is a line of running text that goes on and on for quite a while here."


@pytest.mark.parametrize(
    "page",
    [
        pytest.param("Contents\nAlpha\nBeta", id="no-page-numbers"),
        pytest.param("Contents\n1 Foo 2\n2 Bar 2", id="no-leaders"),
        pytest.param("9 Discussion .......... 41", id="one-line"),
        pytest.param("Part 2 of it: Ch9 .... 90", id="continued"),
        pytest.param("Table of Contents\n1 Foo . . . . 3", id="spaced-dots"),
        pytest.param("目次\n第一章 总则……1", id="han"),
        pytest.param("الفهرس\nا................ المقدمة", id="page-first"),
        pytest.param("Contents\nOne\n 1\nTwo\n 3", id="page-on-its-own-line"),
        pytest.param("1 Foo 2\n2 Bar 2\n3 Baz 3\n4 Foo 9", id="no-heading"),
        pytest.param(f"8 Last one 21\n1 Introduction\n{PROSE}", id="last-entry"),
    ],
)
def test_tables_of_contents_are_found(page: str) -> None:
    """Leaders, a heading or a run of numbered lines with pages tell."""
    assert scan(page).found


@pytest.mark.parametrize(
    "page",
    [
        pytest.param("", id="blank"),
        pytest.param("cover", id="cover"),
        pytest.param(f"1 Introduction\n{PROSE}\n2 Methods\n{PROSE}", id="sections"),
        pytest.param("Total: 9\nSum: 10\nMean: 3", id="colons"),
        pytest.param(f"Contents\n{PROSE}", id="contents-of-a-box"),
        pytest.param("List of Figures\nA map .... 3\nB .... 5", id="figures"),
        pytest.param(
            "apply .... 12\nbase .... 3\ncbind .... 44\ndim .... 2", id="index-of-words"
        ),
        pytest.param("1 3.10 20\n2 4.15 21\n3 3.68 22\n4 4.45 23", id="numbers"),
        pytest.param(f"8 Last one 21\n{PROSE}", id="row-and-prose"),
        pytest.param(f"8 Last one 21\n9 Next\n{PROSE}", id="row-and-next-section"),
    ],
)
def test_other_pages_are_not(page: str) -> None:
    """Numbers at line ends alone make no table of contents."""
    assert not scan(page).found


@given(printed_tocs())
def test_a_printed_table_is_read_as_it_says(printed: PrintedToc) -> None:
    """Every row gives its label, title and page, whatever the leader."""
    rows = tuple(
        (e.label.code if e.label else "", e.title, int(e.page or 0))
        for e in scan(printed.text).entries
    )

    assert printed.rows == rows


@given(printed_tocs())
def test_leaders_rewritten_to_colons_are_leaders_where_asked(
    printed: PrintedToc,
) -> None:
    """Dots turned to colons before a question say the same."""
    text = re.sub(r"\.{5,}|(?:\. ){5,}\.?", ": ", printed.text)
    entries = scan(text, colons=True).entries

    assert printed.rows == tuple(
        (e.label.code if e.label else "", e.title, int(e.page or 0)) for e in entries
    )


@given(page_texts)
def test_titles_are_parts_of_the_text(text: str) -> None:
    """Entries are verbatim but for white space, and stand on lines that exist."""
    found = scan(text, colons=True)

    assert all(e.title in squeeze(text) for e in found.entries)
    assert found.lines <= set(range(len(text.splitlines())))


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        pytest.param(
            "Contents\n5.14 A long title that goes\non in the next line .... 33",
            [("5.14 A long title that goes on in the next line", "33")],
            id="wrapped",
        ),
        pytest.param(
            "Contents\nPart One\nAlpha .... 1\nBeta .... 2",
            [("Alpha", "1"), ("Beta", "2")],
            id="not-wrapped",
        ),
        pytest.param(
            "Contents\n1 Foo .... iv\n2 Bar .... 1-3\n3 Baz .... A-3",
            [("1 Foo", "iv"), ("2 Bar", "1-3"), ("3 Baz", "A-3")],
            id="page-styles",
        ),
        pytest.param(
            "7 Foo .... 16ii\n8 Bar .... 17",
            [("7 Foo", "16"), ("8 Bar", "17")],
            id="page-number-glued-behind",
        ),
        pytest.param(
            "Contents\n7 Foo 20\n18 Bar 21",
            [("7 Foo", "20"), ("8 Bar", "21")],
            id="page-number-glued-before",
        ),
        pytest.param(
            "Contents\n7 Foo 20\n55 Bar 21\nx",
            [("7 Foo", "20")],
            id="out-of-sequence",
        ),
        pytest.param(
            "7 Foo .... 20\n99999 Bar .... 21\n1000 Baz .... 22\n1238 Qux .... 23",
            [
                ("7 Foo", "20"),
                ("99999 Bar", "21"),
                ("1000 Baz", "22"),
                ("8 Qux", "23"),
            ],
            id="four-digits",
        ),
        pytest.param(
            "Contents\n1 Foo 20\n2 Bar 19\n2 Baz 900\nlower 21\nUpper 22",
            [("1 Foo", "20"), ("Upper", "22")],
            id="weak-rows",
        ),
        pytest.param(
            "Contents\n\n1. Foo\n---\n2. Bar.\nReferences\n\n" + PROSE,
            [("1. Foo", None), ("2. Bar.", None), ("References", None)],
            id="no-pages",
        ),
        pytest.param(
            "Contents\n1 Foo .... 1\nFigures\nA map .... 3",
            [("1 Foo", "1")],
            id="until-the-figures",
        ),
        pytest.param(
            "Figures\nA map .... 3\nContents\n1 Foo .... 1",
            [("1 Foo", "1")],
            id="behind-the-figures",
        ),
        pytest.param(
            "Contents\n1 " + "long " * 17 + "title 3\n2 " + "x" * 210 + " .... 4",
            [],
            id="too-long",
        ),
    ],
)
def test_rows_are_read(text: str, rows: list[tuple[str, str | None]]) -> None:
    """Each shape of a row gives its title and page, or is left out."""
    assert rows == [(e.title, e.page) for e in scan(text).entries if e.page or rows]


def test_indents_are_kept() -> None:
    """Where the text keeps the indents of a table, entries know theirs."""
    entries = scan("Contents\nOne .... 1\n  Two .... 2").entries

    assert [0, 2] == [entry.indent for entry in entries]


@pytest.mark.parametrize(
    ("token", "page"),
    [
        ("12", "12"),
        ("١٢", "١٢"),
        ("xii", "xii"),
        ("XII", None),
        ("12345", None),
        ("12x3", None),
        ("12345ii", None),
        ("1-3", "1-3"),
        ("AB-3", None),
        ("1-3-4", None),
        ("A-12345678", None),
        ("word", None),
        ("", None),
    ],
)
def test_page_numbers_are_read(token: str, page: str | None) -> None:
    """Numbers, small roman numbers and two-part labels are pages."""
    assert page == read_page(token)


@pytest.mark.parametrize(
    ("last", "path", "yes"),
    [
        ((1,), (2,), True),
        ((1,), (1, 1), True),
        ((0,), (0, 0), True),
        ((1, 3), (2,), True),
        ((1, 3), (1, 4), True),
        ((1, 3), (1, 3), False),
        ((1, 3), (3,), False),
        ((1,), (2, 1), False),
        ((1, 2), (2, 1, 1), False),
        ((4,), (1001,), True),
        ((1001, 2), (1002,), True),
        ((5,), (1,), False),
    ],
)
def test_sections_follow_in_sequence(
    last: tuple[int, ...], path: tuple[int, ...], *, yes: bool
) -> None:
    """The next section is the first below, or the next at a level already open."""
    assert yes is follows(last, path)
