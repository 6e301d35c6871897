"""Questions about structure are answered from the text that the prompt shows."""

import json
from typing import Any

import pytest
from hypothesis import given

from strategies_offline import (
    Asked,
    PrintedToc,
    asked,
    numbered_pages,
    printed_tocs,
    spell_prompt,
)
from vectorless_rag.pageindex_runtime.offline.answers import ANSWERS
from vectorless_rag.pageindex_runtime.offline.prompts import parts_of
from vectorless_rag.pageindex_runtime.offline.text import squeeze
from vectorless_rag.pageindex_runtime.operations import operation_named, read

PROSE = "This is a line of running text that says something or other at some length."
TOC = "Contents\n1 Alpha .... 3\n1.1 Beta .... 4\n2 Gamma .... 7\nReferences .... 9"
PAGES = [
    f"1 Alpha\n{PROSE} One.",
    f"1.1 Beta\n{PROSE} Two.\n{PROSE}",
    f"{PROSE} Three.\n2 Gamma\n{PROSE} Three and a half.",
]
ENTRIES = [
    {"structure": "1", "title": "1 Alpha", "page": 3},
    {"structure": "1.1", "title": "1.1 Beta", "page": 4},
    {"structure": "2", "title": "2 Gamma", "page": 7},
    {"structure": None, "title": "References", "page": 9},
]


def ask(operation: str, **parts: str) -> Any:
    """Ask through a framed prompt, and read the reply as the boundary does."""
    text = ANSWERS[operation](parts_of(operation, spell_prompt(operation, parts)))
    return read(operation_named(operation), text).value


def marked(pages: list[str], first: int = 1) -> str:
    """Pages as prompts mark them."""
    return numbered_pages(pages, first, "physical_index")


@pytest.mark.parametrize(
    ("text", "verdict"),
    [(TOC, "yes"), (PAGES[0], "no"), ("", "no")],
    ids=["toc", "text", "blank"],
)
def test_tables_of_contents_are_detected(text: str, verdict: str) -> None:
    """A page with entries is a table of contents, another is not."""
    answer = ask("toc_detector_single_page", text=text)

    assert {"toc_detected": verdict} == answer


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (TOC, "yes"),
        ("Contents\n1 Alpha: 3\n2 Beta: 4", "yes"),
        ("Contents\nAlpha\nBeta\nGamma", "no"),
        ("", "no"),
    ],
    ids=["dots", "colons", "no-pages", "blank"],
)
def test_page_numbers_in_a_table_are_detected(text: str, verdict: str) -> None:
    """A table has page numbers if most of its entries do."""
    answer = ask("detect_page_index", text=text)

    assert {"page_index_given_in_toc": verdict} == answer


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        pytest.param(
            TOC,
            [
                ("1", "1 Alpha", 3), ("1.1", "1.1 Beta", 4), ("2", "2 Gamma", 7),
                (None, "References", 9),
            ],
            id="numbered",
        ),
        pytest.param(
            "Contents\nPreface .... iii\nAlpha .... 1-1\nBeta .... 5",
            [("1", "Preface", "iii"), ("2", "Alpha", "1-1"), ("3", "Beta", 5)],
            id="unnumbered",
        ),
        pytest.param(
            "Contents\nAlpha .... 1\n  Beta .... 2\n  Gamma .... 3\n Delta .... 4\n"
            "Eps .... 5",
            [
                ("1", "Alpha", 1), ("1.1", "Beta", 2), ("1.2", "Gamma", 3),
                ("1.1", "Delta", 4), ("2", "Eps", 5),
            ],
            id="indented",
        ),
        pytest.param(
            "Contents\nAlpha\nBeta",
            [("1", "Alpha", None), ("2", "Beta", None)],
            id="no-pages",
        ),
        pytest.param(
            "الفهرس\nا.................... المقدمة\n١............ ١.مستند يدعم\n"
            "١............ ١-١.مكانة",
            [(None, "المقدمة", "ا"), ("1", "مستند يدعم", 1), (None, "مكانة", 1)],
            id="right-to-left",
        ),
        pytest.param("Contents\nAl\x00pha .... 1\nBe\ud800ta .... 2", [], id="control"),
        pytest.param("", [], id="blank"),
    ],
)  # fmt: skip
def test_tables_are_transformed(text: str, rows: list[tuple[Any, str, Any]]) -> None:
    """Each entry gets its place in the hierarchy, its title and its page."""
    answer = ask("toc_transformer", text=text)["table_of_contents"]

    assert rows == [(r["structure"], r["title"], r["page"]) for r in answer]


@given(printed_tocs())
def test_a_transformed_table_is_complete(printed: PrintedToc) -> None:
    """What is read off a table covers it; with an entry less it does not."""
    rows = ask("toc_transformer", text=printed.text)["table_of_contents"]
    verdicts = [
        ask(
            "check_if_toc_transformation_is_complete",
            text=printed.text,
            toc=json.dumps({"table_of_contents": kept}),
        )["completed"]
        for kept in (rows, rows[:-1])
    ]

    assert ["yes", "no"] == verdicts


@pytest.mark.parametrize(
    ("toc", "verdict"),
    [
        pytest.param(json.dumps(ENTRIES), "yes", id="json"),
        pytest.param(str(ENTRIES), "yes", id="python"),
        pytest.param(json.dumps(ENTRIES)[:-20], "no", id="cut"),
        pytest.param(
            "1 Alpha: 3\n1.1 Beta: 4\n2 Gamma: 7\nReferences: 9", "yes", id="lines"
        ),
        pytest.param("1 Alpha\n\n2 Gamma", "no", id="too-few-lines"),
        pytest.param("", "no", id="nothing"),
    ],
)
def test_completeness_is_judged_by_titles(toc: str, verdict: str) -> None:
    """A cleaned table is complete if it is whole and has every raw entry."""
    answer = ask("check_if_toc_transformation_is_complete", text=TOC, toc=toc)

    assert {"completed": verdict} == answer


@pytest.mark.parametrize(
    ("toc", "verdict"), [("1 Alpha, 1.1 Beta, 2 Gamma", "yes"), ("1 Alpha", "no")]
)
def test_an_extracted_table_is_compared_with_the_text(toc: str, verdict: str) -> None:
    """Every section of the document is in a complete table."""
    text = "\n".join(PAGES)
    answer = ask("check_if_toc_extraction_is_complete", text=text, toc=toc)

    assert {"completed": verdict} == answer


def test_a_table_is_extracted_as_text() -> None:
    """Leaders become colons; entries without a page stand alone."""
    extract = ANSWERS["extract_toc_content"]

    assert "1 Alpha: 3\n1.1 Beta: 4\n2 Gamma: 7\nReferences: 9" == extract(
        {"text": TOC}
    )
    assert "Alpha\nBeta" == extract({"text": "Contents\nAlpha\nBeta"})


@pytest.mark.parametrize("spell", [str, json.dumps], ids=["python", "json"])
def test_entries_are_located(spell: Any) -> None:
    """Entries that stand on the pages get their page; the others are left out."""
    answer = ask("toc_index_extractor", toc=spell(ENTRIES), pages=marked(PAGES, 5))

    assert [
        ("1", "1 Alpha", "<physical_index_5>"),
        ("1.1", "1.1 Beta", "<physical_index_6>"),
        ("2", "2 Gamma", "<physical_index_7>"),
    ] == [(r["structure"], r["title"], r["physical_index"]) for r in answer]


def test_entries_are_given_back_as_they_were() -> None:
    """All entries come back in order; a page found before stays."""
    entries = [
        {"structure": "1", "title": "1 Alpha", "physical_index": "<physical_index_2>"},
        {"structure": "1.1", "title": "1.1 Beta"},
        {"structure": None, "title": "Nowhere"},
    ]
    answer = ask("add_page_number_to_toc", toc=json.dumps(entries), pages=marked(PAGES))

    assert [
        ("1", "1 Alpha", "no", "<physical_index_2>"),
        ("1.1", "1.1 Beta", "yes", "<physical_index_2>"),
        (None, "Nowhere", "no", None),
    ] == [(r["structure"], r["title"], r["start"], r["physical_index"]) for r in answer]


def test_a_single_entry_is_given_back_in_a_list() -> None:
    """One entry, not in a list, is answered as a list of one."""
    answer = ask(
        "add_page_number_to_toc", toc='{"title": "2 Gamma"}', pages=marked(PAGES)
    )

    assert ["<physical_index_3>"] == [row["physical_index"] for row in answer]


@pytest.mark.parametrize("operation", ["toc_index_extractor", "add_page_number_to_toc"])
def test_entries_without_a_title_are_left_out(operation: str) -> None:
    """A structure with odd titles does not break the answer."""
    toc = '[{"title": 7}, {"title": null}, {"title": " "}, {"x": 1}]'

    assert [] == ask(operation, toc=toc, pages=marked(PAGES))


def test_odd_values_in_a_structure_are_dropped() -> None:
    """Codes and pages that are neither text nor number are none, however deep."""
    toc = '[{"title": "1 Alpha", "structure": {"x": 1}, "physical_index": [2]}]'
    deep = '[{"title": "1 Alpha"}, {"title": "x", "y": ' + "[" * 5000
    rows = [
        ask("add_page_number_to_toc", toc=text, pages=marked(PAGES))[0]
        for text in (toc, deep)
    ]

    assert [(None, "<physical_index_1>")] * 2 == [
        (row["structure"], row["physical_index"]) for row in rows
    ]


def test_sections_are_listed_from_the_pages() -> None:
    """Without a table, the numbered headings are the sections."""
    answer = ask("generate_toc_init", pages=marked(PAGES, 3))

    assert [
        ("1", "1 Alpha", "<physical_index_3>"),
        ("1.1", "1.1 Beta", "<physical_index_4>"),
        ("2", "2 Gamma", "<physical_index_5>"),
    ] == [(r["structure"], r["title"], r["physical_index"]) for r in answer]


def test_sections_are_continued() -> None:
    """What is listed already, on a page shown twice, is not listed again."""
    before = ask("generate_toc_init", pages=marked(PAGES[:2]))
    answer = ask(
        "generate_toc_continue", pages=marked(PAGES[1:], 2), toc=json.dumps(before)
    )

    assert ["1 Alpha", "1.1 Beta"] == [row["title"] for row in before]
    assert ["2 Gamma"] == [row["title"] for row in answer]


def test_a_repeated_page_does_not_repeat_its_sections() -> None:
    """Headings without numbers are told apart by their page."""
    page = f"FIRST PART\n{PROSE}\nSECOND PART\n{PROSE} More."
    before = ask("generate_toc_init", pages=marked([page]))
    answer = ask("generate_toc_continue", pages=marked([page]), toc=json.dumps(before))

    assert ["FIRST PART", "SECOND PART"] == [row["title"] for row in before]
    assert [] == answer


@pytest.mark.parametrize(
    ("title", "appears", "opens"),
    [
        ("2 Gamma", "yes", "no"),
        ("2 Delta", "no", "no"),
        ("running text", "no", "no"),
    ],
)
def test_titles_are_checked(title: str, appears: str, opens: str) -> None:
    """A title appears where it is a heading, and opens a page as first content."""
    assert {"answer": appears} == ask(
        "check_title_appearance", title=title, text=PAGES[2]
    )
    assert {"start_begin": opens} == ask(
        "check_title_appearance_in_start", title=title, text=PAGES[2]
    )


def test_a_title_opens_its_page() -> None:
    """The first content of a page opens it."""
    answer = ask("check_title_appearance_in_start", title="1 Alpha", text=PAGES[0])

    assert {"start_begin": "yes"} == answer


@pytest.mark.parametrize(
    ("title", "page"), [("1.1 Beta", "<physical_index_2>"), ("Nowhere", None)]
)
def test_a_wrong_entry_is_looked_for(title: str, page: str | None) -> None:
    """The page on which the title stands, or none."""
    answer = ask("single_toc_item_index_fixer", title=title, pages=marked(PAGES))

    assert {"physical_index": page} == answer


@pytest.mark.parametrize(
    ("title", "rows"),
    [
        pytest.param("1 Alpha", [("1.1 Beta", 2)], id="below-its-number"),
        pytest.param("Whole Thing", [("1 Alpha", 1), ("2 Gamma", 3)], id="highest"),
        pytest.param("3 Other", [], id="none-of-its-own"),
    ],
)
def test_a_section_is_split(title: str, rows: list[tuple[str, int]]) -> None:
    """The subsections one level below are listed, the section itself is not."""
    pages = numbered_pages(PAGES, 1, "page")
    answer = ask("expand", title=title, pages=pages)["subsections"]

    assert rows == [(row["title"], row["page"]) for row in answer]


@given(asked(ANSWERS))
def test_answers_have_the_shape_asked_for(question: Asked) -> None:
    """Whatever the text says, the reply is what the boundary reads."""
    operation = operation_named(question.operation)
    text = ANSWERS[question.operation](question.parts)

    assert not operation.is_data or read(operation, text).value is not None


SECTION_LISTS = {
    "generate_toc_init": None,
    "generate_toc_continue": None,
    "expand": "subsections",
}


@given(asked(SECTION_LISTS))
def test_listed_titles_stand_on_their_pages(question: Asked) -> None:
    """No title is invented, and no page that was not shown."""
    answer = json.loads(ANSWERS[question.operation](question.parts))
    rows = answer[key] if (key := SECTION_LISTS[question.operation]) else answer

    # A text with marks of its own can move a heading, but only to a page shown.
    marks = any(
        mark in str(question.pages) for mark in ("<physical", "<page", "</page")
    )
    anywhere = squeeze("\n".join(question.pages.values()))
    for row in rows:
        page = row.get("page") or int(row["physical_index"].strip("<>").split("_")[2])
        text = question.pages[page]
        assert squeeze(row["title"]) in (anywhere if marks else squeeze(text))


@given(asked(["toc_transformer"]))
def test_transformed_titles_are_verbatim(question: Asked) -> None:
    """Every title of a transformed table is a part of the raw one."""
    rows = json.loads(ANSWERS["toc_transformer"](question.parts))["table_of_contents"]

    assert all(row["title"] in squeeze(question.parts["text"]) for row in rows)
