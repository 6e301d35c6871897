"""The opening pages have a title of the document's own."""

from typing import Any

import pytest

from vectorless_rag.pageindex_runtime.indexing import name_the_opening


@pytest.mark.parametrize(
    ("title", "page", "named"),
    [
        pytest.param("Preface", "\n A  Title\nText", "A Title", id="made-up"),
        pytest.param("Preface", "PREFACE\nText", "Preface", id="real"),
        pytest.param("Preface", " ", "Preface", id="blank-page"),
        pytest.param("Intro", "A Title", "Intro", id="a-section"),
        pytest.param("Preface", "x" * 300, "x" * 200, id="one-long-line"),
    ],
)
def test_a_made_up_preface_takes_the_first_line(
    title: str, page: str, named: str
) -> None:
    """A real preface keeps its name, and a blank page has no better one."""
    tree: list[dict[str, Any]] = [{"title": title, "start_index": 1}]
    name_the_opening(tree, (page, "other"))

    assert named == tree[0]["title"]
