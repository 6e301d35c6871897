"""Marks on what is not what it should be: which part, and why."""

from typing import Any

from vectorless_rag.errors import Code

Item = dict[str, Any]
"""An entry of a table of contents, or a node of a tree."""


def mark(item: Item, code: Code | str, what: str) -> None:
    """Say in *item* that *what* fell back, for the reason *code*; once only."""
    entry = {"code": str(code), "what": what}
    marks = item.setdefault("degraded", [])
    if entry not in marks:
        marks.append(entry)


def marks_of(item: Item) -> Item:
    """Return the part of *item* that carries its marks, to be copied elsewhere."""
    return {"degraded": list(item["degraded"])} if item.get("degraded") else {}
