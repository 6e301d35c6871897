"""The pages of a table of contents that prints none: found in the text."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.pageindex_runtime.entries import Entry, page_of
from vectorless_rag.pageindex_runtime.no_toc import Pages, groups_of, pages_shown
from vectorless_rag.pageindex_runtime.offsets import match, without_printed_pages
from vectorless_rag.pageindex_runtime.setbacks import is_fatal

Upstream = Mapping[str, Any]

MAX_ENTRIES = 150
"""Entries shown in one prompt."""


def pageless_toc_reader_in(upstream: Upstream) -> Callable[..., list[Entry]]:
    """Return ``process_toc_no_page_numbers`` for *upstream*."""

    def process_toc_no_page_numbers(  # noqa: PLR0917  (upstream's signature)
        toc_content: str,
        toc_page_list: Sequence[int],
        page_list: Pages,
        start_index: int = 1,
        model: str | None = None,
        logger: object = None,
    ) -> list[Entry]:
        """
        Find the pages of entries that come without printed ones.

        Answers are matched entry by entry, whatever their order and spelling, and
        only pages that were shown count. The pages of the table of contents itself
        are shown last: its lines look like headings.

        Returns:
            Every entry, with the number of its page or None.
        """
        del logger
        toc = without_printed_pages(upstream["toc_transformer"](toc_content, model))
        for entry in toc:
            entry["physical_index"] = None
        listed = {place + start_index for place in toc_page_list}
        numbers = range(start_index, start_index + len(page_list))
        failures: list[VectorlessRagError] = []
        groups = [
            group
            for own in (False, True)
            for run in _stretches([n for n in numbers if (n in listed) is own])
            for group in groups_of(
                upstream,
                page_list[run[0] - start_index : run[-1] - start_index + 1],
                run[0],
                model,
            )
        ]
        for group in groups:
            _place(upstream, toc, group, failures, model)
        if failures and all(entry["physical_index"] is None for entry in toc):
            raise failures[0]
        return toc

    return process_toc_no_page_numbers


def _stretches(numbers: Sequence[int]) -> list[list[int]]:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def _place(
    upstream: Upstream,
    toc: list[Entry],
    group: str,
    failures: list[VectorlessRagError],
    model: str | None,
) -> None:
    """Ask which open entries start in *group*."""
    waiting = [e for e in toc if e["physical_index"] is None][:MAX_ENTRIES]
    if not waiting:
        return
    try:
        found = upstream["add_page_number_to_toc"](
            group, without_printed_pages(waiting), model
        )
    except VectorlessRagError as error:
        if is_fatal(error):
            raise
        failures.append(error)
        return
    shown = pages_shown(group)
    for answer in found:
        page = page_of(answer.get("physical_index"))
        entry = match(answer, waiting, found)
        if entry is not None and page in shown and entry["physical_index"] is None:
            entry["physical_index"] = page
