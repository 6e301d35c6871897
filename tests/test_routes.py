"""The chain of ways, and what is left at its end."""

import asyncio
from typing import Any

import pytest

from upstream_stand_in import (
    NO_KEY,
    PROSE,
    entry,
    later,
    names,
    options,
    pages_of,
    says,
)
from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.pageindex_runtime.routes import Findings, settled

TEXTS = ["TOC Alpha Beta", "Alpha", "Beta"]
TOC = [{"structure": "1", "title": "Alpha", "page": None},
       {"structure": "2", "title": "Beta", "page": None}]  # fmt: skip
LISTED = {"toc_content": "Alpha\nBeta", "toc_page_list": [0]}


def followed(mode: str, **answers: Any) -> Any:
    upstream = names(**{"toc_transformer": says(TOC), **answers})
    return asyncio.run(
        upstream["meta_processor"](pages_of(TEXTS), mode=mode, opt=options(), **LISTED)
    )


def parsed(**answers: Any) -> Any:
    upstream = names(**answers)
    return asyncio.run(upstream["tree_parser"](pages_of(TEXTS), options()))


def test_pages_of_the_table_itself_are_asked_about_last() -> None:
    """Both sections are found behind it, so its own page is not shown."""
    shown = []

    def locate(text: str, waiting: list[Any], _model: Any) -> Any:
        shown.append((text, [e["title"] for e in waiting]))
        return [entry("BETA", 3), entry("Alpha", 2, 1)]

    found = followed("process_toc_no_page_numbers", add_page_number_to_toc=locate)

    assert [2, 3] == [e["physical_index"] for e in found]
    assert [["Alpha", "Beta"]] == [titles for _, titles in shown]
    assert "TOC" not in shown[0][0]


def test_numbered_entries_come_first_in_the_chain() -> None:
    """The first way that is confirmed is taken."""
    found = followed(
        "process_toc_with_page_numbers",
        toc_index_extractor=says([entry("Alpha", 2, "1"), entry("Beta", 3, "2")]),
        add_page_number_to_toc=says(NO_KEY),
    )

    assert [2, 3] == [e["physical_index"] for e in found]


def test_a_failed_way_leads_to_the_next() -> None:
    """Whatever it fails with, short of what ends the run."""
    for failure in (PROSE, KeyError("page")):
        found = followed(
            "process_toc_no_page_numbers",
            add_page_number_to_toc=says(failure),
            generate_toc_init=says([entry("Alpha", 2), entry("Beta", 3)]),
        )

        assert [2, 3] == [e["physical_index"] for e in found]


def test_a_little_that_is_wrong_is_repaired() -> None:
    """Two of three are confirmed: the third is looked for."""
    found = followed(
        "process_no_toc",
        generate_toc_init=says([entry("TOC", 1), entry("Alpha", 2), entry("Beta", 1)]),
        check_title_appearance=later(
            lambda item, *_: {
                "answer": "no" if item["physical_index"] == 1
                and item["title"] == "Beta" else "yes"
            }
        ),
        single_toc_item_index_fixer=later(says(3)),
    )  # fmt: skip

    assert [1, 2, 3] == [e["physical_index"] for e in found]


def test_a_chain_that_ends_says_why() -> None:
    """With the failure of the last way, or that nothing was confirmed."""
    with pytest.raises(VectorlessRagError, match="not the JSON asked for"):
        followed("process_no_toc", generate_toc_init=says(PROSE))
    with pytest.raises(VectorlessRagError, match="No sections were found"):
        followed("anything", generate_toc_init=says([entry("Ghost", 1)]))
    with pytest.raises(VectorlessRagError, match="credentials"):
        followed("process_toc_no_page_numbers", add_page_number_to_toc=says(NO_KEY))


def test_a_document_gets_a_tree() -> None:
    """From its text, from its table of contents, or from its pages."""
    from_text = parsed(generate_toc_init=says([entry("Alpha", 2), entry("Beta", 3)]))
    from_toc = parsed(
        check_toc=says({**LISTED, "page_index_given_in_toc": "no"}),
        toc_transformer=says(TOC),
        add_page_number_to_toc=says([entry("Alpha", 2), entry("Beta", 3)]),
    )
    from_pages = parsed(check_toc=says(PROSE), generate_toc_init=says(PROSE))

    assert ["Preface", "Alpha", "Beta"] == [n["title"] for n in from_text]
    assert ["Preface", "Alpha", "Beta"] == [n["title"] for n in from_toc]
    assert ["Pages 1-3"] == [n["title"] for n in from_pages]


def test_a_table_with_printed_pages_is_the_first_way() -> None:
    """The numbers are used where they are said to be given."""
    tree = parsed(
        check_toc=says({**LISTED, "page_index_given_in_toc": "yes"}),
        toc_transformer=says([{**TOC[0], "page": 1}, {**TOC[1], "page": 2}]),
        toc_index_extractor=says([entry("Alpha", 2)]),
    )

    assert [1, 2, 3] == [n["start_index"] for n in tree]


def test_what_ends_the_run_ends_it() -> None:
    """While looking for a table of contents, and while dividing."""
    with pytest.raises(VectorlessRagError, match="credentials"):
        parsed(check_toc=says(NO_KEY))
    with pytest.raises(KeyError, match="defect"):
        parsed(process_large_node_recursively=later(says(KeyError("defect"))))


def test_entries_that_were_not_found_stand_at_their_neighbours() -> None:
    """Marked, and those before the first one at the first."""
    entries = [entry("A"), entry("B", 4), entry("C"), entry("D", 2)]

    found = settled(Findings(entries=entries, accuracy=1.0, enough=True), 9)

    assert [("D", 2), ("A", 4), ("B", 4), ("C", 4)] == [
        (e["title"], e["physical_index"]) for e in found
    ]
    assert ["A", "C"] == [e["title"] for e in found if e.get("degraded")]


def test_parts_cover_every_page() -> None:
    """The last part may be one page."""
    parts = settled(Findings(), 11)

    assert ["Pages 1-10", "Page 11"] == [e["title"] for e in parts]


def test_what_little_was_confirmed_is_kept_and_marked() -> None:
    """One of three is too little for a structure, and is not thrown away."""
    named = [entry("Alpha", 2), entry("Ghost", 3), entry("Ghost too", 3)]

    tree = parsed(generate_toc_init=says(named))

    assert ["Preface", "Alpha"] == [n["title"] for n in tree]
    assert ["siblings"] == [m["what"] for m in tree[1]["degraded"]]
