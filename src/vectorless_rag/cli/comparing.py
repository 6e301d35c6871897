"""``vectorless-rag artifact diff``: two trees side by side."""

from rich.table import Table
from rich.text import Text

from vectorless_rag.artifact import Artifact
from vectorless_rag.canon import Json
from vectorless_rag.cli.artifacts import find
from vectorless_rag.cli.lines import print_json
from vectorless_rag.cli.printing import console
from vectorless_rag.settings import Settings
from vectorless_rag.source import displayable
from vectorless_rag.tree import span
from vectorless_rag.tree_diff import Change, Pair, TreeDiff, diff_trees
from vectorless_rag.tree_matching import Place

_STYLES = {
    Change.RENAMED: "yellow",
    Change.RERANGED: "yellow",
    Change.MOVED: "cyan",
    Change.LOST: "red",
    Change.NEW: "green",
}

_DEEPEST_SHOWN = 6
"""Levels that are indented; deeper ones would leave no room for a title."""

_LONGEST_TITLE = 120


def diff(
    name: str, other: str, settings: Settings, *, only_changes: bool, as_json: bool
) -> int:
    """
    Print two artifacts' trees side by side; return 0.

    Args:
        name: The earlier artifact.
        other: The later one.
        settings: Where the store is.
        only_changes: Leave out nodes that are as they were.
        as_json: Print one object.
    """
    before, after = (
        store.read(stored)
        for store, stored in (find(name, settings), find(other, settings))
    )
    found = diff_trees(before.tree, after.tree)
    if as_json:
        sides = {"before": _spelled(before), "after": _spelled(after)}
        print_json({**sides, **found.to_json()})
        return 0
    _show(before, after, found, only_changes=only_changes)
    return 0


def _spelled(artifact: Artifact) -> dict[str, Json]:
    return {
        "artifact_id": artifact.artifact_id,
        "recipe_hash": artifact.recipe.recipe_hash,
        "document_sha256": artifact.document.sha256,
        "name": artifact.document.name,
        "pages": artifact.page_count,
        "route": artifact.route.value,
    }


def _show(
    before: Artifact, after: Artifact, found: TreeDiff, *, only_changes: bool
) -> None:
    out = console()
    table = Table(box=None, pad_edge=False, expand=out.is_terminal)
    table.add_column("", width=9)
    table.add_column(_head(before), ratio=1)
    table.add_column(_head(after), ratio=1)
    for pair in found.pairs:
        if pair.changes or not only_changes:
            table.add_row(
                _changes(pair), _node(pair, pair.before), _node(pair, pair.after)
            )
    out.print(table)
    counts = [f"{n} {change.value}" for change, n in found.counts.items() if n]
    out.print(", ".join([*counts, f"{found.unchanged} unchanged"]))
    pages = f"{len(found.covered_before)} → {len(found.covered_after)}"
    out.print(f"pages covered: {pages}")


def _head(artifact: Artifact) -> Text:
    head = Text(displayable(artifact.document.name), "bold")
    head.append(f"  {artifact.artifact_id[:12]}", "dim")
    return head


def _changes(pair: Pair) -> Text:
    lines = [Text(change.value, _STYLES[change]) for change in pair.changes]
    return Text("\n").join(lines)


def _node(pair: Pair, place: Place | None) -> Text:
    if place is None:
        return Text("")
    style = _STYLES[pair.changes[0]] if pair.changes else "dim"
    indent = "  " * min(place.depth, _DEEPEST_SHOWN)
    title = displayable(place.node.title)[:_LONGEST_TITLE] or "(untitled)"
    label = Text(f"{indent}{title}", style)
    label.append(f"  [{span(*place.pages)}]", "cyan" if pair.changes else "dim")
    return label
