"""
A reader of JSON and of Python's own spelling of the same values.

Prompts carry structures in either spelling, and a continued reply carries a part
of one. The reader never evaluates, never recurses, takes linear time, and gives
what stands before the point where the text breaks off or makes no sense.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

_WORDS = {
    "null": None,
    "None": None,
    "true": True,
    "True": True,
    "false": False,
    "False": False,
}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "0": "\0"}
_HEX = {"x": 2, "u": 4, "U": 8}
_MAX_DIGITS = 18
_OPENS: dict[str, Callable[[], Any]] = {"[": list, "{": dict}
_CLOSES = "]}"
_TOKEN = re.compile(r"[\s,:]+|[\[\]{}]|[\"']|[^\s,:\[\]{}\"']+")
_STOPS = {'"': re.compile(r'["\\]'), "'": re.compile(r"['\\]")}


@dataclass(frozen=True)
class Read:
    """What was read: the value, and whether its text ended where it should."""

    value: Any
    whole: bool


def read(text: str) -> Read:
    """
    Read the first list or object in *text*.

    Returns:
        The value (``None`` if there is none). ``whole`` is false when the text ends
        inside it.
    """
    starts = [at for at in (text.find("["), text.find("{")) if at >= 0]
    if not starts:
        return Read(None, whole=False)
    builder = _Builder()
    for kind, value in _tokens(text, min(starts)):
        builder.take(kind, value)
        if builder.done:
            return Read(builder.root, whole=True)
    return Read(builder.root, whole=False)


def records(value: object) -> list[dict[str, Any]]:
    """
    Flatten *value* to the objects in it, in order, outer before inner.

    An object's own ``nodes``, ``table_of_contents`` and other lists are searched too.
    """
    found: list[dict[str, Any]] = []
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            if "title" in item:
                found.append(item)
            waiting.extend(v for v in reversed(item.values()) if _nests(v))
        elif isinstance(item, list):
            waiting.extend(v for v in reversed(item) if _nests(v))
    return found


def _nests(value: object) -> bool:
    return isinstance(value, dict | list)


@dataclass
class _Builder:
    """The value so far. A key waits in ``keys`` until its value comes."""

    root: Any = None
    done: bool = False
    stack: list[Any] = field(default_factory=list)
    keys: list[Any] = field(default_factory=list)

    def take(self, kind: str, value: object) -> None:
        """Add one token."""
        if kind == "open":
            self._add(value)
            self.stack.append(value)
            self.keys.append(_NO_KEY)
        elif kind == "close":
            self.stack.pop()
            self.keys.pop()
            self.done = not self.stack
        else:
            self._add(value)

    def _add(self, value: object) -> None:
        if not self.stack:
            self.root = value
            return
        holder = self.stack[-1]
        if isinstance(holder, list):
            holder.append(value)
        elif self.keys[-1] is _NO_KEY:
            self.keys[-1] = value if isinstance(value, str) else ""
        else:
            holder[self.keys[-1]] = value
            self.keys[-1] = _NO_KEY


_NO_KEY = object()


def _tokens(text: str, at: int) -> Iterator[tuple[str, Any]]:
    while (match := _TOKEN.match(text, at)) is not None:
        found, at = match.group(), match.end()
        if found in _STOPS:
            string, at = _string(text, at, found)
            if string is None:
                return
            yield "value", string
        elif found in _OPENS:
            yield "open", _OPENS[found]()
        elif found in _CLOSES:
            yield "close", None
        elif found.strip(" ,:\t\n\r"):
            yield "value", _word(found)


def _word(token: str) -> Any:  # noqa: ANN401 (a value of any kind)
    if token in _WORDS:
        return _WORDS[token]
    digits = token.removeprefix("-")
    if digits.isascii() and digits.isdigit() and len(digits) <= _MAX_DIGITS:
        return int(token)
    return token


def _string(text: str, at: int, quote: str) -> tuple[str | None, int]:
    """Read on from inside a string; ``None`` if it never ends."""
    parts: list[str] = []
    while (match := _STOPS[quote].search(text, at)) is not None:
        parts.append(text[at : match.start()])
        at = match.end()
        if match.group() == quote:
            return _pair("".join(parts)), at
        piece, at = _escape(text, at)
        parts.append(piece)
    return None, len(text)


def _escape(text: str, at: int) -> tuple[str, int]:
    mark = text[at : at + 1]
    if mark in _HEX and mark:
        digits = text[at + 1 : at + 1 + _HEX[mark]]
        try:
            return chr(int(digits, 16)), at + 1 + len(digits)
        except (ValueError, OverflowError):
            return mark, at + 1
    return _ESCAPES.get(mark, mark), at + 1


def _pair(text: str) -> str:
    """Join surrogate pairs that JSON escapes spell apart; lone ones stay."""
    if not any("\ud800" <= c <= "\udfff" for c in text):
        return text
    raw = text.encode("utf-16-le", "surrogatepass")
    return raw.decode("utf-16-le", "surrogatepass")
