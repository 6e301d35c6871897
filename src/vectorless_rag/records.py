"""Texts and records as files hold them: written one way, read back strictly."""

import json
import re
from typing import Annotated, TypeVar

from vectorless_rag.canon import canonical
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.strict import MisfitError, Spelled, plain, structure
from vectorless_rag.units import Sha256

T = TypeVar("T")

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
"""Stands where a character was that no UTF-8 file or database text can hold."""

# Titles and names go to terminals, where a control character is a command.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")

_NAME = re.compile(r"[a-z0-9_]{1,40}")

Digest = Annotated[Sha256, Spelled("[0-9a-f]{64}")]
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
    return canonical(plain(record))


def decode(kind: type[T], data: bytes, where: str) -> T:
    """
    Read back what `encode` wrote.

    Args:
        kind: A dataclass; what it may hold says `vectorless_rag.strict`.
        data: JSON in its canonical form.
        where: What the bytes are, for the message.

    Raises:
        VectorlessRagError: ``store_corrupt``. The message names the field, never
            what it holds.
    """
    try:
        record = structure(kind, json.loads(data))
    except MisfitError as error:
        raise corrupt(f"{where}: {_field(error.place)}") from None
    except (ValueError, RecursionError):
        raise corrupt(f"{where}: no JSON") from None
    # One spelling: otherwise two files could say the same under two digests.
    if not _is_spelled(record, data):
        raise corrupt(f"{where}: not in canonical form")
    return record


def corrupt(what: str) -> VectorlessRagError:
    """Return the failure for stored bytes that are not what was written."""
    return VectorlessRagError(Code.STORE_CORRUPT, what)


def _field(place: tuple[int | str, ...]) -> str:
    # A name that is not like one of ours may be what a text turned into.
    parts = [str(part) for part in place]
    shown = [part if _NAME.fullmatch(part) else "?" for part in parts]
    return ".".join(shown) or "its shape"


def _is_spelled(record: object, data: bytes) -> bool:
    try:
        return encode(record) == data
    except (TypeError, ValueError, RecursionError):
        return False
