"""Sections with other labels, nested by the order in which their kinds appear."""

from collections.abc import Sequence

from vectorless_rag.pageindex_runtime.offline.headings import Candidate
from vectorless_rag.pageindex_runtime.offline.labels import (
    APPENDIX,
    Label,
    read_labels,
)
from vectorless_rag.pageindex_runtime.offline.sections import (
    GAP_LINES,
    GAP_WORTH,
    SKIPPED,
    Before,
    Heading,
    Scheme,
)

_NAMED = frozenset({"part", "chapter", "section", "article", "annex"})


def nested_scheme(found: Sequence[Candidate], before: Before) -> Scheme:
    """Nest labels by the order in which their families first appear."""
    stack = _Stack()
    for title in before.titles:
        stack.take(read_labels(title))
    joined = False
    items: list[Heading] = []
    score, last = 0.0, -GAP_LINES
    for candidate in found:
        known = stack.depth
        taken = stack.take(candidate.labels)
        if taken is None:
            continue
        depth, cost = taken
        joined = joined or (not items and depth <= known)
        items.append(Heading(candidate.title, candidate.page, candidate.at, depth))
        gap = min(candidate.at - last, GAP_LINES) / GAP_LINES
        score, last = score + candidate.score + GAP_WORTH * gap + cost, candidate.at
    return Scheme(items, score, joined, stack.family in _NAMED)


class _Stack:
    """The open sections, outermost first: family and number of each."""

    def __init__(self) -> None:
        self._open: list[tuple[str, int]] = []
        self._seen: dict[str, int] = {}

    @property
    def depth(self) -> int:
        """How many sections are open."""
        return len(self._open)

    @property
    def family(self) -> str:
        """Family of the outermost sections."""
        return self._open[0][0] if self._open else ""

    def take(self, labels: tuple[Label, ...]) -> tuple[int, float] | None:
        """Put a label where it fits; returns its depth and what a gap costs."""
        readings = [_reading(label) for label in labels if len(label.path) == 1]
        for reading in readings:
            for depth, (family, last) in enumerate(self._open, start=1):
                skipped = reading[1] - last - 1
                if family == reading[0] and 0 <= skipped < len(SKIPPED):
                    return self._put(reading, depth), SKIPPED[skipped]
        families = {family for family, _ in self._open}
        for family, number in readings:
            # Articles can count on through the chapters that hold them.
            on = family in _NAMED and number == self._seen.get(family, 0) + 1
            # Numbers on the outside are the other scheme's.
            inner = bool(self._open) or not family.startswith("decimal")
            if inner and family not in families and (number == 1 or on):
                return self._put((family, number), len(self._open) + 1), 0.0
        return None

    def _put(self, reading: tuple[str, int], depth: int) -> int:
        del self._open[depth - 1 :]
        self._open.append(reading)
        self._seen[reading[0]] = reading[1]
        return depth


def _reading(label: Label) -> tuple[str, int]:
    # "1" and "1." are two kinds of number in one document.
    dotted = label.family == "decimal" and label.dotted
    family = "decimal." if dotted else label.family
    return family, label.path[0] - APPENDIX * (label.path[0] > APPENDIX)
