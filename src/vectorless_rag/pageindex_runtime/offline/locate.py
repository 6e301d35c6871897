"""Where titles stand as headings in page texts."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from vectorless_rag.pageindex_runtime.offline.body import Line
from vectorless_rag.pageindex_runtime.offline.labels import read_labels
from vectorless_rag.pageindex_runtime.offline.text import is_rtl, key

_MAX_KEY = 240
_MAX_LINES = 3
_MAX_PLACES = 8
_RUN_IN_WORDS = 4
_MIN_KEY = 2
_OPENING = 4
_MAX_LOOKS = 500
_NUMBERING = "0123456789٠١٢٣٤٥٦٧٨٩۰۱۲۳۴۵۶۷۸۹.- "


@dataclass
class Index:
    """The lines of some pages, by what they say."""

    body: Sequence[Line]
    whole: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    bare: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    opening: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    keys: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Index every run of up to three lines, with its label and without."""
        self.keys = [key(line.text) for line in self.body]
        for at in range(len(self.body)):
            self.opening[self.keys[at][:_OPENING]].append(at)
            text = ""
            for end in range(at, min(at + _MAX_LINES, len(self.body))):
                if self.body[end].page != self.body[at].page:
                    break
                text += self.keys[end]
                if len(text) > _MAX_KEY:
                    break
                self.whole[text].append(at)
                if end == at or self._label_alone(at):
                    self._add_bare(at, end)

    def _label_alone(self, at: int) -> bool:
        labels = read_labels(self.body[at].text)
        return bool(labels) and labels[0].end >= len(self.body[at].text)

    def _add_bare(self, at: int, end: int) -> None:
        text = " ".join(line.text for line in self.body[at : end + 1])
        bare = key(without_label(text))
        if _MIN_KEY <= len(bare) < len(key(text)):
            self.bare[bare].append(at)

    def places(self, title: str) -> list[int]:
        """
        List the lines at which *title* stands as a heading, best kind first found.

        The whole title counts most, then the title without its label under any label,
        then without, then a paragraph that opens with the title.
        """
        full = key(title)[: _MAX_KEY + 1]
        if len(full) < _MIN_KEY:
            return []
        bare = key(without_label(title))
        found = self.whole.get(full) or self.bare.get(bare)
        if not found and len(bare) >= _MIN_KEY:
            found = self.whole.get(bare)
        return (found or self._run_in(title, full))[:_MAX_PLACES]

    def _run_in(self, title: str, full: str) -> list[int]:
        """Find the lines that go on in the same line after the title."""
        labels = read_labels(title)[:1]
        bare = bool(labels) and labels[0].end >= len(title)
        if bare or not (labels or len(title.split()) >= _RUN_IN_WORDS):
            return []
        near = self.opening.get(full[:_OPENING], [])[:_MAX_LOOKS]
        return [at for at in near if self.keys[at].startswith(full)]

    def page(self, at: int) -> int:
        """Tell on which page a line stands."""
        return self.body[at].page


def without_label(text: str) -> str:
    """
    Take the section label off a title.

    In text from right to left it can come out of a PDF behind the title.
    """
    if is_rtl(text):
        return text.strip(_NUMBERING)
    labels = read_labels(text)
    return text[labels[0].end :] if labels else text


def titles_of(title: str) -> frozenset[str]:
    """
    Spell a title for comparison, with its label and without.

    Two titles are one heading if a spelling of one is a spelling of the other.
    """
    return frozenset(k for k in (key(title), key(without_label(title))) if k)


def locate(titles: Sequence[str], index: Index) -> list[int | None]:
    """
    Find the line of each title, such that the found ones stand in order.

    Returns:
        For each title the line, or none. The most titles that can be placed in order
        are; a title printed at several places takes one that fits.
    """
    tails: list[int] = []
    links: list[tuple[int, int, int]] = []
    ends: list[int] = []
    for number, title in enumerate(titles):
        for at in sorted(index.places(title), reverse=True):
            slot = bisect_left(tails, at)
            behind = ends[slot - 1] if slot else -1
            links.append((number, at, behind))
            if slot == len(tails):
                tails.append(at)
                ends.append(len(links) - 1)
            else:
                tails[slot] = at
                ends[slot] = len(links) - 1
    found: list[int | None] = [None] * len(titles)
    link = ends[-1] if ends else -1
    while link >= 0:
        number, at, link = links[link]
        found[number] = at
    return found


def stands_in(title: str, index: Index) -> bool:
    """Tell whether *title* stands as a heading on the indexed pages."""
    return bool(index.places(title))


def opens(title: str, index: Index) -> bool:
    """
    Tell whether *title* is the first content of the indexed page.

    A first line that ends or begins with a page number is a running header.
    """
    places = index.places(title)
    if not places:
        return False
    first = 1 if len(index.body) > 1 and _is_running(index.body[0].text) else 0
    return any(at in {0, first} for at in places)


def _is_running(line: str) -> bool:
    tokens = line.split()
    return len(tokens) > 1 and (tokens[-1].isdecimal() or tokens[0].isdecimal())
