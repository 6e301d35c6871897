"""Which pages are shown when one section is looked for: few, likely, and bounded."""

from collections.abc import Mapping, Sequence
from typing import Any

from vectorless_rag.pageindex_runtime.entries import Entry, page_of
from vectorless_rag.pageindex_runtime.grouping import MAX_TOKENS
from vectorless_rag.pageindex_runtime.no_toc import Pages, groups_of
from vectorless_rag.pageindex_runtime.page_text import comparable, heading_offset

Upstream = Mapping[str, Any]


def bounds(
    entries: Sequence[Entry], place: int, wrong: set[int], document: tuple[int, int]
) -> tuple[int, int]:
    """
    Return the first and last page an entry can be on, by its neighbours.

    Args:
        entries: The table of contents.
        place: Which entry.
        wrong: Places of entries that are not to be trusted.
        document: First and last page there are.
    """

    def nearest(places: range) -> int | None:
        for other in places:
            page = page_of(entries[other].get("physical_index"))
            if other not in wrong and page is not None:
                return page
        return None

    before = nearest(range(place - 1, -1, -1))
    after = nearest(range(place + 1, len(entries)))
    first, last = document
    low = first if before is None else max(before, first)
    high = last if after is None else min(after, last)
    return low, high


def likely_pages(
    title: str, pages: Pages, numbers: Sequence[int], start: int
) -> list[int]:
    """
    Order page numbers by how likely *title* starts there, likeliest first.

    A page with a line that opens with the title, then one that holds it, then the
    share of the title's words it holds; else the order of the document.
    """
    key = comparable(title)
    words = set(key.split())

    def rank(number: int) -> tuple[float, int]:
        text = pages[number - start][0]
        if heading_offset(text, title) is not None:
            return -3.0, number
        seen = comparable(text)
        if key and key in seen:
            return -2.0, number
        found = len(words & set(seen.split())) / len(words) if words else 0.0
        return -found, number

    return sorted(numbers, key=rank)


def window(
    upstream: Upstream,
    pages: Pages,
    numbers: Sequence[int],
    *,
    start: int,
    model: str | None,
) -> tuple[str, list[int]]:
    """
    Mark as many of the pages *numbers* as one prompt takes, likeliest first.

    Args:
        upstream: The upstream's names.
        pages: Texts of the pages from *start* on.
        numbers: Page numbers, likeliest first.
        start: Number of the first of *pages*.
        model: Whose tokens count.

    Returns:
        The marked pages in the order of the document, and their numbers. A first
        page over the cap alone is shown from its beginning. Empty without numbers.
    """
    chosen: list[int] = []
    room = MAX_TOKENS
    texts: dict[int, str] = {}
    for number in numbers:
        (text, *_) = groups_of(upstream, [pages[number - start]], number, model)
        size = int(upstream["count_tokens"](text, model))
        if size > room:
            break
        room -= size
        chosen.append(number)
        texts[number] = text
    shown = sorted(chosen)
    return "".join(texts[number] for number in shown), shown
