"""A printed table of contents becomes entries."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upstream_stand_in import NO_KEY, PROSE, names, says
from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.pageindex_runtime.toc_transform import (
    continued,
    transformer_in,
    whole_entries,
)

A = {"structure": "1", "title": "A", "page": 1}
B = {"structure": "2", "title": "B", "page": "xii"}


def spelled(*entries: Any) -> str:
    return json.dumps({"table_of_contents": list(entries)})


def transformed(*replies: Any, **answers: Any) -> list[dict[str, Any]]:
    def complete(*_: Any, **__: Any) -> tuple[str, str]:
        text = reply()
        return (text, "finished") if isinstance(text, str) else text

    reply = says(*replies)
    upstream = names(llm_completion=complete, **answers)
    return transformer_in(upstream)("A ... 1\nB ... xii", None)


def test_a_complete_reply_is_read() -> None:
    """Printed pages may be labels."""
    assert [A, B] == transformed(spelled(A, B))


def test_a_reply_that_misses_entries_is_continued() -> None:
    """Until a continuation brings nothing new."""
    found = transformed(
        spelled(A),
        spelled(B),
        spelled(A),
        check_if_toc_transformation_is_complete=says("no"),
    )

    assert [A, B] == found


def test_continuing_is_bounded() -> None:
    """A model that always finds more is stopped."""
    more = [spelled({**A, "title": f"T{n}"}) for n in range(20)]

    found = transformed(*more, check_if_toc_transformation_is_complete=says("no"))

    assert 6 == len(found)


def test_an_unusable_verdict_is_no_reason_to_go_on() -> None:
    """The entries are there; only the question about them failed."""
    unusable = says(PROSE)

    assert [A] == transformed(
        spelled(A), check_if_toc_transformation_is_complete=unusable
    )


def test_failures_are_told_apart() -> None:
    """No entry at all, and what ends the run."""
    with pytest.raises(VectorlessRagError, match="no entry in the reply"):
        transformed("{}")
    with pytest.raises(VectorlessRagError, match="credentials"):
        transformed(spelled(A), check_if_toc_transformation_is_complete=says(NO_KEY))


def test_a_cut_reply_keeps_its_whole_entries() -> None:
    """The entry that was cut is not guessed, a broken one is passed over."""
    cut = spelled(A, {"title": None}, B)[:-12]

    assert [A] == list(whole_entries(cut))
    assert [] == continued(cut, "Sorry.")


@given(st.text('{}[]",:ab1 \\', max_size=60), st.integers(0, 80))
def test_reading_what_is_whole_never_fails(noise: str, cut: int) -> None:
    """Any cut of any text gives entries of the right shape, or none."""
    for text in (noise, spelled(A, B)[:cut] + noise):
        for found in whole_entries(text):
            assert {"structure", "title", "page"} == set(found)
