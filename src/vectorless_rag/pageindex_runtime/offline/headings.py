"""How much a line looks like a heading."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vectorless_rag.pageindex_runtime.offline import vocabulary
from vectorless_rag.pageindex_runtime.offline.body import Line
from vectorless_rag.pageindex_runtime.offline.labels import Label, read_labels
from vectorless_rag.pageindex_runtime.offline.text import (
    count_words,
    ends_sentence,
    has_letter,
    key,
)

_MAX_TITLE = 160
_MAX_WORDS = 18
_MANY_WORDS = 12
_SHORT_WORDS = 4
_SHORT_WORD = 4
_FEW = 2
_LEAST = 0.3
_PROSE = 40
# Digits, semicolons and an open end are of lists and sentences.
_NO_TITLE = re.compile(r"[\d;]|[.,:–—&-]$")
_CODE = ("<-", "->", "==", "();", "::", "://", " = ", "\\begin", "$(")
_CODE_STARTS = (">", "R>", "+ ", "$ ", "# ", ">>>", "%", "[", "{", "}")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A line that could be a heading, in every reading of its label."""

    title: str
    """The whole heading as printed, label included."""

    labels: tuple[Label, ...]
    """Empty for a heading without a label."""

    score: float
    page: int
    at: int
    """Index of its first line."""


def labelled(body: Sequence[Line]) -> Iterator[Candidate]:
    """Find the lines that open with a section label and look like headings."""
    for at, line in enumerate(body):
        labels = read_labels(line.text)
        if not labels:
            continue
        text, used = _whole(body, at, labels[0])
        named = labels[0].family not in {"decimal", "letter", "roman"}
        score = likeness(text, 0 if named else labels[0].end, body, at, used)
        score += 0.3 * (score > 0 and labels[0].family not in {"decimal", "letter"})
        if score >= _LEAST:
            yield Candidate(text, labels, score, line.page, at)


def _whole(body: Sequence[Line], at: int, label: Label) -> tuple[str, int]:
    """Join a heading that runs over two lines; the second is its count of lines."""
    text = body[at].text
    if at + 1 >= len(body) or not body[at + 1].adjoins:
        return text, 1
    after = body[at + 1].text
    if label.end >= len(text):
        bare = label.family not in {"decimal", "letter", "roman"}
        title = len(after) <= 1.5 * _PROSE and not ends_sentence(after)
        joined = bare and title and not read_labels(after)
        return (f"{text} {after}", 2) if joined else (text, 1)
    third = body[at + 2].text if at + 2 < len(body) else ""
    wraps = (
        after[0].islower()
        and len(text) > _PROSE
        and len(after) < 0.75 * len(text)
        and not ends_sentence(after)
        and third[:1].isupper()
        and len(third) > _PROSE
    )
    return (f"{text} {after}", 2) if wraps else (text, 1)


def likeness(
    text: str, start: int, body: Sequence[Line], at: int, used: int = 1
) -> float:
    """
    Score a line as a heading: 1 and more is good, 0 and less is none.

    Args:
        text: The heading, label included.
        start: Where its words start.
        body: All lines.
        at: Index of its first line.
        used: How many lines it takes.
    """
    words = text[start:]
    if (
        not words
        or not has_letter(words)
        or len(text) > _MAX_TITLE
        or text[-1] in ",;-"
    ):
        return 0.0
    count = count_words(words)
    asks = words[-1] in "?？"
    tells = ends_sentence(words) and count > _SHORT_WORDS and not asks
    if count > _MAX_WORDS or tells:
        return 0.0
    return 1.0 + _wording(words, count) + _setting(body, at, used)


def _wording(words: str, count: int) -> float:
    score = 0.0
    tokens = words.split()
    numbers = sum(1 for t in tokens if t[:1].isdecimal() or t[:2][1:].isdecimal())
    score -= 0.5 * words[0].islower()
    score -= 0.4 * (count > _MANY_WORDS)
    score -= 0.6 * (numbers > 0.3 * len(tokens))
    score -= 0.4 * tokens[-1].isdecimal()
    score -= 0.3 * any(t.isdecimal() for t in tokens[1:-1])
    score -= 0.4 * (ends_sentence(words) and words[-1] not in "?？")
    score -= 0.8 * _breaks(tokens)
    score -= 0.3 * (words.count(",") > 1)
    score -= 0.8 * is_code(words)
    return score


def _breaks(tokens: list[str]) -> bool:
    """Tell whether a sentence ends inside, abbreviations aside."""
    ends = (t for t in tokens[:-1] if t[-1] in ".;。")
    return any(len(t) > _SHORT_WORD for t in ends)


def _setting(body: Sequence[Line], at: int, used: int) -> float:
    line = body[at]
    score = 0.0
    if at + used < len(body):
        # A line that wraps is about as long as the column; most headings are not.
        worst = 0.7 if len(line.text) > _PROSE else 0.2
        score -= worst * body[at + used].text[0].islower()
    before = body[at - 1].text.rstrip("0123456789") if at else ""
    if line.opens_page or line.after_blank or not before or ends_sentence(before):
        score += 0.3
    elif len(before) > 1.5 * _PROSE:
        score -= 0.2
    return score


def is_code(line: str) -> bool:
    """Tell whether a squeezed line reads like program code or its output."""
    if line.startswith(_CODE_STARTS):
        return True
    # A long line can be a whole paragraph with a little code in it.
    if len(line) < 2.5 * _PROSE and any(mark in line for mark in _CODE):
        return True
    odd = sum(1 for c in line if c in "{}<>;|$@#_=~^")
    return odd > _FEW and odd > 0.08 * len(line)


def free(body: Sequence[Line]) -> Iterator[Candidate]:
    """Find headings known by their words: *Abstract*, *References*, 参考文献."""
    seen: set[str] = set()
    for at, line in enumerate(body):
        if len(line.text) > _PROSE:
            continue
        word = key(line.text)
        known = word in vocabulary.FREE_HEADINGS and word not in seen
        if known and line.text[0].isalpha() and _leads(body, at):
            seen.add(word)
            yield Candidate(line.text, (), 1.0, line.page, at)


def _leads(body: Sequence[Line], at: int) -> bool:
    after = [line.text for line in body[at + 1 : at + 3]]
    prose = bool(after) and all(2 * count_words(t) + len(t) > _PROSE for t in after)
    return prose or (body[at].opens_page and at > 0)


def typographic(body: Sequence[Line]) -> Iterator[Candidate]:
    """
    Find headings without a label, by their capitals and the lines around them.

    A line counts when it is short, stands where a paragraph can begin, is all
    capitals or capitalised throughout, and is followed by prose, or by one other
    such line that is: more of them are a list or a table.
    """
    kept: list[Candidate] = []
    run: list[Candidate] = []
    follows = False
    for at in range(len(body) - 1, -1, -1):
        text = body[at].text
        if _is_capitalised(text) and not is_code(text):
            run.append(Candidate(text, (), 1.0, body[at].page, at))
            continue
        kept.extend(_above(body, run) if follows else ())
        run, follows = [], len(text) > _PROSE and text[:1].isupper()
    kept.extend(_above(body, run) if follows else ())
    yield from reversed(kept)


def _above(body: Sequence[Line], run: Sequence[Candidate]) -> Sequence[Candidate]:
    """Keep the titles right above prose, last first, if they are one or two."""
    fits = 0 < len(run) <= _FEW and _opens_block(body, run[-1].at)
    return run if fits else ()


def _opens_block(body: Sequence[Line], at: int) -> bool:
    line = body[at]
    return line.opens_page or line.after_blank or ends_sentence(body[at - 1].text)


def _is_capitalised(text: str) -> bool:
    if len(text) > 1.5 * _PROSE or not text[0].isupper() or _NO_TITLE.search(text):
        return False
    words = text.split()
    if len(words) > _MANY_WORDS or max(map(len, words)) < _SHORT_WORD:
        return False
    big = [w for w in words if w.casefold() not in vocabulary.SMALL_WORDS]
    return all(_is_big(word) or text.isupper() for word in big)


def _is_big(word: str) -> bool:
    """Tell whether a word is capitalised, and no initial."""
    bare = word.strip("“‘”’(),.\"'")
    return bare[:1].isupper() and (len(bare) > _FEW or not bare.isupper())


def is_capital(text: str) -> bool:
    """Tell whether every letter of *text* that has case is a capital."""
    return text.isupper()
