"""
Whether entries stand on the pages they claim, and how many of all of them do.

An entry without a page, and one whose check failed, counts against the accuracy:
nothing is known of it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from vectorless_rag.pageindex_runtime.entries import Entry, page_of
from vectorless_rag.pageindex_runtime.setbacks import is_fatal
from vectorless_rag.pageindex_runtime.title_lines import opening
from vectorless_rag.pageindex_runtime.wiring import decides

CONCURRENCY = 32
"""Checks in flight at once."""

Pages = Sequence[tuple[str, int]]
Upstream = Mapping[str, Any]
Checked = dict[str, Any]

T = TypeVar("T")


async def gathered(
    jobs: Iterable[Awaitable[T]], *, most: int = CONCURRENCY
) -> list[T | Exception]:
    """
    Run *jobs*, at most *most* at once, and return their results in order.

    Returns:
        For each job its result, or the failure that spoiled this job alone.

    Raises:
        Exception: The first failure that ends the run, once no job is running.
    """
    slots = asyncio.Semaphore(most)
    ended: list[Exception] = []

    async def run(job: Awaitable[T]) -> T | Exception:
        async with slots:
            if ended:
                # Spend nothing more. A coroutine that never runs must be closed.
                if asyncio.iscoroutine(job):
                    job.close()
                return ended[0]
            try:
                return await job
            except Exception as error:  # noqa: BLE001  (sorted out below)
                if is_fatal(error):
                    ended.append(error)
                return error

    results = await asyncio.gather(*map(run, jobs))
    if ended:
        raise ended[0]
    return results


def stands_for_pages(entry: Entry) -> bool:
    """Tell whether an entry is a stand-in whose title is on no page."""
    return any(mark["what"] == "structure" for mark in entry.get("degraded") or ())


def verifier_in(upstream: Upstream) -> Callable[..., Any]:
    """Return ``verify_toc`` for the module whose names are *upstream*."""

    async def verify_toc(
        page_list: Pages,
        list_result: list[Entry],
        start_index: int = 1,
        N: int | None = None,  # noqa: N803  (upstream's signature)
        model: str | None = None,
    ) -> tuple[float, list[Checked]]:
        """
        Check every placed title against the text of its page.

        Args:
            page_list: The pages the entries were looked for in.
            list_result: The entries.
            start_index: Number of the first of these pages.
            N: Not used: a sample says nothing about the rest.
            model: Passed to the check.

        Returns:
            The share of all entries that were confirmed, and the entries that
            were not: place in the list, title, page and the answer ``no``.
        """
        del N
        asked, unknown, confirmed = [], [], 0
        last = start_index + len(page_list) - 1
        for place, entry in enumerate(list_result):
            page = page_of(entry.get("physical_index"))
            if stands_for_pages(entry):
                confirmed += 1
            elif page is None or not start_index <= page <= last:
                unknown.append(_unconfirmed(place, entry, None))
            else:
                asked.append({**entry, "physical_index": page, "list_index": place})
        check = upstream["check_title_appearance"]
        results = await gathered(
            check(item, page_list, start_index, model) for item in asked
        )
        incorrect = [
            _unconfirmed(item["list_index"], item, item["physical_index"])
            for item, result in zip(asked, results, strict=True)
            if isinstance(result, Exception) or result["answer"] != "yes"
        ]
        confirmed += len(asked) - len(incorrect)
        accuracy = confirmed / len(list_result) if list_result else 0.0
        return accuracy, sorted([*unknown, *incorrect], key=lambda r: r["list_index"])

    return verify_toc


def _unconfirmed(place: int, entry: Entry, page: int | None) -> Checked:
    return {
        "list_index": place,
        "answer": "no",
        "title": entry.get("title"),
        "page_number": page,
    }


def opening_checker_in(upstream: Upstream) -> Callable[..., Any]:
    """Return ``check_title_appearance_in_start_concurrent`` for *upstream*."""

    async def check_title_appearance_in_start_concurrent(
        structure: list[Entry],
        page_list: Pages,
        model: str | None = None,
        logger: object = None,
    ) -> list[Entry]:
        """
        Write into every entry whether it opens its page: ``appear_start``.

        Where that is known, ``opens_page`` says of which page, and it is not asked
        again. Without a page, with a page that does not exist, or where the check
        failed, it does not. Nothing is asked that the text shows, or that no other
        entry's pages depend on.
        """
        check = upstream["check_title_appearance_in_start"]
        by_text = decides("check_title_appearance_in_start")
        known = [_asked_before(entry) for entry in structure]
        matters = _places_that_matter(structure) if by_text else range(len(structure))
        asked = []
        for place, entry in enumerate(structure):
            if known[place]:
                continue
            entry["appear_start"] = "no"
            page = page_of(entry.get("physical_index"))
            if stands_for_pages(entry):
                entry["appear_start"] = "yes"
            elif page is None or not 1 <= page <= len(page_list):
                continue
            elif by_text and (answer := opening(entry["title"], page_list, page - 1)):
                entry |= {"appear_start": answer, "opens_page": page}
            elif place in matters:
                asked.append((entry, page_list[page - 1][0]))
        results = await gathered(
            check(entry["title"], text, model=model, logger=logger)
            for entry, text in asked
        )
        for (entry, _), result in zip(asked, results, strict=True):
            if not isinstance(result, Exception):
                entry |= {"appear_start": result, "opens_page": entry["physical_index"]}
        return structure

    return check_title_appearance_in_start_concurrent


def _asked_before(entry: Entry) -> bool:
    """Tell whether it was asked of this very page, along with other checks."""
    page = entry.pop("opens_page", None)
    return page is not None and page == entry.get("physical_index")


def _places_that_matter(structure: Sequence[Entry]) -> set[int]:
    """
    List the entries of which it matters whether they open their page.

    What an entry before it has of the page depends on the first entry of a page
    alone, and on the first page of all nothing does.
    """
    pages = [page_of(entry.get("physical_index")) for entry in structure]
    first: dict[int, int] = {}
    for place, page in enumerate(pages):
        if page is not None:
            first.setdefault(page, place)
    return {place for page, place in first.items() if page != min(first)}
