"""Whether a title stands on a page, told by the text alone, or left open."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upstream_stand_in import entry, pages_of
from vectorless_rag.pageindex_runtime.placing import agreed, placed_by_text
from vectorless_rag.pageindex_runtime.title_lines import (
    only_page_of,
    opening,
    stands_alone,
)

PROSE = "The quick brown fox jumps over the lazy dog, again and again and again.\n" * 3


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("Beta", f"{PROSE}Beta\n{PROSE}"),
        ("2.1 Beta", f"2.1 Beta\n{PROSE}"),
        ("2.1 Beta", f"Chapter 2\nBeta\n{PROSE}"),
        ("Beta", f"2.1. BETA\n{PROSE}"),
        ("Beta and its kin", f"{PROSE}Beta and\nits kin\n{PROSE}"),
        ("1.1 SocialDynamics", f"{PROSE}1.1 Social dynamics\n{PROSE}"),
        ("方法", f"{PROSE}2 方 法\n{PROSE}"),
    ],
    ids=["line", "number", "no number", "case", "two lines", "blanks", "dense"],
)
def test_a_line_of_its_own_is_the_title(title: str, text: str) -> None:
    """Its number may lack on either side, and white space says nothing."""
    assert stands_alone(title, pages_of([PROSE, text, PROSE]), 1)


@pytest.mark.parametrize(
    ("title", "before", "text"),
    [
        ("Beta", PROSE, f"{PROSE}Beta is a letter.\n{PROSE}"),
        ("Beta", PROSE, f"Beta\n{PROSE}Beta\n"),
        ("Beta", f"Beta\n{PROSE}", f"Beta\n{PROSE}"),
        ("1.1 Beta", PROSE, f"2.1 Beta\n{PROSE}"),
        ("Beta", PROSE, "Contents\nAlpha\nBeta\nGamma\n"),
        ("12", PROSE, f"12\n{PROSE}"),
        ("", PROSE, PROSE),
    ],
    ids=["sentence", "twice", "header", "other number", "list", "digits", "none"],
)
def test_what_may_be_otherwise_is_left_open(title: str, before: str, text: str) -> None:
    """Then somebody has to read the page."""
    assert not stands_alone(title, pages_of([before, text, PROSE]), 1)


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ("yes", f"Beta\n{PROSE}"),
        ("yes", f"A book 17\nBeta\n{PROSE}"),
        ("yes", f"17\nBeta\n{PROSE}"),
        ("no", f"{PROSE}Beta\n{PROSE}"),
        ("no", f"A book 17\n{PROSE}Beta\n"),
        (None, f"A few words\nBeta\n{PROSE}"),
        (None, PROSE),
        (None, f"Beta\n{PROSE}Beta\n"),
    ],
    ids=[
        "first", "header", "number", "content", "both", "little", "absent", "twice",
    ],
)  # fmt: skip
def test_who_opens_a_page(expected: str | None, text: str) -> None:
    """Its number and what stands above its neighbours too are no content."""
    pages = pages_of([f"A book 16\n{PROSE}", text, f"A book 18\n{PROSE}"])

    assert expected == opening("Beta", pages, 1)


def test_one_page_alone_is_where_a_title_stands() -> None:
    """Two are a choice, and none is no answer."""
    pages = pages_of(
        [PROSE, f"Beta\n{PROSE}", PROSE, f"Gamma\n{PROSE}", PROSE, "Gamma"]
    )
    numbers = range(11, 17)

    assert [12, None, None] == [
        only_page_of(title, pages, numbers, 11) for title in ("Beta", "Gamma", "Delta")
    ]


def test_entries_agree_on_how_far_apart_pages_are() -> None:
    """Three votes of four or better; a single find settles nothing."""
    pages = pages_of([f"Part {name}\n{PROSE}" for name in ("one", "two", "three")])
    toc = [
        entry(f"Part {name}") | {"page": page}
        for page, name in enumerate(("one", "two", "three", "four"), 5)
    ]

    placed = placed_by_text(toc, pages, 2)

    assert [2, 3, 4] == [found["physical_index"] for found in placed]
    assert (True, False) == (agreed(placed), agreed(placed[:2]))
    astray = {"page": 1, "physical_index": 9}
    assert not agreed([*placed, astray, astray])


TEXTS = st.text(st.sampled_from("ab1 .\n"), max_size=40)


@given(TEXTS, TEXTS, TEXTS)
def test_any_text_gets_an_answer(title: str, before: str, text: str) -> None:
    """And a title that surely stands on a page has its letters there."""
    pages = pages_of([before, text])

    if stands_alone(title, pages, 1):
        letters = "".join(c for c in title if c.isalpha())
        assert letters in "".join(c for c in text if c.isalpha())
    assert opening(title, pages, 1) in {"yes", "no", None}
