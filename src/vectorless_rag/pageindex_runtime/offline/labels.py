"""Section labels: ``2.1``, ``A.3``, ``IV.``, ``Chapter 5``, ``第三章``."""

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from vectorless_rag.pageindex_runtime.offline import vocabulary
from vectorless_rag.pageindex_runtime.offline.text import is_dense, key

APPENDIX = 1000
"""Added to the place of a letter, so that A sorts after every numbered section."""

_MAX_LINE = 400
_MAX_DIGITS = 3
_DECIMAL = re.compile(r"(\d{1,3}(?:[.．]\d{1,3}){0,6})([.．:：)、]?)(\s*)")
_LETTER = re.compile(r"([A-Z])((?:\.\d{1,3}){0,5})([.:]?)(\s+)")
_ROMAN = re.compile(r"([IVXLC]{1,8})([.:])(\s+)")
_ROMAN_OK = re.compile(r"(?=.)C{0,3}(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")
_HAN = re.compile(
    r"[第제]\s?([\d零〇一二三四五六七八九十百]{1,7})\s?"
    f"([{''.join(vocabulary.HAN_DIVISIONS)}])\\s?"
)
_WORD = re.compile(
    r"([^\W\d_]{2,20})\s+([^\s.:;,—–-]{1,14})(?![^\s.:;,—–])\s*[.:—–-]?\s*"
)
_THAI = re.compile(r"(บทที่|ส่วนที่)\s*(\d{1,3})\s*")
_HAN_DIGITS = {c: i for i, c in enumerate("〇一二三四五六七八九")} | {"零": 0}
_ROMAN_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}


@dataclass(frozen=True, slots=True)
class Label:
    """One reading of the label that opens a line."""

    family: str
    """``decimal``, ``letter``, ``roman`` or the kind of a named division."""

    path: tuple[int, ...]
    """Its numbers, outermost first."""

    end: int
    """Where the title starts in the line."""

    dotted: bool = True
    """A full stop or colon follows it, or it names its kind."""

    @property
    def code(self) -> str:
        """Spell the path: ``2.1``, ``A.3``."""
        return ".".join(_spell(n) for n in self.path)


def _spell(number: int) -> str:
    return chr(ord("A") + number - APPENDIX - 1) if number > APPENDIX else str(number)


def read_labels(line: str) -> tuple[Label, ...]:
    """
    Read the label of a squeezed line in every sense it can have.

    ``I. Facts`` is the first roman section and the ninth lettered one. Lines of more
    than 400 characters have none.
    """
    return _read_labels(line) if 0 < len(line) <= _MAX_LINE else ()


@lru_cache(maxsize=4096)
def _read_labels(line: str) -> tuple[Label, ...]:
    if line[0].isdigit():
        found = [_decimal(line)]
    elif line[0] in "第제":
        found = [_han(line)]
    else:
        found = [_roman(line), _letter(line), _word(line)]
    return tuple(label for label in found if label is not None)


def path_of_code(code: object) -> tuple[int, ...]:
    """Read a structure code back; what is no code is the empty path."""
    parts = str(code).split(".") if isinstance(code, str | int) else []
    path = tuple(_number(part) for part in parts)
    return () if -1 in path else path


def _number(part: str) -> int:
    if part.isascii() and part.isdigit() and len(part) <= _MAX_DIGITS:
        return int(part)
    if len(part) == 1 and "A" <= part <= "Z":
        return APPENDIX + 1 + ord(part) - ord("A")
    return -1


def _decimal(line: str) -> Label | None:
    match = _DECIMAL.match(line)
    if match is None or match[2] in {")", "、"}:
        return None
    rest = line[match.end() : match.end() + 1]
    glued = not match[3] and not match[2] and rest and not is_dense(rest)
    if glued or rest.isdigit():
        return None
    path = tuple(int(n) for n in re.split("[.．]", match[1]))
    if 0 in path[1:]:
        return None
    return Label("decimal", path, match.end(), dotted=bool(match[2]))


def _letter(line: str) -> Label | None:
    match = _LETTER.match(line)
    if match is None:
        return None
    if not match[2] and not match[3] and line[match.end() :][:1].islower():
        # The article, not a label: "A simple case".
        return None
    top = APPENDIX + 1 + ord(match[1]) - ord("A")
    rest = tuple(int(n) for n in match[2].split(".")[1:])
    return Label("letter", (top, *rest), match.end(), dotted=bool(match[3]))


def _roman(line: str) -> Label | None:
    match = _ROMAN.match(line)
    value = read_roman(match[1]) if match else 0
    return Label("roman", (value,), match.end()) if match and value else None


def read_roman(text: str) -> int:
    """Read a roman number of either case up to 399; 0 if it is none."""
    upper = text.upper()
    if _ROMAN_OK.fullmatch(upper) is None:
        return 0
    values = [_ROMAN_VALUES[c] for c in upper]
    after = [*values[1:], 0]
    return sum(-v if v < n else v for v, n in zip(values, after, strict=True))


def _han(line: str) -> Label | None:
    match = _HAN.match(line)
    value = _han_number(match[1]) if match else 0
    if match is None or not value:
        return None
    return Label(vocabulary.HAN_DIVISIONS[match[2]], (value,), match.end())


def _han_number(text: str) -> int:
    if text.isdigit() and not any(c in _HAN_DIGITS for c in text):
        return int(text)
    total, digit = 0, 0
    for char in text:
        if char in "十百":
            total += (digit or 1) * (10 if char == "十" else 100)
            digit = 0
        elif char in _HAN_DIGITS:
            digit = digit * 10 + _HAN_DIGITS[char]
        else:
            return 0
    return total + digit


def _word(line: str) -> Label | None:
    match = _WORD.match(line) or _THAI.match(line)
    if match is None:
        return None
    word = unicodedata.normalize("NFC", match[1]).casefold()
    kind = vocabulary.DIVISIONS.get(word) or vocabulary.PREFIXED_DIVISIONS.get(word)
    upper = match[1][0].isupper() or word in vocabulary.PREFIXED_DIVISIONS
    value = _named_number(match[2], str(kind)) if kind and upper else 0
    return Label(str(kind), (value,), match.end()) if value else None


def _named_number(text: str, kind: str) -> int:
    if text.isdecimal() and len(text) <= _MAX_DIGITS:
        return int(text)
    word = key(text)
    if word in vocabulary.ORDINALS:
        return vocabulary.ORDINALS[word]
    if not text.isascii() or not text.isupper():
        return 0
    if len(text) == 1 and text not in ("I" if kind == "annex" else "IVX"):
        return APPENDIX + 1 + ord(text) - ord("A")
    return read_roman(text)
