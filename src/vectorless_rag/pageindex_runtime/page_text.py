"""
Which text belongs to a node: its pages, joined, and cut where a neighbour begins.

Pages are ``(text, tokens)`` pairs as the upstream passes them; page numbers are
counted from 1. Titles are compared with lines in any script.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

Node = dict[str, Any]
Pages = Sequence[tuple[str, int]]

# Han and kana put no space between words, so one there is layout.
_DENSE = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_LAYOUT_SPACE = re.compile(f"(?<=[{_DENSE}]) (?=[{_DENSE}])")

_LEADING_NUMBERS = re.compile(r"^(?:\d+ )+")


def join_pages(texts: Iterable[str]) -> str:
    """Join page texts so that the last word of one and the first of the next part."""
    out = ""
    for text in texts:
        if out and text and not out[-1].isspace() and not text[0].isspace():
            out += "\n"
        out += text
    return out


def text_of_pages(pages: Pages, first: int | None, last: int | None) -> str:
    """
    Return the text of pages *first* to *last*, both included.

    Pages that do not exist contribute nothing; without both bounds there is none.
    """
    if first is None or last is None:
        return ""
    return join_pages(text for text, _ in pages[max(first, 1) - 1 : max(last, 0)])


@lru_cache(maxsize=4096)
def comparable(text: str) -> str:
    """Reduce *text* to lower-case letters, digits and marks between single spaces."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    kept = (c if unicodedata.category(c)[0] in "LMN" else " " for c in folded)
    return _LAYOUT_SPACE.sub("", " ".join("".join(kept).split()))


def _opens_with(line: str, key: str) -> bool:
    seen = comparable(line)
    bare = _LEADING_NUMBERS.sub("", seen)
    return any(f"{text} ".startswith(f"{key} ") for text in (seen, bare))


def heading_offset(text: str, title: str | None) -> int | None:
    """
    Find the one line of a page that opens with a heading.

    Returns:
        Where that line starts, in characters. None when no line does, or more than
        one: then the page cannot be cut there.
    """
    key = comparable(title or "")
    if not any(c.isalpha() for c in key):
        return None
    found, start = [], 0
    for line in text.splitlines(keepends=True):
        if _opens_with(line, key):
            found.append(start)
        start += len(line)
    return found[0] if len(found) == 1 else None


def node_heading_offset(page_text: str, node: Node | None) -> int | None:
    """Find the line of a page that opens with a node's heading; as `heading_offset`."""
    return None if node is None else heading_offset(page_text, _heading_of(node))


def heading_at_page_start(
    lines: Sequence[Sequence[str]], page_no: int, heading: str
) -> bool:
    """
    Tell whether a heading is the first line of its page.

    Not so where a later line repeats it, as running headers do: then the page may
    be shared.

    Args:
        lines: The lines of every page.
        page_no: The page, counted from 1.
        heading: Its title.
    """
    page, key = lines[page_no - 1], comparable(heading)
    if not page or not any(c.isalpha() for c in key):
        return False
    opens = [f"{comparable(line)} ".startswith(f"{key} ") for line in page]
    return opens[0] and not any(opens[1:])


def walk(nodes: Iterable[Node]) -> Iterator[Node]:
    """Yield every node, parents before children, in the order of the document."""
    for node in nodes:
        yield node
        yield from walk(children_of(node))


def children_of(node: Node) -> list[Node]:
    """Return a node's children; a leaf has none."""
    return node.get("nodes") or []


def _heading_of(node: Node | None) -> str | None:
    # The fused title of siblings on one page stands on no line of it.
    return None if node is None or node.get("_same_page") else node.get("title")


def _cut(
    pages: Pages, first: int, last: int, head: str | None, tail: str | None
) -> str:
    """Return pages *first* to *last*, from the line *head* to the line *tail*."""
    if not 1 <= first <= last <= len(pages):
        return text_of_pages(pages, first, last)
    start = heading_offset(pages[first - 1][0], head) or 0
    stop = heading_offset(pages[last - 1][0], tail)
    if first == last:
        if stop is not None and stop <= start:
            start, stop = 0, None
        return pages[first - 1][0][start:stop]
    texts = [text for text, _ in pages[first - 1 : last]]
    texts[0], texts[-1] = texts[0][start:], texts[-1][:stop]
    return join_pages(texts)


def _first_leaf(node: Node) -> Node:
    while children_of(node):
        node = children_of(node)[0]
    return node


def leaf_text(structure: Sequence[Node], leaf: Node, pages: Pages) -> str:
    """
    Return a leaf's pages less what its neighbours read of a page they share.

    A page that two leaves share is cut at the line that opens the second. Where
    that line cannot be told, both read the whole page, so no line is lost.
    """
    first, last = leaf.get("start_index"), leaf.get("end_index")
    if not isinstance(first, int) or not isinstance(last, int):
        return text_of_pages(pages, first, last)
    nodes = list(walk(structure))
    place = next((i for i, node in enumerate(nodes) if node is leaf), None)
    if place is None:
        return text_of_pages(pages, first, last)
    # The heading a leaf opens with is that of the outermost node it begins.
    top = place
    while top and _begins_with(nodes[top - 1], nodes[top]):
        top -= 1
    shares = top and nodes[top - 1].get("end_index") == first
    head = nodes[top] if shares and nodes[top].get("start_index") == first else None
    after = nodes[place + 1] if place + 1 < len(nodes) else None
    if after and not after.get("start_index") == last == _start(_first_leaf(after)):
        after = None
    return _cut(pages, first, last, _heading_of(head), _heading_of(after))


def _begins_with(parent: Node, node: Node) -> bool:
    return any(child is node for child in children_of(parent)[:1])


def _start(node: Node) -> int | None:
    return node.get("start_index")


def parent_text(node: Node, pages: Pages) -> str:
    """
    Return the text a parent has to itself: from its start to its first child.

    Empty when a child covers the parent's opening pages under the parent's own
    heading, or when there is only that heading. On the page where the first child
    starts, the text ends at the child's heading, where that can be told.
    """
    first, child = _start(node), children_of(node)[0]
    reach = _start(child)
    if first is None or reach is None or reach < first or _holds_opening(node, child):
        return ""
    last = min(reach, node.get("end_index") or reach)
    tail = _heading_of(child) if last == reach else None
    text = _cut(pages, first, last, _heading_of(node), tail)
    return "" if comparable(text) == comparable(node.get("title") or "") else text


def _holds_opening(node: Node, child: Node) -> bool:
    title = (node.get("title") or "").strip()
    opening = title if title.endswith(" (intro)") else f"{title} (intro)".strip()
    wanted = opening if title else "Intro"
    return _start(child) == _start(node) and child.get("title") == wanted
