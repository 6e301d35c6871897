"""One spelling for a value, and one name for a spelling."""

import json

import pytest
from hypothesis import given

from strategies import json_values
from vectorless_rag.canon import Json, canonical, digest, sha256


def test_keys_stand_in_the_order_of_their_utf16_units() -> None:
    """RFC 8785 orders by UTF-16: an emoji sorts before U+FB33."""
    assert '{"\N{GRINNING FACE}":1,"\ufb33":2}'.encode() == canonical(
        {
            "\ufb33": 2,
            "\N{GRINNING FACE}": 1,
        }
    )


def test_a_digest_is_pinned() -> None:
    """When this changes, every key in every store misses."""
    assert "ad4907966ba0f9c041120469eba6bed6893f3615936408cbad31de6606a244c1" == digest(
        "recipe/1", {"a": 1}
    )


def test_plain_digest_is_sha256() -> None:
    """The digest of bytes is the one every tool prints."""
    assert "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" == sha256(
        b""
    )


@given(json_values)
def test_spelling_reads_back(value: Json) -> None:
    """Any JSON reader returns the value."""
    assert value == json.loads(canonical(value))


@given(json_values, json_values)
def test_two_values_share_a_spelling_only_if_equal(a: Json, b: Json) -> None:
    """Different values have different names."""
    assert (json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)) == (
        canonical(a) == canonical(b)
    )


@pytest.mark.parametrize(
    ("value", "why"),
    [
        pytest.param(1.5, "float has no canonical", id="float"),
        pytest.param({1: 2}, "key 1 is not a string", id="key"),
        pytest.param(b"x", "bytes has no canonical", id="bytes"),
        pytest.param({"a": {2}}, "set has no canonical", id="set"),
    ],
)
def test_other_types_are_refused(value: object, why: str) -> None:
    """What JSON would silently convert is refused."""
    with pytest.raises(TypeError, match=why):
        canonical(value)  # type: ignore[arg-type]  # the point of the test


@pytest.mark.parametrize(
    ("value", "why"),
    [
        pytest.param(2**53, "is past 2", id="large"),
        pytest.param("\ud800", "surrogates not allowed", id="surrogate"),
        pytest.param({"\ud800": 1}, "surrogates not allowed", id="surrogate-key"),
    ],
)
def test_what_would_lose_content_is_refused(value: Json, why: str) -> None:
    """Numbers past a double and halves of characters are refused."""
    with pytest.raises(ValueError, match=why):
        canonical(value)
