"""
Sections found by reading the pages, one bounded group at a time.

A group whose answer cannot be used is read again in halves; what stays unreadable
becomes an entry that says which pages it stands for and why.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.pageindex_runtime.entries import (
    Entry,
    merge_continuation_entries,
    page_of,
)
from vectorless_rag.pageindex_runtime.marks import mark
from vectorless_rag.pageindex_runtime.pieces import longest_head
from vectorless_rag.pageindex_runtime.setbacks import is_fatal

Upstream = Mapping[str, Any]
"""The upstream module's own names, looked up when they are called."""

Pages = Sequence[tuple[str, int]]

_TAG = re.compile(r"<physical_index_(\d+)>")


def marked_page(number: int, text: str) -> str:
    """Put the text of a page between its markers."""
    tag = f"<physical_index_{number}>"
    return f"{tag}\n{text}\n{tag}\n\n"


def pages_shown(text: str) -> set[int]:
    """Return the numbers of the pages whose markers stand in *text*."""
    return {int(number) for number in _TAG.findall(text)}


def groups_of(
    upstream: Upstream, pages: Pages, start_index: int, model: str | None
) -> list[str]:
    """Mark the pages and group them under the cap, with the upstream's functions."""
    marked = [marked_page(n, text) for n, (text, _) in enumerate(pages, start_index)]
    lengths = [upstream["count_tokens"](page, model) for page in marked]
    groups: list[str] = upstream["page_list_to_group_text"](marked, lengths)
    return groups


def reader_in(upstream: Upstream) -> Callable[..., list[Entry]]:
    """Return ``process_no_toc`` for the module whose names are *upstream*."""

    def process_no_toc(
        page_list: Pages,
        start_index: int = 1,
        model: str | None = None,
        logger: object = None,
    ) -> list[Entry]:
        """
        Ask for the sections of every group of pages, in order.

        Returns:
            The entries, each with the number of its page or None: of one group as
            they came, of several in page order.

        Raises:
            VectorlessRagError: A failure that ends the run, or the failure of the
                first group if no group could be read.
        """
        del logger
        entries: list[Entry] = []
        failures: list[VectorlessRagError] = []
        pages_read = 0
        for group in groups_of(upstream, page_list, start_index, model):
            for part, answer in _read(upstream, group, entries, model):
                if isinstance(answer, VectorlessRagError):
                    failures.append(answer)
                    answer = [_gap(part, answer)]  # noqa: PLW2901
                else:
                    pages_read += 1
                entries = (
                    merge_continuation_entries(entries, answer) if entries else answer
                )
        if failures and not pages_read:
            raise failures[0]
        return entries

    return process_no_toc


def _read(
    upstream: Upstream, group: str, entries: list[Entry], model: str | None
) -> Iterator[tuple[str, list[Entry] | VectorlessRagError]]:
    """Yield each part of a group with its entries, or with why it has none."""
    answer = _asked(upstream, group, entries, model)
    halves = _halves(group)
    if not isinstance(answer, VectorlessRagError) or len(halves) == 1:
        yield group, answer
        return
    for half in halves:
        answer = _asked(upstream, half, entries, model)
        if not isinstance(answer, VectorlessRagError):
            entries = merge_continuation_entries(entries, answer)
        yield half, answer


def _asked(
    upstream: Upstream, group: str, entries: list[Entry], model: str | None
) -> list[Entry] | VectorlessRagError:
    """Ask; a failure of this prompt alone is an answer too."""
    try:
        return _ask(upstream, group, entries, model)
    except VectorlessRagError as error:
        if is_fatal(error):
            raise
        return error


def _ask(
    upstream: Upstream, group: str, entries: list[Entry], model: str | None
) -> list[Entry]:
    if entries:
        found = upstream["generate_toc_continue"](entries, group, model)
    else:
        found = upstream["generate_toc_init"](group, model)
    shown = pages_shown(group)
    for entry in found:
        page = page_of(entry.get("physical_index"))
        # A page that was not shown is one the model cannot know.
        entry["physical_index"] = page if page in shown else None
    return list(found)


def _halves(group: str) -> list[str]:
    """Cut a group between two pages, near the middle; one page is not cut."""
    tags = sorted(pages_shown(group))
    if len(tags) < 2:  # noqa: PLR2004  (a group of one page)
        return [group]
    half = longest_head(group, cap=len(group) // 2, count=len)
    cuts = [group.index(f"<physical_index_{tag}>") for tag in tags[1:]]
    cut = min(cuts, key=lambda place: abs(place - half))
    return [group[:cut], group[cut:]]


def _gap(part: str, error: VectorlessRagError) -> Entry:
    """Stand for pages whose sections are not known."""
    numbers = pages_shown(part)
    first, last = min(numbers), max(numbers)
    title = f"Page {first}" if first == last else f"Pages {first}-{last}"
    entry: Entry = {"structure": None, "title": title, "physical_index": first}
    mark(entry, error.code, "structure")
    return entry
