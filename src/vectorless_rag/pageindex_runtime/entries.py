"""
Entries of a table of contents: compared, merged and kept in page order.

An entry is a dict with ``structure`` (``"2.1"`` or None), ``title`` and
``physical_index``: a page counted from 1, ``"<physical_index_7>"``, or None.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from vectorless_rag.pageindex_runtime.page_text import comparable

Entry = dict[str, Any]

_MARKER = re.compile(r"<?(?:physical_index_)?(\d{1,9})>?")


def page_of(value: object) -> int | None:
    """Read a page: a number, or one of the spellings of its marker; else None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str) and (found := _MARKER.fullmatch(value.strip())):
        return int(found[1])
    return None


def code_of(value: object) -> str | None:
    """Spell a section number one way: ``1``, ``"1."`` and ``" 1 "`` are ``"1"``."""
    text = "" if value is None else str(value).strip().strip(".").strip()
    return text or None


def title_key(title: object) -> str:
    """Spell a title for comparison; what no letter tells apart is the same."""
    text = str(title or "")
    return comparable(text) or " ".join(text.split())


def _key(entry: Entry) -> tuple[str | None, str, int | None]:
    page = page_of(entry.get("physical_index"))
    return code_of(entry.get("structure")), title_key(entry.get("title")), page


def merge_continuation_entries(
    entries: Iterable[Entry], more: Iterable[Entry]
) -> list[Entry]:
    """
    Put the entries of a continuation among those found before.

    Returns:
        All entries in page order, those without a page last; entries on one page
        keep their order. An entry that repeats another in number, title and page
        is left out.
    """
    seen = set()
    merged: list[Entry] = []
    for entry in (*entries, *more):
        key = _key(entry)
        if key not in seen:
            seen.add(key)
            merged.append(entry)
    return in_page_order(merged)


def in_page_order(entries: Sequence[Entry]) -> list[Entry]:
    """Sort by page, those without one last; equal pages keep their order."""

    def place(entry: Entry) -> tuple[bool, int]:
        page = page_of(entry.get("physical_index"))
        return page is None, page or 0

    return sorted(entries, key=place)


def open_branch(entries: Sequence[Entry], *, most: int = 24) -> list[Entry]:
    """
    Return what a continuation must know of the structure so far.

    Args:
        entries: All entries found.
        most: How many of the last entries to show.

    Returns:
        The sections above the last entry, then the last entries, each with a
        title of at most 200 characters.
    """
    shown = list(range(max(len(entries) - most, 0), len(entries)))
    above = _ancestors(entries, shown[-1]) if shown else []
    wanted = sorted({*above[-most:], *shown})
    return [_brief(entries[place]) for place in wanted]


def _ancestors(entries: Sequence[Entry], last: int) -> list[int]:
    """Find the places of the sections that the entry at *last* lies in."""
    code = code_of(entries[last].get("structure")) or ""
    found: list[int] = []
    for place in range(last - 1, -1, -1):
        parent, _, _ = code.rpartition(".")
        if not parent:
            break
        if code_of(entries[place].get("structure")) == parent:
            found.insert(0, place)
            code = parent
    return found


def _brief(entry: Entry) -> Entry:
    return {
        "structure": entry.get("structure"),
        "title": str(entry.get("title") or "")[:200],
        "physical_index": entry.get("physical_index"),
    }
