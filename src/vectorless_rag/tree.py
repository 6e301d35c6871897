"""The page tree: what the child found, checked before anything is stored."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from vectorless_rag.canon import Json
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.records import one_line, storable
from vectorless_rag.units import PageNo

MAX_DEPTH = 64
"""Levels a tree may have; spelling and reading it back must not exhaust a stack."""

# Ids are quoted in messages, so they must not be able to carry document text.
_ID = re.compile(r"[0-9A-Za-z._-]{1,64}")
_WORD = re.compile(r"[a-z][a-z0-9_]{0,63}")


@dataclass(frozen=True, kw_only=True)
class Degraded:
    """Something in a node is not what it should be, and says so."""

    code: str
    """Why: a failure code, or a word of the runtime's own."""

    what: str
    """What fell back: ``direct_summary``, ``location``, …"""


@dataclass(frozen=True, kw_only=True)
class Node:
    """
    One section of the document.

    Children may reach outside their parent's pages; PageIndex writes trees so.
    """

    node_id: str
    """Unique within its tree."""

    title: str
    """One line, with neither line breaks nor control characters."""

    start_index: PageNo
    """First page."""

    end_index: PageNo
    """Last page, itself included."""

    direct_summary: str = ""
    """Of the node's own pages only; empty if none was made."""

    subtree_summary: str = ""
    """Of its own pages and its children's summaries; empty if none was made."""

    degraded: tuple[Degraded, ...] = ()

    key_items: tuple[str, ...] = ()
    """Titles of sections that were merged into this one."""

    nodes: tuple["Node", ...] = ()
    """Subsections, in the order of their first pages."""

    @property
    def summary(self) -> str:
        """The subtree's summary, under the name that PageIndex readers know."""
        return self.subtree_summary

    def to_json(self) -> dict[str, Json]:
        """Spell the node and everything under it; `read_tree` reads it back."""
        spelled: dict[str, Json] = {
            "node_id": self.node_id,
            "title": self.title,
            "start_index": self.start_index,
            "end_index": self.end_index,
            "direct_summary": self.direct_summary,
            "subtree_summary": self.subtree_summary,
            "summary": self.summary,
            "degraded": [{"code": d.code, "what": d.what} for d in self.degraded],
            "nodes": [node.to_json() for node in self.nodes],
        }
        if self.key_items:
            spelled["key_items"] = list(self.key_items)
        return spelled


def walk(nodes: Sequence[Node]) -> Iterator[tuple[int, Node]]:
    """Yield every node with its depth, from 0, in reading order."""
    stack = [(0, node) for node in reversed(nodes)]
    while stack:
        depth, node = stack.pop()
        yield depth, node
        stack.extend((depth + 1, below) for below in reversed(node.nodes))


def count(nodes: Sequence[Node]) -> int:
    """Count the nodes of a tree."""
    return sum(1 for _ in walk(nodes))


def height(nodes: Sequence[Node]) -> int:
    """Count the levels of a tree; 0 for no nodes."""
    return max((depth + 1 for depth, _ in walk(nodes)), default=0)


def outline(nodes: Sequence[Node]) -> Iterator[str]:
    """Yield one line a node for people to read: indented title and pages."""
    for depth, node in walk(nodes):
        pages = span(node.start_index, node.end_index)
        yield f"{'  ' * depth}{node.title or '(untitled)'}  [{pages}]"


def span(first: int, last: int) -> str:
    """Spell a range of pages: ``3`` or ``3-5``."""
    return str(first) if first == last else f"{first}-{last}"


def read_tree(raw: object, page_count: int) -> tuple[Node, ...]:
    """
    Turn what the child returned into nodes, or say where it is no page tree.

    Args:
        raw: A list of nested nodes as PageIndex spells them. Fields that are
            not `Node`'s are passed over. Where any node lacks an id, all are
            numbered anew in reading order: ``0000``, ``0001``, …
        page_count: Length of the document, in pages.

    Raises:
        VectorlessRagError: ``pageindex_no_structure`` for an empty list, and
            ``pageindex_invalid_tree`` for a field of the wrong type, pages that
            lie outside the document or run backwards, siblings out of order,
            an id used twice, a node that contains itself, too many levels, or
            pages that no node reaches. The message names the place and the
            pages, never a title.
    """
    places = _places(raw)
    if not places:
        raise VectorlessRagError(Code.NO_STRUCTURE)
    ids = _ids(places)
    below: list[list[Node]] = [[] for _ in places]
    roots: list[Node] = []
    # Backwards through reading order, so that children come before parents.
    for index in reversed(range(len(places))):
        place = places[index]
        siblings = roots if place.parent is None else below[place.parent]
        node = _node(place, ids[index], page_count, tuple(reversed(below[index])))
        if siblings and siblings[-1].start_index < node.start_index:
            after = siblings[-1].start_index
            _refuse(place, f"starts on page {node.start_index}, the next on {after}")
        siblings.append(node)
    tree = tuple(reversed(roots))
    _check_reach(tree, page_count)
    return tree


@dataclass(frozen=True)
class _Place:
    path: str
    depth: int
    parent: int | None
    raw: Mapping[str, object]


def _places(raw: object) -> list[_Place]:
    """List every node in reading order, without recursion."""
    places: list[_Place] = []
    seen: set[int] = set()
    stack = _entries(raw, "tree", 1, None)
    while stack:
        path, depth, parent, item = stack.pop()
        if not isinstance(item, Mapping):
            _refuse_at(path, "not an object")
        # Twice the same object is a cycle, or a tree that doubles at each level.
        if id(item) in seen:
            _refuse_at(path, "occurs twice")
        if depth > MAX_DEPTH:
            _refuse_at(path, f"more than {MAX_DEPTH} levels")
        seen.add(id(item))
        places.append(_Place(path, depth, parent, item))
        nested = item.get("nodes") or []
        stack += _entries(nested, f"{path}.nodes", depth + 1, len(places) - 1)
    return places


def _entries(
    raw: object, path: str, depth: int, parent: int | None
) -> list[tuple[str, int, int | None, object]]:
    if not isinstance(raw, list | tuple):
        _refuse_at(path, "not a list")
    numbered = reversed(list(enumerate(raw)))
    return [(f"{path}[{index}]", depth, parent, item) for index, item in numbered]


def _ids(places: Sequence[_Place]) -> list[str]:
    given = [place.raw.get("node_id") for place in places]
    if any(node_id in (None, "") for node_id in given):
        return [f"{index:04d}" for index in range(len(places))]
    used: set[str] = set()
    for place, node_id in zip(places, given, strict=True):
        if not isinstance(node_id, str) or not _ID.fullmatch(node_id):
            _refuse_at(place.path, "node_id is malformed")
        if node_id in used:
            _refuse_at(place.path, f"node_id {node_id} is used twice")
        used.add(node_id)
    return [str(node_id) for node_id in given]


def _node(
    place: _Place, node_id: str, page_count: int, nodes: tuple[Node, ...]
) -> Node:
    first, last = _page(place, "start_index"), _page(place, "end_index")
    if not 1 <= first <= last <= page_count:
        _refuse(place, f"pages {first} to {last} of {page_count}")
    whole = _text(place, "subtree_summary") or _text(place, "summary")
    own = _text(place, "direct_summary")
    return Node(
        node_id=node_id,
        title=one_line(_title(place)),
        start_index=first,
        end_index=last,
        # A leaf has no pages but its own.
        direct_summary=own or ("" if nodes else whole),
        subtree_summary=whole or ("" if nodes else own),
        degraded=_degraded(place),
        key_items=_key_items(place),
        nodes=nodes,
    )


def _page(place: _Place, field: str) -> PageNo:
    value = place.raw.get(field)
    # True is an int to Python, and a page to nobody.
    if not isinstance(value, int) or isinstance(value, bool):
        _refuse(place, f"{field} is not a whole number")
    return PageNo(value)


def _title(place: _Place) -> str:
    title = place.raw.get("title")
    if not isinstance(title, str):
        _refuse(place, "title is not a text")
    return title


def _text(place: _Place, field: str) -> str:
    value = place.raw.get(field)
    if value is None:
        return ""
    if not isinstance(value, str):
        _refuse(place, f"{field} is not a text")
    return storable(value)


def _key_items(place: _Place) -> tuple[str, ...]:
    return tuple(
        one_line(item) if isinstance(item, str) else _refuse(place, "key_items")
        for item in _sequence(place, "key_items")
    )


def _degraded(place: _Place) -> tuple[Degraded, ...]:
    marks: list[Degraded] = []
    for item in _sequence(place, "degraded"):
        match item:
            case {"code": str(code), "what": str(what)} if _WORD.fullmatch(code):
                marks.append(Degraded(code=code, what=one_line(what)))
            case _:
                _refuse(place, "degraded is malformed")
    return tuple(marks)


def _sequence(place: _Place, field: str) -> Sequence[object]:
    value = place.raw.get(field) or ()
    if not isinstance(value, list | tuple):
        _refuse(place, f"{field} is not a list")
    return value


def _check_reach(tree: Sequence[Node], page_count: int) -> None:
    ranges = sorted((node.start_index, node.end_index) for _, node in walk(tree))
    gaps: list[str] = []
    reached = 0
    for first, last in [*ranges, (page_count + 1, page_count + 1)]:
        if first > reached + 1:
            gaps.append(span(reached + 1, first - 1))
        reached = max(reached, last)
    if gaps:
        more = f" and {len(gaps) - 5} more gaps" if len(gaps) > 5 else ""  # noqa: PLR2004
        _refuse_at("tree", f"no node reaches pages {', '.join(gaps[:5])}{more}")


def _refuse(place: _Place, why: str) -> NoReturn:
    node_id = place.raw.get("node_id")
    known = isinstance(node_id, str) and _ID.fullmatch(node_id)
    _refuse_at(f"{place.path} (node {node_id})" if known else place.path, why)


def _refuse_at(path: str, why: str) -> NoReturn:
    raise VectorlessRagError(Code.INVALID_TREE, f"{path}: {why}")
