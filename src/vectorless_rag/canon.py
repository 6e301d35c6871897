"""The one spelling of a value as bytes (RFC 8785), and the one digest over it."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from vectorless_rag.units import Sha256

Json: TypeAlias = "bool | int | str | Sequence[Json] | Mapping[str, Json] | None"
"""JSON without floats: amounts are whole numbers of a small unit."""

# RFC 8785 reads numbers as doubles: a larger integer would lose digits.
_LARGEST = 2**53 - 1


def canonical(value: Json) -> bytes:
    """
    Spell *value* as bytes, the same way on every machine.

    Args:
        value: Anything in `Json`.

    Returns:
        UTF-8 JSON without spaces, keys in the order of their UTF-16 code units.

    Raises:
        TypeError: *value* holds a float or a key that is not a string. The
            standard encoder would turn the key 1 into "1", and two different
            values would then share one digest.
        ValueError: An integer is past 2**53 - 1, or a text holds half a
            surrogate pair.
    """
    text = json.dumps(_ordered(value), ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8")


def sha256(data: bytes) -> Sha256:
    """Digest *data* as it stands."""
    return Sha256(hashlib.sha256(data).hexdigest())


def digest(kind: str, value: Json) -> Sha256:
    """
    Name *value* by its content.

    Args:
        kind: What *value* is, with a version: ``"recipe/1"``. Raise it when the
            meaning of a field changes, and every old key misses.
        value: Anything in `Json`.
    """
    return sha256(canonical([kind, value]))


def _ordered(value: object) -> Json:
    match value:
        case None | bool() | str():
            return value
        case int():
            if abs(value) > _LARGEST:
                raise ValueError(f"{value} is past 2**53 - 1")
            return value
        case Mapping():
            for key in value:
                if not isinstance(key, str):
                    raise TypeError(f"key {key!r} is not a string")
            return {k: _ordered(value[k]) for k in sorted(value, key=_utf16)}
        case Sequence() if not isinstance(value, bytes | bytearray):
            return [_ordered(item) for item in value]
        case _:
            raise TypeError(f"{type(value).__name__} has no canonical spelling")


def _utf16(key: str) -> bytes:
    # Lone surrogates sort too; encoding the result refuses them.
    return key.encode("utf-16-be", "surrogatepass")
