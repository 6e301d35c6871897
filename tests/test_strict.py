"""Records are read as pydantic would read them, which takes longer to be imported."""

import dataclasses
import json
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from strategies_tree import (
    sample_artifact,
    sample_provenance,
    sample_recipe,
    sample_run,
)
from test_artifact import manifest_of
from vectorless_rag import wire
from vectorless_rag.artifact import Manifest, RunRecord, content, manifest, run
from vectorless_rag.artifact.content import _Shape
from vectorless_rag.recipe import Recipe, key
from vectorless_rag.strict import AtLeast, MisfitError, Spelled, plain, structure

# What our own rules mean to pydantic.
RULES: dict[type, Callable[[Any, Any, Any], dict[str, Any]]] = {
    Spelled: lambda self, kind, handler: {
        **handler(kind),
        "pattern": f"^(?:{self.pattern})$",
    },
    AtLeast: lambda self, kind, handler: {**handler(kind), "ge": self.least},
}


@pytest.fixture(scope="module")
def readers() -> Iterator[dict[type, TypeAdapter[Any]]]:
    """Pydantic's own readers of our records."""
    parts = [
        part
        for module in (content, manifest, run, key, wire)
        for part in vars(module).values()
        if isinstance(part, type) and dataclasses.is_dataclass(part)
    ]
    with pytest.MonkeyPatch.context() as patch:
        for rule, schema in RULES.items():
            patch.setattr(rule, "__get_pydantic_core_schema__", schema, raising=False)
        for part in parts:
            config = {"extra": "forbid"}
            patch.setattr(part, "__pydantic_config__", config, raising=False)
        yield {kind: TypeAdapter(kind) for kind in KINDS}


RECIPE = sample_recipe()
RECORDS: list[Any] = [
    RECIPE,
    sample_run(),
    manifest_of(RECIPE, sample_provenance()),
]
KINDS: list[type] = [Recipe, RunRecord, Manifest, _Shape]

values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.text(max_size=3)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["a" * 64, "auto", "flash", "2026-11-30T09:00:00.000Z"]),
    lambda inner: st.lists(inner, max_size=2)
    | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)  # fmt: skip


def raw_of(kind: type) -> Any:
    if kind is _Shape:
        return json.loads(sample_artifact().encoded)
    (record,) = (r for r in RECORDS if type(r) is kind)
    return json.loads(json.dumps(plain(record)))


def places(raw: Any, at: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    found = [at]
    if isinstance(raw, dict):
        inner: list[tuple[Any, Any]] = list(raw.items())
    else:
        inner = list(enumerate(raw)) if isinstance(raw, list) else []
    for name, value in inner:
        found += places(value, (*at, name))
    return found


def altered(raw: Any, at: tuple[str | int, ...], how: str, value: Any) -> Any:
    if not at:
        return value
    *outer, last = at
    holder = raw
    for name in outer:
        holder = holder[name]
    if how == "removed":
        del holder[last]
    elif how == "added" and isinstance(holder, dict):
        holder["colour"] = value
    else:
        holder[last] = value
    return raw


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_a_record_is_read_as_pydantic_reads_it(
    kind: type, data: st.DataObject, readers: dict[type, TypeAdapter[Any]]
) -> None:
    """What one refuses, the other does; and both make the same of the rest."""
    raw = raw_of(kind)
    at = data.draw(st.sampled_from(places(raw)))
    how = data.draw(st.sampled_from(["set", "removed", "added", "left"]))
    if how != "left":
        raw = altered(raw, at, how, data.draw(values))

    assert by_pydantic(readers[kind], raw) == by_us(kind, raw)


def by_us(kind: type, raw: Any) -> Any:
    try:
        return structure(kind, raw)
    except MisfitError:
        return None


def by_pydantic(reader: TypeAdapter[Any], raw: Any) -> Any:
    try:
        return reader.validate_json(json.dumps(raw), strict=True)
    except ValidationError:
        return None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Toy:
    number: Annotated[int, AtLeast(0)]
    word: Annotated[str, Spelled("[a-z]+")] | None = None
    one: Literal[1] = 1
    by_name: dict[str, tuple[bool, ...]] = dataclasses.field(default_factory=dict)


@pytest.mark.parametrize(
    ("raw", "place"),
    [
        ([], ()),
        ({}, ("number",)),
        ({"number": -1}, ("number",)),
        ({"number": True}, ("number",)),
        ({"number": 1.0}, ("number",)),
        ({"number": 1, "word": "A"}, ("word",)),
        ({"number": 1, "word": "a\n"}, ("word",)),
        ({"number": 1, "one": True}, ("one",)),
        ({"number": 1, "one": 2}, ("one",)),
        ({"number": 1, "by_name": {"x": [True, 0]}}, ("by_name", "x", 1)),
        ({"number": 1, "by_name": [True]}, ("by_name",)),
        ({"number": 1, "other": 1}, ("other",)),
    ],
)
def test_the_place_of_a_misfit_is_named(raw: Any, place: tuple[str | int]) -> None:
    """Names and numbers lead to the field, and never show what stands there."""
    with pytest.raises(MisfitError, match=r"^$") as caught:
        structure(Toy, raw)

    assert place == caught.value.place


def test_what_is_left_out_has_its_default() -> None:
    """And what is there is of its type."""
    raw = {"number": 1, "by_name": {"x": [True]}}

    assert Toy(number=1, by_name={"x": (True,)}) == structure(Toy, raw)
    assert {**raw, "word": None, "one": 1} == plain(structure(Toy, raw))
