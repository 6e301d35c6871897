"""
The shapes that replies are read as, and the spellings each part may have.

A reader takes one parsed value and returns the one spelling that the upstream
compares with, or refuses. It never changes the words of a text.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, TypeAlias

from vectorless_rag.canon import Json
from vectorless_rag.pageindex_runtime.replies import ReplyError, invalid

Reader: TypeAlias = Callable[[object], Json]
"""Takes a parsed value, returns it normalised; raises `ReplyError`."""

REQUIRED = object()
"""The default of a key that must be there."""

LEFT_OUT = object()
"""The default of a key that may be missing, and then stays missing."""

_MARKER = re.compile(r"<?\s*(?:physical_index_)?\s*([0-9]{1,9})\s*>?")
# How a model writes "there is none" when it writes a text.
_NONE_WORDS = frozenset({"", "none", "null", "n/a"})
_VERDICTS: dict[str, Literal["yes", "no"]] = {
    "yes": "yes", "true": "yes", "no": "no", "false": "no",
}  # fmt: skip


@dataclass(frozen=True)
class Key:
    """One key of an object that is read."""

    name: str
    read: Reader
    default: object = REQUIRED


def fields(*keys: Key, closed: bool = False) -> Reader:
    """
    Read an object with these keys; others are dropped.

    Args:
        keys: What the object holds.
        closed: Refuse a list or an object under any other key, since dropping
            it could drop sections.
    """
    known = {key.name for key in keys}

    def read(value: object) -> Json:
        if not isinstance(value, dict):
            raise invalid("not_an_object")
        if closed and any(value[k] and _nested(value[k]) for k in value.keys() - known):
            raise invalid("nested_entries")
        found = {key.name: _field(key, value) for key in keys}
        return {k: v for k, v in found.items() if v is not LEFT_OUT}  # type: ignore[misc]

    return read


def entries(read_one: Reader) -> Reader:
    """Read a list of objects; the list may be empty."""

    def read(value: object) -> Json:
        if not isinstance(value, list):
            raise invalid("not_a_list")
        return [_at(f"[{i}]", read_one, item) for i, item in enumerate(value)]

    return read


def verdict(value: object) -> Json:
    """Read a yes or a no: ``"Yes"``, ``"yes."`` and true are yes."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        word = value.strip().strip(".!\"'").strip().casefold()
        if word in _VERDICTS:
            return _VERDICTS[word]
    raise invalid("not_yes_or_no")


def marker(value: object) -> Json:
    """
    Read a physical page as ``"<physical_index_7>"``, or None.

    7, ``"7"``, ``"physical_index_7"`` and ``"<physical_index_7>"`` are all page 7.
    """
    if _is_none(value):
        return None
    if (page := _whole(value)) is not None and page >= 0:
        return f"<physical_index_{page}>"
    if isinstance(value, str) and (match := _MARKER.fullmatch(value.strip())):
        return f"<physical_index_{int(match[1])}>"
    raise invalid("not_a_page")


def page_number(value: object) -> Json:
    """Read a page as a whole number: 7 or ``"7"``."""
    read = marker(value)
    if isinstance(read, str):
        return int(read.removeprefix("<physical_index_").removesuffix(">"))
    raise invalid("not_a_page")


def printed_page(value: object) -> Json:
    """Read a printed page: a number, a label (``"A-4"``, ``"xii"``), or None."""
    if _is_none(value):
        return None
    if (page := _whole(value)) is not None:
        return page
    if isinstance(value, str):
        return value
    raise invalid("not_a_page_label")


def structure(value: object) -> Json:
    """Read a section number as text, ``"1.10"``, or None."""
    if _is_none(value):
        return None
    return _label(value)


def title(value: object) -> Json:
    """Read a heading: a text with something in it, kept as it stands."""
    read = _label(value)
    if not read.strip():
        raise invalid("blank")
    return read


def prose(value: object) -> Json:
    """Read a text with something in it; a list of texts is joined by spaces."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        value = " ".join(item.strip() for item in value)
    if not isinstance(value, str):
        raise invalid("not_a_text")
    if not value.strip():
        raise invalid("blank")
    return value


def optional(read: Reader) -> Reader:
    """Read null as it stands, and anything else with *read*."""
    return lambda value: None if value is None else read(value)


def _field(key: Key, value: dict[str, object]) -> object:
    if key.name in value:
        return _at(f".{key.name}", key.read, value[key.name])
    if key.default is REQUIRED:
        raise invalid("missing_key", f".{key.name}")
    return key.default


def _at(step: str, read: Reader, value: object) -> Json:
    try:
        return read(value)
    except ReplyError as error:
        reason, where = error.reason, step + error.where
    raise invalid(reason, where)


def _nested(value: object) -> bool:
    return isinstance(value, dict | list)


def _is_none(value: object) -> bool:
    if isinstance(value, str):
        return value.strip().casefold() in _NONE_WORDS
    return value is None


def _whole(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, Decimal) and value == value.to_integral_value():
        return int(value)
    return None


def _label(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return str(value)
    raise invalid("not_a_text")
