"""Checks of placed entries."""

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from upstream_stand_in import (
    NO_KEY,
    TOO_LONG,
    entry,
    later,
    names,
    pages_of,
    says,
)
from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.pageindex_runtime.marks import mark
from vectorless_rag.pageindex_runtime.plans import DECIDED
from vectorless_rag.pageindex_runtime.verification import gathered
from vectorless_rag.pageindex_runtime.wiring import use

if TYPE_CHECKING:
    from vectorless_rag.pageindex_runtime.calls import Caller

PAGES = pages_of(["Alpha", "Beta"])


def verified(entries: list[dict[str, Any]], **answers: Any) -> Any:
    return asyncio.run(names(**answers)["verify_toc"](PAGES, entries))


def gap() -> dict[str, Any]:
    stand_in = entry("Pages 1-2", 1)
    mark(stand_in, "pageindex_invalid_json", "structure")
    return stand_in


def test_a_stand_in_is_not_looked_for() -> None:
    """Its title is on no page, and it says so itself."""
    assert (1.0, []) == verified([gap(), entry("Beta", 2)])
    assert (0.0, []) == verified([])


def test_a_failed_check_is_not_a_pass() -> None:
    """Nor is a page that does not exist."""
    accuracy, wrong = verified(
        [entry("Alpha", 1), entry("Beta", 3)],
        check_title_appearance=later(says(TOO_LONG)),
    )

    assert (0.0, [0, 1]) == (accuracy, [item["list_index"] for item in wrong])


def test_whether_a_heading_opens_its_page() -> None:
    """Stand-ins do; what cannot be asked about does not."""
    entries = [gap(), entry("Beta", 2), entry("Gamma", 7)]
    check = names(check_title_appearance_in_start=later(says("yes")))

    asyncio.run(check["check_title_appearance_in_start_concurrent"](entries, PAGES))

    assert ["yes", "yes", "no"] == [e["appear_start"] for e in entries]


def test_after_a_failure_that_ends_the_run_nothing_more_is_asked() -> None:
    """Jobs that wait are given up."""
    asked = []

    async def job(number: int) -> int:
        asked.append(number)
        await asyncio.sleep(0)
        raise NO_KEY

    with pytest.raises(VectorlessRagError, match="credentials"):
        asyncio.run(gathered([job(n) for n in range(9)], most=2))

    assert [0, 1] == asked


def test_jobs_need_not_be_coroutines() -> None:
    """A future that waits behind a failure is simply left."""

    async def run() -> list[Any]:
        loop = asyncio.get_running_loop()
        failed, good = loop.create_future(), loop.create_future()
        failed.set_exception(NO_KEY)
        good.set_result(1)
        return await gathered([failed, good], most=1)

    with pytest.raises(VectorlessRagError, match="credentials"):
        asyncio.run(run())


def deciding() -> Any:
    """Put a caller in use whose policy is to ask only what the text leaves open."""
    return use(cast("Caller", SimpleNamespace(policy=SimpleNamespace(decides=DECIDED))))


PROSE = "The quick brown fox jumps over the lazy dog, again and again and again. "


def test_who_opens_a_page_is_asked_where_it_matters() -> None:
    """Not of the first page, nor of a second entry on one page."""
    entries = [entry("A", 1), entry("B", 2), entry("C", 2), entry("D", 3)]
    asked: list[str] = []

    def answer(title: str, *_: Any, **__: Any) -> str:
        asked.append(title)
        return "yes"

    check = names(check_title_appearance_in_start=later(answer))
    with deciding():
        run = check["check_title_appearance_in_start_concurrent"]
        asyncio.run(run(entries, pages_of([PROSE, PROSE, f"{PROSE * 3}\nD\n"])))

    assert (["B"], ["no", "yes", "no", "no"]) == (
        asked, [e["appear_start"] for e in entries],
    )  # fmt: skip


def test_what_was_told_of_the_same_page_is_not_asked_again() -> None:
    """An entry that has moved since is asked about anew."""
    told = {"appear_start": "yes", "opens_page": 2}
    entries = [entry("A", 1), entry("B", 2) | told, entry("C", 3) | told]
    check = names(check_title_appearance_in_start=later(says("no")))

    with deciding():
        run = check["check_title_appearance_in_start_concurrent"]
        asyncio.run(run(entries, pages_of([PROSE] * 3)))

    assert ["no", "yes", "no"] == [e["appear_start"] for e in entries]
