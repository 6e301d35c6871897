"""Lines that can be headings are told from prose, tables, code and furniture."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies_offline import page_texts
from vectorless_rag.pageindex_runtime.offline import headings
from vectorless_rag.pageindex_runtime.offline.body import (
    Page,
    body_of,
    is_page_number,
)
from vectorless_rag.pageindex_runtime.offline.text import squeeze

PROSE = "This line of running text is about as long as the column it stands in is."


def labelled(*lines: str) -> list[str]:
    """Titles of the labelled candidates in one page of these lines."""
    body = body_of([Page(1, "\n".join(lines))])
    return [candidate.title for candidate in headings.labelled(body)]


@pytest.mark.parametrize(
    "line",
    [
        "1 Introduction",
        "2.1. Creation of objects",
        "3.2.1 if",
        "4.1 control",
        "5.4 Are grids stored as points or as arrays, in the end?",
        "I. Whether Mr. Bordelon was sufficiently at risk for the Many Loan in 2008",
        "第一章 总则",
        "Chapter 3",
    ],
)
def test_labelled_headings_are_found(line: str) -> None:
    """A label before a short line that is no sentence is a heading."""
    assert [line] == labelled("The line before ends.", line, PROSE)


@pytest.mark.parametrize(
    "line",
    [
        "1. Do this first, and then do that until it is done.",
        "1 3.10 20",
        "12 0.5 x 3.1 0.7",
        "3 x <- c(1, 2, 3) of it",
        "2. reverse engineering. This exception permits a lot",
        "1 " + "word " * 20,
        "1 " + "x" * 170,
        "4 and -",
        "5",
    ],
)
def test_other_labelled_lines_are_not(line: str) -> None:
    """Sentences, rows of numbers, code and long lines are no headings."""
    assert [] == labelled("The line before ends.", line, PROSE)


def test_a_numbered_line_inside_a_sentence_is_not() -> None:
    """A line in the middle of a paragraph that begins with a number is prose."""
    line = "2 of the methods that were shown above are used in this"

    assert [] == labelled(PROSE[:-1], line, "chapter, and others in the next.")


def test_a_label_alone_takes_the_next_line() -> None:
    """A chapter number above its title is one heading with it."""
    assert ["Chapter 1 Getting started"] == labelled(
        "Chapter 1", "Getting started", PROSE
    )


@pytest.mark.parametrize(
    "after", [PROSE, "1.1 A section"], ids=["prose", "next-heading"]
)
def test_a_label_alone_does_not_take_other_lines(after: str) -> None:
    """What follows a chapter number is its title only if it looks like one."""
    assert "Chapter 1" == labelled("Chapter 1", after)[0]


def test_a_label_alone_ends_at_the_page() -> None:
    """A heading does not go on over the page."""
    body = body_of([Page(1, f"{PROSE}\nChapter 1"), Page(2, "Getting started")])

    assert ["Chapter 1"] == [c.title for c in headings.labelled(body)]


def test_a_label_alone_does_not_reach_over_a_page_number() -> None:
    """Only the very next line can be the rest of a heading."""
    assert ["Chapter 1"] == labelled("Chapter 1", "17", "Getting started", PROSE)


def test_a_wrapped_heading_is_joined() -> None:
    """A long heading that goes on in lower case is one with its second line."""
    first = "3.2 A heading that is so long that it needs another"
    assert [f"{first} line to end"] == labelled("It ends.", first, "line to end", PROSE)


def test_headings_known_by_their_words_are_found() -> None:
    """A known word alone, with prose behind it or at the top of a page, counts once."""
    pages = [
        Page(1, f"Title\nAbstract\n{PROSE}\n{PROSE}"),
        Page(2, f"More {PROSE}\nIndex\nFeb 01\nMar 15"),
        Page(3, "References\nHeywood"),
        Page(4, f"* acknowledgment:\n{PROSE}\nAbstract\n{PROSE}\n{PROSE} {PROSE}"),
    ]

    assert [("Abstract", 1), ("References", 3)] == [
        (c.title, c.page) for c in headings.free(body_of(pages))
    ]


def test_capitals_and_paragraphs_make_headings() -> None:
    """Without labels, capitalised lines between paragraphs are headings."""
    lines = [
        "GENERAL PROVISIONS",
        "National Eligibility for the Act",
        PROSE,
        "National Eligibility",  # in the middle of a sentence
        "goes on here, and then it is",
        "Achim Zeileis Himself",  # the sentence above did not end
        PROSE,
        "Achim Zeileis",  # nothing behind it
        "R> Some Code",
        "It ends.",
        "The cat sat",
        PROSE,
        "A Very Long Line Of Many Capitalised Words That Is No Heading At All Then",
        PROSE,
        "Remedies",
        PROSE,
        "Ab Cd",
        PROSE,
        "Item 1 Of 2",
        PROSE,
    ]
    body = body_of([Page(1, "\n".join(lines))])

    assert ["GENERAL PROVISIONS", "National Eligibility for the Act", "Remedies"] == [
        c.title for c in headings.typographic(body)
    ]


def test_a_stack_of_titles_is_a_list() -> None:
    """Up to two titles stand above a paragraph; more of them are something else."""
    lines = ["First Title", "Second Title", PROSE, "Model Types", "Deep Learning"]
    body = body_of([Page(1, "\n".join([*lines, "Linear Systems", PROSE]))])

    assert ["First Title", "Second Title"] == [
        candidate.title for candidate in headings.typographic(body)
    ]


@pytest.mark.parametrize(
    "line",
    ["> summary(x)", "x <- 3", "std::vector<int> v;", "{a: {b: {c: 1}}}", "$ ls"],
)
def test_code_is_known(line: str) -> None:
    """Prompts, assignments and lines full of signs are code."""
    assert headings.is_code(line)


@pytest.mark.parametrize(
    "line",
    [PROSE, "The value of x@coords is kept", "See https://example.org now. " * 5],
)
def test_prose_with_signs_is_no_code(line: str) -> None:
    """One sign in a sentence, or a link in a paragraph, makes no code."""
    assert not headings.is_code(line)


@pytest.mark.parametrize("line", ["7", "- 7 -", "[7]", "iv", "26 / 57", "٣"])
def test_page_numbers_are_known(line: str) -> None:
    """Numbers alone, in the marks that go with them, are page numbers."""
    assert is_page_number(line)


@pytest.mark.parametrize("line", ["IV", "word", "7 a", "1.2.3", "a / b", "7 / b"])
def test_other_lines_are_no_page_numbers(line: str) -> None:
    """Letters beside a number, or a number in parts, tell another line."""
    assert not is_page_number(line)


def test_running_headers_are_left_out() -> None:
    """A line at the edge of several pages, numbers aside, is no content."""
    pages = [
        Page(n, f"{n} The whole title\nText of page {name} is here.\n{n}")
        for n, name in enumerate(["one", "two", "three", "four"], start=1)
    ]

    assert ["one", "two", "three", "four"] == [
        line.text.split()[3] for line in body_of(pages)
    ]


def test_lines_with_control_characters_are_left_out() -> None:
    """NUL and lone surrogates never reach a title."""
    body = body_of([Page(1, "1 Good\n2 Ba\x00d\n3 Ba\ud800d\n\n4 Fine")])

    assert [("1 Good", False, True, False), ("4 Fine", True, False, False)] == [
        (line.text, line.after_blank, line.opens_page, line.adjoins) for line in body
    ]


@given(st.lists(page_texts, max_size=4))
def test_candidates_are_verbatim(texts: list[str]) -> None:
    """Every candidate stands on its page as it is spelled."""
    pages = [Page(n, text) for n, text in enumerate(texts, start=1)]
    body = body_of(pages)
    found = [
        *headings.labelled(body),
        *headings.free(body),
        *headings.typographic(body),
    ]

    on_page = {
        page.number: squeeze(" ".join(t.text for t in body if t.page == page.number))
        for page in pages
    }
    assert all(candidate.title in on_page[candidate.page] for candidate in found)
