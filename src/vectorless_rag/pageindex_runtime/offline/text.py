"""Lines, comparison keys and word counts of text in any script."""

import re
import unicodedata
from functools import lru_cache

SENTENCE_ENDS = frozenset(".!?…。．！？｡؟۔।॥։።")
"""Characters that can end a sentence."""

CLOSERS = frozenset("\"'”’»)]）」』】〉》")
"""Characters that may stand between the end of a sentence and white space."""

# Thai, Lao, Burmese, Khmer, kana, Han. Not Hangul, which is written with spaces.
_DENSE = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_CLOSING = "".join(CLOSERS)


def squeeze(text: str) -> str:
    """Make every run of white space one blank, and none at the ends."""
    return " ".join(text.split())


def lines_of(text: str) -> list[str]:
    """Split *text* into squeezed lines; empty ones stay, so that indexes count."""
    return [squeeze(line) for line in text.splitlines()]


def is_dense(char: str) -> bool:
    """Tell whether *char* is of a script that puts no space between words."""
    return _DENSE.match(char) is not None


@lru_cache(maxsize=4096)
def _mark(char: str) -> bool:
    return unicodedata.category(char)[0] == "M"


def key(text: str) -> str:
    """
    Spell *text* for comparison: letters, digits and marks, case folded.

    Extraction adds and drops spaces, ligatures and punctuation; none of them tells
    two titles apart.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(c for c in folded if c.isalnum() or _mark(c))


def has_letter(text: str) -> bool:
    """Tell whether *text* holds a letter of any script."""
    return any(c.isalpha() for c in text)


def is_plain(text: str) -> bool:
    """Tell whether *text* is free of control characters and lone surrogates."""
    return _CONTROL.search(text) is None


def is_rtl(text: str) -> bool:
    """Tell whether *text* begins with a letter that is written from right to left."""
    first = next((c for c in text if c.isalpha()), "")
    return bool(first) and unicodedata.bidirectional(first) in {"R", "AL"}


def count_words(text: str) -> int:
    """Count words; two characters of a script without spaces make one."""
    words = text.split()
    if text.isascii():
        return len(words)
    return sum(max(1, len(_DENSE.findall(word)) // 2) for word in words)


def ends_sentence(text: str) -> bool:
    """Tell whether *text* ends as a sentence does."""
    bare = text.rstrip(_CLOSING)
    return bool(bare) and bare[-1] in SENTENCE_ENDS


def cut_words(text: str, most: int) -> str:
    """
    Return the longest start of squeezed *text* that has at most *most* words.

    A first word that alone is longer, as in scripts without spaces, is cut inside.
    """
    kept: list[str] = []
    left = most
    for word in text.split():
        cost = count_words(word)
        if cost > left:
            if not kept:
                kept.append(word[: 2 * most])
            break
        kept.append(word)
        left -= cost
    return " ".join(kept)
