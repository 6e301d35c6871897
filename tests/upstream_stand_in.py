"""Functions under the names of the upstream's, for steps that look them up there."""

import asyncio
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.pageindex_runtime.assembly import (
    add_preface_if_needed,
    post_processing,
)
from vectorless_rag.pageindex_runtime.grouping import page_list_to_group_text
from vectorless_rag.pageindex_runtime.no_toc import reader_in
from vectorless_rag.pageindex_runtime.page_repair import (
    fixer_in,
    numbered_toc_reader_in,
    one_attempt_in,
    open_entry_finder_in,
)
from vectorless_rag.pageindex_runtime.pageless_toc import pageless_toc_reader_in
from vectorless_rag.pageindex_runtime.routes import chain_in, document_parser_in
from vectorless_rag.pageindex_runtime.subdivision import divider_in
from vectorless_rag.pageindex_runtime.toc_pages import toc_finder_in
from vectorless_rag.pageindex_runtime.tokens import count_tokens
from vectorless_rag.pageindex_runtime.verification import (
    opening_checker_in,
    verifier_in,
)

Entry = dict[str, Any]
Pages = list[tuple[str, int]]

TOO_LONG = VectorlessRagError(Code.CONTEXT_OVERFLOW)
NO_KEY = VectorlessRagError(Code.AUTH)
PROSE = VectorlessRagError(Code.INVALID_JSON)


def pages_of(texts: Sequence[str], tokens: int = 10) -> Pages:
    """Pages as the upstream passes them."""
    return [(text, tokens) for text in texts]


def entry(title: str, page: object = None, code: object = None) -> Entry:
    """An entry of a table of contents."""
    return {"structure": code, "title": title, "physical_index": page}


def options(**changes: Any) -> SimpleNamespace:
    """The upstream's options."""
    usual = {
        "model": None,
        "toc_check_page_num": 20,
        "max_page_num_each_node": 10,
        "max_token_num_each_node": 20_000,
    }
    return SimpleNamespace(**(usual | changes))


def says(*answers: Any) -> Callable[..., Any]:
    """Answer in turn, the last way from then on; an error is raised."""
    left = list(answers)

    def answer(*_: Any, **__: Any) -> Any:
        turn = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(turn, Exception):
            raise turn
        return [dict(e) for e in turn] if isinstance(turn, list) else turn

    return answer


def later(answer: Callable[..., Any]) -> Callable[..., Any]:
    """Answer so from a coroutine."""

    async def asked(*args: Any, **named: Any) -> Any:
        await asyncio.sleep(0)
        return answer(*args, **named)

    return asked


def on_its_page(item: Entry, pages: Pages, start: int = 1, _model: Any = None) -> Any:
    """Confirm an entry whose title is on its page."""
    text = pages[item["physical_index"] - start][0]
    return {"answer": "yes" if item["title"] in text else "no"}


def names(**own: Any) -> dict[str, Any]:
    """The upstream's names, all steps bound; *own* questions and answers on top."""
    upstream: dict[str, Any] = {
        "count_tokens": count_tokens,
        "page_list_to_group_text": page_list_to_group_text,
        "add_preface_if_needed": add_preface_if_needed,
        "post_processing": post_processing,
        "add_intro_nodes": lambda tree: tree,
        "check_title_appearance": later(on_its_page),
        "check_title_appearance_in_start": later(says("yes")),
        "check_toc": says({}),
        "generate_toc_init": says([]),
        "generate_toc_continue": says([]),
        "check_if_toc_transformation_is_complete": says("yes"),
        "single_toc_item_index_fixer": later(says(None)),
    }
    for name, bind in {
        "process_no_toc": reader_in,
        "process_toc_no_page_numbers": pageless_toc_reader_in,
        "process_toc_with_page_numbers": numbered_toc_reader_in,
        "process_none_page_numbers": open_entry_finder_in,
        "fix_incorrect_toc": one_attempt_in,
        "fix_incorrect_toc_with_retries": fixer_in,
        "verify_toc": verifier_in,
        "check_title_appearance_in_start_concurrent": opening_checker_in,
        "process_large_node_recursively": divider_in,
        "meta_processor": chain_in,
        "tree_parser": document_parser_in,
        "find_toc_pages": toc_finder_in,
    }.items():
        upstream[name] = bind(upstream)
    upstream.update(own)
    return upstream
