"""
Tables of contents: which lines belong to one, and what each line says.

A line with a leader and a page number is an entry wherever it stands. A line with a
page number and no leader is an entry only where its label or its neighbours say so.
Some questions show a table whose leaders were rewritten to colons: there, and only
there, a colon is a leader, since a page of a document is full of ``Total: 9``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from vectorless_rag.pageindex_runtime.offline import vocabulary
from vectorless_rag.pageindex_runtime.offline.entries import (
    Entry,
    Reader,
    page_number,
)
from vectorless_rag.pageindex_runtime.offline.labels import read_labels
from vectorless_rag.pageindex_runtime.offline.text import (
    count_words,
    ends_sentence,
    has_letter,
    key,
    lines_of,
)

_MAX_WEAK_WORDS = 16
_MAX_GAP = 4
_MAX_FREE_LINE = 90
_SHORT_WORDS = 4
_FEW = 3
_MAX_GLUED = 4
_MAX_JUMP = 500


@dataclass(frozen=True, slots=True)
class Toc:
    """What a text holds of a table of contents."""

    entries: tuple[Entry, ...]
    heading: int | None
    """Index of the line that says *Contents*."""

    found: bool
    """Whether the text holds a table of contents, or a part of one."""

    @property
    def lines(self) -> frozenset[int]:
        """Indexes of all lines that belong to it."""
        own = {at for entry in self.entries for at in entry.lines}
        return frozenset(own if self.heading is None else own | {self.heading})


def scan(text: str, *, colons: bool = False) -> Toc:
    """
    Find the table of contents in *text*.

    Args:
        text: A page, or the joined pages of a table.
        colons: The leaders were rewritten to colons.
    """
    lines = lines_of(text)
    return scan_lines(lines, _indents(text, len(lines)), colons=colons)


def scan_lines(
    lines: Sequence[str], indents: Sequence[int] = (), *, colons: bool = False
) -> Toc:
    """Find the table of contents in squeezed lines."""
    heading, end = _region(lines)
    rows = Reader(colons=colons).rows(lines, heading, end)
    entries = _Filter(heading).run(rows)
    if heading is not None and not entries:
        entries = _free(lines, heading + 1, end)
    if indents:
        entries = [replace(e, indent=indents[e.lines[0]]) for e in entries]
    return Toc(tuple(entries), heading, found=_is_toc(lines, heading, entries))


def _indents(text: str, count: int) -> list[int]:
    raw = text.splitlines()
    return [len(line) - len(line.lstrip()) for line in raw[:count]]


def _region(lines: Sequence[str]) -> tuple[int | None, int]:
    """Where the heading is, and the line at which another kind of list begins."""
    heading, end = None, len(lines)
    for at, line in enumerate(lines):
        if len(line) > _MAX_FREE_LINE:
            continue
        word = key(line)
        if word in vocabulary.TOC_HEADINGS and heading is None:
            heading, end = at, len(lines)
        elif word in vocabulary.OTHER_LISTS and end == len(lines):
            end = at
    return heading, end


class _Filter:
    """Keeps the rows that follow from one another as entries do."""

    def __init__(self, heading: int | None) -> None:
        self._near = heading
        self._page = 0
        self._last: tuple[int, ...] = ()

    def run(self, rows: Sequence[Entry]) -> list[Entry]:
        kept: list[Entry] = []
        for row in rows:
            entry = self._unglue(row)
            if not (entry.leader or self._follows(entry)):
                continue
            kept.append(entry)
            self._near = entry.lines[-1]
            number = page_number(entry.page)
            self._page = self._page if number is None else number
            if entry.label is not None:
                self._last = entry.label.path
        return kept

    def _unglue(self, entry: Entry) -> Entry:
        """Take off a page number that ran into the label when pages were joined."""
        path = entry.label.path if entry.label else ()
        if not self._last or (path and follows(self._last, path)):
            return entry
        for cut in range(1, _MAX_GLUED + 1):
            labels = read_labels(entry.title[cut:])
            glued = entry.title[:cut].isdecimal() and bool(labels)
            if glued and follows(self._last, labels[0].path):
                return replace(entry, title=entry.title[cut:], label=labels[0])
        return entry

    def _follows(self, entry: Entry) -> bool:
        number = page_number(entry.page)
        if number is None or number < self._page or number > self._page + _MAX_JUMP:
            return False
        if count_words(entry.title) > _MAX_WEAK_WORDS:
            return False
        near = self._near is not None and entry.lines[0] - self._near <= _MAX_GAP
        if entry.label is None:
            return near and not entry.title[0].islower()
        path = entry.label.path
        return follows(self._last, path) if self._last else near or _opens(entry)


def _opens(entry: Entry) -> bool:
    """Tell whether a weak row can be the first one without a heading above it."""
    few = entry.lines[0] <= _MAX_GAP
    return few and entry.label is not None and entry.label.family == "decimal"


def follows(last: tuple[int, ...], path: tuple[int, ...]) -> bool:
    """Tell whether section *path* can come right after section *last*."""
    if path[: len(last)] == last:
        return path[len(last) :] in {(1,), (0,)}
    depth = len(path) - 1
    if depth >= len(last) or path[:depth] != last[:depth]:
        return False
    first_annex = depth == 0 and path[0] in {1, 1001} and last[0] < path[0]
    return path[depth] == last[depth] + 1 or first_annex


def _free(lines: Sequence[str], start: int, end: int) -> list[Entry]:
    """Read entries without page numbers: short lines up to the first prose."""
    entries: list[Entry] = []
    for at in range(start, end):
        line = lines[at]
        if not line:
            continue
        if len(line) > _MAX_FREE_LINE or (
            ends_sentence(line) and count_words(line) > _SHORT_WORDS
        ):
            break
        if has_letter(line):
            labels = read_labels(line)
            label = labels[0] if labels else None
            entries.append(Entry(line, None, label, leader=False, lines=(at,)))
    return entries


def _is_toc(lines: Sequence[str], heading: int | None, entries: list[Entry]) -> bool:
    content = sum(1 for line in lines if has_letter(line))
    if _jumps(entries):
        return False
    strong = sum(1 for e in entries if e.leader)
    if heading is not None:
        return strong > 0 or len(entries) > 1
    if strong > 1 or strong * 2 >= content > 0:
        return True
    if len(entries) > _FEW and len(entries) * 2 >= content:
        return True
    return _goes_on(lines, entries)


def _jumps(entries: list[Entry]) -> bool:
    """Tell whether page numbers go down again and again, as in an index of words."""
    pages = [n for n in (page_number(e.page) for e in entries) if n is not None]
    downs = sum(1 for one, two in pairwise(pages) if one > two)
    return downs * 4 > len(pages)


def _goes_on(lines: Sequence[str], entries: list[Entry]) -> bool:
    """Tell whether a page opens with the last entries and then starts section 1."""
    label = entries[0].label if entries else None
    if label is None or label.path[0] <= 1:
        return False
    last = entries[-1].lines[-1]
    for line in lines[last + 1 :]:
        again = read_labels(line)
        if again and again[0].family == "decimal" and has_letter(line):
            return again[0].path in {(1,), (0,)} and not line[-1].isdecimal()
    return False
