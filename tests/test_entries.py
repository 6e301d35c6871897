"""Entries of a table of contents, and what they say about themselves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upstream_stand_in import entry
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.pageindex_runtime.entries import (
    code_of,
    in_page_order,
    merge_continuation_entries,
    open_branch,
    page_of,
    title_key,
)
from vectorless_rag.pageindex_runtime.marks import mark, marks_of
from vectorless_rag.pageindex_runtime.setbacks import is_fatal

numbers = st.none() | st.integers(1, 6)
drawn = st.lists(
    st.builds(
        entry,
        st.sampled_from(["Alpha", "ALPHA ", "Beta"]),
        numbers,
        st.sampled_from([None, "1", "1.", "2"]),
    ),
    max_size=8,
)


@pytest.mark.parametrize(
    "spelling", [7, "7", "<physical_index_7>", "physical_index_7", " 7 "]
)
def test_a_page_is_read_in_every_spelling(spelling: object) -> None:
    """A number and its marker are one page."""
    assert 7 == page_of(spelling)


@pytest.mark.parametrize("spelling", [None, True, 7.0, "x", "-1", "<physical_index_>"])
def test_what_is_no_page_is_none(spelling: object) -> None:
    """Nothing is guessed."""
    assert page_of(spelling) is None


@pytest.mark.parametrize(
    ("code", "spelled"),
    [("1.", "1"), (2, "2"), (" 2.1 ", "2.1"), (None, None), ("", None)],
)
def test_a_section_number_has_one_spelling(code: object, spelled: str | None) -> None:
    """Spaces, a last point and the type make no difference."""
    assert spelled == code_of(code)


def test_a_title_without_letters_is_compared_as_it_stands() -> None:
    """Two titles of other signs are not one title."""
    assert title_key("* *") != title_key("***")
    assert "" == title_key(None)


@given(drawn, drawn)
def test_merging_is_idempotent_and_in_page_order(
    first: list[dict[str, object]], second: list[dict[str, object]]
) -> None:
    """Merging again changes nothing, and None stands last."""
    merged = merge_continuation_entries(first, second)

    assert merged == merge_continuation_entries(merged, second)
    assert merged == in_page_order(merged)
    assert all(e in merged for e in first[:1])


def test_the_open_branch_is_what_a_continuation_needs() -> None:
    """The sections above the last entry and the last few entries, titles cut."""
    entries = [entry("Part", 1, "1"), entry("Chapter", 2, "1.1")]
    entries += [entry("x" * 300, n, f"1.1.{n}") for n in range(1, 60)]

    shown = open_branch(entries, most=3)

    assert ["1", "1.1", "1.1.57", "1.1.58", "1.1.59"] == [e["structure"] for e in shown]
    assert 200 == len(shown[-1]["title"])
    assert [] == open_branch([])
    assert ["2"] == [e["structure"] for e in open_branch([entry("A", 1, "2")])]
    orphan = [entry("A", 1, "3"), entry("B", 2, "2"), entry("C", 3, "2.1.1")]
    assert ["2.1.1"] == [e["structure"] for e in open_branch(orphan, most=1)]


def test_a_mark_is_made_once_and_copied() -> None:
    """The copy is the node's own."""
    item = entry("A")
    mark(item, Code.INVALID_JSON, "structure")
    mark(item, Code.INVALID_JSON, "structure")

    copied = marks_of(item)

    assert {
        "degraded": [{"code": "pageindex_invalid_json", "what": "structure"}]
    } == copied
    assert copied["degraded"] is not item["degraded"]
    assert {} == marks_of(entry("B"))


@pytest.mark.parametrize(
    ("error", "fatal"),
    [
        (VectorlessRagError(Code.AUTH), True),
        (VectorlessRagError(Code.BUDGET_EXCEEDED), True),
        (VectorlessRagError(Code.NO_STRUCTURE), False),
        (VectorlessRagError(Code.INVALID_JSON), False),
        (ValueError(), False),
    ],
)
def test_what_ends_a_run(error: Exception, fatal: bool) -> None:  # noqa: FBT001
    """Finding nothing is no reason to stop; refused credentials are."""
    assert fatal == is_fatal(error)
