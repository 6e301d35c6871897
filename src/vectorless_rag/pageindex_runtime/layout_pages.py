"""
The layout of every page, read page by page, on as many processors as there are.

What a page's characters were is forgotten once its lines are known, so that memory
does not grow with what is read on the way. Pages do not depend on each other, with one
exception that the upstream's own reader knows to handle: then, and whenever anything
fails here, that reader has the whole document.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

from vectorless_rag.forks import SHARE, shared

Upstream = dict[str, Any]
"""The upstream module's own names; its readers keep the open document there."""

Page = tuple[list[Any], Any]
"""The spans of a page, and its view box and rotation."""


def page_reader_in(upstream: Upstream) -> Callable[..., Any]:
    """Return ``parse_charlevel_meta_parallel`` for *upstream*."""

    def parse_charlevel_meta_parallel(
        doc_handle: object,
        workers: int | None = None,
        min_pages: int = 2 * SHARE,
    ) -> tuple[list[list[Any]], list[Any]]:
        """
        Read the layout of a document.

        Args:
            doc_handle: A path, or a file in memory; anything else is left to the
                upstream's own reader.
            workers: Most processes; default: one for each processor.
            min_pages: Fewer pages are read by this process alone.

        Returns:
            The spans of each page; and of each page its view box and rotation.
        """
        whole: Callable[..., tuple[list[list[Any]], list[Any]]] = upstream[
            "parse_charlevel_meta"
        ]
        if isinstance(doc_handle, str | Path):
            source: tuple[str, Any] = ("path", str(doc_handle))
        elif isinstance(doc_handle, BytesIO):
            source = ("bytes", doc_handle.getvalue())
        else:
            return whole(doc_handle)
        count = _count_pages(upstream, source)
        try:
            with _without_collecting():
                pages = shared(
                    partial(_share, upstream, source),
                    count,
                    processes=1 if count < min_pages else workers,
                )
        except Exception:  # noqa: BLE001  (that reader is the source of truth)
            return whole(doc_handle)
        return [spans for spans, _ in pages], [meta for _, meta in pages]

    return parse_charlevel_meta_parallel


def _count_pages(upstream: Upstream, source: tuple[str, Any]) -> int:
    kind, payload = source
    document = upstream["pdfium"].PdfDocument(
        payload if kind == "path" else BytesIO(payload)
    )
    try:
        return len(document)
    finally:
        document.close()


@contextmanager
def _without_collecting() -> Iterator[None]:
    """Look for no cycles: millions of small objects are made, and none has any."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _share(upstream: Upstream, source: tuple[str, Any], share: range) -> list[Page]:
    upstream["_init_worker"](*source)
    try:
        return [upstream["_run_page"](number) for number in share]
    finally:
        upstream["_worker_pdf"].close()
        upstream.update(_worker_pdf=None, _worker_pdf_doc=None)
        upstream["_worker_font_maps"] = {}
