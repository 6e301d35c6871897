"""Sentences of page texts, each verbatim but for white space."""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vectorless_rag.pageindex_runtime.offline import toc, vocabulary
from vectorless_rag.pageindex_runtime.offline.body import is_page_number
from vectorless_rag.pageindex_runtime.offline.headings import is_code
from vectorless_rag.pageindex_runtime.offline.labels import read_labels
from vectorless_rag.pageindex_runtime.offline.text import (
    CLOSERS,
    SENTENCE_ENDS,
    count_words,
    ends_sentence,
    has_letter,
    is_dense,
    is_plain,
    lines_of,
    squeeze,
)

_OPENERS = "\"'“‘«([（「『【〈《"
_BULLETS = "•●▪◦‣∙*–—!"
_MIN_WORDS = 4
_COLUMN = 0.6
_RUNNING = 0.9
_LONG_WORD = 5


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence, or what there is of one."""

    text: str
    whole: bool
    """It starts as a sentence does and ends as one, and is no scrap."""

    opens_block: bool
    """The first of its paragraph or page."""


def sentences_of(text: str, *, clean: bool = False) -> list[Sentence]:
    """
    Split *text* into sentences.

    Args:
        text: Page texts, or a summary.
        clean: The text is known to begin where a sentence does.

    Returns:
        Parts of the text with their white space squeezed. Lines of tables of
        contents, program code, tables and page furniture separate sentences and are
        no part of any.
    """
    return [
        sentence
        for n, block in enumerate(blocks_of(text))
        for sentence in _sentences(block, sure=clean and n == 0)
    ]


@dataclass(frozen=True, slots=True)
class Block:
    """A run of prose lines."""

    text: str
    """The lines, joined by blanks."""

    clean: bool
    """It begins where a sentence can begin, as far as the line above tells."""


def blocks_of(text: str) -> Iterator[Block]:
    """Yield runs of prose lines; what stands between two runs is no prose."""
    lines = lines_of(text)
    found = toc.scan_lines(lines)
    skip = found.lines if found.found else frozenset()
    width = _width(lines)
    block: list[str] = []
    # A text without capitals may begin in the middle of a sentence: it does not show.
    clean, before = False, ""
    for at, line in enumerate(lines):
        prose = at not in skip and is_prose(line)
        alone = prose and _heads(line, lines[at + 1 : at + 2], width)
        if block and (not prose or alone or _breaks_off(line)):
            yield Block(" ".join(block), clean)
            block = []
        if not block and before:
            clean = ends_sentence(before) or len(before) < _COLUMN * width
        if prose:
            block.append(line)
        if alone:
            yield Block(line, clean)
            block = []
        before = line or before
    if block:
        yield Block(" ".join(block), clean)


def is_prose(line: str) -> bool:
    """Tell whether a squeezed line can be a line of running text."""
    if not line or not has_letter(line) or is_page_number(line) or not is_plain(line):
        return False
    tokens = line.split()
    numbers = sum(1 for t in tokens if not has_letter(t))
    return not is_code(line) and numbers * 2 <= len(tokens)


def _width(lines: Sequence[str]) -> int:
    lengths = sorted(len(line) for line in lines if line)
    return lengths[len(lengths) * 3 // 4] if lengths else 0


def _breaks_off(line: str) -> bool:
    """Tell whether a line begins a list item or a footnote: ``1In principle``."""
    word = line.split(maxsplit=1)[0]
    note = word[0].isdecimal() and word.lstrip("0123456789")[:1].isupper()
    return line[0] in _BULLETS or note


def _heads(line: str, after: Sequence[str], width: int) -> bool:
    """Tell whether a line stands alone: a heading, a caption, a running header."""
    if ends_sentence(line):
        return False
    tokens = line.split()
    numbered = tokens[0].isdecimal() or tokens[-1].isdecimal()
    if numbered and len(tokens) > 1 and len(line) < _RUNNING * width:
        return True
    begins = not after or _starts(after[0])
    if read_labels(line) and len(line) < _RUNNING * width:
        return begins
    return len(line) < _COLUMN * width and begins


def _starts(text: str) -> bool:
    first = text.lstrip(_OPENERS + _BULLETS)[:1]
    if not first:
        return True
    return first.isupper() or first.isdecimal() or unicodedata.category(first) == "Lo"


def _sentences(block: Block, *, sure: bool) -> Iterator[Sentence]:
    start, text = 0, block.text
    for end in [*_ends(text), len(text)]:
        piece = squeeze(text[start:end])
        if has_letter(piece):
            cased = piece.lstrip(_OPENERS)[:1].isupper()
            begins = cased or start > 0 or sure or (block.clean and _starts(piece))
            whole = begins and ends_sentence(piece) and not _is_listed(piece)
            yield Sentence(piece, whole and count_words(piece) >= _MIN_WORDS, not start)
        start = end


def _is_listed(piece: str) -> bool:
    """Tell whether a heading, list mark or header ran into the sentence."""
    return piece[0] in _BULLETS or piece[0].isdecimal() or bool(read_labels(piece))


def _ends(text: str) -> Iterator[int]:
    at = 0
    while at < len(text):
        if text[at] not in SENTENCE_ENDS:
            at += 1
            continue
        end = at + 1
        while end < len(text) and (text[end] in CLOSERS or text[end] in SENTENCE_ENDS):
            end += 1
        if end < len(text) and _is_end(text, at, end):
            yield end
        at = end


def _is_end(text: str, at: int, end: int) -> bool:
    if is_dense(text[at - 1 : at] or " ") or text[at] in "。．！？｡":
        return True
    if text[end] != " ":
        return False
    word = _word_before(text, at)
    initials = word.isupper() and max(map(len, word.split("."))) == 1
    if text[at] == "." and (initials or word.casefold() in vocabulary.ABBREVIATIONS):
        return False
    # A name can open a sentence in lower case; after a long word that is no accident.
    return _starts(text[end + 1 : end + 4]) or len(word) >= _LONG_WORD


def _word_before(text: str, at: int) -> str:
    start = max(at - 12, 0)
    tail = text[start:at]
    run = len(tail)
    while run and (tail[run - 1].isalpha() or tail[run - 1] == "."):
        run -= 1
    return tail[run:]
