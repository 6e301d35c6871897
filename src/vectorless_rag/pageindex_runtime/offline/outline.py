"""
The sections of a text: which of its headings follow from one another.

Three schemes are tried: decimal numbers, other labels (I, A, 1; Part, Chapter), and
headings without labels. The scheme that explains most wins.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from vectorless_rag.pageindex_runtime.offline import headings
from vectorless_rag.pageindex_runtime.offline.body import Line
from vectorless_rag.pageindex_runtime.offline.headings import Candidate
from vectorless_rag.pageindex_runtime.offline.nesting import nested_scheme
from vectorless_rag.pageindex_runtime.offline.numbering import decimal_scheme
from vectorless_rag.pageindex_runtime.offline.sections import (
    NOTHING,
    Before,
    Heading,
)


def outline(body: Sequence[Line], before: Before = NOTHING) -> list[Heading]:
    """
    Find the headings of *body*, in order.

    Args:
        body: The lines of the pages.
        before: The sections already found above them.
    """
    found = list(headings.labelled(body))
    decimal = decimal_scheme(found, before)
    nested = nested_scheme(found, before)
    free = _plain(headings.free(body))
    numbered = bool(before.codes and before.path)
    if decimal.holds and (numbered or decimal.score >= nested.score):
        return _merge(decimal.items, free)
    if numbered:
        # The sections of this document have numbers; what has none is no section.
        return free
    if nested.holds:
        below = _under(headings.typographic(body)) if nested.named else []
        return _numbered(_merge(nested.items, below, free), before.last)
    plain = _levelled(list(headings.typographic(body)))
    return _numbered(_merge(plain, free), before.last)


def _plain(found: Iterable[Candidate]) -> list[Heading]:
    return [Heading(c.title, c.page, c.at, 1) for c in found]


def _levelled(found: Sequence[Candidate]) -> list[Heading]:
    capital = [headings.is_capital(c.title) for c in found]
    first = capital.index(True) if any(capital) else len(found)
    return [
        Heading(c.title, c.page, c.at, 1 if up or n < first else 2)
        for n, (c, up) in enumerate(zip(found, capital, strict=True))
    ]


def _under(found: Iterable[Candidate]) -> list[Heading]:
    return [
        Heading(c.title, c.page, c.at, 1 if headings.is_capital(c.title) else 2)
        for c in found
    ]


def _merge(*lists: list[Heading]) -> list[Heading]:
    """Put headings in order; of two on one line the first given stays."""
    at: dict[int, Heading] = {}
    for heading in (h for found in lists for h in found):
        at.setdefault(heading.at, heading)
    return [at[line] for line in sorted(at)]


def _numbered(found: list[Heading], last: tuple[int, ...]) -> list[Heading]:
    """Give codes by place, since these labels spell no path."""
    numbers = list(last)
    out: list[Heading] = []
    for heading in found:
        depth = min(heading.depth, len(numbers) + 1)
        numbers = [*numbers[:depth], *[0] * (depth - len(numbers))]
        numbers[-1] += 1
        code = ".".join(map(str, numbers))
        out.append(replace(heading, depth=depth, code=code))
    return out
