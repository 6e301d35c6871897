"""
From printed page numbers to physical ones.

Printed pages are numbers of one running count, or labels that count within a
section (``3-1``, ``A-4``, ``xii``). A running count differs from the physical page
by one offset; which one is a vote of the entries that were found in the text.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from vectorless_rag.pageindex_runtime.entries import (
    Entry,
    code_of,
    page_of,
    title_key,
)

Pair = dict[str, Any]


def matching_pairs(
    toc: Sequence[Entry], located: Sequence[Entry], first_page: int
) -> list[Pair]:
    """
    Join the entries of a table of contents with where they were found.

    Args:
        toc: Entries with ``page``, the printed page.
        located: Entries with ``physical_index``.
        first_page: Pages before this one are the table of contents itself.

    Returns:
        One pair for each title that names one entry on both sides, or whose number
        tells the entries apart. A title that may be several entries makes none.
    """
    pairs = []
    for found in located:
        page = page_of(found.get("physical_index"))
        entry = match(found, toc, located)
        if entry is None or page is None or page < first_page:
            continue
        pairs.append(
            {
                "title": entry.get("title"),
                "page": entry.get("page"),
                "physical_index": page,
            }
        )
    return pairs


def match(
    found: Entry, toc: Sequence[Entry], located: Sequence[Entry] = ()
) -> Entry | None:
    """
    Find the one entry of *toc* that *found* is, whatever its spelling and place.

    Title and number together, else a title that stands once in *toc* and in
    *located*; None if there is none or it cannot be told which.
    """
    title, code = title_key(found.get("title")), code_of(found.get("structure"))
    same = [entry for entry in toc if title_key(entry.get("title")) == title]
    exact = [entry for entry in same if code_of(entry.get("structure")) == code]
    if len(exact) == 1 and (code is not None or len(same) == 1):
        return exact[0]
    twins = [entry for entry in located if title_key(entry.get("title")) == title]
    return same[0] if len(same) == 1 and len(twins) <= 1 else None


def calculate_page_offset(pairs: Sequence[Pair]) -> int | None:
    """
    Return the offset most pairs agree on, None if no pair has a printed number.

    Of offsets with equally many votes the one nearest to none is taken.
    """
    votes: Counter[int] = Counter(
        pair["physical_index"] - pair["page"]
        for pair in pairs
        if _is_number(pair.get("page")) and _is_number(pair.get("physical_index"))
    )
    if not votes:
        return None
    most = max(votes.values())
    return min((o for o, n in votes.items() if n == most), key=lambda o: (abs(o), o))


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def place_by_offset(
    toc: Sequence[Entry], offset: int, bounds: tuple[int, int]
) -> list[Entry]:
    """
    Give every entry with a printed number its physical page.

    Args:
        toc: Entries with ``page``.
        offset: What to add to a printed number.
        bounds: First and last page that exist; others are left open.
    """
    first, last = bounds
    placed = []
    for entry in toc:
        rest = {k: v for k, v in entry.items() if k != "page"}
        page = entry.get("page")
        physical = page + offset if _is_number(page) and page is not None else None
        inside = physical is not None and first <= physical <= last
        placed.append({**rest, "physical_index": physical if inside else None})
    return placed


def add_page_offset_to_toc_json(data: list[Entry], offset: int | None) -> list[Entry]:
    """
    Turn printed pages into physical ones, in place; stands in for the upstream's.

    Without an offset nothing is known: every entry is left as it is.
    """
    for entry in data:
        if offset is not None and _is_number(entry.get("page")):
            entry["physical_index"] = entry.pop("page") + offset
    return data


def place_by_finding(
    toc: Sequence[Entry], located: Sequence[Entry], first_page: int
) -> list[Entry]:
    """Give every entry the page it was found on; the others stay open."""
    pages: dict[int, int] = {}
    for found in located:
        page = page_of(found.get("physical_index"))
        entry = match(found, toc, located)
        if entry is not None and page is not None and page >= first_page:
            pages.setdefault(id(entry), page)
    return [
        {
            **{k: v for k, v in entry.items() if k != "page"},
            "physical_index": pages.get(id(entry)),
        }
        for entry in toc
    ]


def without_printed_pages(toc: Sequence[Mapping[str, Any]]) -> list[Entry]:
    """Return the entries as they are shown where physical pages are asked for."""
    return [
        {"structure": entry.get("structure"), "title": entry.get("title")}
        for entry in toc
    ]
