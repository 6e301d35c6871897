"""
Sections numbered decimally: 2, 2.1, then appendices A, A.1.

Of all lines that could be such headings, the chain is taken in which each number
follows from the one before and that scores most: by how much its lines look like
headings, and by how far apart they stand, since the items of a list stand together.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from vectorless_rag.pageindex_runtime.offline.headings import Candidate
from vectorless_rag.pageindex_runtime.offline.labels import APPENDIX, Label
from vectorless_rag.pageindex_runtime.offline.sections import (
    GAP_LINES,
    GAP_WORTH,
    SKIPPED,
    Before,
    Heading,
    Scheme,
    path_of,
)

_RESTART = 3.0
"""What it costs to begin anew where sections above are known."""

_LISTED = 1.0
"""What it costs that two sections of one depth have nothing between them."""


@dataclass(frozen=True, slots=True)
class _Link:
    """The best chain that ends in one candidate."""

    score: float
    at: int
    item: Heading | None
    before: "_Link | None"


@dataclass
class _Chains:
    """The best chain so far that ends inside each section."""

    inside: dict[tuple[int, ...], _Link] = field(default_factory=dict)
    exactly: dict[tuple[int, ...], _Link] = field(default_factory=dict)
    best: _Link | None = None

    def add(self, path: tuple[int, ...], link: _Link) -> None:
        for depth in range(1, len(path) + 1):
            _keep(self.inside, path[:depth], link)
        _keep(self.exactly, path, link)
        if self.best is None or link.score > self.best.score:
            self.best = link

    def behind(self, path: tuple[int, ...]) -> Iterable[tuple[float, _Link | None]]:
        """List the chains that *path* can go on from, with what the jump costs."""
        above, number = path[:-1], path[-1]
        if path == (APPENDIX + 1,):
            yield 0.0, self.best
        if above and number == 1:
            yield 0.0, self.exactly.get(above)
            yield SKIPPED[1], self.inside.get((*above[:-1], above[-1] - 1))
        for skipped, cost in enumerate(SKIPPED):
            if number - 1 - skipped >= (1 if above else 0):
                yield cost, self.inside.get((*above, number - 1 - skipped))


def _keep(
    links: dict[tuple[int, ...], _Link], path: tuple[int, ...], link: _Link
) -> None:
    old = links.get(path)
    if old is None or link.score > old.score:
        links[path] = link


def decimal_scheme(found: Sequence[Candidate], before: Before) -> Scheme:
    """Find the best chain of decimal numbers, in the best style of single ones."""
    tried = [_chain(found, before.path, style) for style in ("plain", "dot", "name")]
    return max(tried, key=lambda scheme: scheme.score)


def _chain(found: Sequence[Candidate], last: tuple[int, ...], style: str) -> Scheme:
    chains = _Chains()
    if last:
        chains.add(last, _Link(0.0, -GAP_LINES, None, None))
    for candidate in found:
        label = _fitting(candidate.labels, style)
        if label is not None:
            made = _link(candidate, label, chains, continued=bool(last))
            chains.add(path_of(label), made)
    items: list[Heading] = []
    link: _Link | None = chains.best
    score = 0.0 if link is None else link.score
    joined = False
    while link is not None:
        joined = link.item is None
        if link.item is not None:
            items.append(link.item)
        link = link.before
    return Scheme(items[::-1], score, joined)


def _fitting(labels: tuple[Label, ...], style: str) -> Label | None:
    for label in labels:
        if label.family in {"letter", "annex"}:
            return label
        if label.family == "chapter" and style == "name":
            return label
        if label.family == "decimal":
            plain = "dot" if label.dotted else "plain"
            return label if len(label.path) > 1 or plain == style else None
    return None


def _link(
    candidate: Candidate, label: Label, chains: _Chains, *, continued: bool
) -> _Link:
    path = path_of(label)
    code = replace(label, path=path).code
    item = Heading(candidate.title, candidate.page, candidate.at, len(path), code)
    start = 0.3 if path in {(0,), (1,)} else -0.5
    best, before = start + GAP_WORTH - _RESTART * continued, None
    if path[0] > APPENDIX:
        best = -1.0
    for cost, link in chains.behind(path):
        if link is None:
            continue
        gap = candidate.at - link.at
        score = link.score + cost + GAP_WORTH * min(gap, GAP_LINES) / GAP_LINES
        if gap == 1 and link.item is not None and link.item.depth == len(path):
            score -= _LISTED
        if score > best:
            best, before = score, link
    return _Link(best + candidate.score, candidate.at, item, before)
