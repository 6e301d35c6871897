"""Texts and records as files hold them: written one way, read back strictly."""

import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Annotated, Any, TypeVar

import msgspec

from vectorless_rag.canon import Json, canonical
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.units import Sha256

T = TypeVar("T")

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
"""Stands where a character was that no UTF-8 file or database text can hold."""

# Titles and names go to terminals, where a control character is a command.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")

_NAME = re.compile(r"[a-z0-9_]{1,40}")
# Most of what a record holds; a long document has tens of thousands.
_ATOMS = frozenset({str, int, bool, type(None)})

_MISSING = re.compile("^Object missing required field `([a-z0-9_]+)`")

Digest = Annotated[Sha256, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
"""A `Sha256` whose spelling is checked when a record is read."""


def storable(text: str) -> str:
    """
    Make *text* fit for UTF-8 files and databases.

    Returns:
        The same text with pairs of surrogates joined, and every lone surrogate
        and every NUL replaced by U+FFFD.
    """
    joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return joined.replace("\0", REPLACEMENT)


def one_line(text: str) -> str:
    """Make *text* storable, with single spaces and no control characters."""
    return _CONTROL.sub(REPLACEMENT, " ".join(storable(text).split()))


def encode(record: object) -> bytes:
    """Spell a dataclass canonically, field by field."""
    return canonical(_plain(record))


def decode(kind: type[T], data: bytes, where: str) -> T:
    """
    Read back what `encode` wrote.

    Args:
        kind: A dataclass; its fields, their types, and nothing else.
        data: JSON in its canonical form.
        where: What the bytes are, for the message.

    Raises:
        VectorlessRagError: ``store_corrupt``. The message names the field, never
            what it holds.
    """
    try:
        record: T = _decoder(kind).decode(data)
    except msgspec.ValidationError as error:
        raise corrupt(f"{where}: {_field(str(error))}") from None
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise corrupt(f"{where}: no JSON") from None
    # One spelling: otherwise two files could say the same under two digests.
    if not _is_spelled(record, data):
        raise corrupt(f"{where}: not in canonical form")
    return record


def corrupt(what: str) -> VectorlessRagError:
    """Return the failure for stored bytes that are not what was written."""
    return VectorlessRagError(Code.STORE_CORRUPT, what)


def _plain(record: Any) -> Json:  # noqa: ANN401  (a field of any type)
    # Not `msgspec.to_builtins`: it spells what is cached in a dataclass too, and
    # leaves out what has its default.
    if type(record) in _ATOMS:
        atom: Json = record
        return atom
    match record:
        case Enum():
            value: Json = record.value
            return value
        case dict():
            return {name: _plain(value) for name, value in record.items()}
        case tuple() | list():
            return [_plain(item) for item in record]
        case _ if is_dataclass(record):
            return {f.name: _plain(getattr(record, f.name)) for f in fields(record)}
        case _:
            raise TypeError(type(record).__name__)


def _field(message: str) -> str:
    # Only where it is: the rest of the message may quote what stands there.
    _, _, place = message.rpartition(" - at `$")
    parts = re.split(r"[.\[\]`]+", place) + _MISSING.findall(message)
    # A name that is not like one of ours may be what a text turned into.
    shown = [part if _NAME.fullmatch(part) else "?" for part in parts if part]
    return ".".join(shown) or "its shape"


def _is_spelled(record: object, data: bytes) -> bool:
    try:
        return encode(record) == data
    except (TypeError, ValueError, RecursionError):
        return False


# Building one takes a part of a millisecond.
_decoder: Callable[[Any], msgspec.json.Decoder[Any]] = cache(msgspec.json.Decoder)
