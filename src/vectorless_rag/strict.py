"""
Turn parsed JSON into dataclasses, by their annotations and nothing else.

Of pydantic's kind, but small: a record is read whenever an artifact is reused, and
pydantic takes longer to be imported than that takes. The tests hold it to what
pydantic makes of the same bytes.
"""

import re
import types
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")

# Most of what a record holds; a long document has tens of thousands.
_ATOMS = frozenset({str, int, bool, types.NoneType})


@dataclass(frozen=True)
class Spelled:
    """Of an `Annotated` text: all of it is spelled so."""

    pattern: str


@dataclass(frozen=True)
class AtLeast:
    """Of an `Annotated` number: it is no less."""

    least: int


class MisfitError(ValueError):
    """
    A value is not of its field's type.

    Args:
        place: Names and numbers that lead to the field, from the outside.
    """

    def __init__(self, place: tuple[str | int, ...] = ()) -> None:
        super().__init__()
        self.place = place


def structure(kind: type[T], raw: object) -> T:
    """
    Make a *kind* of what JSON holds.

    Args:
        kind: A dataclass of texts, whole numbers, truth values, None, enumerations,
            literals, dataclasses, and tuples and dictionaries by text of these.
        raw: What was parsed.

    Raises:
        MisfitError: A field is missing, unknown or of another type, or the class
            refuses what is in it.
    """
    made: T = _value(kind, raw)
    return made


def plain(record: object) -> Any:  # noqa: ANN401  (JSON of any shape)
    """Spell a dataclass, and those in it, field by field."""
    if type(record) in _ATOMS:
        return record
    match record:
        case Enum():
            return record.value
        case dict():
            return {name: plain(value) for name, value in record.items()}
        case tuple() | list():
            return [plain(item) for item in record]
        case _ if is_dataclass(record):
            return {f.name: plain(getattr(record, f.name)) for f in fields(record)}
        case _:
            return record


def _value(kind: Any, raw: object) -> Any:  # noqa: ANN401  (a type as annotated)
    if kind is Any:
        return raw
    if isinstance(supertype := getattr(kind, "__supertype__", None), type):
        return _value(supertype, raw)
    if isinstance(kind, type) and get_origin(kind) is None:
        return _plain_value(kind, raw)
    return _generic_value(kind, raw)


def _plain_value(kind: type, raw: object) -> object:
    if is_dataclass(kind):
        return _record(kind, raw)
    if issubclass(kind, Enum):
        try:
            return kind(raw)
        except ValueError:
            raise MisfitError from None
    # True is an int to Python, and no number to anyone else.
    if type(raw) is not kind:
        raise MisfitError
    return raw


def _generic_value(kind: Any, raw: object) -> Any:  # noqa: ANN401  (as annotated)
    origin, parts = get_origin(kind), get_args(kind)
    if hasattr(kind, "__metadata__"):
        return _checked(_value(kind.__origin__, raw), kind.__metadata__)
    if origin is Literal:
        if not any(type(raw) is type(one) and raw == one for one in parts):
            raise MisfitError
        return raw
    if origin in {Union, types.UnionType}:
        (other,) = set(parts) - {types.NoneType}
        return None if raw is None else _value(other, raw)
    if origin is tuple and isinstance(raw, list):
        return tuple(_at(number, parts[0], one) for number, one in enumerate(raw))
    if origin is dict and isinstance(raw, dict):
        return {name: _at(name, parts[1], one) for name, one in raw.items()}
    raise MisfitError


def _checked(value: object, rules: tuple[object, ...]) -> object:
    for rule in rules:
        match rule, value:
            case Spelled(pattern=pattern), str():
                met = re.fullmatch(pattern, value) is not None
            case AtLeast(least=least), int():
                met = value >= least
            case _:
                raise TypeError(f"{rule} of another type")
        if not met:
            raise MisfitError
    return value


def _at(place: str | int, kind: Any, raw: object) -> Any:  # noqa: ANN401  (as `_value`)
    try:
        return _value(kind, raw)
    except MisfitError as error:
        raise MisfitError((place, *error.place)) from None


@cache
def _fields(kind: type) -> Mapping[str, tuple[Any, bool]]:
    """Return type, and whether it must be there, of each field."""
    hints = get_type_hints(kind, include_extras=True)
    return {
        f.name: (
            hints[f.name],
            f.default is MISSING and f.default_factory is MISSING,
        )
        for f in fields(kind)
    }


def _record(kind: type, raw: object) -> object:
    if not isinstance(raw, dict):
        raise MisfitError
    known, given = _fields(kind), {}
    for name, (inner, needed) in known.items():
        if name in raw:
            given[name] = _at(name, inner, raw[name])
        elif needed:
            raise MisfitError((name,))
    if unknown := raw.keys() - known.keys():
        raise MisfitError((min(unknown),))
    try:
        return kind(**given)
    except ValueError:
        # Its own word on how the fields fit together.
        raise MisfitError from None
