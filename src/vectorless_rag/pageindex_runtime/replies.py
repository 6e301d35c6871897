"""
Model text to JSON, or an error: never a repair, never a guess.

Only a reason and an offset leave this module. What a reply says does not.
"""

import json
import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from vectorless_rag.errors import Code, VectorlessRagError

MAX_DEPTH = 64
"""Deepest nesting of lists and objects that is read."""

MAX_CHARS = 2_000_000
"""Longest reply that is read, in characters."""

MAX_INT_DIGITS = 400

_BLANKS = " \t\r\n"
_FENCE = "```"
_TAG = re.compile(r"[\w+.#-]*")
_SURROGATE = re.compile("[\ud800-\udfff]")
# A whole string literal or one bracket. An unterminated literal swallows the
# rest, so that no quote is scanned twice: otherwise '\\"' repeated costs time
# that grows with the square of the length.
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[\[{\]}]', re.DOTALL)


class ReplyError(VectorlessRagError):
    """
    A reply that cannot be used.

    Args:
        code: ``pageindex_invalid_json``, ``pageindex_empty_response`` or
            ``pageindex_truncated_response``.
        reason: What is wrong, as one of a few fixed words.
        where: Offset in the reply, or path of keys that our own shapes name.
        operation: What was asked, if the one who raises knows it.
    """

    def __init__(
        self, code: Code, reason: str, where: str = "", operation: str = ""
    ) -> None:
        self.reason = reason
        self.where = where
        self.operation = operation
        place = f"{reason} at {where}" if where else reason
        super().__init__(code, f"{operation}: {place}" if operation else place)

    def asked(self, operation: str) -> "ReplyError":
        """Return the same error with the name of what was asked."""
        return type(self)(self.code, self.reason, self.where, operation)

    def __reduce__(self) -> tuple[type["ReplyError"], tuple[Any, ...]]:
        """Keep the parts when the error crosses a process boundary."""
        return type(self), (self.code, self.reason, self.where, self.operation)


def invalid(reason: str, where: str = "") -> ReplyError:
    """Return the error for a reply that is not the JSON asked for."""
    return ReplyError(Code.INVALID_JSON, reason, where)


def parse(text: str, *, real: Callable[[str], object] | None = None) -> object:
    """
    Read the one JSON value in *text*.

    A byte order mark, blanks around the value and one code fence around the
    whole text are no part of it.

    Args:
        text: A whole reply.
        real: What becomes of a number with a point or an exponent; gets its
            spelling. Default: a float.

    Raises:
        ReplyError: ``pageindex_empty_response`` for a blank text, otherwise
            ``pageindex_invalid_json``: anything around the value, a duplicate
            key, a number that is not finite, an integer of more than 400
            digits, half a surrogate pair, nesting deeper than 64, more than
            2,000,000 characters.
    """
    if not text.strip("\ufeff" + _BLANKS):
        raise ReplyError(Code.EMPTY_RESPONSE, "empty")
    if len(text) > MAX_CHARS:
        raise invalid("too_large")
    body = _body(text)
    _check_depth(body)
    value = _decode(body, _float if real is None else _finite(real))
    _check_text(value)
    return value


def unfenced(text: str) -> str:
    """
    Return *text* without the code fence around it, otherwise unchanged.

    A fence that was opened and not closed goes too: the end of a cut reply
    is missing.
    """
    bare = text.removeprefix("\ufeff").strip(_BLANKS)
    if not bare.startswith(_FENCE):
        return text
    bare = bare.removeprefix(_FENCE).removesuffix(_FENCE)
    tag = _TAG.match(bare)
    return bare[tag.end() if tag else 0 :].strip(_BLANKS)


def _body(text: str) -> str:
    bare = text.removeprefix("\ufeff").strip(_BLANKS)
    closed = len(bare) >= 2 * len(_FENCE) and bare.endswith(_FENCE)
    return unfenced(bare) if bare.startswith(_FENCE) and closed else bare


def _check_depth(body: str) -> None:
    depth = 0
    for match in _TOKEN.finditer(body):
        first = body[match.start()]
        if first in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise invalid("too_deep", str(match.start()))
        elif first in "]}":
            depth -= 1


def _decode(body: str, real: Callable[[str], object]) -> object:
    decoder = json.JSONDecoder(
        object_pairs_hook=_pairs,
        parse_constant=_constant,
        parse_float=real,
        parse_int=_int,
    )
    # The decoder's own error holds the whole reply, so ours is raised outside
    # the clause and carries no context.
    try:
        value, end = decoder.raw_decode(body)
    except json.JSONDecodeError as error:
        at = error.pos
    else:
        if end == len(body):
            return value
        raise invalid("trailing_data", str(end))
    raise invalid("not_json", str(at))


def _pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise invalid("duplicate_key")
    return value


def _constant(_: str) -> object:
    raise invalid("non_finite")


def _float(spelling: str) -> float:
    value = float(spelling)
    if not math.isfinite(value):
        raise invalid("non_finite")
    return value


def _finite(real: Callable[[str], object]) -> Callable[[str], object]:
    def read(spelling: str) -> object:
        _float(spelling)
        return real(spelling)

    return read


def _int(spelling: str) -> int:
    if len(spelling) > MAX_INT_DIGITS:
        raise invalid("int_too_long")
    return int(spelling)


def _check_text(value: object) -> None:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            if _SURROGATE.search(item):
                raise invalid("lone_surrogate")
        elif isinstance(item, dict):
            stack.extend((*item.keys(), *item.values()))
        elif isinstance(item, list):
            stack.extend(item)


def spelled(text: str) -> object:
    """Parse *text* with numbers such as 1.10 as exact decimals."""
    return parse(text, real=Decimal)
