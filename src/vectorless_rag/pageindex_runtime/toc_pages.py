"""
Where the table of contents stands: found in bounded steps, blank pages passed.

A page whose lines say that it is part of one, or cannot be, is not asked about. The
pages that leave it open are asked about side by side, a few at a time.
"""

import contextvars
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from itertools import islice
from typing import Any

from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.pageindex_runtime.no_toc import Pages
from vectorless_rag.pageindex_runtime.setbacks import is_fatal
from vectorless_rag.pageindex_runtime.toc_lines import (
    has_page_numbers,
    is_toc,
    may_be_toc,
    may_go_on,
)
from vectorless_rag.pageindex_runtime.wiring import decides

MAX_TOC_PAGES = 20
"""Pages that a table of contents may run over."""

WAVE = 5
"""Pages asked about at once while no table of contents is found."""

SAMPLE_CHARS = 12_000
"""How much of a table of contents is shown to tell whether it has page numbers."""


def toc_finder_in(upstream: Mapping[str, Any]) -> Callable[..., list[int]]:
    """Return ``find_toc_pages`` for the module whose names are *upstream*."""

    def find_toc_pages(
        start_page_index: int,
        page_list: Pages,
        opt: Any,  # noqa: ANN401  (upstream's options)
        logger: object = None,
    ) -> list[int]:
        """
        Find the pages of one table of contents.

        Args:
            start_page_index: Where to look from, counted from 0.
            page_list: All pages.
            opt: ``toc_check_page_num``: pages in which it must begin.
            logger: Not used.

        Returns:
            At most 20 places in *page_list*, in order. A page without text neither
            ends the table nor is part of it.

        Raises:
            VectorlessRagError: A failure that ends the run.
        """
        del logger
        pages = _Pages(upstream, page_list, opt.model)
        end = min(opt.toc_check_page_num, len(page_list))
        start_page_index = pages.nearest_sure(start_page_index, end)
        found: list[int] = []
        for place in range(start_page_index, len(page_list)):
            if len(found) >= MAX_TOC_PAGES or (not found and place >= end):
                break
            if not page_list[place][0].strip():
                continue
            ahead = range(place, min(place + 2, len(page_list)) if found else end)
            if pages.is_toc(place, ahead, going_on=bool(found)):
                found.append(place)
            elif found:
                break
        return found

    return find_toc_pages


_ASKED: ContextVar[tuple[Pages, dict[int, bool]] | None] = ContextVar(
    "toc_pages_asked", default=None
)


def _answers_about(pages: Pages) -> dict[int, bool]:
    """
    Return what the model has said of *pages*, by place; added to.

    A document is searched again behind a table without page numbers: what was asked
    ahead is not asked twice.
    """
    held = _ASKED.get()
    if held is None or held[0] is not pages:
        held = pages, {}
        _ASKED.set(held)
    return held[1]


class _Pages:
    """Pages, and what is known of each."""

    def __init__(
        self, upstream: Mapping[str, Any], pages: Pages, model: str | None
    ) -> None:
        self._upstream = upstream
        self._pages = pages
        self._model = model
        self._decides = decides("toc_detector_single_page")
        self._known = _answers_about(pages) if self._decides else {}
        self._run = range(0)
        """Pages that surely are one table, the first of them."""

    def nearest_sure(self, start: int, end: int) -> int:
        """
        Return where to look from, in view of the pages that surely are a table.

        Pages that only may be one are looked at where they lie right before the
        first that surely is; *start*, if there is none before *end*.
        """
        if not self._decides:
            return start
        places = range(start, end)
        sure = next((n for n in places if self._surely(n)), None)
        if sure is None:
            return start
        behind = (n for n in range(sure, len(self._pages)) if not self._surely(n))
        self._run = range(sure, next(behind, len(self._pages)))
        while sure > start and self._sure(sure - 1, going_on=False) is not False:
            sure -= 1
        return sure

    def is_toc(self, place: int, ahead: Sequence[int], *, going_on: bool) -> bool:
        """
        Tell whether a page is part of a table of contents.

        Args:
            place: The page.
            ahead: Pages that are looked at next, to be asked about along with it.
            going_on: The page before was part of one.
        """
        if place not in self._known:
            sure = self._sure(place, going_on=going_on)
            if sure is not None:
                return sure
            open_pages = (
                n
                for n in self._worth_asking(place, ahead)
                if n not in self._known
                and self._is_open(
                    n, going_on=going_on or n in {place + 1, self._run.stop}
                )
            )
            self._ask(list(islice(open_pages, WAVE if self._decides else 1)))
        return self._known[place]

    def _worth_asking(self, place: int, ahead: Sequence[int]) -> Sequence[int]:
        """List the pages of *ahead* that may be looked at, as far as can be told."""
        if not self._run or place >= self._run.start:
            return ahead
        before = [n for n in ahead if n < self._run.start]
        return [*before, *(n for n in ahead if n == self._run.stop)]

    def _surely(self, place: int) -> bool:
        return is_toc(self._pages[place][0])

    def _sure(self, place: int, *, going_on: bool) -> bool | None:
        if not self._decides:
            return None
        text = self._pages[place][0]
        if self._surely(place):
            return True
        may_be = may_go_on(text) if going_on else may_be_toc(text)
        return None if may_be else False

    def _is_open(self, place: int, *, going_on: bool) -> bool:
        blank = not self._pages[place][0].strip()
        return not blank and self._sure(place, going_on=going_on) is None

    def _ask(self, places: Sequence[int]) -> None:
        # A thread starts with an empty context: the caller in use is in ours.
        asked = [(contextvars.copy_context(), place) for place in places]
        with ThreadPoolExecutor(max_workers=len(asked)) as pool:
            answers = pool.map(lambda one: one[0].run(self._answer, one[1]), asked)
            self._known.update(zip(places, answers, strict=True))

    def _answer(self, place: int) -> bool:
        ask = self._upstream["toc_detector_single_page"]
        try:
            return bool(ask(self._pages[place][0], model=self._model) == "yes")
        except VectorlessRagError as error:
            # A page that cannot be asked about is no reason to give the document up.
            if is_fatal(error):
                raise
            return False


def sample(toc_content: str) -> str:
    """Return the start of a table of contents, whole lines, enough to judge it by."""
    if len(toc_content) <= SAMPLE_CHARS:
        return toc_content
    return toc_content[:SAMPLE_CHARS].rpartition("\n")[0] or toc_content[:SAMPLE_CHARS]


def numbers_teller_in(
    asked: Callable[..., str],
) -> Callable[..., str]:
    """Return ``detect_page_index`` that asks only where the lines are no answer."""

    def detect_page_index(toc_content: str, model: str | None = None) -> str:
        """Tell whether a table of contents has page numbers: ``yes`` or ``no``."""
        if decides("detect_page_index") and has_page_numbers(toc_content):
            return "yes"
        return asked(toc_content, model=model)

    return detect_page_index
