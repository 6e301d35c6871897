"""Where the table of contents stands."""

import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from upstream_stand_in import NO_KEY, PROSE, names, options, pages_of, says
from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.pageindex_runtime.plans import DECIDED
from vectorless_rag.pageindex_runtime.toc_pages import SAMPLE_CHARS, sample
from vectorless_rag.pageindex_runtime.wiring import use

if TYPE_CHECKING:
    from vectorless_rag.pageindex_runtime.calls import Caller


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


class _Deciding:
    """A caller whose policy is to ask only what the text leaves open."""

    policy = SimpleNamespace(decides=DECIDED)


PAGE_OF_PROSE = "The quick brown fox jumps over the lazy dog, and again.\n" * 20
LEADERS = "\n".join(f"{n} Title ..... {3 * n}" for n in range(1, 9))
LAST = f"9 Title 30\n{PAGE_OF_PROSE}"
TITLES = "\n".join(["Contents", *(f"Title {name}" for name in "abcdef")])


@pytest.mark.parametrize(
    ("texts", "asked", "places"),
    [
        ([PAGE_OF_PROSE] * 30, 0, []),
        ([PAGE_OF_PROSE, LEADERS, LEADERS, PAGE_OF_PROSE], 0, [1, 2]),
        ([PAGE_OF_PROSE, TITLES, PAGE_OF_PROSE], 1, [1]),
        ([TITLES, PAGE_OF_PROSE, LEADERS, PAGE_OF_PROSE], 0, [2]),
        (
            [TITLES, LEADERS, f"9 Title 30\n{PAGE_OF_PROSE}", PAGE_OF_PROSE],
            2,
            [0, 1, 2],
        ),
        ([TITLES, "", TITLES] + [PAGE_OF_PROSE] * 3, 2, [0, 2]),
    ],
    ids=["prose", "leaders", "titles", "sure first", "around", "blank"],
)
def test_what_the_lines_show_is_not_asked(
    texts: list[str], asked: int, places: list[int]
) -> None:
    """Pages beside a sure table may be part of it; others that may be are passed."""
    seen: list[str] = []

    def answer(text: str, **_: Any) -> str:
        seen.append(text)
        return "yes"

    upstream = names(toc_detector_single_page=answer)
    with use(cast("Caller", _Deciding())):
        found_places = upstream["find_toc_pages"](0, pages_of(texts), options())

    assert (places, asked) == (found_places, len(seen))


def test_open_pages_are_asked_about_side_by_side() -> None:
    """Five of them wait for one another, and none for an answer."""
    together = threading.Barrier(5, timeout=60)

    def answer(_text: str, **_: Any) -> str:
        together.wait()
        return "no"

    upstream = names(toc_detector_single_page=answer)
    with use(cast("Caller", _Deciding())):
        assert [] == upstream["find_toc_pages"](0, pages_of([TITLES] * 5), options())


def test_what_was_asked_ahead_is_not_asked_again() -> None:
    """A table may end the document, and the next is looked for behind the first."""
    seen: list[str] = []
    texts = [TITLES, LEADERS, TITLES + " one", PAGE_OF_PROSE, TITLES + " two"]

    def answer(text: str, **_: Any) -> str:
        seen.append(text)
        return "no" if text.endswith("one") else "yes"

    upstream = names(toc_detector_single_page=answer)
    pages = pages_of(texts)
    with use(cast("Caller", _Deciding())):
        tables = [
            upstream["find_toc_pages"](start, pages, options()) for start in (0, 2, 4)
        ]

    assert [[0, 1], [4], [4]] == tables
    assert len(set(seen)) == len(seen)
