"""
What no run over a document can exceed, whatever its model answers.

Every figure follows from a cap that the runtime keeps: tokens of a prompt, tokens of
a reply, tries of a call, attempts of a repair, levels of a division. A model that
answers as badly as the caps allow reaches a good part of it; a real one stays far
below. What is assumed of the provider is that it keeps to the cap on output tokens.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vectorless_rag.pageindex_runtime import (
    routes,
    subdivision,
    toc_pages,
    toc_transform,
)
from vectorless_rag.pageindex_runtime.worst_case import (
    MARKERS,
    RESPELLED,
    Asked,
    Work,
    half,
    window,
)

FIX_ATTEMPTS = 3
"""Searches for an entry that was not confirmed; see `routes`."""

TOC_CHECK_PAGES = 20
PAGES_EACH = 10
TOKENS_EACH = 20_000
"""The upstream's own options: where a table of contents begins, what is large."""

EXPAND_ABOVE_PAGES = 5
ENTRY_TOKENS = 45
"""The upstream's constants of expanding, of the same names or nearly."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What the layout shows when the model is about to refine it."""

    nodes: int
    parents: int
    open_leaves: tuple[tuple[int, int], ...]
    """First and last page of every section that may still be divided."""


def flash(pages: Sequence[int], layout: Layout, asked: Asked) -> Iterator[Work]:
    """
    Bound the calls of the flash route.

    Args:
        pages: Bound of every page's tokens.
        layout: What there is to refine.
        asked: How the model is asked.
    """
    whole, most = _sizes(pages)
    prompts = parts = divided = 0
    for first, last in layout.open_leaves:
        span = last - first + 1
        text = sum(pages[first - 1 : last]) + MARKERS * span
        if span <= EXPAND_ABOVE_PAGES:
            continue
        # Each part of a section that is divided has fewer pages by two at least, and
        # neighbours share one: never more divisions than pages over the limit.
        divisions = span - EXPAND_ABOVE_PAGES
        divided += divisions
        prompts += divisions * (1 if text <= TOKENS_EACH else text // half() + 1)
        # Dividing is kept only where naming the parts takes fewer tokens than it
        # saves: a token counts once for every time its share is halved.
        levels = min(divisions - 1, math.ceil(math.log2(text + 2)))
        parts += text * (1 + 2 * levels) // ENTRY_TOKENS
    shown = min(window(asked), whole)
    yield Work("expand", prompts, prompts * (asked.instructions + shown))
    parts = min(parts, prompts * asked.placed)
    # A part, and the pages before the first of them.
    nodes, parents = layout.nodes + parts + divided, layout.parents + divided
    yield from _summaries(nodes, parents, whole, most, asked)


def shortcut(pages: Sequence[int], asked: Asked) -> Iterator[Work]:
    """Bound the calls for a single page: one summary."""
    yield Work("summary_leaf", 1, sum(pages) + MARKERS + asked.instructions)


def standard(pages: Sequence[int], groups: int, asked: Asked) -> Iterator[Work]:
    """
    Bound the calls of the standard route.

    Args:
        pages: Bound of every page's tokens.
        groups: Prompts that together show every page once.
        asked: How the model is asked.
    """
    count, (whole, most) = len(pages), _sizes(pages)
    yield from _looking_for_toc(pages, asked)
    listed = min(whole, toc_pages.MAX_TOC_PAGES * most)
    replies = _toc_replies(listed)
    by_toc = replies * asked.listed
    yield from _by_toc(listed, whole, groups, count, asked)
    by_text = 2 * groups * asked.placed
    yield from _by_text(groups, whole, asked)
    titles = (2 * replies + 2 * groups) * asked.reply * RESPELLED
    yield _checks(2 * by_toc + by_text, most, titles, asked)
    entries = max(by_toc, by_text) + count // routes.PART_PAGES + 2
    yield from _repairs(entries, whole, most, titles, asked)
    # Asked ahead, while repairs go on, and once more where an entry was moved or no
    # answer was of use.
    yield _openings(2 * entries, most, 2 * titles, asked)
    nodes = entries
    levels = _levels(count, whole)
    if levels:
        large = max((count - 1) // PAGES_EACH, 0) + 2 * whole // TOKENS_EACH
        again = large + 2 * whole // half()
        found = levels * 2 * again * asked.placed
        said = levels * 2 * again * asked.reply * RESPELLED
        yield from _by_text(levels * again, whole, asked)
        yield _checks(found, most, said, asked)
        yield from _repairs(found, whole, most, said, asked)
        yield _openings(found, most, said, asked)
        nodes += found
    # A node may open with pages before its first part.
    yield from _summaries(2 * nodes + 1, nodes, whole, most, asked)


def _levels(pages: int, tokens: int) -> int:
    """Levels of division: each part has 3/4 of the pages or tokens at most."""
    if pages <= PAGES_EACH and tokens <= TOKENS_EACH:
        return 0
    return subdivision.MAX_DEPTH


def _looking_for_toc(pages: Sequence[int], asked: Asked) -> Iterator[Work]:
    seen = pages[: TOC_CHECK_PAGES + toc_pages.MAX_TOC_PAGES]
    # The page that ends one table is where the next is looked for.
    calls = 2 * len(seen)
    tokens = 2 * sum(seen) + calls * asked.instructions
    yield Work("toc_detector_single_page", calls, tokens)
    tables = min(len(pages), TOC_CHECK_PAGES + 1)
    shown = min(sum(pages), asked.bound(toc_pages.SAMPLE_CHARS) * 4)
    yield Work(
        "detect_page_index", tables, tables * (shown + MARKERS + asked.instructions)
    )


def _toc_replies(listed: int) -> int:
    """Replies that may hold entries of a table of contents of *listed* tokens."""
    pieces = listed // (toc_transform.MAX_TOKENS // 2) + 1
    return pieces * (1 + toc_transform.MAX_CONTINUATIONS)


def _by_toc(
    listed: int, whole: int, groups: int, pages: int, asked: Asked
) -> Iterator[Work]:
    replies = _toc_replies(listed)
    rounds = 1 + toc_transform.MAX_CONTINUATIONS
    piece = asked.bound(toc_transform.MAX_TOKENS) + asked.instructions
    # With printed pages and then without; each round shows what came before it.
    history = replies * rounds * asked.reply * RESPELLED
    tokens = 2 * (replies * piece + history)
    yield Work("toc_transformer", 2 * replies, tokens)
    yield Work("check_if_toc_transformation_is_complete", 2 * replies, tokens)
    pages_shown = min(window(asked), whole) + asked.instructions
    shown = replies * asked.reply * RESPELLED
    yield Work("toc_index_extractor", groups, groups * (pages_shown + shown))
    open_ = replies * asked.listed // 2 + 1
    stretches = groups + 2 * min(toc_pages.MAX_TOC_PAGES, pages) + 1
    yield Work(
        "add_page_number_to_toc",
        open_ + stretches,
        (open_ + stretches) * pages_shown + (1 + stretches) * shown,
    )


def _by_text(groups: int, whole: int, asked: Asked) -> Iterator[Work]:
    pages_shown = min(window(asked), whole) + asked.instructions
    # Titles of at most 200 characters, of 48 entries.
    known = asked.bound(48 * (200 + MARKERS))
    calls = 3 * groups
    yield Work("generate_toc_init", calls, calls * pages_shown)
    yield Work("generate_toc_continue", calls, calls * (pages_shown + known))


def _checks(entries: int, most: int, titles: int, asked: Asked) -> Work:
    tokens = entries * (most + asked.instructions) + titles
    return Work("check_title_appearance", entries, tokens)


def _openings(entries: int, most: int, titles: int, asked: Asked) -> Work:
    tokens = entries * (most + asked.instructions) + titles
    return Work("check_title_appearance_in_start", entries, tokens)


def _repairs(
    entries: int, whole: int, most: int, titles: int, asked: Asked
) -> Iterator[Work]:
    wrong = math.ceil(entries * (1 - routes.ENOUGH)) * FIX_ATTEMPTS
    pages_shown = min(window(asked), whole) + asked.instructions
    said = FIX_ATTEMPTS * titles
    yield Work("single_toc_item_index_fixer", wrong, wrong * pages_shown + said)
    yield _checks(wrong, most, said, asked)


def _summaries(
    nodes: int, parents: int, whole: int, most: int, asked: Asked
) -> Iterator[Work]:
    # In reading order the nodes' own texts cover the document, and each may share
    # its last page with the next; what is too long is read in parts, and the parts'
    # summaries again, half as long each time.
    shown = whole + nodes * most
    calls = nodes + 4 * (shown // half())
    # Or summary_direct, where it has parts of its own.
    yield Work("summary_leaf", calls, 2 * shown + calls * asked.instructions)
    # A child is shown once, with its summary, under half a prompt with its siblings.
    own = min(window(asked), whole)
    told = min(nodes * asked.reply, parents * window(asked))
    yield Work("summary_subtree", parents, parents * (asked.instructions + own) + told)


def _sizes(pages: Sequence[int]) -> tuple[int, int]:
    """Tokens of all pages together and of the longest, with what stands around."""
    return sum(pages) + MARKERS * len(pages), max(pages) + MARKERS
