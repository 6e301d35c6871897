"""Where the table of contents stands."""

from typing import Any

import pytest

from upstream_stand_in import NO_KEY, PROSE, names, options, pages_of, says
from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.pageindex_runtime.toc_pages import SAMPLE_CHARS, sample


def found(texts: list[str], *answers: Any, start: int = 0) -> Any:
    upstream = names(toc_detector_single_page=says(*answers))
    return upstream["find_toc_pages"](start, pages_of(texts), options())


@pytest.mark.parametrize(
    ("texts", "answers", "places"),
    [
        (["a"] * 30, ["yes"], list(range(20))),
        (["a", "", "a", "a"], ["yes", "yes", "no"], [0, 2]),
        (["a"] * 30, ["no"], []),
        (["a"] * 3, [PROSE, "yes", "no"], [1]),
    ],
    ids=["all", "blank", "none", "unusable"],
)
def test_a_table_of_contents_is_one_bounded_run(
    texts: list[str], answers: list[Any], places: list[int]
) -> None:
    """At most twenty pages; a blank one neither ends it nor belongs to it."""
    assert places == found(texts, *answers)


def test_a_failure_that_ends_the_run_is_raised() -> None:
    """It is no answer about a page."""
    with pytest.raises(VectorlessRagError, match="credentials"):
        found(["a"], NO_KEY)


def test_a_sample_is_whole_lines() -> None:
    """Or the start of the one line there is."""
    assert "short" == sample("short")
    assert SAMPLE_CHARS == len(sample("x" * 20_000))
    assert sample("line\n" * 5_000).endswith("line")
