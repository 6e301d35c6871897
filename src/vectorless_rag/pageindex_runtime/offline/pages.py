"""
The pages that a prompt shows.

A page stands between two lines ``<physical_index_7>``, or between ``<page_7>`` and
``</page_7>``. Its text may hold lines that look the same: a page ends where its mark
is followed by the mark of a later page, or by nothing.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from vectorless_rag.pageindex_runtime.offline.body import Page

_MARK = re.compile(r"[ \t]*<(/?)(physical_index|page)_(\d{1,7})>[ \t]*\r?")


@dataclass(frozen=True, slots=True)
class _Mark:
    line: int
    number: int
    closes: bool | None
    """None where opening and closing are spelled alike."""


def pages_in(text: str) -> list[Page]:
    """List the marked pages in *text*, in order; a page cut in two comes twice."""
    lines = text.split("\n")
    marks = _marks(lines)
    if not marks:
        return []
    last = max(marks[0].number, marks[-1].number)
    pages: list[Page] = []
    opened = marks[0]
    for at, mark in enumerate(marks[1:], start=1):
        after = marks[at + 1] if at + 1 < len(marks) else None
        if not _ends(opened, mark, after, last, lines):
            continue
        pages.append(_page(opened, lines, mark.line))
        if after is None:
            return pages
        opened = after
    pages.append(_page(opened, lines, len(lines)))
    return pages


def _marks(lines: Sequence[str]) -> list[_Mark]:
    found: list[_Mark] = []
    for at, line in enumerate(lines):
        match = _MARK.fullmatch(line)
        if match is not None:
            closes = bool(match[1]) if match[2] == "page" else None
            found.append(_Mark(at, int(match[3]), closes))
    return found


def _ends(
    opened: _Mark, mark: _Mark, after: _Mark | None, last: int, lines: Sequence[str]
) -> bool:
    """Tell whether *mark* ends the page that *opened* began."""
    if mark.number != opened.number or mark.closes is False or mark is opened:
        return False
    if after is None:
        return True
    between = lines[mark.line + 1 : after.line]
    follows = opened.number <= after.number <= last
    return follows and not after.closes and not any(map(str.strip, between))


def _page(opened: _Mark, lines: Sequence[str], end: int) -> Page:
    return Page(opened.number, "\n".join(lines[opened.line + 1 : end]))
