"""How values of the wire are spelled as JSON, and refused where they are not ours."""

import json
from typing import Any

from vectorless_rag.errors import Code, VectorlessRagError


def check_type(value: object, kind: type) -> None:
    """
    Refuse a *value* of another type.

    Raises:
        TypeError: It names the type.
    """
    # A bool is an int to Python, and no number to anyone else.
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError(kind.__name__)


def dump(value: dict[str, Any]) -> bytes:
    """Spell an object on one line."""
    # ASCII, so that a lone surrogate in a page text survives the trip.
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode("ascii")


def load(data: bytes, schema: int) -> dict[str, Any]:
    """
    Read an object of this *schema*, without that field.

    Raises:
        VectorlessRagError: ``child_protocol``.
    """
    try:
        raw = json.loads(data)
        if raw.pop("schema") != schema:
            raise garbled("schema")
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError) as error:
        raise garbled("JSON") from error
    return dict(raw)


def garbled(what: str) -> VectorlessRagError:
    """Return the failure for what is not as the other side writes it."""
    return VectorlessRagError(Code.CHILD_PROTOCOL, what)
