"""What continuations bring is merged, and their prompts stay bounded."""

import json
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from patches.good_model import GOOD, Log, entry, headings, pages_of, shown_pages
from patches.scripted import (
    MODEL,
    TOO_LONG,
    Asked,
    Cut,
    outcome,
    provider,
    turns,
)
from patches.tree_under_test import classic, utils

A = {"structure": "1", "title": "A", "page": 1}
B = {"structure": "2", "title": "B", "page": 5}
C = {"structure": "3", "title": "C", "page": 9}
CUT = Cut(
    '{"table_of_contents": [{"structure": "1", "title": "A", "page": 1}, '
    '{"structure": "2", "title": "B", "page": 5}, {"structure": "3", "ti'
)
CONTINUATIONS = {
    "an object": {"table_of_contents": [C]},
    "a list": [C],
    "from the character": 'tle": "C", "page": 9}]}',
    "a fenced list": f"```json\n{json.dumps([C])}\n```",
}


@pytest.mark.parametrize("more", CONTINUATIONS.values(), ids=CONTINUATIONS)
def test_a_cut_table_of_contents_is_continued(more: Any) -> None:
    """However the model goes on, every entry is there once."""
    with provider(
        toc_transformer=turns(CUT, more),
        check_if_toc_transformation_is_complete={"completed": "yes"},
    ):
        found = outcome(lambda: classic.toc_transformer("A 1\nB 5\nC 9", MODEL))

    assert [A, B, C] == found


def test_a_continuation_behind_the_last_entry_is_read() -> None:
    """The one way that was read as released is read still (holds before too)"""
    with provider(
        toc_transformer=turns(CUT, json.dumps(C) + "]}"),
        check_if_toc_transformation_is_complete={"completed": "yes"},
    ):
        found = outcome(lambda: classic.toc_transformer("A 1\nB 5\nC 9", MODEL))

    assert [A, B, C] == found


def test_a_cut_table_of_contents_keeps_what_it_has() -> None:
    """A continuation that brings nothing ends the asking, not the document."""
    with provider(
        toc_transformer=turns(CUT, "Sorry."),
        check_if_toc_transformation_is_complete={"completed": "no"},
    ) as script:
        found = outcome(lambda: classic.toc_transformer("A 1\nB 5\nC 9", MODEL))

    assert [A, B] == found
    assert len(script.to("toc_transformer")) <= 3


def test_a_long_table_of_contents_is_read_in_stretches() -> None:
    """No prompt holds all of it, every line is shown, every entry comes back."""
    lines = [f"{n} Section number {n} of many ..... {n}" for n in range(1, 801)]

    def answer(asked: Asked) -> Any:
        shown = [
            n for n in range(1, 801) if f"\n{n} Section number {n} of" in asked.text
        ]
        return {
            "table_of_contents": [
                {"structure": str(n), "title": f"Section number {n} of many", "page": n}
                for n in shown
            ]
        }

    with provider(
        toc_transformer=answer,
        check_if_toc_transformation_is_complete={"completed": "yes"},
    ) as script:
        found = outcome(lambda: classic.toc_transformer("\n".join(lines), MODEL))

    assert isinstance(found, list)
    assert list(range(1, 801)) == [item["page"] for item in found]
    assert max(len(a.text) for a in script.asked) <= 40_000


def indexed(texts: list[str], answers: dict[str, Any]) -> tuple[Any, list[Asked]]:
    with provider(**{**GOOD, **answers}) as script:
        found = outcome(
            lambda: classic.process_no_toc(pages_of(texts), model=MODEL, logger=Log())
        )
    return found, script.asked


def test_prompts_do_not_grow_with_the_document() -> None:
    """All text is sent; each prompt is a group and a fixed part."""
    texts = ["word " * 8000 for _ in range(60)]

    def answer(asked: Asked) -> Any:
        return [
            entry(f"Section {n} on page {page} of the document", page, f"{page}.{n}")
            for page in shown_pages(asked)
            for n in range(12)
        ]

    found, asked = indexed(
        texts, {"generate_toc_init": answer, "generate_toc_continue": answer}
    )

    assert max(utils.count_tokens(a.text, MODEL) for a in asked) <= 30_000
    assert set(range(1, 61)) <= {page for a in asked for page in shown_pages(a)}
    assert 720 == len(found)


REPEATS = [
    entry("Alpha", 1, "1"),
    entry("Gamma", 4, "3"),
    entry("Alpha", 1, "1."),
    entry("Beta", 3, "2"),
]


def test_repeated_entries_are_merged_in_page_order() -> None:
    """An entry that comes twice is one; later pages stand behind earlier ones."""
    texts = ["word " * 12_000] * 4

    found, _ = indexed(
        texts,
        {
            "generate_toc_init": [REPEATS[0]],
            "generate_toc_continue": turns(
                [{**REPEATS[2], "physical_index": None}],
                [REPEATS[3], {**REPEATS[3], "title": "BETA "}],
                [REPEATS[1]],
            ),
        },
    )

    wanted = [("Alpha", 1), ("Beta", 3), ("Gamma", 4), ("Alpha", None)]
    assert wanted == [(e["title"], e["physical_index"]) for e in found]


SMALL, LARGE = ["a", "b", "c", "d"], ["word " * 9_990] * 4
PROSE = "Sorry, here is the tree you asked for."
SECTIONS = headings(("S1", 1), ("S2", 2), ("S3", 3), ("S4", 4))


@pytest.mark.parametrize(
    ("texts", "first", "later"),
    [
        pytest.param(SMALL, turns(PROSE, PROSE, SECTIONS), SECTIONS, id="only group"),
        pytest.param(LARGE, turns(PROSE, PROSE, SECTIONS), SECTIONS, id="first group"),
        pytest.param(LARGE, SECTIONS, turns(PROSE, PROSE, SECTIONS), id="later group"),
    ],
)
def test_a_group_without_a_usable_reply_is_asked_in_halves(
    texts: list[str], first: Any, later: Any
) -> None:
    """After two unusable replies the pages are shown again, in halves."""
    found, _ = indexed(
        texts, {"generate_toc_init": first, "generate_toc_continue": later}
    )

    assert isinstance(found, list)
    assert {1, 2, 3, 4} == {e["physical_index"] for e in found}


def test_a_group_that_stays_unusable_is_a_marked_gap() -> None:
    """What could not be read says so and does not look like "no sections"."""
    found, _ = indexed(
        LARGE, {"generate_toc_init": SECTIONS, "generate_toc_continue": PROSE}
    )

    assert isinstance(found, list)
    gaps = [e for e in found if e.get("degraded")]
    assert {"S1", *(e["title"] for e in gaps)} <= {e["title"] for e in found}
    assert gaps
    marks = {(m["code"], m["what"]) for e in gaps for m in e["degraded"]}
    assert {("pageindex_invalid_json", "structure")} == marks
    nodes = utils.list_to_tree([{**e, "start_index": 1, "end_index": 1} for e in gaps])
    assert all(node.get("degraded") for node in nodes)


def test_no_usable_reply_at_all_is_a_classified_failure() -> None:
    """Nothing known is not the same as no sections (holds before too)"""
    found, _ = indexed(
        SMALL, {"generate_toc_init": TOO_LONG, "generate_toc_continue": TOO_LONG}
    )

    assert "pageindex_context_overflow" == found


codes = st.sampled_from([None, "1", "1.", "2", "2.1"])
names = st.sampled_from(["Alpha", "alpha ", "Beta"])
numbers = st.none() | st.integers(1, 4)
replies = st.lists(st.tuples(codes, names, numbers), max_size=5)


@settings(max_examples=10, phases=[Phase.generate])
@given(replies, replies)
def test_merging_loses_and_repeats_nothing(
    first: list[tuple[Any, ...]], second: list[tuple[Any, ...]]
) -> None:
    """Any two replies give each entry once, in page order, None last."""
    small, large = (
        [entry(name, page, code) for code, name, page in reply]
        for reply in (first, second)
    )
    large_pages = ["word " * 11_000] * 4

    found, _ = indexed(
        large_pages,
        {
            "generate_toc_init": small,
            "generate_toc_continue": large,
        },
    )

    assert isinstance(found, list)
    pages = [e["physical_index"] for e in found]
    placed = [page for page in pages if page is not None]
    assert sorted(placed) + [None] * (len(pages) - len(placed)) == pages
    keys = [
        (
            (e["structure"] or "").rstrip("."),
            e["title"].strip().casefold(),
            e["physical_index"],
        )
        for e in found
    ]
    assert len(keys) == len(set(keys))
