"""Sections, what is known of those above, and schemes that explain them."""

from dataclasses import dataclass

from vectorless_rag.pageindex_runtime.offline.labels import (
    APPENDIX,
    Label,
    path_of_code,
    read_labels,
)

_LEAST = 0.5

GAP_LINES = 20
"""Lines between two sections from which on more lines tell no more."""

GAP_WORTH = 0.5
"""What that many lines between two sections are worth in the score of a scheme."""

SKIPPED = (0.0, -0.8)
"""What it costs that the next number, or the one after it, comes."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A section heading and its place."""

    title: str
    page: int
    at: int
    depth: int
    """1 for a section of the document."""

    code: str | None = None
    """Its number in the hierarchy; none beside numbered sections if it has none."""


@dataclass(frozen=True, slots=True)
class Before:
    """What is known of the sections above the text."""

    titles: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()

    @property
    def path(self) -> tuple[int, ...]:
        """Numbers of the last section that has decimal ones, and is known by them."""
        codes = self.codes or ("",) * len(self.titles)
        for title, code in zip(reversed(self.titles), reversed(codes), strict=False):
            path = decimal_path(read_labels(title))
            if path and (not code or path == path_of_code(code)):
                return path
        return ()

    @property
    def last(self) -> tuple[int, ...]:
        """Code of the last section that has one, appendices aside."""
        paths = [path_of_code(code) for code in reversed(self.codes)]
        return next((p for p in paths if p and max(p) < APPENDIX), ())


NOTHING = Before()
"""The text begins its document."""


@dataclass(frozen=True, slots=True)
class Scheme:
    """Sections that follow from one another by one kind of label."""

    items: list[Heading]
    score: float
    joined: bool
    """It goes on from the sections above."""

    named: bool = False

    @property
    def holds(self) -> bool:
        """Whether it explains enough: one section alone only as the next one."""
        annexes = sum(1 for item in self.items if item.code and item.code[0].isalpha())
        own = len(self.items) - annexes
        enough = bool(self.items) if self.joined else own > 1
        return enough and self.score > _LEAST


def path_of(label: Label) -> tuple[int, ...]:
    """Spell the path of a label that numbers decimally; appendices have letters."""
    if label.family == "annex" and label.path[0] < APPENDIX:
        return (label.path[0] + APPENDIX,)
    return label.path


def decimal_path(labels: tuple[Label, ...]) -> tuple[int, ...]:
    """Return the path of the first label that numbers decimally, or no path."""
    for label in labels:
        if label.family in {"decimal", "letter", "chapter", "annex"}:
            return path_of(label)
    return ()
