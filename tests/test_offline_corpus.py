"""On real papers and manuals, sections and summaries are those of the document."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from strategies_offline import numbered_pages, spell_prompt
from vectorless_rag.pageindex_runtime.offline.provider import answer
from vectorless_rag.pageindex_runtime.offline.text import key, squeeze
from vectorless_rag.pageindex_runtime.providers import Message
from vectorless_rag.source import read_pages


def ask(operation: str, **parts: str) -> Any:
    """Answer one question."""
    prompt = spell_prompt(operation, parts)
    return json.loads(answer(operation, (Message("user", prompt),)))


def texts_of(path: Path) -> tuple[str, ...]:
    """Texts of a document's pages."""
    return read_pages(path, max_pages=100).texts


def headings(pages: Sequence[str]) -> list[tuple[str, int]]:
    """Titles and pages that are listed for a whole document."""
    rows = ask("generate_toc_init", pages=numbered_pages(pages, 1, "physical_index"))
    return [
        (row["title"], int(row["physical_index"].strip("<>").split("_")[2]))
        for row in rows
    ]


def test_a_printed_table_of_contents_is_found_and_read(sample: Path) -> None:
    """The paper's table runs over two pages and has 21 entries with pages."""
    pages = texts_of(sample)
    verdicts = [
        ask("toc_detector_single_page", text=text)["toc_detected"] for text in pages
    ]
    # Pages joined with nothing between them: the number of one runs into the next.
    rows = ask("toc_transformer", text="".join(pages[:2]))["table_of_contents"]

    assert ["yes", "yes", *["no"] * 19] == verdicts
    assert (21, ("1", "1 Introduction", 2)) == (len(rows), tuple(rows[0].values()))
    assert ("8", "8 Importing and exporting data", 21) == tuple(rows[-1].values())


def test_entries_stand_on_the_pages_they_are_given(sample: Path) -> None:
    """Every entry of the table is located on the page that the table names."""
    pages = texts_of(sample)
    rows = ask("toc_transformer", text="\n".join(pages[:2]))["table_of_contents"]
    marked = numbered_pages(pages, 1, "physical_index")
    found = ask("toc_index_extractor", toc=json.dumps(rows), pages=marked)

    assert [(r["title"], f"<physical_index_{r['page']}>") for r in rows] == [
        (r["title"], r["physical_index"]) for r in found
    ]


def test_summaries_are_sentences_of_the_page(sample: Path) -> None:
    """A summary of a page is prose of that page."""
    page = texts_of(sample)[1]
    summary = ask("summary_leaf", text=page)["summary"]

    assert summary.startswith("The sp package provides classes and methods for")
    assert all(f"{part}." in squeeze(page) for part in summary[:-1].split(". "))


# Sections of the first level as the document prints them, and its pages.
SECTIONS = [
    pytest.param(
        "papers/zoo-jss.pdf",
        [
            ("Abstract", 1),
            ("1. Introduction", 1),
            ('2. The class "zoo" and its methods', 2),
            ("3. Combining zoo with other packages", 20),
            ("4. Summary and outlook", 25),
            ("References", 26),
            ("A. Reference card", 29),
        ],
        20,
        id="zoo",
    ),
    pytest.param(
        "manuals/R-lang.pdf",
        [
            ("1 Introduction", 6), ("2 Objects", 7),
            ("3 Evaluation of expressions", 15),
            ("4 Functions", 30), ("5 Object-oriented programming", 35),
            ("6 Computing on the language", 41),
            ("7 System and foreign language interfaces", 50),
            ("8 Exception handling", 52), ("9 Debugging", 54), ("10 Parser", 57),
            ("Appendix A References", 69),
        ],
        117,
        id="R-lang",
        marks=pytest.mark.slow,
    ),
    pytest.param(
        "legal/tax-court-memo-2020-26.pdf",
        [
            ("A. Section 465 principles", 12),
            ("B. Application to the Many Loan", 15),
        ],
        10,
        id="tax-court",
        marks=pytest.mark.slow,
    ),
    pytest.param(
        "nonlatin/jlreq-ja.pdf",
        [("1 これは何？", 1), ("13 履歴", 17)],
        43,
        id="jlreq",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "some", "count"), SECTIONS)
def test_sections_are_found_without_a_table(
    corpus: Path, name: str, some: list[tuple[str, int]], count: int
) -> None:
    """Numbered headings are found on their pages, and little else is."""
    pages = texts_of(corpus / name)
    found = headings(pages)

    assert some == [heading for heading in found if heading in some]
    assert count == len(found)
    assert all(key(title) in key(pages[page - 1]) for title, page in found)
