"""What the local mode checks, counts and hands on."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.pageindex_runtime.local_documents import (
    check_page_bounds,
    count_blank,
    remember_usage,
    usage_on_failure,
)

pages = st.none() | st.booleans() | st.integers(-1, 6) | st.just("2")


@given(pages, pages)
def test_only_real_ranges_pass(first: Any, last: Any) -> None:
    """Whole numbers, in order, inside the document."""
    numbers = [type(first), type(last)] == [int, int]
    node = {"title": "A", "start_index": first, "end_index": last}
    if numbers and 1 <= first <= last <= 4:
        check_page_bounds([node], 4)
    else:
        with pytest.raises(VectorlessRagError, match="pages"):
            check_page_bounds([node], 4)


def test_blank_pages_are_counted() -> None:
    """White space is no text."""
    assert 2 == count_blank(["a", "", " \n"])


def test_the_usage_is_that_of_the_failing_call() -> None:
    """Neither an earlier call's nor one that was made inside."""

    @usage_on_failure
    def submit(spent: int | None, inner: Any = None) -> int:
        if spent is not None:
            remember_usage({"prompt_tokens": spent})
        if inner is not None:
            inner()
        raise ValueError("no luck")

    def usage_of(*args: Any) -> Any:
        with pytest.raises(ValueError, match="no luck") as caught:
            submit(*args)
        return caught.value.usage  # type: ignore[attr-defined]

    assert {"prompt_tokens": 3} == usage_of(3)
    assert usage_of(None) is None
    assert {"prompt_tokens": 3} == usage_of(3, lambda: usage_of(5))
