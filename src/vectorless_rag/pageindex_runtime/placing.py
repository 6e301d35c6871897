"""Where entries of a table of contents start, told by the text alone."""

from collections import Counter
from collections.abc import Sequence

from vectorless_rag.pageindex_runtime.entries import Entry
from vectorless_rag.pageindex_runtime.no_toc import Pages
from vectorless_rag.pageindex_runtime.title_lines import only_page_of

ENOUGH_VOTES = 3
"""Entries that must agree on the offset before it is taken from the text alone."""


def placed_by_text(toc: Sequence[Entry], pages: Pages, first: int) -> list[Entry]:
    """Place the entries that are a line of one page alone."""
    numbers = range(first, first + len(pages))
    placed = []
    for entry in toc:
        page = only_page_of(entry.get("title"), pages, numbers, first)
        if page is not None:
            placed.append({**entry, "physical_index": page})
    return placed


def agreed(placed: Sequence[Entry]) -> bool:
    """
    Tell whether entries placed by the text settle how far apart the pages are.

    Args:
        placed: Entries with ``page``, the printed page, and ``physical_index``.

    Returns:
        Whether three or more of them, and three of four, are equally far apart.
    """
    apart = Counter(
        entry["physical_index"] - entry["page"]
        for entry in placed
        if isinstance(entry.get("page"), int)
    )
    votes = max(apart.values(), default=0)
    return votes >= ENOUGH_VOTES and 4 * votes >= 3 * len(placed)
