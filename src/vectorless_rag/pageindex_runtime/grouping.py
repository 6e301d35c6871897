"""Groups of pages that fit one prompt: no page twice, none over the cap."""

import math
import re
from collections.abc import Iterator, Sequence

from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.pageindex_runtime.pieces import Count, pieces
from vectorless_rag.pageindex_runtime.wiring import count_tokens

MAX_TOKENS = 20_000
"""Tokens of page text, markers included, that one prompt carries."""

# A page as the upstream prepares it: its text between two equal markers.
_PAGE = re.compile(
    r"\A(<physical_index_\d+>\n)(.*)(\n<physical_index_\d+>\s*)\Z", re.DOTALL
)


def page_list_to_group_text(
    page_contents: Sequence[str],
    token_lengths: Sequence[int],
    max_tokens: int = MAX_TOKENS,
    overlap_page: int = 0,
) -> list[str]:
    """
    Join consecutive pages into as few groups as the cap allows.

    Args:
        page_contents: Text of each page between its markers.
        token_lengths: Tokens of each of them, markers included.
        max_tokens: Most tokens in a group.
        overlap_page: Not used: a page shared by two groups is read twice, and its
            sections come back twice.

    Returns:
        The groups, in order. Without markers and joined, they are the pages, each
        once. A page over the cap is split, and each piece has the page's markers.

    Raises:
        VectorlessRagError: ``pageindex_no_structure`` if there are no pages.
    """
    del overlap_page
    groups: list[list[str]] = []
    room = 0
    for page, tokens in zip(page_contents, token_lengths, strict=True):
        for part, size in _fitting(page, tokens, max_tokens):
            if not groups or size > room:
                groups.append([])
                room = max_tokens
            groups[-1].append(part)
            room -= size
    if not groups:
        raise VectorlessRagError(Code.NO_STRUCTURE, "no pages to read")
    return ["".join(group) for group in groups]


def _fitting(page: str, tokens: int, cap: int) -> Iterator[tuple[str, int]]:
    """Yield the page, or its pieces, each with its tokens."""
    if tokens <= cap:
        yield page, tokens
        return
    count = _counter(page, tokens)
    match = _PAGE.match(page)
    head, body, tail = match.groups() if match else ("", page, "")
    room = max(cap - count(head) - count(tail), 1)
    for piece in pieces(body, cap=room, count=count):
        part = f"{head}{piece}{tail}"
        yield part, count(part)


def _counter(page: str, tokens: int) -> Count:
    """Count as the caller did: its number for the page is the measure."""
    scale = max(tokens / max(count_tokens(page), 1), 1.0)
    return lambda text: math.ceil(count_tokens(text) * scale)
