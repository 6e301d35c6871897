"""Lines of a table of contents: title, leader, page number."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from vectorless_rag.pageindex_runtime.offline.labels import (
    Label,
    read_labels,
    read_roman,
)
from vectorless_rag.pageindex_runtime.offline.text import ends_sentence, has_letter

_DOTS = ".·•…‥․_"
_DASHES = "-‐–"
_MIN_LEADER = 3
_MAX_TITLE = 200
_MAX_PAGE_DIGITS = 4
_MAX_PAGE = 9
_LONG_LINE = 50


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a table of contents."""

    title: str
    """As printed, label included, white space squeezed."""

    page: str | None
    """The page number as printed."""

    label: Label | None
    leader: bool
    lines: tuple[int, ...]
    """Indexes of the lines it stands on."""

    indent: int = 0


class Reader:
    """
    Reads lines as entries, whatever stands around them.

    Args:
        colons: A colon is a leader, too.
    """

    def __init__(self, *, colons: bool) -> None:
        self._leaders = _DOTS + ":" if colons else _DOTS

    def rows(self, lines: Sequence[str], heading: int | None, end: int) -> list[Entry]:
        """Read every line before *end* that could be an entry, wrapped ones joined."""
        rows: list[Entry] = []
        open_at: int | None = None
        start = 0 if heading is None else heading + 1
        for at in range(start, end):
            line = lines[at]
            if not line:
                continue
            entry = self.row(line, at)
            bare = entry is None and read_page(line) is not None
            goes_on = bare or (entry is not None and _continues(lines, open_at, entry))
            if open_at is not None and goes_on:
                joined = self.row(f"{lines[open_at]} {line}", at)
                if joined is not None:
                    entry = replace(joined, lines=(open_at, at))
            if entry is not None:
                rows.append(entry)
            open_at = at if entry is None and not bare and _may_wrap(line) else None
        return rows

    def row(self, line: str, at: int) -> Entry | None:
        """Read ``title ..... page``, or the same from right to left."""
        return self._right(line, at) or self._left(line, at)

    def _right(self, line: str, at: int) -> Entry | None:
        start = len(line)
        while start and (line[start - 1].isalnum() or line[start - 1] in _DASHES):
            start -= 1
        page = read_page(line[start:])
        if page is None or not start:
            return None
        rest = line[:start]
        title = rest.rstrip(self._leaders + " ")
        leader = _is_leader(rest[len(title) :])
        if not leader:
            title = rest.rstrip()
            if not rest.endswith(" ") or not page.isdecimal():
                return None
        return _entry(title, page, at, leader=leader)

    def _left(self, line: str, at: int) -> Entry | None:
        """Read ``page ..... title``, as right-to-left tables come out of a PDF."""
        start = 0
        while start < len(line) and line[start].isalnum():
            start += 1
        page = line[:start]
        rest = line[start:]
        title = rest.lstrip(self._leaders + " ")
        run = rest[: len(rest) - len(title)]
        leader = _is_leader(run) and not (":" in run and page.isascii())
        one = page.isdecimal() or len(page) == 1 or read_page(page) is not None
        return _entry(title, page, at, leader=True) if leader and one and page else None


def _continues(lines: Sequence[str], open_at: int | None, entry: Entry) -> bool:
    """Tell whether an entry is the rest of the line above it."""
    if open_at is None or entry.label is not None:
        return False
    return entry.title[0].islower() or len(lines[open_at]) > _LONG_LINE


def _may_wrap(line: str) -> bool:
    short = len(line) <= _MAX_TITLE and has_letter(line)
    return short and not ends_sentence(line)


def _is_leader(run: str) -> bool:
    dots = sum(3 if c in "…:" else 1 for c in run if c != " ")
    return dots >= _MIN_LEADER


def _entry(title: str, page: str, at: int, *, leader: bool) -> Entry | None:
    if not has_letter(title) or len(title) > _MAX_TITLE:
        return None
    labels = read_labels(title)
    label = labels[0] if labels and labels[0].end < len(title) else None
    return Entry(title, page, label, leader, (at,))


def read_page(token: str) -> str | None:
    """
    Read a printed page number: ``12``, ``xii``, ``1-3``, ``A-3``.

    The number of a page may run into the entry above it when pages are joined with
    nothing between them: of ``16ii``, the first part counts.
    """
    digits = 0
    while digits < len(token) and token[digits].isdecimal():
        digits += 1
    if 0 < digits <= _MAX_PAGE_DIGITS and _is_page_end(token[digits:]):
        return token[:digits]
    if token.islower() and len(token) <= _MAX_PAGE and read_roman(token):
        return token
    first, dash, second = token.replace("–", "-").partition("-")
    parts = second.isdecimal() and (first.isdecimal() or len(first) == 1)
    return token if dash and parts and len(token) <= _MAX_PAGE else None


def _is_page_end(text: str) -> bool:
    return not text or read_roman(text) > 0


def page_number(page: str | None) -> int | None:
    """Give a printed page number as a number, if it is one in decimal digits."""
    return int(page) if page is not None and page.isdecimal() else None
