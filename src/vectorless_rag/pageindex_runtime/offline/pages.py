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
    can_end = _ends(marks, last, lines)
    pages: list[Page] = []
    opened = marks[0]
    for at, mark in enumerate(marks[1:], start=1):
        own = mark.number == opened.number and mark.closes is not False
        if mark is opened or not own or not can_end[at]:
            continue
        pages.append(_page(opened, lines, mark.line))
        if at + 1 == len(marks):
            return pages
        opened = marks[at + 1]
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


def _ends(marks: list[_Mark], last: int, lines: Sequence[str]) -> list[bool]:
    """Tell for every mark whether a page can end at it, by what follows it."""
    ends = [True] * len(marks)
    # From the back, since it depends on the mark behind.
    for at in range(len(marks) - 2, -1, -1):
        mark, after = marks[at], marks[at + 1]
        between = lines[mark.line + 1 : after.line]
        if after.closes or any(map(str.strip, between)):
            ends[at] = False
        elif after.number == mark.number and after.closes is None:
            # Another piece of the page begins, unless the page ends at that mark.
            ends[at] = not ends[at + 1]
        else:
            ends[at] = mark.number <= after.number <= last
    return ends


def _page(opened: _Mark, lines: Sequence[str], end: int) -> Page:
    return Page(opened.number, "\n".join(lines[opened.line + 1 : end]))
