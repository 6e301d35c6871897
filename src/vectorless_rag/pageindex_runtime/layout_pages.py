"""
The layout of every page, read page by page, on as many processors as there are.

What a page's characters were is forgotten once its lines are known, so that memory
does not grow with what is read on the way. Pages do not depend on each other, with one
exception that the upstream's own reader knows to handle: then, and whenever anything
fails here, that reader has the whole document.
"""

import gc
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import Any

Upstream = dict[str, Any]
"""The upstream module's own names; its readers keep the open document there."""

Page = tuple[list[Any], Any]
"""The spans of a page, and its view box and rotation."""

PAGES_PER_HELPER = 16
"""Pages for which a second process is worth its start."""

MOST = 4
"""Processes at once."""


class HelperError(Exception):
    """A process that read pages did not bring them."""


def page_reader_in(upstream: Upstream) -> Callable[..., Any]:
    """Return ``parse_charlevel_meta_parallel`` for *upstream*."""

    def parse_charlevel_meta_parallel(
        doc_handle: object,
        workers: int | None = None,
        min_pages: int = 2 * PAGES_PER_HELPER,
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
        shares = _shares(count, workers, min_pages)
        try:
            with _without_collecting():
                pages = _read(upstream, source, shares)
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


def _shares(count: int, workers: int | None, min_pages: int) -> list[range]:
    """Deal the pages out: one share for each process, this one's first."""
    most = min(workers or MOST, MOST, len(os.sched_getaffinity(0)))
    # A fork copies one thread alone, with the locks of all others as they are.
    alone = count < min_pages or threading.active_count() > 1
    processes = 1 if alone else max(1, min(most, count // PAGES_PER_HELPER))
    return [range(first, count, processes) for first in range(processes)]


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


def _read(
    upstream: Upstream, source: tuple[str, Any], shares: Sequence[range]
) -> list[Page]:
    helpers: list[_Helper] = []
    try:
        # One by one: those that were started are ended, should the next not start.
        for share in shares[1:]:
            helpers += [_Helper(upstream, source, share)]
        read = {0: _share(upstream, source, shares[0])}
        for number, helper in enumerate(helpers, 1):
            read[number] = helper.pages()
    finally:
        for helper in helpers:
            helper.end()
    count = sum(map(len, shares))
    return [read[n % len(shares)][n // len(shares)] for n in range(count)]


def _share(upstream: Upstream, source: tuple[str, Any], share: range) -> list[Page]:
    upstream["_init_worker"](*source)
    try:
        return [upstream["_run_page"](number) for number in share]
    finally:
        upstream["_worker_pdf"].close()
        upstream.update(_worker_pdf=None, _worker_pdf_doc=None)
        upstream["_worker_font_maps"] = {}


class _Helper:
    """A process that reads some of the pages."""

    def __init__(
        self, upstream: Upstream, source: tuple[str, Any], share: range
    ) -> None:
        ours, theirs = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(ours)
            _serve(theirs, upstream, source, share)
        os.close(theirs)
        self._answer = ours

    def pages(self) -> list[Page]:
        """
        Wait for its pages.

        Raises:
            HelperError: It brought none, for whatever reason.
        """
        with open(self._answer, "rb", closefd=False) as stream:
            data = stream.read()
        if not data:
            raise HelperError
        pages: list[Page] = pickle.loads(data)  # noqa: S301  (a fork of this process)
        return pages

    def end(self) -> None:
        """End it, if it has not ended, and forget it."""
        os.close(self._answer)
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


def _serve(
    answer: int, upstream: Upstream, source: tuple[str, Any], share: range
) -> None:
    """Read the pages and end: nothing that this process inherited is to run."""
    status = 1
    try:
        data = pickle.dumps(_share(upstream, source, share), pickle.HIGHEST_PROTOCOL)
        with open(answer, "wb") as stream:
            stream.write(data)
        status = 0
    finally:
        os._exit(status)
