"""Sections read from the pages, group by group."""

from typing import Any

import pytest

from upstream_stand_in import NO_KEY, PROSE, entry, names, pages_of, says
from vectorless_rag.errors import VectorlessRagError

LARGE = ["word " * 15_000] * 3


def read(texts: list[str], **answers: Any) -> Any:
    return names(**answers)["process_no_toc"](pages_of(texts), 5, None, None)


def test_a_page_that_was_not_shown_is_no_page() -> None:
    """Pages are numbered from where the stretch starts."""
    found = read(
        ["a", "b"],
        generate_toc_init=says(
            [entry("A", "<physical_index_5>"), entry("B", "<physical_index_1>")]
        ),
    )

    assert [("A", 5), ("B", None)] == [(e["title"], e["physical_index"]) for e in found]


def test_groups_after_the_first_are_continuations() -> None:
    """An answer without entries leaves the next group the first one."""
    found = read(
        LARGE,
        generate_toc_init=says([], [entry("B", "<physical_index_6>")]),
        generate_toc_continue=says([entry("A", "<physical_index_7>")]),
    )

    assert [6, 7] == [e["physical_index"] for e in found]


def test_an_unusable_group_is_asked_in_halves() -> None:
    """The half that stays unusable is a marked gap."""
    found = read(
        ["a", "b", "c"],
        generate_toc_init=says(PROSE, [entry("A", "<physical_index_5>")]),
        generate_toc_continue=says(PROSE),
    )

    assert ["A", "Pages 6-7"] == [e["title"] for e in found] or [
        "A",
        "Page 7",
    ] == [e["title"] for e in found]
    assert "pageindex_invalid_json" == found[-1]["degraded"][0]["code"]


def test_nothing_readable_raises_the_first_failure() -> None:
    """One page is not cut further."""
    with pytest.raises(VectorlessRagError, match="not the JSON asked for"):
        read(["a"], generate_toc_init=says(PROSE))


@pytest.mark.parametrize("answers", [(NO_KEY,), (PROSE, NO_KEY)])
def test_a_failure_that_ends_the_run_is_raised(answers: tuple[Exception, ...]) -> None:
    """In the whole group and in a half."""
    with pytest.raises(VectorlessRagError, match="credentials"):
        read(["a", "b"], generate_toc_init=says(*answers))
