"""A document made to break a parser ends in an artifact or in a known failure."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bombs import (
    BOMBS,
    broken_font,
    cyclic_page_tree,
    deep_array,
    deep_page_tree,
    inflating_stream,
    lying_count,
    reference_to_itself,
    wide_font_map,
)
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.pageindex_adapter import PageIndexAdapter
from vectorless_rag.results import Status
from vectorless_rag.settings import Settings
from vectorless_rag.source import read_pages

# What a document may be the reason for; the rest would be a defect.
BLAMED = {
    Code.SOURCE_UNREADABLE, Code.SOURCE_NO_TEXT, Code.SOURCE_TOO_LARGE,
    Code.CHILD_TIMEOUT, Code.CHILD_MEMORY, Code.CHILD_KILLED, Code.CHILD_LIMIT,
    Code.NO_STRUCTURE, Code.INVALID_TREE,
}  # fmt: skip


@pytest.mark.parametrize(
    "make",
    [
        broken_font, cyclic_page_tree, deep_array, deep_page_tree, lying_count,
        reference_to_itself, wide_font_map,
    ],
)  # fmt: skip
def test_pages_are_read_or_refused(
    tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    """The parser's own limits hold, and a page it gives up on is an empty one."""
    assert outcome(make(tmp_path / "a.pdf")) in {"read", Code.SOURCE_UNREADABLE}


def outcome(path: Path) -> str:
    try:
        pages = read_pages(path, max_pages=5000)
    except VectorlessRagError as error:
        return error.code
    return "read" if len(pages.texts) in {2, 3} else f"{len(pages.texts)} pages"


@pytest.mark.slow
def test_a_page_that_grows_without_end_does_not_lose_the_others(
    tmp_path: Path,
) -> None:
    """A thousand times its size: it is given up, the others are read."""
    pages = read_pages(inflating_stream(tmp_path / "a.pdf"), max_pages=5)

    assert (["One", "", "Three"], 1) == (
        [text.strip() for text in pages.texts],
        pages.unreadable,
    )


@pytest.mark.slow
@pytest.mark.parametrize("make", BOMBS)
def test_a_bomb_goes_off_in_the_child_alone(
    tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    """Within its limits, with a code; the next document is built as ever."""
    settings = Settings.load(
        data_dir=tmp_path / "data", child_timeout_s=120, child_cpu_s=20, grace_s=1,
        child_memory_bytes=2**30,
    )  # fmt: skip
    result = PageIndexAdapter(settings).ingest(make(tmp_path / "a.pdf"))

    if result.failure is None:
        assert Status.BUILT == result.status
    else:
        assert result.failure.code in BLAMED, result.failure
