"""
Which way the sections of a document are found, and what is left if none works.

The ways form a chain: a table of contents with printed pages, one without, and the
text itself. Each failure, and each result of which too little is confirmed, leads to
the next; the end of the chain is a tree of page ranges that says what it is.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.pageindex_runtime.entries import Entry, in_page_order, page_of
from vectorless_rag.pageindex_runtime.marks import mark
from vectorless_rag.pageindex_runtime.no_toc import Pages
from vectorless_rag.pageindex_runtime.setbacks import is_fatal
from vectorless_rag.pageindex_runtime.title_lines import confirmed
from vectorless_rag.pageindex_runtime.verification import gathered
from vectorless_rag.pageindex_runtime.wiring import decides

Upstream = Mapping[str, Any]

CHAIN = (
    "process_toc_with_page_numbers",
    "process_toc_no_page_numbers",
    "process_no_toc",
)

ENOUGH = 0.6
"""Share of entries that must be confirmed before the rest is repaired."""

PART_PAGES = 10
"""Pages in one part of a document whose sections are not known."""


@dataclass(frozen=True, kw_only=True)
class Trip:
    """What every way of the chain goes through, and whom it asks."""

    upstream: Upstream
    pages: Pages
    opt: Any
    """Upstream's options: ``model`` and ``toc_check_page_num``."""

    start: int = 1
    """Number of the first of the pages."""

    content: str | None = None
    """Text of the table of contents, where there is one."""

    listed: Sequence[int] = ()
    """Its pages, as places among the pages."""

    logger: object = None

    whole: bool = False
    """The pages are the whole document, and who opens a page is asked next."""

    def find(self, way: str) -> list[Entry]:
        """Go one way, with the upstream's function of that name."""
        step, model = self.upstream[way], self.opt.model
        if way == CHAIN[2]:
            return list(step(self.pages, self.start, model=model, logger=self.logger))
        options = {"model": model, "logger": self.logger}
        if way == CHAIN[0]:
            options["toc_check_page_num"] = self.opt.toc_check_page_num
        return list(step(self.content, self.listed, self.pages, **options))


@dataclass(frozen=True, kw_only=True)
class Findings:
    """The best that the chain came to."""

    entries: list[Entry] = field(default_factory=list)
    accuracy: float = 0.0
    """Share of all entries that were confirmed."""

    enough: bool = False
    failure: str = Code.NO_STRUCTURE
    """Why there is no more, if not enough."""


async def follow(trip: Trip, mode: str | None) -> Findings:
    """
    Go down the chain from *mode* on; a mode that is not in it is its end.

    Raises:
        VectorlessRagError: A failure that ends the run.
    """
    best = Findings()
    for way in CHAIN[CHAIN.index(mode) :] if mode in CHAIN else CHAIN[-1:]:
        try:
            found = await _go(trip, way)
        except Exception as error:
            if is_fatal(error):
                raise
            best = _failed(best, str(getattr(error, "code", Code.INTERNAL_ERROR)))
            continue
        if found.enough:
            return found
        best = max(best, found, key=lambda each: each.accuracy)
    return best


def _failed(best: Findings, code: str) -> Findings:
    return best if best.entries else Findings(failure=code)


async def _go(trip: Trip, way: str) -> Findings:
    """Go one way: find, check, repair."""
    # The steps wait for replies, so they must not hold up the event loop.
    entries = await asyncio.to_thread(trip.find, way)
    last = trip.start + len(trip.pages) - 1
    for entry in entries:
        page = page_of(entry.get("physical_index"))
        inside = page is not None and trip.start <= page <= last
        entry["physical_index"] = page if inside else None
    model = trip.opt.model
    (accuracy, incorrect), _ = await asyncio.gather(
        trip.upstream["verify_toc"](
            trip.pages, entries, start_index=trip.start, model=model
        ),
        _ask_ahead(trip, entries),
    )
    if entries and not incorrect and accuracy == 1.0:
        return Findings(entries=entries, accuracy=accuracy, enough=True)
    if accuracy > ENOUGH:
        repair = trip.upstream["fix_incorrect_toc_with_retries"]
        entries, _ = await repair(
            entries, trip.pages, incorrect, start_index=trip.start, max_attempts=3,
            model=model, logger=trip.logger,
        )  # fmt: skip
        return Findings(entries=entries, accuracy=accuracy, enough=True)
    wrong = {result["list_index"] for result in incorrect}
    right = [entry for place, entry in enumerate(entries) if place not in wrong]
    return Findings(entries=right, accuracy=accuracy)


async def _ask_ahead(trip: Trip, entries: Sequence[Entry]) -> None:
    """
    Ask who opens a page while it is checked who stands there.

    Only where the text alone confirms enough, so that the answers will be used.
    """
    if not trip.whole or not decides("check_title_appearance"):
        return
    sure = [e for e in entries if confirmed(e, trip.pages, trip.start)]
    if len(sure) <= ENOUGH * len(entries):
        return
    told = trip.upstream["add_preface_if_needed"]([dict(entry) for entry in entries])
    check = trip.upstream["check_title_appearance_in_start_concurrent"]
    await check(told, trip.pages, model=trip.opt.model, logger=trip.logger)
    for entry, answered in zip(entries, told[-len(entries) :], strict=True):
        known = ("appear_start", "opens_page")
        entry |= {name: answered[name] for name in known if name in answered}


def chain_in(upstream: Upstream) -> Callable[..., Any]:
    """Return ``meta_processor`` for *upstream*."""

    async def meta_processor(  # noqa: PLR0917
        page_list: Pages,
        mode: str | None = None,
        toc_content: str | None = None,
        toc_page_list: Sequence[int] | None = None,
        start_index: int = 1,
        opt: Any = None,  # noqa: ANN401
        logger: object = None,
    ) -> list[Entry]:
        """
        Find the sections of *page_list*.

        Returns:
            Entries in the order found; one that could not be placed has no page.

        Raises:
            VectorlessRagError: What the last way failed with, or
                ``pageindex_no_structure`` if too little was confirmed.
        """
        trip = Trip(
            upstream=upstream, pages=page_list, opt=opt, start=start_index,
            content=toc_content, listed=toc_page_list or (), logger=logger,
        )  # fmt: skip
        found = await follow(trip, mode)
        if not found.enough:
            raise VectorlessRagError(Code(found.failure), "no section was confirmed")
        return found.entries

    return meta_processor


def document_parser_in(upstream: Upstream) -> Callable[..., Any]:
    """Return ``tree_parser`` for *upstream*."""

    async def tree_parser(
        page_list: Pages,
        opt: Any,  # noqa: ANN401
        doc: object = None,
        logger: object = None,
    ) -> list[Entry]:
        """
        Build the tree of a document.

        Returns:
            Root nodes; where something fell back, they are marked.

        Raises:
            VectorlessRagError: A failure that ends the run.
        """
        del doc
        toc = await asyncio.to_thread(_toc_of, upstream, page_list, opt)
        trip = Trip(
            upstream=upstream, pages=page_list, opt=opt, logger=logger,
            content=toc.get("toc_content"), listed=toc.get("toc_page_list") or (),
            whole=True,
        )  # fmt: skip
        found = await follow(trip, _mode(toc))
        entries = settled(found, len(page_list))
        entries = upstream["add_preface_if_needed"](entries)
        entries = await upstream["check_title_appearance_in_start_concurrent"](
            entries, page_list, model=opt.model, logger=logger
        )
        tree = upstream["post_processing"](entries, len(page_list))
        tree = upstream["add_intro_nodes"](tree)
        divide = upstream["process_large_node_recursively"]
        results = await gathered(
            divide(node, page_list, opt, logger=logger) for node in tree
        )
        for result in results:
            if isinstance(result, Exception):
                raise result
        # A node that was divided may open before its first part.
        grown: list[Entry] = upstream["add_intro_nodes"](tree)
        return grown

    return tree_parser


def _toc_of(
    upstream: Upstream,
    page_list: Pages,
    opt: Any,  # noqa: ANN401
) -> Mapping[str, Any]:
    """Look for a table of contents; without a usable answer there is none."""
    try:
        found: Mapping[str, Any] = upstream["check_toc"](page_list, opt)
    except VectorlessRagError as error:
        if is_fatal(error):
            raise
        return {}
    return found


def _mode(toc: Mapping[str, Any]) -> str:
    if not (toc.get("toc_content") or "").strip():
        return CHAIN[2]
    return CHAIN[0] if toc.get("page_index_given_in_toc") == "yes" else CHAIN[1]


def settled(found: Findings, page_count: int) -> list[Entry]:
    """
    Give every entry a page, and make entries where there are none.

    An entry that was not found stands where its neighbour starts, and is marked.
    Of a chain that came to too little, what was confirmed stays and is marked; with
    nothing confirmed, the parts of the document stand for its sections.
    """
    entries = found.entries
    if not found.enough:
        for entry in entries:
            mark(entry, found.failure, "siblings")
    if not any(page_of(e.get("physical_index")) is not None for e in entries):
        return _parts(page_count, found.failure)
    pages = [page_of(entry.get("physical_index")) for entry in entries]
    known = next(page for page in pages if page is not None)
    for entry, page in zip(entries, pages, strict=True):
        if page is None:
            mark(entry, "not_found", "location")
        known = known if page is None else page
        entry["physical_index"] = known
    return in_page_order(entries)


def _parts(page_count: int, code: str) -> list[Entry]:
    parts: list[Entry] = []
    for first in range(1, page_count + 1, PART_PAGES):
        last = min(first + PART_PAGES - 1, page_count)
        title = f"Page {first}" if first == last else f"Pages {first}-{last}"
        entry: Entry = {"structure": None, "title": title, "physical_index": first}
        mark(entry, code, "structure")
        parts.append(entry)
    return parts
