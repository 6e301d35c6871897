"""Structures in prompts are read in both spellings, whole or broken off."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies_offline import containers, texts
from vectorless_rag.pageindex_runtime.offline.literals import read, records


@given(containers)
def test_json_is_read_back(value: Any) -> None:
    """What JSON spells is read as it was."""
    found = read(json.dumps(value))

    assert (value, True) == (found.value, found.whole)


@given(containers)
def test_python_spelling_is_read_back(value: Any) -> None:
    """What Python's own spelling says is read as it was."""
    found = read(repr(value))

    assert (value, True) == (found.value, found.whole)


@given(containers, st.integers(0, 400))
def test_a_cut_text_is_not_whole(value: Any, at: int) -> None:
    """A spelling that breaks off is read as far as it goes and known to be cut."""
    text = json.dumps([value])

    assert (at >= len(text)) is read(text[:at]).whole


@given(texts)
def test_any_text_is_read(text: str) -> None:
    """No text makes the reader fail."""
    assert read(text).value is None or isinstance(read(text).value, list | dict)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("no structure", None, id="none"),
        pytest.param("Here: [1, 2] and [3]", [1, 2], id="first"),
        pytest.param('{"a": [1, {"b": null', {"a": [1, {"b": None}]}, id="open"),
        pytest.param('["a", "b', ["a"], id="open-string"),
        pytest.param(r"['\q\x41\u0042\n']", ["qAB\n"], id="escapes"),
        pytest.param(r'["\uZZZZ", "\u"]', ["uZZZZ", "u"], id="broken-escapes"),
        pytest.param(r'["\ud83d\ude00"]', ["\U0001f600"], id="pair"),
        pytest.param(r'["\ud83d"]', ["\ud83d"], id="half-a-pair"),
        pytest.param(
            r"['\U0001f600', '\U99999999']", ["\U0001f600", "U99999999"], id="U"
        ),
        pytest.param("[1.5, 99999999999999999999]", ["1.5", "9" * 20], id="words"),
        pytest.param("{1: 2, 3: 4}", {"": 4}, id="odd-keys"),
        pytest.param("[True, None, -3]", [True, None, -3], id="python-words"),
    ],
)
def test_odd_spellings_have_a_meaning(text: str, value: Any) -> None:
    """What stands before the odd place is kept."""
    assert value == read(text).value


def test_depth_does_not_matter() -> None:
    """However deep a structure nests, reading and listing it come to an end."""
    deep = "[" * 100_000

    assert not read(deep).whole
    assert read(deep + "]" * 100_000).whole
    assert ["A"] == [r["title"] for r in records(read(deep + '{"title": "A"}').value)]


def test_records_are_the_titled_objects_in_order() -> None:
    """Objects with a title are listed, outer before inner, in the order they stand."""
    value = {
        "table_of_contents": [
            {"title": "A", "nodes": [{"title": "A1"}, {"no": "title"}]},
            {"title": "B"},
        ]
    }

    assert ["A", "A1", "B"] == [record["title"] for record in records(value)]
