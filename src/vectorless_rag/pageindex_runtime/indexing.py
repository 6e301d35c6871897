"""Which route a document takes, and the patched upstream that it takes it on."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.pageindex_runtime.bounds import Layout
from vectorless_rag.pageindex_runtime.calls import Caller
from vectorless_rag.pageindex_runtime.page_text import children_of, walk
from vectorless_rag.pageindex_runtime.shortcut import one_page_tree
from vectorless_rag.pageindex_runtime.wiring import count_tokens
from vectorless_rag.source import (
    Pages,
    opens_in_pdfium,
    pdfium_identity,
    read_pages,
    read_single_page,
    refusals_of_pdfium,
)
from vectorless_rag.wire import Found, Progress, Request

Tree = list[dict[str, Any]]

_PREFACE = "Preface"
_LONGEST_TITLE = 200


class _Silent:
    """Stands where upstream wants a logger: it logs whole trees and replies."""

    def info(self, _message: object, **_fields: object) -> None:
        """Drop a message."""

    error = debug = exception = warning = info


@dataclass(kw_only=True)
class Survey:
    """What was seen of a document on the way, also where it led to nothing."""

    pages: Pages | None = None
    layout: Layout | None = None
    """Of the flash route, before any model refined it."""


def index_document(
    request: Request,
    caller: Caller,
    on_progress: Callable[[Progress], None],
    survey: Survey | None = None,
) -> Found:
    """
    Find the tree of the requested document.

    Args:
        request: Document, mode, model and limits.
        caller: Every model call goes through it; it is in use already.
        on_progress: Is handed each stage as it starts.
        survey: Is filled in, if there is one.

    Raises:
        VectorlessRagError: ``source_unreadable``, ``source_encrypted``,
            ``source_no_text``, ``source_too_large``, ``pageindex_no_structure``,
            or what a model call failed with.
    """
    path = Path(request.document_path)
    on_progress(Progress(stage="pages"))
    pages = read_pages(path, max_pages=request.limits.max_pages)
    if survey is not None:
        survey.pages = pages
    if len(pages.texts) == 1:
        return _shortcut(path, pages, caller)
    if not any(text.strip() for text in pages.texts):
        raise VectorlessRagError(Code.SOURCE_NO_TEXT, f"{len(pages.texts)} pages")
    on_progress(Progress(stage="structure"))
    return find_structure(request, pages, survey)


def find_structure(
    request: Request, pages: Pages, survey: Survey | None = None
) -> Found:
    """
    Find the tree of a document whose *pages* are read.

    Args:
        request: Document, mode, model and checkout; a caller is in use.
        pages: Several pages, at least one with text.
        survey: Is told the layout, if there is one.

    Raises:
        VectorlessRagError: ``pageindex_no_structure``, or what a model call
            failed with.
    """
    _import_upstream(request.checkout)
    route, tree = _route(request, pages, survey)
    name_the_opening(tree, pages.texts)
    return Found(route=route, tree=tuple(tree), pages=pages.texts, parser=pages.parser)


def _shortcut(path: Path, pages: Pages, caller: Caller) -> Found:
    text, parser = "", pdfium_identity()
    with contextlib.suppress(VectorlessRagError):
        text = read_single_page(path)
    if not text.strip():
        text, parser = pages.texts[0], pages.parser
    if not text.strip():
        raise VectorlessRagError(Code.SOURCE_NO_TEXT, "1 page")
    tree = one_page_tree(caller, text)
    return Found(route="shortcut", tree=tuple(tree), pages=(text,), parser=parser)


def name_the_opening(tree: Tree, pages: tuple[str, ...]) -> None:
    """
    Give the node that the upstream makes up for the opening pages a real title.

    It is called Preface, whatever stands there. Where the document has no such
    word on that page, the page's first line is the title.
    """
    first = tree[0]
    opening = pages[0].strip()
    made_up = first.get("title") == _PREFACE and first.get("start_index") == 1
    if made_up and opening and _PREFACE.casefold() not in opening.casefold():
        first["title"] = " ".join(opening.splitlines()[0].split())[:_LONGEST_TITLE]


def load_upstream(checkout: str) -> None:
    """
    Import all that a document may need of the package in *checkout*, ahead of it.

    Raises:
        VectorlessRagError: ``upstream_tampered``: another one is installed.
    """
    _import_upstream(checkout)
    # ruff: disable[PLC0415]  (a child alone imports what its document needs)
    import pageindex.flash.api
    import pageindex.flash.embedded_toc
    import pageindex.flash.heading_detection
    import pageindex.page_index_classic
    import pageindex.tree_optimize
    import pageindex.utils  # noqa: F401
    # ruff: enable[PLC0415]


def _import_upstream(checkout: str) -> None:
    """Import the patched package from *checkout* and from nowhere else."""
    if checkout not in sys.path:
        sys.path.insert(0, checkout)
    import pageindex  # noqa: PLC0415  (only after the account is open)

    if Path(checkout).resolve() not in Path(str(pageindex.__file__)).resolve().parents:
        raise VectorlessRagError(
            Code.UPSTREAM_TAMPERED, "another pageindex package is installed"
        )


def _route(request: Request, pages: Pages, survey: Survey | None) -> tuple[str, Tree]:
    path = Path(request.document_path)
    if request.mode != "standard":
        tree = _flash(request, path, survey)
        if tree:
            return "flash", tree
        if request.mode == "flash":
            raise VectorlessRagError(Code.NO_STRUCTURE, "flash mode")
    return "standard", _standard(request, path, pages)


def _flash(request: Request, path: Path, survey: Survey | None) -> Tree:
    """Return the tree that the layout shows; empty if it shows none."""
    if not opens_in_pdfium(path):
        if request.mode == "flash":
            raise VectorlessRagError(Code.SOURCE_UNREADABLE, "PDFium refused it")
        return []
    from pageindex.flash import page_index_flash  # noqa: PLC0415
    from pageindex.flash.api import flash_rejection_reason  # noqa: PLC0415

    try:
        with refusals_of_pdfium(), _layout_noted(survey):
            result = page_index_flash(str(path), summary_model=request.model)
    except VectorlessRagError as error:
        # The standard algorithm reads the text, and that is there.
        if error.code is Code.SOURCE_UNREADABLE and request.mode == "auto":
            return []
        raise
    if request.mode == "auto" and result["toc_source"] == "pages":
        return []
    return [] if flash_rejection_reason(result) else list(result["structure"])


@contextlib.contextmanager
def _layout_noted(survey: Survey | None) -> Iterator[None]:
    """Note what the layout shows when the model is about to refine it."""
    if survey is None:
        yield
        return
    from pageindex import tree_optimize  # noqa: PLC0415

    expand = tree_optimize.expand

    async def noting(structure: Tree, *rest: Any) -> bool:  # noqa: ANN401
        if survey.layout is None:
            survey.layout = _layout(structure, frozen=rest[-1])
        return bool(await expand(structure, *rest))

    tree_optimize.expand = noting
    try:
        yield
    finally:
        tree_optimize.expand = expand


def _layout(structure: Tree, frozen: set[str]) -> Layout:
    nodes = list(walk(structure))
    leaves = [node for node in nodes if not children_of(node)]
    return Layout(
        nodes=len(nodes),
        parents=len(nodes) - len(leaves),
        open_leaves=tuple(
            (leaf["start_index"], leaf["end_index"])
            for leaf in leaves
            if leaf.get("node_id") not in frozen
        ),
    )


def _standard(request: Request, path: Path, pages: Pages) -> Tree:
    """Return the tree that the model finds in the text."""
    from pageindex.page_index_classic import page_index_main  # noqa: PLC0415
    from pageindex.utils import ConfigLoader  # noqa: PLC0415

    options = ConfigLoader().load(
        {
            "model": request.model,
            "summary_model": request.model,
            "if_add_node_id": "yes",
            "if_add_node_summary": "yes",
            "if_add_node_text": "no",
            "if_add_doc_description": "no",
        }
    )
    page_list = [(text, count_tokens(text, request.model)) for text in pages.texts]
    try:
        result = page_index_main(
            str(path), options, logger=_Silent(), page_list=page_list
        )
    except Exception as error:
        # So the upstream says that every way to find sections failed.
        if type(error) is Exception:
            raise VectorlessRagError(Code.NO_STRUCTURE, "standard mode") from None
        raise
    tree: Tree = list(result["structure"])
    if not tree:
        raise VectorlessRagError(Code.NO_STRUCTURE, "standard mode")
    return tree
