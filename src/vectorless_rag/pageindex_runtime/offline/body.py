"""Page texts as one run of lines, without what is printed on every page."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vectorless_rag.pageindex_runtime.offline import toc
from vectorless_rag.pageindex_runtime.offline.labels import read_roman
from vectorless_rag.pageindex_runtime.offline.text import is_plain, key, lines_of

_EDGE = 2
_MIN_REPEATS = 3
_SHARE = 0.15
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Page:
    """The text of one page."""

    number: int
    """As the prompt counts pages."""

    text: str


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a page that carries content."""

    text: str
    """White space squeezed."""

    page: int
    opens_page: bool
    after_blank: bool
    adjoins: bool
    """Nothing but empty lines stands between it and the line before."""


def body_of(pages: Sequence[Page]) -> list[Line]:
    """
    List the lines of *pages* that can hold headings or prose, in order.

    Left out: empty lines, page numbers, lines repeated at the edges of pages, tables
    of contents, and lines with control characters or lone surrogates.
    """
    split = [lines_of(page.text) for page in pages]
    repeated = _repeated(split)
    body: list[Line] = []
    for page, lines in zip(pages, split, strict=True):
        found = toc.scan_lines(lines)
        skip = found.lines if found.found else frozenset()
        body.extend(_content(page.number, lines, skip, repeated))
    return body


def _content(
    number: int, lines: list[str], skip: frozenset[int], repeated: frozenset[str]
) -> Iterator[Line]:
    opens, blank, adjoins = True, False, False
    edges = _edges(lines)
    for at, line in enumerate(lines):
        blank = blank or not line
        if not line:
            continue
        left_out = at in skip or is_page_number(line) or not is_plain(line)
        if left_out or (at in edges and _shape(line) in repeated):
            adjoins = False
            continue
        yield Line(line, number, opens, blank, adjoins)
        opens, blank, adjoins = False, False, True


def is_page_number(line: str) -> bool:
    """Tell whether *line* is a bare page number: ``7``, ``- 7 -``, ``3/9``, ``iv``."""
    bare = line.strip("-–—[]() .")
    if bare.isdecimal():
        return True
    first, _, second = bare.partition("/")
    if first.strip().isdecimal() and second.strip().isdecimal():
        return True
    return bare.islower() and read_roman(bare) > 0


def _edges(lines: list[str]) -> frozenset[int]:
    full = [at for at, line in enumerate(lines) if line and not is_page_number(line)]
    return frozenset(full[:_EDGE] + full[-_EDGE:])


def _shape(line: str) -> str:
    return key(_NUMBER.sub("", line))


def _repeated(pages: list[list[str]]) -> frozenset[str]:
    counts: Counter[str] = Counter()
    for lines in pages:
        counts.update({_shape(lines[at]) for at in _edges(lines)})
    least = max(_MIN_REPEATS, _SHARE * len(pages))
    return frozenset(s for s, n in counts.items() if n >= least and s)
