"""
Pages of entries that have none, or a wrong one, looked for again.

Every search shows a bounded window of real pages; an answer counts only if it names
a page that was shown and the check confirms it. What stays unknown has no page.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.pageindex_runtime.entries import Entry, page_of
from vectorless_rag.pageindex_runtime.no_toc import Pages, groups_of, pages_shown
from vectorless_rag.pageindex_runtime.offsets import (
    calculate_page_offset,
    match,
    matching_pairs,
    place_by_finding,
    place_by_offset,
    without_printed_pages,
)
from vectorless_rag.pageindex_runtime.placing import agreed, placed_by_text
from vectorless_rag.pageindex_runtime.setbacks import is_fatal
from vectorless_rag.pageindex_runtime.title_lines import only_page_of
from vectorless_rag.pageindex_runtime.verification import Checked, gathered
from vectorless_rag.pageindex_runtime.windows import bounds, likely_pages, window
from vectorless_rag.pageindex_runtime.wiring import decides

Upstream = Mapping[str, Any]

MAX_ENTRIES = 150
"""Entries of a table of contents shown in one prompt."""


@dataclass(frozen=True)
class Search:
    """Where sections are looked for, and whom to ask."""

    upstream: Upstream
    pages: Pages
    start: int
    """Number of the first of these pages."""

    model: str | None

    @property
    def document(self) -> tuple[int, int]:
        """First and last page there are."""
        return self.start, self.start + len(self.pages) - 1

    def show(self, title: str, numbers: Sequence[int]) -> tuple[str, list[int]]:
        """Mark as many of the pages *numbers* as a prompt takes, likeliest first."""
        likely = likely_pages(title, self.pages, numbers, self.start)
        return window(
            self.upstream, self.pages, likely, start=self.start, model=self.model
        )


def numbered_toc_reader_in(upstream: Upstream) -> Callable[..., list[Entry]]:
    """Return ``process_toc_with_page_numbers`` for *upstream*."""

    def process_toc_with_page_numbers(  # noqa: PLR0917  (upstream's signature)
        toc_content: str,
        toc_page_list: Sequence[int],
        page_list: Pages,
        toc_check_page_num: int | None = None,
        model: str | None = None,
        logger: object = None,
    ) -> list[Entry]:
        """
        Place the entries of a table of contents by their printed pages.

        Returns:
            Every entry, with the number of its page or None.

        Raises:
            VectorlessRagError: ``pageindex_no_structure`` if no entry was found in
                the text, so that nothing ties printed pages to physical ones.
        """
        del logger
        toc = upstream["toc_transformer"](toc_content, model)
        first = max(toc_page_list, default=-1) + 2
        searched = page_list[first - 1 : first - 1 + (toc_check_page_num or 20)]
        located = _located(upstream, toc, searched, first, model)
        if not located:
            raise VectorlessRagError(Code.NO_STRUCTURE, "no section found by its title")
        placed = place_by_finding(toc, located, first)
        offset = calculate_page_offset(matching_pairs(toc, located, first))
        if offset is not None:
            by_number = place_by_offset(toc, offset, (1, len(page_list)))
            placed = [
                number if number["physical_index"] is not None else found
                for number, found in zip(by_number, placed, strict=True)
            ]
        repair = upstream["process_none_page_numbers"]
        repaired: list[Entry] = repair(placed, page_list, model=model)
        return repaired

    return process_toc_with_page_numbers


def _located(
    upstream: Upstream,
    toc: Sequence[Entry],
    pages: Pages,
    first: int,
    model: str | None,
) -> list[Entry]:
    """
    Tell on which of *pages* the sections start; a group that fails adds none.

    Nothing is asked where the text places enough of them by itself.
    """
    if decides("toc_index_extractor") and agreed(
        by_text := placed_by_text(toc, pages, first)
    ):
        return by_text
    shown = without_printed_pages(toc[:MAX_ENTRIES])
    located: list[Entry] = []
    for group in groups_of(upstream, pages, first, model) if pages else []:
        try:
            found = upstream["toc_index_extractor"](shown, group, model)
        except VectorlessRagError as error:
            if is_fatal(error):
                raise
            continue
        located += [e for e in found if page_of(e.get("physical_index")) is not None]
    return located


def open_entry_finder_in(upstream: Upstream) -> Callable[..., list[Entry]]:
    """Return ``process_none_page_numbers`` for *upstream*."""

    def process_none_page_numbers(
        toc_items: list[Entry],
        page_list: Pages,
        start_index: int = 1,
        model: str | None = None,
    ) -> list[Entry]:
        """
        Look for entries without a page between their neighbours.

        Neighbouring open entries are asked about together. Entries that are not
        found keep no page; nothing is asked where no page can be shown.
        """
        search = Search(upstream, page_list, start_index, model)
        places = [
            place
            for place, item in enumerate(toc_items)
            if page_of(item.get("physical_index")) is None
        ]
        for item in toc_items:
            item["physical_index"] = page_of(item.get("physical_index"))
        for run in _runs(places):
            low, high = bounds(toc_items, run[0], set(run), search.document)
            batch = [toc_items[place] for place in run[:MAX_ENTRIES]]
            _find(search, batch, range(low, high + 1))
        for item in toc_items:
            item.pop("page", None)
        return toc_items

    return process_none_page_numbers


def _runs(places: Sequence[int]) -> list[list[int]]:
    """Group places that follow one another."""
    numbered = enumerate(places)
    return [
        [place for _, place in run]
        for _, run in groupby(numbered, key=lambda pair: pair[1] - pair[0])
    ]


def _find(search: Search, batch: Sequence[Entry], numbers: range) -> None:
    """Ask on which of the pages *numbers* the entries of *batch* start."""
    title = " ".join(str(entry.get("title") or "") for entry in batch)
    text, shown = search.show(title, numbers)
    if not shown:
        return
    try:
        found = search.upstream["add_page_number_to_toc"](
            text, without_printed_pages(batch), search.model
        )
    except VectorlessRagError as error:
        if is_fatal(error):
            raise
        return
    for answer in found:
        page = page_of(answer.get("physical_index"))
        entry = match(answer, batch, found)
        if entry is not None and page in shown and entry["physical_index"] is None:
            entry["physical_index"] = page


def fixer_in(upstream: Upstream) -> Callable[..., Any]:
    """Return ``fix_incorrect_toc_with_retries`` for *upstream*."""

    async def fix_incorrect_toc_with_retries(  # noqa: PLR0917
        toc_with_page_number: list[Entry],
        page_list: Pages,
        incorrect_results: list[Checked],
        start_index: int = 1,
        max_attempts: int = 3,
        model: str | None = None,
        logger: object = None,
    ) -> tuple[list[Entry], list[Checked]]:
        """
        Look again for entries that the check did not confirm.

        Each attempt shows pages that the ones before did not.

        Returns:
            The entries, those still not confirmed without a page, and these last.
        """
        seen: dict[int, set[int]] = {}
        for _ in range(max_attempts):
            if not incorrect_results:
                break
            toc_with_page_number, incorrect_results = await upstream[
                "fix_incorrect_toc"
            ](
                toc_with_page_number, page_list, incorrect_results, start_index,
                model, logger, seen,
            )  # fmt: skip
        for result in incorrect_results:
            place = result["list_index"]
            if 0 <= place < len(toc_with_page_number):
                toc_with_page_number[place]["physical_index"] = None
        return toc_with_page_number, incorrect_results

    return fix_incorrect_toc_with_retries


def one_attempt_in(upstream: Upstream) -> Callable[..., Any]:
    """Return ``fix_incorrect_toc``: one search for each entry that is wrong."""

    async def fix_incorrect_toc(  # noqa: PLR0917
        toc_with_page_number: list[Entry],
        page_list: Pages,
        incorrect_results: list[Checked],
        start_index: int = 1,
        model: str | None = None,
        logger: object = None,
        seen: dict[int, set[int]] | None = None,
    ) -> tuple[list[Entry], list[Checked]]:
        """
        Look once for every entry that is wrong.

        Args:
            toc_with_page_number: The entries; those found get their page.
            page_list: The pages from *start_index* on.
            incorrect_results: What the check did not confirm.
            start_index: Number of the first page.
            model: Passed on.
            logger: Not used.
            seen: By place, the pages shown in earlier attempts; added to.

        Returns:
            The entries, and what is still not confirmed.
        """
        del logger
        shown_before = {} if seen is None else seen
        wrong = {result["list_index"] for result in incorrect_results}
        search = Search(upstream, page_list, start_index, model)

        async def look(result: Checked) -> int | None:
            place = result["list_index"]
            if not 0 <= place < len(toc_with_page_number):
                return None
            low, high = bounds(toc_with_page_number, place, wrong, search.document)
            known = shown_before.setdefault(place, set())
            return await _look(search, result, range(low, high + 1), known)

        found = await gathered(look(result) for result in incorrect_results)
        still = []
        for result, page in zip(incorrect_results, found, strict=True):
            if isinstance(page, int):
                toc_with_page_number[result["list_index"]]["physical_index"] = page
            else:
                still.append(result)
        return toc_with_page_number, still

    return fix_incorrect_toc


async def _look(
    search: Search, result: Checked, numbers: range, known: set[int]
) -> int | None:
    """
    Show pages not in *known*; return the page found and confirmed, or None.

    Where the title is a line of one page alone, nothing is asked.
    """
    title = str(result.get("title") or "")
    if decides("single_toc_item_index_fixer") and not known:
        sure = only_page_of(title, search.pages, numbers, search.start)
        if sure is not None:
            return sure
    text, shown = search.show(title, [n for n in numbers if n not in known])
    if not shown:
        return None
    known.update(shown)
    upstream, model = search.upstream, search.model
    answer = await upstream["single_toc_item_index_fixer"](title, text, model)
    page = page_of(answer)
    if page is None or page not in pages_shown(text):
        return None
    item = {**result, "physical_index": page}
    check = upstream["check_title_appearance"]
    checked = await check(item, search.pages, search.start, model)
    return page if checked["answer"] == "yes" else None
