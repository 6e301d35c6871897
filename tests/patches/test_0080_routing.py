"""Every way of finding the sections leads to the next, and the last to a tree."""

import asyncio
import time
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from patches.good_model import (
    GOOD,
    Log,
    all_marks,
    entry,
    headings,
    options,
    outline,
    pages_of,
    parsed,
    printed,
    titles,
)
from patches.scripted import NO_KEY, TOO_LONG, Cut, HttpError, outcome, provider
from patches.tree_under_test import classic

TOC = printed((None, "Intro", None), (None, "Methods", None))
TEXTS = ["Intro", "Methods"]
INTRO, METHODS = entry("Intro", 1, "1"), entry("Methods", 2, "2")
LOCATED: dict[str, Any] = {
    "one omitted": [INTRO],
    "another case": [INTRO, {**METHODS, "title": "METHODS"}],
    "another order": [METHODS, INTRO],
    "prose": "Both start where one would expect.",
    "wrapped": {"table_of_contents": [INTRO, METHODS]},
}


def pages_found(found: Any) -> Any:
    if not isinstance(found, list):
        return found
    return [(e["title"], e["physical_index"]) for e in found]


def processed(texts: list[str], mode: str, **toc: Any) -> Any:
    return pages_found(
        outcome(
            lambda: asyncio.run(
                classic.meta_processor(
                    pages_of(texts), mode=mode, opt=options(), logger=Log(), **toc
                )
            )
        )
    )


@pytest.mark.parametrize("reply", LOCATED.values(), ids=LOCATED)
def test_a_located_entry_is_known_by_its_title(reply: Any) -> None:
    """Whatever the reply's order, case and shape, no document is lost by it."""
    answers = {
        **GOOD,
        "toc_transformer": TOC,
        "add_page_number_to_toc": reply,
        "generate_toc_init": headings(("Intro", 1), ("Methods", 2)),
    }

    with provider(**answers):
        found = processed(
            TEXTS,
            "process_toc_no_page_numbers",
            toc_content="Intro\nMethods",
            toc_page_list=[],
        )

    assert [("Intro", 1), ("Methods", 2)] == found


def test_numbers_of_another_type_are_the_same_numbers() -> None:
    """A structure of 1 is a structure of "1", also where a title occurs twice."""
    toc = printed(("1", "Results", None), ("2", "Results", None))
    reply = [
        {**entry("Results", 2, None), "structure": 2},
        {**entry("Results", 1, None), "structure": 1},
    ]

    with provider(**{**GOOD, "toc_transformer": toc, "add_page_number_to_toc": reply}):
        found = processed(
            ["Results of A", "Results of B"],
            "process_toc_no_page_numbers",
            toc_content="Results\nResults",
            toc_page_list=[],
        )

    assert [("Results", 1), ("Results", 2)] == found


def test_a_table_of_contents_without_page_numbers_is_used() -> None:
    """Its own headings are looked for, and none is made up from the text."""
    answers = {
        **GOOD,
        "toc_detector_single_page": lambda asked: {
            "toc_detected": "yes" if "CONTENTS" in asked.prompt else "no"
        },
        "toc_transformer": printed(("1", "Alpha", None), ("2", "Beta", None)),
        "add_page_number_to_toc": [entry("Alpha", 2, "1"), entry("Beta", 3, "2")],
        "generate_toc_init": headings(("Something else", 1)),
    }

    with provider(**answers) as script:
        found = outcome(lambda: parsed(["CONTENTS\nAlpha\nBeta", "Alpha", "Beta"]))

    assert isinstance(found, list)
    wanted = [("Preface", 1, 1), ("Alpha", 2, 2), ("Beta", 3, 3)]
    assert wanted == outline(found)
    assert script.to("toc_transformer")
    assert [] == script.to("generate_toc_init")


FAILING: dict[str, tuple[str, dict[str, Any]]] = {
    "transform": ("process_toc_with_page_numbers", {"toc_transformer": TOO_LONG}),
    "locate by number": (
        "process_toc_with_page_numbers",
        {"toc_index_extractor": TOO_LONG, "add_page_number_to_toc": TOO_LONG},
    ),
    "locate by title": (
        "process_toc_no_page_numbers",
        {"add_page_number_to_toc": TOO_LONG},
    ),
    "cut": ("process_toc_no_page_numbers", {"add_page_number_to_toc": Cut("[{")}),
}


@pytest.mark.parametrize(("mode", "failing"), FAILING.values(), ids=FAILING)
def test_a_failure_leads_to_the_next_way(mode: str, failing: dict[str, Any]) -> None:
    """A prompt that is refused costs this way, not the document."""
    answers = {
        **GOOD,
        "toc_transformer": printed(("1", "Alpha", 2)),
        "generate_toc_init": headings(("Alpha", 2)),
        **failing,
    }

    with provider(**answers):
        found = processed(
            ["CONTENTS Alpha", "Alpha"],
            mode,
            toc_content="Alpha ... 2",
            toc_page_list=[0],
        )

    assert [("Alpha", 2)] == found


def test_what_little_was_located_leads_to_the_next_way() -> None:
    """One section of thirty is not a table of contents with one section."""
    texts = [f"Section {n}." for n in range(1, 31)]
    toc = printed(*((None, f"Section {n}.", None) for n in range(1, 31)))
    answers = {
        **GOOD,
        "toc_transformer": toc,
        "add_page_number_to_toc": [entry("Section 20.", 20)],
        "generate_toc_init": headings(*((f"Section {n}.", n) for n in range(1, 31))),
    }

    with provider(**answers):
        found = processed(
            texts, "process_toc_no_page_numbers", toc_content="x", toc_page_list=[]
        )

    assert [(f"Section {n}.", n) for n in range(1, 31)] == found


LETTER = ["Dear Sir, I write to you about a bill.", "Yours faithfully"]


@pytest.mark.parametrize(
    "reply",
    [[], TOO_LONG, "No sections.", [entry("Nowhere to be seen", 1)]],
    ids=["none", "refused", "prose", "not confirmed"],
)
def test_a_document_without_sections_is_one_marked_node(reply: Any) -> None:
    """The pages are known, so there is a tree; it says what it is."""
    with provider(**{**GOOD, "generate_toc_init": reply}):
        found = outcome(lambda: parsed(LETTER))

    assert isinstance(found, list)
    assert [("Pages 1-2", 1, 2)] == outline(found)
    assert ["structure"] == [mark["what"] for mark in all_marks(found)]


def test_a_long_document_without_sections_has_a_node_a_part() -> None:
    """Every page is reachable, in parts that can be read."""
    with provider(**{**GOOD, "generate_toc_init": [], "generate_toc_continue": []}):
        found = outcome(lambda: parsed(["text"] * 25))

    assert isinstance(found, list)
    wanted = [("Pages 1-10", 1, 10), ("Pages 11-20", 11, 20), ("Pages 21-25", 21, 25)]
    assert wanted == outline(found)


def test_what_was_confirmed_is_kept_and_marked() -> None:
    """Too little for a whole structure, but none of it is thrown away."""
    named = headings(("Alpha", 1), ("Ghost", 2), ("Ghost too", 2))

    with provider(**{**GOOD, "generate_toc_init": named}):
        found = outcome(lambda: parsed(["Alpha", "Beta", "Gamma"]))

    assert isinstance(found, list)
    assert [("Alpha", 1, 3)] == outline(found)
    assert ["siblings"] == [mark["what"] for mark in all_marks(found)]


@pytest.mark.parametrize("question", ["toc_detector_single_page", "generate_toc_init"])
def test_refused_credentials_end_the_run(question: str) -> None:
    """A failure of every call leads nowhere else (holds before too)"""
    with provider(**{**GOOD, question: NO_KEY}):
        found = outcome(lambda: parsed(LETTER))

    assert "pageindex_auth" == found


def test_parts_of_a_document_are_read_side_by_side() -> None:
    """While one part waits for its reply, the event loop goes on."""
    waiting: list[int] = []
    most: list[int] = []

    def step(_pages: Any, start_index: int = 1, **_: Any) -> Any:
        waiting.append(start_index)
        for _ in range(200):
            if len(waiting) > 1:
                break
            time.sleep(0.01)
        most.append(len(waiting))
        waiting.remove(start_index)
        return [{**entry("Part", None), "physical_index": start_index}]

    async def all_of_them() -> None:
        await asyncio.gather(
            *(
                classic.meta_processor(
                    pages_of(["Part"]), start_index=n, opt=options(), logger=Log()
                )
                for n in range(1, 5)
            )
        )

    released = classic.process_no_toc
    classic.process_no_toc = step
    try:
        with provider(**GOOD):
            asyncio.run(all_of_them())
    finally:
        classic.process_no_toc = released

    assert max(most) > 1


TITLES = ["Alpha", "Beta", "Gamma", "Ghost"]
ENDS = {"pageindex_auth", "pageindex_bad_request", "pageindex_quota"}

spelled = st.one_of(
    st.none(),
    st.integers(-1, 9),
    st.integers(0, 9).map("<physical_index_{}>".format),
    st.sampled_from(["3", "x", "<physical_index_2> (page 2)"]),
)
one_entry = st.fixed_dictionaries(
    {"title": st.sampled_from(TITLES)},
    optional={
        "structure": st.sampled_from([None, "1", "1.1", "2", 3, "A.1"]),
        "physical_index": spelled,
        "page": st.none() | st.integers(-2, 9) | st.sampled_from(["xii", "3-1"]),
    },
)
entries = st.lists(one_entry, max_size=5)
verdicts = st.sampled_from(["yes", "no", "Yes.", True, None, 3])
faults = st.sampled_from(
    ["", "Sorry.", "null", '[{"title": "Al', "[[[", TOO_LONG, HttpError(400)]
)
drawn_answers = st.fixed_dictionaries(
    {
        "toc_detector_single_page": verdicts.map(lambda v: {"toc_detected": v}),
        "detect_page_index": verdicts.map(lambda v: {"page_index_given_in_toc": v}),
        "check_if_toc_transformation_is_complete": verdicts.map(
            lambda v: {"completed": v}
        ),
        "check_title_appearance": verdicts.map(lambda v: {"answer": v}),
        "check_title_appearance_in_start": verdicts.map(lambda v: {"start_begin": v}),
        "toc_transformer": entries.map(lambda e: {"table_of_contents": e}) | faults,
        "toc_index_extractor": entries | faults,
        "add_page_number_to_toc": entries | faults,
        "generate_toc_init": entries | faults,
        "generate_toc_continue": entries | faults,
        "single_toc_item_index_fixer": spelled.map(lambda p: {"physical_index": p})
        | faults,
    }
)


@settings(max_examples=60, phases=[Phase.generate], deadline=None)
@given(st.lists(st.sampled_from([*TITLES, ""]), min_size=1, max_size=6), drawn_answers)
def test_any_replies_end_in_a_tree_or_a_classified_failure(
    texts: list[str], answers: dict[str, Any]
) -> None:
    """No page is lost, no range reversed, no title made up, and nothing crashes."""
    with provider(**answers):
        found = outcome(lambda: parsed(texts))

    if isinstance(found, str):
        assert found in ENDS
        return
    covered: set[int] = set()

    def check(nodes: list[Any]) -> None:
        for node in nodes:
            assert 1 <= node["start_index"] <= node["end_index"] <= len(texts)
            covered.update(range(node["start_index"], node["end_index"] + 1))
            check(node.get("nodes") or [])

    check(found)
    assert set(range(1, len(texts) + 1)) == covered
    made = ("Preface", "Page", "Pages", "Intro")
    assert all(
        t in TITLES or t.startswith(made) or "(intro)" in t for t in titles(found)
    )
