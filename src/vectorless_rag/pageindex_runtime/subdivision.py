"""
Large nodes divided into their sections, as long as dividing makes headway.

Dividing only refines: whatever goes wrong, the node itself stays, and says so.
"""

from collections.abc import Callable, Mapping
from typing import Any

from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.pageindex_runtime.assembly import path_of
from vectorless_rag.pageindex_runtime.entries import Entry, page_of, title_key
from vectorless_rag.pageindex_runtime.marks import mark
from vectorless_rag.pageindex_runtime.no_toc import Pages
from vectorless_rag.pageindex_runtime.page_text import Node, children_of
from vectorless_rag.pageindex_runtime.setbacks import is_fatal
from vectorless_rag.pageindex_runtime.verification import gathered

Upstream = Mapping[str, Any]

MAX_DEPTH = 16
"""Levels that dividing may add below a node."""

SHRINK = 0.75
"""A part is divided again only if it is at most this share of what was divided."""

CONCURRENCY = 8

INTRO = " (intro)"


def divider_in(upstream: Upstream) -> Callable[..., Any]:
    """Return ``process_large_node_recursively`` for *upstream*."""

    async def process_large_node_recursively(  # noqa: PLR0917
        node: Node,
        page_list: Pages,
        opt: Any = None,  # noqa: ANN401  (upstream's options)
        logger: object = None,
        split: tuple[int, int] | None = None,
        depth: int = 0,
    ) -> Node:
        """
        Divide *node* and what it is divided into.

        Args:
            node: Gets ``nodes``; keeps its own pages.
            page_list: The pages of the whole document.
            opt: ``max_page_num_each_node`` and ``max_token_num_each_node``: more
                than either, and the node is divided.
            logger: Passed on.
            split: First and last page of what was divided just above.
            depth: Levels below the node that was divided first.

        Raises:
            VectorlessRagError: A failure that ends the run.
        """
        span = node["start_index"], node["end_index"]
        if not children_of(node):
            if depth >= MAX_DEPTH or not _large(node, page_list, opt, split):
                return node
            levels = MAX_DEPTH - depth
            await _divide(upstream, node, page_list, opt, logger, levels)
            split = span
        below = depth if split is None else depth + 1
        again = upstream["process_large_node_recursively"]
        results = await gathered(
            (
                again(child, page_list, opt, logger=logger, split=split, depth=below)
                for child in children_of(node)
            ),
            most=CONCURRENCY,
        )
        for result in results:
            if isinstance(result, Exception):
                raise result
        return node

    return process_large_node_recursively


def _large(
    node: Node,
    pages: Pages,
    opt: Any,  # noqa: ANN401
    split: tuple[int, int] | None,
) -> bool:
    first, last = node["start_index"], node["end_index"]
    count = last - first + 1
    tokens = _tokens(pages, first, last)
    if count < 2:  # noqa: PLR2004  (one page has no parts to find)
        return False
    if split is not None:
        shrunk = count <= SHRINK * (split[1] - split[0] + 1)
        if not shrunk and tokens >= SHRINK * _tokens(pages, *split):
            return False
    return bool(
        count > opt.max_page_num_each_node or tokens > opt.max_token_num_each_node
    )


def _tokens(pages: Pages, first: int, last: int) -> int:
    return sum(tokens for _, tokens in pages[first - 1 : last])


async def _divide(  # noqa: PLR0917
    upstream: Upstream,
    node: Node,
    page_list: Pages,
    opt: Any,  # noqa: ANN401
    logger: object,
    levels: int,
) -> None:
    first, last = node["start_index"], node["end_index"]
    try:
        found = await upstream["meta_processor"](
            page_list[first - 1 : last], mode="process_no_toc", start_index=first,
            opt=opt, logger=logger,
        )  # fmt: skip
        inside = own_parts(node, found)
        if not inside:
            return
        for entry in inside:
            entry["structure"] = ".".join(path_of(entry.get("structure"))[:levels])
        inside = await upstream["check_title_appearance_in_start_concurrent"](
            inside, page_list, model=opt.model, logger=logger
        )
    except VectorlessRagError as error:
        if is_fatal(error):
            raise
        mark(node, error.code, "subsections")
        return
    node["nodes"] = upstream["post_processing"](inside, last)


def own_parts(node: Node, found: list[Entry]) -> list[Entry]:
    """
    Return the entries of *found* that are parts of *node*.

    Those on its pages, its first page included; not the node's own heading where it
    opens the list, and nothing that only stands for pages.
    """
    first, last = node["start_index"], node["end_index"]
    inside = [
        entry
        for entry in found
        if (page := page_of(entry.get("physical_index"))) is not None
        and first <= page <= last
        and not entry.get("degraded")
    ]
    own = title_key(str(node["title"]).strip().removesuffix(INTRO))
    if inside and title_key(inside[0]["title"]) == own:
        inside = inside[1:]
    return inside
