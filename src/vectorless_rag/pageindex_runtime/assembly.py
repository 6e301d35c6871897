"""From entries to a tree: page ranges, parents, pages before the first entry."""

from collections.abc import Sequence
from typing import Any

from vectorless_rag.pageindex_runtime.entries import (
    Entry,
    code_of,
    in_page_order,
    page_of,
)
from vectorless_rag.pageindex_runtime.marks import marks_of
from vectorless_rag.pageindex_runtime.page_text import Node

MAX_LEVELS = 24
"""Levels that numbers may give a tree; dividing its nodes may add as many again."""


def add_preface_if_needed(data: Any) -> Any:  # noqa: ANN401  (upstream's signature)
    """
    Put an entry for the pages before the first one, where there are any.

    It has no section number, so that it is no other entry's parent.
    """
    if not isinstance(data, list):
        return data
    pages = [page_of(entry.get("physical_index")) for entry in data]
    placed = [page for page in pages if page is not None]
    if placed and min(placed) > 1:
        data.insert(0, {"structure": None, "title": "Preface", "physical_index": 1})
    return data


def post_processing(structure: Sequence[Entry], end_physical_index: int) -> list[Node]:
    """
    Give every entry its pages, and build the tree.

    Args:
        structure: Entries with ``physical_index`` and ``appear_start``; those
            without a page are left out.
        end_physical_index: Last page of what the entries divide.

    Returns:
        Root nodes in page order. A node ends on the page before the next entry
        where that entry opens its page, and on that page where it does not.
    """
    entries = in_page_order(
        [e for e in structure if page_of(e.get("physical_index")) is not None]
    )
    for place, entry in enumerate(entries):
        start = page_of(entry["physical_index"]) or 1
        entry["start_index"] = start
        entry["end_index"] = max(start, end_physical_index)
        if place + 1 < len(entries):
            following = entries[place + 1]
            opens = following.get("appear_start") == "yes"
            page = page_of(following["physical_index"]) or start
            entry["end_index"] = max(start, page - opens)
    return list_to_tree(entries)


def list_to_tree(data: Sequence[Entry]) -> list[Node]:
    """
    Hang each entry under the nearest one whose number its own begins with.

    Numbers are compared part by part, however they are spelled. Where a level is
    missing the next one above is the parent. Where the numbering starts again, what
    came before takes no more children. A section listed behind its own subsections
    takes those that nothing else took.
    """
    roots: list[Node] = []
    known: dict[tuple[str, ...], Node] = {}
    parts: list[tuple[str, ...]] = []
    for entry in data:
        path = path_of(entry.get("structure"))
        node: Node = {
            "title": entry.get("title"),
            "start_index": entry.get("start_index"),
            "end_index": entry.get("end_index"),
            **marks_of(entry),
        }
        if _starts_again(path, parts):
            known.clear()
            parts.clear()
        parent = next(
            (known[path[:n]] for n in range(len(path) - 1, 0, -1) if path[:n] in known),
            None,
        )
        siblings = roots if parent is None else parent.setdefault("nodes", [])
        if path:
            _adopt(node, path, siblings, known)
            known[path] = node
            if len(path) == 1:
                parts.append(path)
        siblings.append(node)
    return roots


def path_of(code: object) -> tuple[str, ...]:
    """
    Spell a section number as its parts: ``"2.1."`` and 2.1 are two parts.

    Parts beyond `MAX_LEVELS` are left out, so that no numbering makes a tree that
    is too deep to be kept.
    """
    spelled = code_of(code) or ""
    parts = [part.strip() for part in spelled.split(".")]
    return tuple(p.lstrip("0") or "0" for p in parts if p)[:MAX_LEVELS]


def _starts_again(path: tuple[str, ...], seen: Sequence[tuple[str, ...]]) -> bool:
    """Tell whether a top-level number repeats or falls behind the last one."""
    if len(path) != 1 or not seen:
        return False
    if path in seen:
        return True
    now, last = path[0], seen[-1][0]
    both = now.isdecimal() and last.isdecimal()
    return both and int(now) < int(last)


def _adopt(
    node: Node,
    path: tuple[str, ...],
    siblings: list[Node],
    known: dict[tuple[str, ...], Node],
) -> None:
    """Take the last siblings that are this node's own sections, listed before it."""
    below = {
        id(n) for p, n in known.items() if len(p) > len(path) and p[: len(path)] == path
    }
    own: list[Node] = []
    while siblings and id(siblings[-1]) in below:
        own.insert(0, siblings.pop())
    if own:
        node["nodes"] = own
        # It begins where they do, so that no opening page is sought behind them.
        node["start_index"] = _first(own[0]["start_index"], node["start_index"])


def _first(one: int | None, other: int | None) -> int | None:
    return min((page for page in (one, other) if page is not None), default=None)
