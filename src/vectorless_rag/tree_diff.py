"""What became of each node of a tree: kept, moved, renamed, re-ranged, lost or new."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from vectorless_rag.canon import Json
from vectorless_rag.tree import Node
from vectorless_rag.tree_matching import (
    Partners,
    Place,
    match,
    paired_parent,
    places,
    spelled,
)


class Change(StrEnum):
    """What happened to a node."""

    RENAMED = "renamed"
    RERANGED = "re-ranged"

    MOVED = "moved"
    """Under another parent, or in another order among its siblings."""

    LOST = "lost"
    NEW = "new"


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A node before and after; one side is None where it was lost or is new."""

    before: Place | None
    after: Place | None
    changes: tuple[Change, ...] = ()

    def to_json(self) -> dict[str, Json]:
        """Spell the pair."""
        return {
            "changes": [change.value for change in self.changes],
            "before": _spelled(self.before),
            "after": _spelled(self.after),
        }


@dataclass(frozen=True, kw_only=True)
class TreeDiff:
    """Every node of two trees."""

    pairs: tuple[Pair, ...]
    """In reading order of the later tree; a lost node follows its predecessor."""

    covered_before: frozenset[int]
    """Pages that some node of the earlier tree reaches."""

    covered_after: frozenset[int]

    @property
    def counts(self) -> dict[Change, int]:
        """How many nodes each change happened to."""
        found = Counter(change for pair in self.pairs for change in pair.changes)
        return {change: found[change] for change in Change}

    @property
    def unchanged(self) -> int:
        """How many nodes are as they were."""
        return sum(not pair.changes for pair in self.pairs)

    def to_json(self) -> dict[str, Json]:
        """Spell the difference; unchanged nodes are in it, with no changes."""
        return {
            "counts": {change.value: n for change, n in self.counts.items()},
            "unchanged": self.unchanged,
            "pages_covered": {
                "before": len(self.covered_before),
                "after": len(self.covered_after),
                "lost": sorted(self.covered_before - self.covered_after),
                "new": sorted(self.covered_after - self.covered_before),
            },
            "nodes": [pair.to_json() for pair in self.pairs],
        }


def diff_trees(before: Sequence[Node], after: Sequence[Node]) -> TreeDiff:
    """
    Pair the nodes of two trees and say what happened to each.

    Args:
        before: The earlier tree.
        after: The later tree.
    """
    old, new = places(before), places(after)
    partner = match(old, new)
    moved = _moved(old, new, partner)
    came_from = {there: old[here] for here, there in partner.items()}
    kept = [
        _pair(came_from.get(place.number), place, moved=place.number in moved)
        for place in new
    ]
    lost = [place for place in old if place.number not in partner]
    return TreeDiff(
        pairs=tuple(_woven(kept, lost, partner)),
        covered_before=_covered(old),
        covered_after=_covered(new),
    )


def _pair(before: Place | None, after: Place, *, moved: bool) -> Pair:
    if before is None:
        return Pair(before=None, after=after, changes=(Change.NEW,))
    happened = {
        Change.RENAMED: spelled(before.node.title) != spelled(after.node.title),
        Change.RERANGED: before.pages != after.pages,
        Change.MOVED: moved,
    }
    changes = tuple(change for change, so in happened.items() if so)
    return Pair(before=before, after=after, changes=changes)


def _moved(old: list[Place], new: list[Place], partner: Partners) -> set[int]:
    """Number the later nodes under another parent, or out of their order."""
    moved = set()
    families: dict[int | None, list[int]] = {}
    for here in old:
        if here.number not in partner:
            continue
        there, parent = partner[here.number], paired_parent(here, partner)
        if new[there].parent == parent:
            families.setdefault(parent, []).append(there)
        else:
            moved.add(there)
    for children in families.values():
        moved |= set(children) - _rising(children)
    return moved


def _rising(numbers: list[int]) -> set[int]:
    """Return the longest run of ascending numbers: those that kept their order."""
    ends: list[int] = []
    before: dict[int, int | None] = {}
    for number in numbers:
        at = bisect_left(ends, number)
        before[number] = ends[at - 1] if at else None
        ends[at : at + 1] = [number]
    run = set()
    step = ends[-1] if ends else None
    while step is not None:
        run.add(step)
        step = before[step]
    return run


def _woven(kept: list[Pair], lost: list[Place], partner: Partners) -> Iterator[Pair]:
    """Put each lost node behind what the node before it became."""
    known = sorted(partner)
    behind: dict[int, list[Pair]] = {}
    for place in lost:
        at = bisect_left(known, place.number)
        anchor = partner[known[at - 1]] if at else -1
        gone = Pair(before=place, after=None, changes=(Change.LOST,))
        behind.setdefault(anchor, []).append(gone)
    yield from behind.get(-1, ())
    for number, pair in enumerate(kept):
        yield pair
        yield from behind.get(number, ())


def _covered(found: list[Place]) -> frozenset[int]:
    return frozenset(
        page for place in found for page in range(place.pages[0], place.pages[1] + 1)
    )


def _spelled(place: Place | None) -> Json:
    if place is None:
        return None
    return {
        "node_id": place.node.node_id,
        "title": place.node.title,
        "start_index": place.pages[0],
        "end_index": place.pages[1],
        "depth": place.depth,
    }
