"""Where the table of contents stands: found in bounded steps, blank pages passed."""

from collections.abc import Callable, Mapping
from typing import Any

from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.pageindex_runtime.no_toc import Pages
from vectorless_rag.pageindex_runtime.setbacks import is_fatal

MAX_TOC_PAGES = 20
"""Pages that a table of contents may run over."""

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
        found: list[int] = []
        for place in range(start_page_index, len(page_list)):
            if len(found) >= MAX_TOC_PAGES:
                break
            if not found and place >= opt.toc_check_page_num:
                break
            text = page_list[place][0]
            if not text.strip():
                continue
            if _is_toc(upstream, text, opt.model):
                found.append(place)
            elif found:
                break
        return found

    return find_toc_pages


def _is_toc(upstream: Mapping[str, Any], text: str, model: str | None) -> bool:
    try:
        return bool(upstream["toc_detector_single_page"](text, model=model) == "yes")
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
