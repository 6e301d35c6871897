"""
Whether a title stands on a page, where the text alone leaves no doubt.

A title that is a line of its own, once on the page and not on the pages beside it, is
there: nobody needs to be asked. All else is left open, with None for an answer: a
title inside a sentence, a running header, a line that stands twice, a page that may
be a table of contents.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from vectorless_rag.pageindex_runtime.page_text import comparable
from vectorless_rag.pageindex_runtime.toc_lines import may_be_toc
from vectorless_rag.pageindex_runtime.wiring import decides

Pages = Sequence[tuple[str, int]]
Check = Callable[..., Any]

MAX_LINES = 3
"""Lines that one title may be broken into."""

BEFORE_CHARS = 160
"""So much text before a title, letters and digits alone, is more than a header."""

_LABEL = re.compile(r"^(?:\d+ )+")
_KEPT_PAGES = 256


@lru_cache(maxsize=_KEPT_PAGES)
def _lines(text: str) -> tuple[str, ...]:
    keys = (comparable(line) for line in text.splitlines())
    return tuple(key for key in keys if key)


def places_of(text: str, title: object) -> list[int]:
    """
    List the lines, blank ones not counted, at which *title* stands alone.

    A title may be broken into three lines, and a line may have a number before it
    that the title lacks.
    """
    key = comparable(str(title or ""))
    if not any(c.isalpha() for c in key):
        return []
    lines, found = _lines(text), []
    for at, first in enumerate(lines):
        bare = _LABEL.sub("", first)
        if not (key.startswith(first) or (bare and key.startswith(bare))):
            continue
        for start in {first, bare} - {""}:
            joined = start
            for more in lines[at + 1 : at + MAX_LINES]:
                if len(joined) >= len(key):
                    break
                joined = f"{joined} {more}"
            if joined == key:
                found.append(at)
                break
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
    if len(places_of(text, title)) != 1 or may_be_toc(text):
        return False
    beside = pages[max(place - 1, 0) : place + 2]
    return sum(bool(places_of(other, title)) for other, _ in beside) == 1


def opening(title: object, text: str) -> str | None:
    """
    Tell whether *title* is the first thing on a page.

    Returns:
        ``yes``, ``no``, or None where the text leaves it open: the title does not
        stand there once, or there is no more than a header before it.
    """
    places = places_of(text, title)
    if len(places) != 1:
        return None
    before = sum(map(len, _lines(text)[: places[0]]))
    if not before:
        return "yes"
    return "no" if before > BEFORE_CHARS else None


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
    on = [n for n in numbers if places_of(pages[n - start][0], title)]
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
        page = item.get("physical_index")
        place = page - start_index if isinstance(page, int) else -1
        if (
            decides()
            and 0 <= place < len(page_list)
            and stands_alone(item["title"], page_list, place)
        ):
            return {
                "list_index": item.get("list_index"),
                "answer": "yes",
                "title": item["title"],
                "page_number": page,
            }
        found: Mapping[str, Any] = await asked(item, page_list, start_index, model)
        return found

    return check_title_appearance


def opening_in(asked: Check) -> Check:
    """Return ``check_title_appearance_in_start`` that asks only where it must."""

    async def check_title_appearance_in_start(
        title: str, page_text: str, model: str | None = None, logger: object = None
    ) -> str:
        """Tell whether a section is the first thing on its page."""
        answer = opening(title, page_text) if decides() else None
        if answer is not None:
            return answer
        return str(await asked(title, page_text, model=model, logger=logger))

    return check_title_appearance_in_start
