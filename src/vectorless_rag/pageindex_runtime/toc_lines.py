"""
Whether a page is part of a table of contents, where its lines leave no doubt.

Entries are lines that end in a page number, and the numbers go up; a leader before
the number makes one certain. A page that has neither those, nor a heading that says
so, nor a list of short titles, is none.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from vectorless_rag.pageindex_runtime.offline.vocabulary import TOC_HEADINGS
from vectorless_rag.pageindex_runtime.page_text import comparable

_NUMBER = r"(\d{1,4}|[ivxlcdm]{1,7}|[A-Z]?-?\d{1,3}(?:[-.]\d{1,3})?)"

_LED = re.compile(rf"[^\W\d_].*?(?:\.[ .]{{3,}}|…[ .…]*|[·‧][ ·‧]{{2,}}){_NUMBER}\s*$")
"""A title, a leader, a page number."""

_ENTRY = re.compile(
    rf"^[\w.]*\s?[^\W\d_][^=<>{{}}\[\];|$#@]*(?:\s|[.…]|[\u3000-\u9fff]){_NUMBER}$"
)
"""A title and a page number; no code."""

_NUMBERED = re.compile(rf"^.*[^\W\d_].*(?:\s|[:.…]|[\u3000-\u9fff]){_NUMBER}$")
"""A line of what is known to be a table of contents, and its page number."""

_COLON = re.compile(r"[^\W\d_].*:\s+\d{1,4}$")
"""A title, a leader that was rewritten, a page number."""

_LABEL = re.compile(r"^(?:\d+ )+")

_NUMBER_ALONE = re.compile(rf"^{_NUMBER}$")
_LABELLED = re.compile(r"(?:\d{1,2}(?:\.\d{1,2})*\.?|[A-Z]\.\d*|[IVX]+\.)\s+[^\W\d_]")
_TITLE = re.compile(r"[^\W\d_][^=<>{}\[\];_|$#@]*[^\W_]$")
"""A line that may be a title: no code, and no end of a sentence."""

SURE_ENTRIES = 5
"""Lines with a leader that make a page a table of contents."""

FEW = 4
"""So many lines make a list."""

SOME, MOST = 0.2, 0.5
"""Shares of the lines of a page."""

ASCENDING = 0.75
"""Share of the numbers of a table that are no less than the one before."""

GOING_ON = 3
"""Lines at the top of a page that tell whether a table goes on there."""

SHORT_LINE, SHORT_TITLE = 90, 60
_KEPT_PAGES = 256


@lru_cache(maxsize=_KEPT_PAGES)
def may_be_toc(text: str) -> bool:
    """
    Tell whether a page may be part of a table of contents.

    False is certain. The page has no heading that says *Contents*, no two leaders, no
    list of lines whose numbers go up, no list of numbers alone, and no list of
    short titles.
    """
    lines = _lines(text)
    few = max(FEW, SOME * len(lines))
    many = max(FEW, MOST * len(lines))
    return (
        sum(1 for line in lines if _LED.search(line)) > 1
        or any(_says_contents(line) for line in lines)
        or _ascends(_numbers(lines, _ENTRY), few)
        or _ascends(_numbers(lines, _NUMBER_ALONE), few)
        or sum(1 for line in lines if _short(line, _LABELLED)) >= few
        or sum(1 for line in lines if _like_a_title(line)) >= many
    )


def may_go_on(text: str) -> bool:
    """Tell whether a table of contents may go on at the top of a page."""
    top = _lines(text)[:GOING_ON]
    return may_be_toc(text) or any(_ENTRY.match(line) for line in top)


@lru_cache(maxsize=_KEPT_PAGES)
def is_toc(text: str) -> bool:
    """
    Tell whether a page is surely part of a table of contents.

    At least five lines have a leader and a page number, they are half of all, and
    the numbers go up: those of an index do not.
    """
    lines = [line for line in _lines(text) if any(c.isalpha() for c in line)]
    led = sum(1 for line in lines if _LED.search(line))
    rising = _ascends(_numbers(lines, _LED), SURE_ENTRIES)
    return rising and led >= MOST * len(lines)


def has_page_numbers(toc: str) -> bool:
    """
    Tell whether a table of contents surely has page numbers.

    Its leaders may have been rewritten to colons. At least five lines end in a
    number, a fifth of all, and the numbers go up.
    """
    lines = _lines(toc)
    few = max(SURE_ENTRIES, SOME * len(lines))
    return _ascends(_numbers(lines, _NUMBERED), few)


def holds_all(entries: Sequence[Mapping[str, Any]], toc: str) -> bool:
    """
    Tell whether *entries* surely hold all of a table of contents.

    Args:
        entries: With ``title`` and ``page``.
        toc: The table; its leaders may have been rewritten to colons. Other text may
            stand before and behind it.

    Returns:
        Whether five lines or more are an entry with its number, or the end of one;
        so are all lines with a number between them; and the table does not go on.
    """
    pages: dict[str, list[str]] = {}
    for entry in entries:
        title = comparable(str(entry.get("title") or ""))
        pages.setdefault(str(entry.get("page")), []).append(title)
    found: list[bool | None] = []
    led: list[bool] = []
    for line in _lines(toc):
        match = _NUMBERED.search(line)
        known = match is not None and match[1].isdecimal()
        text = comparable(line[: match.start(1)]) if match else ""
        titles = pages.get(match[1], []) if match else []
        same = any(_same(title, text) for title in titles)
        found.append(same if known and (same or len(line) <= SHORT_LINE) else None)
        led.append(_COLON.search(line) is not None)
    held = [place for place, same in enumerate(found) if same]
    if len(held) < SURE_ENTRIES:
        return False
    inside = False in found[held[0] : held[-1] + 2]
    outside = any(led[: held[0]]) or any(led[held[-1] + 1 :])
    return not inside and not outside


def _same(title: str, line: str) -> bool:
    """Tell whether a line is a title, with its label or without, or ends it."""
    bare = _LABEL.sub("", line)
    return (
        line.endswith(title)
        if len(title) <= len(line)
        else bool(bare and f" {title}".endswith(f" {bare}"))
    )


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _numbers(lines: Sequence[str], pattern: re.Pattern[str]) -> list[int]:
    """Read the page numbers at the ends of lines; labels count as the one before."""
    found: list[int] = []
    for line in lines:
        if len(line) <= 2 * SHORT_LINE and (match := pattern.search(line)):
            spelled = match[1]
            last = found[-1] if found else 0
            found.append(int(spelled) if spelled.isdecimal() else last)
    return found


def _ascends(numbers: Sequence[int], few: float) -> bool:
    """Tell whether there are *few* numbers, most no less than the one before."""
    pairs = zip((0, *numbers), numbers, strict=False)
    rising = sum(1 for before, number in pairs if before <= number)
    return rising >= few and rising >= ASCENDING * len(numbers)


def _says_contents(line: str) -> bool:
    short = len(line) <= SHORT_LINE
    return short and comparable(line).replace(" ", "") in TOC_HEADINGS


def _short(line: str, pattern: re.Pattern[str]) -> bool:
    return len(line) <= SHORT_LINE and pattern.match(line) is not None


def _like_a_title(line: str) -> bool:
    starts = not line[0].islower()
    return starts and len(line) <= SHORT_TITLE and _TITLE.match(line) is not None
