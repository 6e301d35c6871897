"""The local mode says what is wrong, missing, or already spent."""

from pathlib import Path
from typing import Any

import pytest

from patches.scripted import MODEL, outcome, provider
from patches.tree_under_test import local_api, utils
from pdfs import pdf

SPANS = [(5, 3), (2, None), (None, 2), (0, 3), (3, 11), (True, 2), ("1", 2)]
NODE = {"title": "A", "node_id": "0000", "start_index": 1, "end_index": 2}


def node(first: Any, last: Any) -> dict[str, Any]:
    return {"title": "A", "start_index": first, "end_index": last}


def local_mode(tmp_path: Path) -> Any:
    return local_api.LocalAPI(str(tmp_path / "store"), MODEL, MODEL)


def submitted(tmp_path: Path, texts: list[str], index: Any) -> tuple[Any, Any]:
    """Submit a document whose structure *index* finds; the API and the result."""
    api = local_mode(tmp_path)
    api._index_flash = index
    with provider(mode="flash"):
        found = api.submit_document(str(pdf(tmp_path / "a.pdf", texts)))
    return api, found


def test_pages_that_are_no_pages_are_refused() -> None:
    """Backwards, without an end, or outside: no such range is stored."""
    check = local_api.LocalAPI._check_page_bounds
    below = {**node(1, 10), "nodes": [node(5, 3)]}

    for wrong in (*(node(*span) for span in SPANS), below):
        assert "pageindex_invalid_tree" == outcome(lambda w=wrong: check([w], 10))
    assert check([{**node(1, 3), "nodes": [node(1, 1)]}, node(3, 10)], 10) is None


def test_a_failure_carries_what_was_spent(tmp_path: Path) -> None:
    """Whatever ends the submission, its usage is known."""

    def fails(_path: str) -> Any:
        utils._add_usage_counts({"prompt_tokens": 5_000_000})
        raise ValueError("out of luck")

    def is_malformed(_path: str) -> Any:
        utils._add_usage_counts({"prompt_tokens": 7})
        return [node(5, 3)], ""

    for index, spent in ((fails, 5_000_000), (is_malformed, 7)):
        with pytest.raises(Exception, match=r"out of luck|pages 5 to 3") as caught:
            submitted(tmp_path, ["One", "Two"], index)
        usage = getattr(caught.value, "usage", None)
        assert usage is not None
        assert spent == usage["prompt_tokens"]


def test_a_failure_before_the_first_call_cost_nothing(tmp_path: Path) -> None:
    """No document, no usage (holds before too)"""
    with pytest.raises(FileNotFoundError, match="No such file") as caught:
        local_mode(tmp_path).submit_document(str(tmp_path / "none.pdf"))

    assert getattr(caught.value, "usage", None) is None


def test_pages_without_text_are_counted(tmp_path: Path) -> None:
    """A document of which only the cover has text says so."""
    texts = ["Cover page", *[""] * 9]
    api, found = submitted(tmp_path, texts, lambda _: ([NODE], ""))

    told = api.get_document(found["doc_id"])
    assert (10, 9) == (told["pageNum"], told.get("pagesWithoutText"))
