"""Pieces of text and groups of pages that fit one prompt."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies_sections import texts
from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.pageindex_runtime.grouping import page_list_to_group_text
from vectorless_rag.pageindex_runtime.pieces import longest_head, pieces
from vectorless_rag.pageindex_runtime.tokens import count_tokens

MARKER = re.compile(r"<physical_index_(\d+)>")


@given(st.text(), st.integers(1, 20))
def test_pieces_are_the_text(text: str, cap: int) -> None:
    """Joined, the pieces are the text; none is empty; none is over the cap."""
    found = list(pieces(text, cap=cap, count=len))

    assert text == "".join(found)
    assert all(0 < len(piece) <= cap for piece in found)


@given(st.text(max_size=30), st.integers(0, 40))
def test_the_longest_head_fits_and_is_longest(text: str, cap: int) -> None:
    """One character more would not fit."""
    length = longest_head(text, cap=cap, count=len)

    assert min(len(text), cap) == length


def test_a_cut_falls_at_a_line_or_between_words() -> None:
    """Lines stay whole where they can, then words."""
    assert ["one two\n", "three"] == list(pieces("one two\nthree", cap=9, count=len))
    assert ["one ", "two ", "three"] == list(pieces("one two three", cap=6, count=len))


def test_a_character_over_the_cap_is_a_piece_of_its_own() -> None:
    """Text that cannot be cut further is handed on: nothing is lost."""
    assert ["a", "b"] == list(pieces("ab", cap=1, count=lambda text: 2 * len(text)))


def marked(number: int, text: str) -> str:
    tag = f"<physical_index_{number}>"
    return f"{tag}\n{text}\n{tag}\n\n"


@given(st.lists(texts, min_size=1, max_size=8), st.integers(60, 200))
def test_groups_hold_every_page_once_and_in_order(bodies: list[str], cap: int) -> None:
    """Without markers the groups are the document; each is at or under the cap."""
    pages = [marked(n, body) for n, body in enumerate(bodies, 1)]
    lengths = [count_tokens(page, None) for page in pages]

    groups = page_list_to_group_text(pages, lengths, cap)

    bare = "".join(re.sub(r"\s", "", MARKER.sub("", group)) for group in groups)
    assert re.sub(r"\s", "", "".join(bodies)) == bare
    numbers = [int(n) for group in groups for n in MARKER.findall(group)]
    assert sorted(numbers) == numbers
    assert all(group and count_tokens(group, None) <= cap for group in groups)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=12), st.integers(40, 90))
def test_groups_are_as_few_as_order_allows(lengths: list[int], cap: int) -> None:
    """Two neighbours would not fit one group."""
    pages = [f"{n}:{size};" for n, size in enumerate(lengths)]

    groups = page_list_to_group_text(pages, lengths, cap)

    sizes = [
        sum(int(page.split(":")[1]) for page in group.split(";") if page)
        for group in groups
    ]
    assert sum(lengths) == sum(sizes)
    assert all(a + b > cap for a, b in pairwise(sizes))
    assert max(sizes) <= cap


def test_an_oversized_page_keeps_its_markers_on_every_piece() -> None:
    """A model that sees any piece knows which page it is on."""
    page = marked(7, "word " * 3000)

    groups = page_list_to_group_text([page], [50_000], 20_000)

    assert 3 <= len(groups) <= 4
    for group in groups:
        assert re.fullmatch(
            r"<physical_index_7>\n[word ]+\n<physical_index_7>\n\n", group
        )


def test_text_without_markers_is_split_as_it_stands() -> None:
    """Pages that carry no marker are still bounded."""
    page = "word " * 300

    groups = page_list_to_group_text([page], [900], 400)

    assert page == "".join(groups)
    assert len(groups) >= 3


def test_no_pages_are_refused_before_any_call() -> None:
    """A prompt without a page would be paid for in vain."""
    with pytest.raises(VectorlessRagError, match="no pages to read"):
        page_list_to_group_text([], [])
