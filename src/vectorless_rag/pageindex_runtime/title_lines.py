"""
Whether a title stands on a page, where the text alone leaves no doubt.

A title that is a line of its own, once on the page and not on the pages beside it, is
there: nobody needs to be asked. All else is left open, with None for an answer: a
title inside a sentence, a running header, a line that stands twice, a line in what may
be a table of contents. White space does not count, as some files have none.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from vectorless_rag.pageindex_runtime.page_text import comparable
from vectorless_rag.pageindex_runtime.toc_lines import may_be_toc
from vectorless_rag.pageindex_runtime.wiring import decides

Pages = Sequence[tuple[str, int]]
Check = Callable[..., Any]

MAX_LINES = 3
"""Lines that one title may be broken into."""

HEADER_LINES = 2
"""Lines at the top of a page that may be its header."""

CONTENT_CHARS = 40
"""So many letters and digits before a title are content."""

PROSE_CHARS = 40
"""So many letters and digits make a line that follows a heading, in no list."""

_LABEL = re.compile(r"^(?:[a-z] (?=\d))?(?:\d+ )+")
_PAGE_NUMBER = re.compile(r"\d{1,4}|[ivxlcdm]{1,7}")
_DIGITS = re.compile(r"\d+")

_SHORT_BYTES = 4
"""A shorter title without its number may be anything; two ideographs are enough."""

_KEPT_PAGES = 256


@dataclass(frozen=True, slots=True)
class Line:
    """What a line says: letters and digits alone."""

    label: str
    """The number before it; empty: it has none."""

    bare: str
    """The rest."""

    @property
    def whole(self) -> str:
        """All of it."""
        return self.label + self.bare

    def is_title(self, title: "Line") -> bool:
        """Tell whether it says what *title* says; either may lack its number."""
        if self.whole == title.whole:
            return True
        one = (
            not (self.label and title.label)
            and len(title.bare.encode()) >= _SHORT_BYTES
        )
        return one and self.bare == title.bare


def _line(key: str) -> Line:
    match = _LABEL.match(key)
    label = match[0] if match else ""
    bare = key[len(label) :]
    return Line(label.replace(" ", ""), bare.replace(" ", ""))


@lru_cache(maxsize=_KEPT_PAGES)
def _lines(text: str) -> tuple[str, ...]:
    keys = (comparable(line) for line in text.splitlines())
    return tuple(key for key in keys if key)


@lru_cache(maxsize=_KEPT_PAGES)
def _read(text: str) -> tuple[Line, ...]:
    return tuple(map(_line, _lines(text)))


def _spans(text: str, title: object) -> list[tuple[int, int]]:
    """List where *title* stands alone: its first line, and the one behind it."""
    key = comparable(str(title or ""))
    if not any(c.isalpha() for c in key):
        return []
    wanted, lines = _line(key), _read(text)
    most = len(wanted.whole)
    found = []
    for at, first in enumerate(lines):
        begins = first.bare or first.whole
        if not any(
            title.startswith(begins) for title in (wanted.whole, wanted.bare)
        ) and not wanted.whole.startswith(first.whole):
            continue
        run = first
        for end in range(at + 1, min(at + MAX_LINES, len(lines)) + 1):
            if run.is_title(wanted):
                found.append((at, end))
                break
            if len(run.whole) >= most or end == len(lines):
                break
            run = _line(" ".join(_lines(text)[at : end + 1]))
    return found


def stands_alone(title: object, pages: Pages, place: int) -> bool:
    """
    Tell whether *title* is surely on a page.

    Args:
        title: What is looked for.
        pages: The pages, in order.
        place: Which of them, counted from 0.
    """
    text = pages[place][0]
    spans = _spans(text, title)
    if len(spans) != 1 or (may_be_toc(text) and not _prose_at(text, spans[0][1])):
        return False
    beside = pages[max(place - 1, 0) : place + 2]
    return sum(bool(_spans(other, title)) for other, _ in beside) == 1


def _prose_at(text: str, at: int) -> bool:
    lines = _read(text)
    return at < len(lines) and len(lines[at].whole) >= PROSE_CHARS


def opening(title: object, pages: Pages, place: int) -> str | None:
    """
    Tell whether *title* is the first thing on a page, headers aside.

    Returns:
        ``yes``, ``no``, or None where the text leaves it open: the title does not
        stand there once, or there is little before it.
    """
    spans = _spans(pages[place][0], title)
    if len(spans) != 1:
        return None
    lines = _read(pages[place][0])
    before = lines[_headers(pages, place) : spans[0][0]]
    if not before:
        return "yes"
    size = sum(len(line.whole) for line in before)
    return "no" if size >= CONTENT_CHARS else None


def _headers(pages: Pages, place: int) -> int:
    """Count the lines at the top of a page that are its number or its header."""
    near = [n for n in range(place - 2, place + 3) if n != place]
    others = {
        _without_digits(line)
        for n in near
        if 0 <= n < len(pages)
        for line in _read(pages[n][0])[:HEADER_LINES]
    }
    count = 0
    for line in _read(pages[place][0])[:HEADER_LINES]:
        number = _PAGE_NUMBER.fullmatch(line.whole)
        if not number and _without_digits(line) not in others:
            break
        count += 1
    return count


def _without_digits(line: Line) -> str:
    return _DIGITS.sub("", line.whole)


def only_page_of(
    title: object, pages: Pages, numbers: Sequence[int], start: int
) -> int | None:
    """
    Find the one page of *numbers* on which *title* stands alone.

    Args:
        title: What is looked for.
        pages: The pages from number *start* on.
        numbers: Where to look.
        start: Number of the first of *pages*.
    """
    on = [n for n in numbers if _spans(pages[n - start][0], title)]
    if len(on) == 1 and stands_alone(title, pages, on[0] - start):
        return on[0]
    return None


def appearance_in(asked: Check) -> Check:
    """Return ``check_title_appearance`` that asks only where the text is no answer."""

    async def check_title_appearance(
        item: Mapping[str, Any],
        page_list: Pages,
        start_index: int = 1,
        model: str | None = None,
    ) -> Mapping[str, Any]:
        """Tell whether a section appears on the page it is said to start on."""
        if decides("check_title_appearance") and confirmed(
            item, page_list, start_index
        ):
            return {
                "list_index": item.get("list_index"),
                "answer": "yes",
                "title": item["title"],
                "page_number": item["physical_index"],
            }
        found: Mapping[str, Any] = await asked(item, page_list, start_index, model)
        return found

    return check_title_appearance


def confirmed(item: Mapping[str, Any], pages: Pages, start: int) -> bool:
    """Tell whether the text confirms an entry: its title stands alone on its page."""
    page = item.get("physical_index")
    place = page - start if isinstance(page, int) else -1
    return 0 <= place < len(pages) and stands_alone(item["title"], pages, place)
