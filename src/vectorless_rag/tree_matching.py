"""
Which node of a tree is which of another tree.

Nodes are paired by what they say and where they stand: equal titles first, those
nearest to each other first; then titles that are alike on pages that meet; then
whatever has the same pages under paired parents.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from vectorless_rag.tree import Node

_ALIKE = 0.75
"""Titles at least this alike may be one title, changed."""

_COMPARED = 200
"""Characters of a title that are compared: the time grows with their square."""

_MOST_WEIGHED = 10_000
"""Pairs of one title that are weighed; beyond that they are taken in order."""

# A Roman number needs its point: "Civil law" begins with letters of one. Nothing
# here can match one text in two ways: titles come from documents.
_NUMBER = re.compile(
    r"^(?:\d+|[ivxlc]+(?=[.):]))(?:[.):](?:\d+|[ivxlc]+))*[.):]?\s+"
    r"|^(?:chapter|section|part)\s+\S+\s+"
)
_WORDS = re.compile(r"\w+")

Partners = dict[int, int]
"""Number of the later node by number of the earlier one."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """A node, and where it stands in its tree."""

    node: Node

    number: int
    """Place in reading order, from 0."""

    depth: int
    parent: int | None
    """Number of the parent; None at the top."""

    @property
    def pages(self) -> tuple[int, int]:
        """First and last page."""
        return self.node.start_index, self.node.end_index


def places(nodes: Sequence[Node]) -> list[Place]:
    """List every node of a tree in reading order."""
    found: list[Place] = []
    stack: list[tuple[Node, int, int | None]] = [(n, 0, None) for n in reversed(nodes)]
    while stack:
        node, depth, parent = stack.pop()
        number = len(found)
        found.append(Place(node=node, number=number, depth=depth, parent=parent))
        stack += [(below, depth + 1, number) for below in reversed(node.nodes)]
    return found


def match(old: Sequence[Place], new: Sequence[Place]) -> Partners:
    """
    Pair the nodes of two trees.

    Args:
        old: `places` of the earlier tree.
        new: `places` of the later tree.

    Returns:
        No node twice; nodes without a partner are not in it.
    """
    partner: Partners = {}
    for key in (spelled, bare):
        _pair_equal(old, new, partner, key)
    _pair_alike(old, new, partner)
    _pair_by_pages(old, new, partner)
    return partner


def spelled(title: str) -> str:
    """Spell a title in one way, with single spaces."""
    return " ".join(unicodedata.normalize("NFKC", title).split())


def bare(title: str) -> str:
    """Take a title's number, case and punctuation away."""
    text = spelled(title).casefold()
    return " ".join(_WORDS.findall(_NUMBER.sub("", text)))


def _pair_equal(
    old: Sequence[Place],
    new: Sequence[Place],
    partner: Partners,
    key: Callable[[str], str],
) -> None:
    """Pair nodes with one title, the nearest of them first."""
    ours, theirs = _left(old, new, partner)
    by_title: dict[str, tuple[list[Place], list[Place]]] = {}
    for side, found in enumerate((ours, theirs)):
        for place in found:
            if title := key(place.node.title):
                by_title.setdefault(title, ([], []))[side].append(place)
    for first, second in by_title.values():
        few = len(first) * len(second) <= _MOST_WEIGHED
        pairs = _every(first, second) if few else zip(first, second, strict=False)
        _take(pairs, partner)


def _every(first: list[Place], second: list[Place]) -> Iterator[tuple[Place, Place]]:
    return ((here, there) for here in first for there in second)


def _pair_alike(old: Sequence[Place], new: Sequence[Place], partner: Partners) -> None:
    """Pair nodes whose titles are alike and whose pages meet."""
    ours, theirs = _left(old, new, partner)
    left = (*ours, *theirs)
    titles = {id(place): bare(place.node.title)[:_COMPARED] for place in left}
    found = [
        (here, there)
        for here, there in _every(ours, theirs)
        if _meet(here, there) and _alike(titles[id(here)], titles[id(there)])
    ]
    _take(found, partner)


def _meet(here: Place, there: Place) -> bool:
    return here.pages[0] <= there.pages[1] and there.pages[0] <= here.pages[1]


def _alike(title: str, other: str) -> bool:
    if not title or not other:
        return False
    matcher = SequenceMatcher(None, title, other, autojunk=False)
    # The first two are cheap, and never below the third.
    return (
        matcher.real_quick_ratio() >= _ALIKE
        and matcher.quick_ratio() >= _ALIKE
        and matcher.ratio() >= _ALIKE
    )


def _pair_by_pages(
    old: Sequence[Place], new: Sequence[Place], partner: Partners
) -> None:
    """Pair nodes with the same pages under paired parents: renamed altogether."""
    ours, theirs = _left(old, new, partner)
    by_place: dict[tuple[int | None, tuple[int, int]], list[Place]] = {}
    for place in theirs:
        by_place.setdefault((place.parent, place.pages), []).append(place)
    for here in ours:
        # Parents come first, so a pair made here serves its children.
        same = by_place.get((paired_parent(here, partner), here.pages))
        if same:
            partner[here.number] = same.pop(0).number


def paired_parent(here: Place, partner: Partners) -> int | None:
    """Number the later node that the parent became; -1 if it was lost."""
    return here.parent if here.parent is None else partner.get(here.parent, -1)


def _left(
    old: Sequence[Place], new: Sequence[Place], partner: Partners
) -> tuple[list[Place], list[Place]]:
    taken = set(partner.values())
    return (
        [place for place in old if place.number not in partner],
        [place for place in new if place.number not in taken],
    )


def _take(pairs: Iterable[tuple[Place, Place]], partner: Partners) -> None:
    """Make pairs of the nearest, each node once."""
    ranked = sorted(
        (*_distance(here, there, partner), here.number, there.number)
        for here, there in pairs
    )
    taken = set(partner.values())
    for *_, here, there in ranked:
        if here not in partner and there not in taken:
            partner[here] = there
            taken.add(there)


def _distance(here: Place, there: Place, partner: Partners) -> tuple[int, ...]:
    return (
        abs(here.pages[0] - there.pages[0]) + abs(here.pages[1] - there.pages[1]),
        int(paired_parent(here, partner) != there.parent),
        abs(here.depth - there.depth),
        abs(here.number - there.number),
    )
