"""The pages in a prompt are found whatever their text says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies_offline import numbered_pages, page_texts
from vectorless_rag.pageindex_runtime.offline.body import Page
from vectorless_rag.pageindex_runtime.offline.pages import pages_in

plain_pages = st.lists(st.text("abc \n.<>_7\x00", max_size=30), min_size=1, max_size=5)


@given(plain_pages, st.integers(1, 999), st.sampled_from(["page", "physical_index"]))
def test_marked_pages_are_read_back(texts: list[str], first: int, style: str) -> None:
    """Each page comes back with its number and its text."""
    pages = pages_in(numbered_pages(texts, first, style))

    assert [Page(n, text) for n, text in enumerate(texts, start=first)] == pages


@given(st.lists(page_texts, min_size=1, max_size=4), st.integers(1, 5))
def test_only_marked_pages_are_found(texts: list[str], first: int) -> None:
    """Marks inside a text never make a page that is not marked in the prompt."""
    text = numbered_pages(texts, first, "physical_index")
    numbers = [page.number for page in pages_in(text)]

    assert first == numbers[0]
    assert all(f"<physical_index_{n}>" in text for n in numbers)


@pytest.mark.parametrize(
    ("text", "pages"),
    [
        pytest.param("no marks", [], id="none"),
        pytest.param(
            "<physical_index_7>\na\n<physical_index_99>\nb\n<physical_index_7>\n",
            [(7, "a\n<physical_index_99>\nb")],
            id="a-mark-inside",
        ),
        pytest.param(
            "<physical_index_7>\na\n<physical_index_7>\n<physical_index_99>\nb\n"
            "<physical_index_7>\n\n<physical_index_8>\nc\n<physical_index_8>\n",
            [(7, "a\n<physical_index_7>\n<physical_index_99>\nb"), (8, "c")],
            id="a-pair-inside",
        ),
        pytest.param(
            "<physical_index_7>\na\n<physical_index_7>\nb\n<physical_index_7>\n",
            [(7, "a\n<physical_index_7>\nb")],
            id="its-own-mark-inside",
        ),
        pytest.param(
            "<physical_index_7>\na\n<physical_index_7>\n<physical_index_7>\n\n"
            "<physical_index_8>\nb\n<physical_index_8>\n",
            [(7, "a\n<physical_index_7>"), (8, "b")],
            id="its-own-mark-at-the-end",
        ),
        pytest.param(
            "<physical_index_7>\na\n<physical_index_7>\n\n"
            "<physical_index_7>\nb\n<physical_index_7>\n",
            [(7, "a"), (7, "b")],
            id="a-page-in-two-pieces",
        ),
        pytest.param(
            "<physical_index_7>\na\n<physical_index_7>\n\n"
            "<physical_index_9>\nb\n<physical_index_9>\n",
            [(7, "a"), (9, "b")],
            id="a-page-left-out",
        ),
        pytest.param("<physical_index_7>\na", [(7, "a")], id="cut"),
        pytest.param(
            "<page_3>\na\n</page_9>\n<page_3>\nb\n</page_3>\n<page_4>\nc\n</page_4>",
            [(3, "a\n</page_9>\n<page_3>\nb"), (4, "c")],
            id="tags-inside",
        ),
    ],
)
def test_pages_end_where_the_next_begins(
    text: str, pages: list[tuple[int, str]]
) -> None:
    """A page ends at its mark if a later page's mark, or nothing, follows."""
    assert pages == [(page.number, page.text) for page in pages_in(text)]
