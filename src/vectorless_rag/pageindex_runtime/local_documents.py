"""
What the upstream's local mode must say about a document.

The child of this project does not go through it; who uses the patched package
itself does.
"""

import functools
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.pageindex_runtime.page_text import Node, walk

_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")

_SPENT: ContextVar[dict[str, Any] | None] = ContextVar("local_usage", default=None)


def check_page_bounds(structure: Sequence[Node], page_count: int) -> None:
    """
    Refuse a tree with a node whose pages are not pages of the document.

    Raises:
        VectorlessRagError: ``pageindex_invalid_tree``: a page that is missing or no
            number, a range that runs backwards, or one outside the document.
    """
    for node in walk(structure):
        first, last = node.get("start_index"), node.get("end_index")
        whole = _is_page(first) and _is_page(last)
        if not whole or not 1 <= first <= last <= page_count:  # type: ignore[operator]
            told = f"pages {first} to {last} of {page_count}" if whole else "no pages"
            raise VectorlessRagError(Code.INVALID_TREE, told)


def _is_page(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def count_blank(page_texts: Iterable[str]) -> int:
    """Count the pages without text: those that only a picture would show."""
    return sum(not text.strip() for text in page_texts)


def remember_usage(usage: dict[str, Any]) -> None:
    """Say where the usage of the running submission is summed up."""
    _SPENT.set(usage)


def usage_on_failure(submit: Callable[_Given, _Made]) -> Callable[_Given, _Made]:
    """Let what *submit* raises carry, as ``usage``, what was spent until then."""

    @functools.wraps(submit)
    def submit_document(*args: _Given.args, **options: _Given.kwargs) -> _Made:
        token = _SPENT.set(None)
        try:
            return submit(*args, **options)
        except Exception as error:
            error.usage = _SPENT.get()  # type: ignore[attr-defined]
            raise
        finally:
            _SPENT.reset(token)

    return submit_document
