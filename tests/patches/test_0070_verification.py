"""Every placed title is checked; what is not confirmed counts against the rest."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patches.good_model import (
    GOOD,
    Log,
    appears,
    headings,
    options,
    pages_of,
    title_asked,
)
from patches.scripted import MODEL, NO_KEY, TOO_LONG, Asked, outcome, provider
from patches.tree_under_test import classic

OPENING = "check_title_appearance_in_start"
FRONT = [f"Chapter {n}" for n in range(1, 5)] + ["table data"] * 20


def placed(title: str, page: int | None) -> dict[str, Any]:
    return {"structure": None, "title": title, "physical_index": page}


def verified(texts: list[str], entries: list[dict[str, Any]]) -> Any:
    return outcome(
        lambda: asyncio.run(classic.verify_toc(pages_of(texts), entries, model=MODEL))
    )


def test_sections_in_the_first_half_are_checked() -> None:
    """A document may end with tables or references that have no heading."""
    entries = [placed(f"Chapter {n}", n) for n in range(1, 5)]

    with provider(**GOOD) as script:
        found = verified(FRONT, entries)

    assert (1.0, []) == found
    assert 4 == len(script.to("check_title_appearance"))


def test_a_front_loaded_document_keeps_its_sections() -> None:
    """What was named rightly is what comes out, after four checks."""
    answers = headings(*((f"Chapter {n}", n) for n in range(1, 5)))

    with provider(**{**GOOD, "generate_toc_init": answers}) as script:
        found = outcome(
            lambda: asyncio.run(
                classic.meta_processor(
                    pages_of(FRONT), mode="process_no_toc", opt=options(), logger=Log()
                )
            )
        )

    assert isinstance(found, list)
    assert [1, 2, 3, 4] == [e["physical_index"] for e in found]
    assert 4 == len(script.to("check_title_appearance"))


def test_an_entry_without_a_page_counts_against_the_rest() -> None:
    """One of two was confirmed, and the other is told apart."""
    entries = [placed("Alpha", 1), placed("Beta", None)]

    with provider(**GOOD):
        found = verified(["Alpha", "Beta"], entries)

    unknown = {"list_index": 1, "answer": "no", "title": "Beta", "page_number": None}
    assert (0.5, [unknown]) == found


def test_a_page_that_does_not_exist_is_no_page() -> None:
    """Page 0 is not the last page, and page 9 of 2 is no accident."""
    entries = [placed("Alpha", 0), placed("Beta", 9), placed("Beta", 2)]

    with provider(**GOOD):
        found = verified(["Alpha", "Beta"], entries)

    assert isinstance(found, tuple)
    accuracy, incorrect = found
    assert (1 / 3, [0, 1]) == (accuracy, [item["list_index"] for item in incorrect])


def test_a_check_that_failed_is_not_a_pass() -> None:
    """Nothing is known of an entry whose check brought no answer."""

    def answer(asked: Asked) -> Any:
        return TOO_LONG if title_asked(asked) == "Beta" else appears(asked)

    with provider(check_title_appearance=answer):
        found = verified(["Alpha", "Beta"], [placed("Alpha", 1), placed("Beta", 2)])

    assert isinstance(found, tuple)
    accuracy, incorrect = found
    assert (0.5, ["Beta"]) == (accuracy, [item["title"] for item in incorrect])


def test_refused_credentials_end_the_run() -> None:
    """A failure of every call is no verdict about the entries."""
    entries = [placed("Alpha", 1), placed("Alpha", 2)]

    with provider(check_title_appearance=NO_KEY):
        found = verified(["Alpha", "Alpha"], entries)

    assert "pageindex_auth" == found


@pytest.mark.parametrize("which", ["check_title_appearance", OPENING])
def test_checks_are_not_all_in_flight_at_once(
    which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three hundred entries are checked a few at a time."""
    now = most = 0

    async def check(*_: Any, **__: Any) -> Any:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0)
        now -= 1
        return "yes" if which == OPENING else {"answer": "yes"}

    monkeypatch.setattr(classic, which, check)
    entries = [placed("A", n) for n in range(1, 301)]
    pages = pages_of(["A"] * 300)
    if which == OPENING:
        asyncio.run(classic.check_title_appearance_in_start_concurrent(entries, pages))
    else:
        asyncio.run(classic.verify_toc(pages, entries))

    assert 0 < most <= 64


def test_a_heading_that_could_not_be_asked_about_opens_no_page() -> None:
    """Nor does one on a page that does not exist, or that has no page."""
    entries = [placed("Gamma", 9), placed("Beta", None), placed("Alpha", 1)]

    with provider(check_title_appearance_in_start=TOO_LONG):
        found = outcome(
            lambda: asyncio.run(
                classic.check_title_appearance_in_start_concurrent(
                    entries, pages_of(["Alpha"]), model=MODEL
                )
            )
        )

    assert isinstance(found, list)
    assert ["no"] * 3 == [e["appear_start"] for e in found]


@given(st.lists(st.tuples(st.sampled_from("ABC"), st.none() | st.integers(-1, 5))))
def test_the_share_is_of_all_entries(drawn: list[tuple[str, int | None]]) -> None:
    """Whatever the entries: confirmed ones plus the others make all of them."""
    texts = ["A", "B", "C"]
    entries = [placed(title, page) for title, page in drawn]
    right = sum(
        page is not None and 1 <= page <= 3 and texts[page - 1] == title
        for title, page in drawn
    )

    with provider(**GOOD):
        found = verified(texts, entries)

    assert isinstance(found, tuple)
    accuracy, incorrect = found
    assert len(drawn) - right == len(incorrect)
    assert (right / len(drawn) if drawn else 0) == accuracy
