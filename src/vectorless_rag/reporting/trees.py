"""A document's tree as nested disclosures, in the page or packed for later."""

import base64
import json
import zlib
from collections.abc import Sequence

from vectorless_rag.reporting.markup import Html, cut, embedded, h
from vectorless_rag.tree import Node, span, walk

LONGEST_TITLE = 300
LONGEST_SUMMARY = 4000
_MERGED_SHOWN = 30


def tree(nodes: Sequence[Node], page_count: int) -> Html:
    """
    Write a tree as nested lists.

    Args:
        nodes: Its roots.
        page_count: Length of the document, in pages, for the marks that show
            where a section lies.
    """
    alone = len(nodes) == 1
    items = [_item(node, page_count, opened=alone) for node in nodes]
    return h("ol", *items, class_="tree")


class Packing:
    """
    Trees as data that a browser need not look at until someone opens one.

    Everything is zlib-compressed and in base64, inside elements that do nothing.
    """

    def __init__(self) -> None:
        self._titles = zlib.compressobj()
        self._compressed = [self._titles.compress(b"[")]
        self._separator = b""

    def tree(self, nodes: Sequence[Node], page_count: int) -> Html:
        """Pack the markup that `tree` writes, and note the titles."""
        self.note([shown_title(node) for _, node in walk(nodes)])
        return _inert([zlib.compress(tree(nodes, page_count).encode())], "packed")

    def note(self, titles: Sequence[str]) -> None:
        """Keep the titles of the next document for the filter."""
        line = self._separator + json.dumps(titles).encode()
        self._compressed.append(self._titles.compress(line))
        self._separator = b","

    def titles(self) -> Html:
        """Pack the titles of all documents, in their order, as lists in a list."""
        self._compressed.append(self._titles.compress(b"]") + self._titles.flush())
        return _inert(self._compressed, "titles")


def _inert(data: Sequence[bytes], kind: str) -> Html:
    text = base64.b64encode(b"".join(data)).decode()
    return embedded("script", text, type="text/plain", class_=kind)


def shown_title(node: Node) -> str:
    """Return a title as the report shows it."""
    return cut(node.title, LONGEST_TITLE) or "(untitled)"


def _item(node: Node, page_count: int, *, opened: bool = False) -> Html:
    body = _body(node, page_count)
    if not body:
        return h("li", h("div", _line(node, page_count), class_="node leaf"))
    head = h("summary", _line(node, page_count))
    return h("li", h("details", head, body, class_="node", open=opened))


def _line(node: Node, page_count: int) -> list[Html | None]:
    pages = span(node.start_index, node.end_index).replace("-", "–")
    codes = sorted({mark.code for mark in node.degraded})
    return [
        h(
            "span",
            h("bdi", shown_title(node), class_="t"),
            h("span", "degraded: ", ", ".join(codes), class_="flag") if codes else None,
            class_="name",
        ),
        h("span", class_="leader", aria_hidden="true"),
        _where(node, page_count),
        h("span", h("span", "pages ", class_="sr"), pages, class_="pp"),
    ]


def _where(node: Node, page_count: int) -> Html:
    """Draw which part of the document a section covers."""
    start = 100 * (node.start_index - 1) / page_count
    width = 100 * (node.end_index - node.start_index + 1) / page_count
    part = h("rect", x=f"{start:.1f}%", width=f"{max(width, 3):.1f}%", height="100%")
    return h("svg", part, class_="where", aria_hidden="true")


def _body(node: Node, page_count: int) -> list[Html]:
    parts: list[Html] = []
    if node.nodes and node.direct_summary:
        parts.append(_summary(node.direct_summary, "Its own pages"))
    if node.subtree_summary:
        label = "With its subsections" if node.nodes else None
        parts.append(_summary(node.subtree_summary, label))
    if node.key_items:
        items = [cut(item, LONGEST_TITLE) for item in node.key_items[:_MERGED_SHOWN]]
        more = len(node.key_items) - len(items)
        text = "; ".join(items) + (f"; and {more:,} more" if more else "")
        parts.append(_summary(text, "Merged into it"))
    if node.degraded:
        marks = [f"{mark.what} ({mark.code})" for mark in node.degraded]
        parts.append(_summary(", ".join(marks), "Fell back", kind="flagged"))
    if node.nodes:
        parts.append(h("ol", [_item(below, page_count) for below in node.nodes]))
    return parts


def _summary(text: str, label: str | None, *, kind: str | None = None) -> Html:
    head = h("b", label, class_="label") if label else None
    classes = " ".join(filter(None, ("says", kind)))
    return h("p", head, h("bdi", cut(text, LONGEST_SUMMARY)), class_=classes)
