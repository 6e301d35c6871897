"""Pages are looked for in bounded windows, and only what was shown is believed."""

import asyncio
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from patches.good_model import (
    GOOD,
    Log,
    appears,
    entry,
    headings,
    options,
    pages_of,
    parsed,
    printed,
    shown_pages,
    title_asked,
)
from patches.scripted import MODEL, TOO_LONG, Asked, outcome, provider
from patches.tree_under_test import classic, utils

Placed = dict[str, Any]


def placed(title: str, page: int | None) -> Placed:
    return {"structure": None, "title": title, "physical_index": page}


def wrong(entries: list[Placed], *titles: str) -> list[Placed]:
    return [
        {"list_index": n, "title": e["title"], "page_number": e["physical_index"]}
        for n, e in enumerate(entries)
        if e["title"] in titles
    ]


def repaired(pages: Any, entries: list[Placed], *titles: str) -> Any:
    return outcome(
        lambda: asyncio.run(
            classic.fix_incorrect_toc_with_retries(
                entries, pages, wrong(entries, *titles), model=MODEL, logger=Log()
            )
        )
    )


def numbered(texts: list[str], toc: Any, listed: list[int], **answers: Any) -> Any:
    """Run the way of a table of contents with printed pages."""
    with provider(**{**GOOD, "toc_transformer": toc, **answers}) as script:
        found = outcome(
            lambda: classic.process_toc_with_page_numbers(
                "toc", listed, pages_of(texts), toc_check_page_num=20, model=MODEL,
                logger=Log(),
            )
        )  # fmt: skip
    return found, script


def places(found: Any) -> Any:
    if not isinstance(found, list):
        return found
    return [(e["title"], e.get("physical_index")) for e in found]


def test_no_offset_is_no_accident() -> None:
    """Nothing ties the printed pages to the text: the next way finds them."""
    texts = ["CONTENTS Alpha 1 Beta 3", "foreword", "Alpha", "more", "Beta", "end"]
    answers = {
        **GOOD,
        "toc_detector_single_page": lambda asked: {
            "toc_detected": "yes" if "CONTENTS" in asked.prompt else "no"
        },
        "detect_page_index": {"page_index_given_in_toc": "yes"},
        "toc_transformer": printed(("1", "Alpha", 1), ("2", "Beta", 3)),
        "toc_index_extractor": [],
        "add_page_number_to_toc": [],
        "generate_toc_init": headings(("Alpha", 3), ("Beta", 5)),
    }

    with provider(**answers):
        direct = outcome(
            lambda: classic.process_toc_with_page_numbers(
                "toc", [0], pages_of(texts), toc_check_page_num=20, model=MODEL,
                logger=Log(),
            )
        )  # fmt: skip
        tree = outcome(lambda: parsed(texts))

    assert "pageindex_no_structure" == direct
    assert isinstance(tree, list)
    assert {("Alpha", 3), ("Beta", 5)} <= {(n["title"], n["start_index"]) for n in tree}


def test_a_title_that_comes_twice_shifts_nothing() -> None:
    """Three sections called Exercises: the one located is the one it says."""
    texts = [f"page {n}" for n in range(1, 101)]
    toc = printed(
        ("0", "Intro", 1),
        ("1.1", "Exercises", None),
        ("2.1", "Exercises", 20),
        ("3.1", "Exercises", 30),
    )

    found, _ = numbered(
        texts,
        toc,
        [0],
        toc_index_extractor=[entry("Exercises", 14, None)],
        add_page_number_to_toc=[],
    )
    told, _ = numbered(
        texts,
        toc,
        [0],
        toc_index_extractor=[entry("Intro", 5, "0"), entry("Exercises", 14, "1.1")],
        add_page_number_to_toc=[],
    )

    right = [5, 14, 24, 34]
    assert isinstance(found, list)
    pages = [e.get("physical_index") for e in found]
    assert all(p in {None, r} for p, r in zip(pages, right, strict=True))
    assert isinstance(told, list)
    assert right == [e.get("physical_index") for e in told]


def test_a_title_that_may_be_several_entries_makes_no_pair() -> None:
    """One heading called Exercises is not known to be the second of three."""
    toc = printed(("1.1", "Exercises", None), ("2.1", "Exercises", 20))

    pairs = classic.extract_matching_page_pairs(
        toc["table_of_contents"], [placed("Exercises", 14)], 1
    )

    assert [] == [pair for pair in pairs if pair["page"] is not None]


def test_of_equal_votes_the_smaller_offset_is_taken() -> None:
    """Whatever the order of the pairs."""
    pairs = [{"page": 2, "physical_index": 9}, {"page": 1, "physical_index": 5}]

    assert 4 == classic.calculate_page_offset(pairs)


def test_an_unknown_offset_moves_nothing() -> None:
    """The entries are left for the next way."""
    rows = [{"title": "Alpha", "page": 1}, {"title": "Beta", "page": "xii"}]

    found = outcome(lambda: classic.add_page_offset_to_toc_json(rows, None))

    assert [1, "xii"] == [row["page"] for row in rows]
    assert rows == found


def test_printed_pages_are_not_shown_where_physical_ones_are_asked() -> None:
    """The model cannot copy what it is not told."""
    _, script = numbered(
        ["toc", "a", "Alpha", "b"],
        printed(("1", "Alpha", 7)),
        [0],
        toc_index_extractor=[],
        add_page_number_to_toc=[],
    )

    (asked, *_) = script.to("toc_index_extractor")
    assert "'page'" not in asked.prompt
    assert "7" not in asked.prompt.split("Document pages:")[0].split("Alpha")[1]


def test_an_entry_without_a_printed_page_is_looked_for() -> None:
    """A missing key is a missing page (holds before too)"""
    toc = {
        "table_of_contents": [
            {"structure": "1", "title": "Alpha", "page": 1},
            {"structure": "2", "title": "Beta"},
        ]
    }

    found, _ = numbered(
        ["CONTENTS", "Alpha", "Beta"],
        toc,
        [0],
        toc_index_extractor=[entry("Alpha", 2, "1")],
        add_page_number_to_toc=[entry("Beta", 3, "2")],
    )

    assert [("Alpha", 2), ("Beta", 3)] == places(found)


def test_an_explicit_none_is_missing_too() -> None:
    """A page of None is looked for, between its neighbours."""
    texts = [f"Section {n}." for n in range(1, 6)]
    entries = [
        placed("Section 1.", 1),
        placed("Section 2.", None),
        placed("Section 5.", 5),
    ]

    with provider(add_page_number_to_toc=[entry("Section 2.", 2)]) as script:
        found = outcome(
            lambda: classic.process_none_page_numbers(
                entries, pages_of(texts), model=MODEL
            )
        )

    assert [("Section 1.", 1), ("Section 2.", 2), ("Section 5.", 5)] == places(found)
    assert {1, 2, 3, 4, 5} >= set(shown_pages(script.asked[0]))


def test_an_empty_window_costs_nothing() -> None:
    """Where no page can be shown, nothing is asked."""
    entries = [
        {**placed("A", 4), "page": 1},
        {"structure": None, "title": "B", "page": 2},
        {**placed("C", 2), "page": 3},
    ]

    with provider(add_page_number_to_toc=[]) as script:
        found = outcome(
            lambda: classic.process_none_page_numbers(
                entries, pages_of(["x"] * 5), model=MODEL
            )
        )

    assert [("A", 4), ("B", None), ("C", 2)] == places(found)
    assert [] == script.asked


def test_page_labels_of_a_section_do_not_lose_what_was_located() -> None:
    """Labels such as 3-1 give no offset; the sections found keep their pages."""
    texts = ["toc", *(f"Section {n}." for n in range(1, 41))]
    toc = printed(*((None, f"Section {n}.", f"{n}-1") for n in range(1, 41)))

    found, script = numbered(
        texts,
        toc,
        [0],
        toc_index_extractor=[entry(f"Section {n}.", n + 1) for n in range(1, 20)],
        add_page_number_to_toc=[],
    )

    assert isinstance(found, list)
    assert list(range(2, 21)) == [e.get("physical_index") for e in found][:19]
    assert all(shown_pages(asked) for asked in script.to("add_page_number_to_toc"))


TWENTY = [f"S{n}. body" for n in range(1, 21)]
ODD: dict[str, Any] = {
    "with words": "<physical_index_5> (page 5)",
    "not a page": "<physical_index_999>",
    "a float": 7.0,
    "a list": ["<physical_index_7>"],
    "nothing": None,
}


@pytest.mark.parametrize("page", ODD.values(), ids=ODD)
def test_an_odd_answer_repairs_nothing(page: Any) -> None:
    """The entries stay unconfirmed, and are asked about again, up to the limit."""
    entries = [placed(f"S{n}.", n) for n in range(1, 21)]

    def answer(asked: Asked) -> Any:
        return {"answer": "no" if title_asked(asked) in {"S5", "S10"} else "yes"}

    with provider(
        single_toc_item_index_fixer={"physical_index": page},
        check_title_appearance=answer,
    ):
        found = repaired(pages_of(TWENTY), entries, "S5.", "S10.")

    assert isinstance(found, tuple)
    toc, still = found
    assert [4, 9] == [result["list_index"] for result in still]
    assert [None, None] == [toc[4]["physical_index"], toc[9]["physical_index"]]


def test_a_page_that_was_not_shown_is_refused() -> None:
    """Page 0 is not the last page, though that page holds the title."""
    texts = [f"S{n}. body" for n in range(1, 20)] + ["Appendix at the very end"]
    entries = [
        placed("Appendix", 3),
        placed("S2.", 10),
        placed("S12.", 12),
        placed("S14.", 14),
    ]

    with provider(
        single_toc_item_index_fixer={"physical_index": "<physical_index_0>"},
        check_title_appearance=appears,
    ):
        found = repaired(pages_of(texts), entries, "Appendix")

    assert isinstance(found, tuple)
    assert [None, 10, 12, 14] == [e["physical_index"] for e in found[0]]


def test_an_entry_that_stays_wrong_is_marked_in_the_tree() -> None:
    """It stands within its neighbours' bounds and says that it was not found."""
    texts = [f"S{n}. body" for n in range(1, 11)]
    named = [entry(f"S{n}.", 9 if n == 5 else n, str(n)) for n in range(1, 11)]

    with provider(
        **{
            **GOOD,
            "generate_toc_init": named,
            "single_toc_item_index_fixer": {"physical_index": "<physical_index_9>"},
        }
    ):
        tree = outcome(lambda: parsed(texts))

    assert isinstance(tree, list)
    (node,) = [n for n in tree if n["title"] == "S5."]
    assert 4 <= node["start_index"] <= 6
    assert ["location"] == [mark["what"] for mark in node["degraded"]]
    assert [] == [n for n in tree if n.get("degraded") and n is not node]


def test_repair_prompts_are_bounded() -> None:
    """Six entries somewhere in 290 pages are looked for page by likely page."""
    texts = [f"S{n}. " + "word " * 1000 for n in range(1, 301)]
    pages = [(text, 1000) for text in texts]
    entries = [placed(f"S{n}.", n) for n in range(1, 15)]
    entries += [placed(f"S{n}.", n + 1) for n in range(160, 220, 10)]
    lost = [f"S{n}." for n in range(160, 220, 10)]

    with provider(
        single_toc_item_index_fixer={"physical_index": "<physical_index_30>"},
        check_title_appearance={"answer": "no"},
    ) as script:
        found = repaired(pages, entries, *lost)

    assert isinstance(found, tuple)
    sizes = [
        utils.count_tokens(a.text, MODEL)
        for a in script.to("single_toc_item_index_fixer")
    ]
    assert max(sizes) <= 21_000
    assert sum(sizes) <= 2_600_000
    for title in lost:
        first = next(
            a for a in script.to("single_toc_item_index_fixer") if title in a.prompt
        )
        assert int(title[1:-1]) in shown_pages(first)


def test_a_likely_page_is_shown_first_and_believed_when_confirmed() -> None:
    """An entry that can be found is repaired with one question."""
    entries = [placed("S1.", 1), placed("S7.", 3), placed("S20.", 20)]

    def answer(asked: Asked) -> Any:
        (page,) = [n for n, text in shown_pages(asked).items() if "S7." in text]
        return {"physical_index": page}

    with provider(
        single_toc_item_index_fixer=answer, check_title_appearance=appears
    ) as script:
        pages = [(f"{text} " + "word " * 3000, 3000) for text in TWENTY]
        found = repaired(pages, entries, "S7.")

    assert isinstance(found, tuple)
    assert [1, 7, 20] == [e["physical_index"] for e in found[0]]
    (asked,) = script.to("single_toc_item_index_fixer")
    assert utils.count_tokens(asked.text, MODEL) <= 21_000


def test_a_failed_question_leaves_the_entry_open() -> None:
    """A prompt that is refused costs its own entry only."""
    entries = [placed("S1.", 1), placed("S7.", 3), placed("S20.", 20)]

    with provider(single_toc_item_index_fixer=TOO_LONG):
        found = repaired(pages_of(TWENTY), entries, "S7.")

    assert isinstance(found, tuple)
    assert [1, None, 20] == [e["physical_index"] for e in found[0]]
    assert 1 == len(found[1])


pages_drawn = st.none() | st.integers(-1, 9)


@settings(max_examples=40, phases=[Phase.generate], deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["A", "B", "C"]), pages_drawn), max_size=5),
    st.lists(st.tuples(st.sampled_from(["A", "B", "C"]), pages_drawn), max_size=4),
    st.lists(st.sampled_from(["A", "B", "C", ""]), min_size=1, max_size=5),
)
def test_any_entries_and_answers_leave_real_pages(
    drawn: list[tuple[str, int | None]],
    answer: list[tuple[str, int | None]],
    texts: list[str],
) -> None:
    """An entry gets a page that exists and was shown, or none (holds before too)"""
    items = [placed(title, page) for title, page in drawn]
    inside = [dict(e) for e in items]
    for e in inside:
        page = e["physical_index"]
        e["physical_index"] = page if page and 1 <= page <= len(texts) else None
    before = [e["physical_index"] for e in inside]
    reply = [{**entry(title, None), "physical_index": page} for title, page in answer]

    with provider(add_page_number_to_toc=reply) as script:
        found = outcome(
            lambda: classic.process_none_page_numbers(
                inside, pages_of(texts), model=MODEL
            )
        )

    assert isinstance(found, list)
    shown = {page for asked in script.asked for page in shown_pages(asked)}
    for old, e in zip(before, found, strict=True):
        new = e["physical_index"]
        assert new == old if old is not None else new is None or new in shown


def test_options_are_as_the_upstream_has_them() -> None:
    """The tests here use the released defaults (holds before too)"""
    ours, theirs = vars(options()), vars(utils.ConfigLoader().load({}))

    assert {k: v for k, v in ours.items() if k != "model"}.items() <= theirs.items()
