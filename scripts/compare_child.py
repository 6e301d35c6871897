"""
One side of ``compare_upstream.py``: index one document, print what came of it.

    compare_child.py released|patched TREE standard|flash PDF
"""

import json
import logging
import resource
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from patches.parser_stand_in import take_the_name
from patches.scripted import MODEL, Asked, Script, provider
from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.pageindex_runtime.indexing import index_document
from vectorless_rag.pageindex_runtime.offline.provider import answer
from vectorless_rag.pageindex_runtime.operations import OPERATIONS
from vectorless_rag.pageindex_runtime.plans import DECIDED
from vectorless_rag.pageindex_runtime.providers import Message
from vectorless_rag.pageindex_runtime.tokens import count_tokens
from vectorless_rag.pageindex_runtime.wiring import current
from vectorless_rag.tree import read_tree
from vectorless_rag.units import Sha256
from vectorless_rag.wire import Request

CPU_S = 180
"""Processor time one document may take, in seconds."""


def reply(asked: Asked) -> str:
    """Answer from the text in the prompt."""
    turns = tuple(Message(t["role"], t["content"]) for t in asked.messages)
    return answer(asked.question, turns)


def released(mode: str, path: Path) -> tuple[Sequence[Any], int]:
    """Index as the released package's own local mode does."""
    # Which package this is depends on the side.
    from pageindex.flash import page_index_flash
    from pageindex.flash.api import flash_rejection_reason
    from pageindex.local_api import LocalAPI
    from pageindex.page_index_classic import page_index_main
    from pageindex.utils import ConfigLoader

    texts = LocalAPI._extract_page_texts(str(path))
    if not any(text.strip() for text in texts):
        raise SystemExit("no text")
    if mode == "flash":
        result = page_index_flash(str(path), summary_model=MODEL)
        if reason := flash_rejection_reason(result):
            raise ValueError(reason)
        return result["structure"], len(texts)
    options = ConfigLoader().load(
        {
            "model": MODEL,
            "summary_model": MODEL,
            "if_add_node_id": "yes",
            "if_add_node_summary": "yes",
            "if_add_node_text": "no",
            "if_add_doc_description": "no",
        }
    )
    pages = [(text, count_tokens(text, MODEL)) for text in texts]
    log = logging.getLogger("compare")
    result = page_index_main(str(path), options, logger=log, page_list=pages)
    return result["structure"], len(texts)


def patched(tree: Path, mode: str, path: Path) -> tuple[Sequence[Any], int]:
    """Index as the child does."""
    request = Request(
        attempt_id="attempt", parent_pid=0, document_path=str(path),
        document_sha256=Sha256("0" * 64), checkout=str(tree), mode=mode, model=MODEL,
        ledger_url="", gate_dir="", budgets=(), limits=current().policy.limits,
    )  # fmt: skip
    found = index_document(request, current(), lambda _: None)
    read_tree(found.tree, len(found.pages))
    return found.tree, len(found.pages)


def covered(tree: Sequence[Any], pages: int) -> int:
    """Count the pages that some node reaches."""
    reached: set[int] = set()
    for node in every(tree):
        first, last = node.get("start_index"), node.get("end_index")
        if isinstance(first, int) and isinstance(last, int):
            reached.update(range(max(first, 1), min(last, pages) + 1))
    return len(reached)


def every(tree: Sequence[Any]) -> list[Any]:
    """List all nodes."""
    return [n for node in tree for n in (node, *every(node.get("nodes") or []))]


def main(argv: list[str]) -> int:
    """Print one JSON object."""
    side, tree, mode, path = argv
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 5))
    logging.disable(logging.CRITICAL)
    # Upstream prints; the answer has a stream of its own.
    out, sys.stdout = sys.stdout, sys.stderr
    take_the_name()
    found: dict[str, Any] = {}
    answers: dict[str, Any] = dict.fromkeys(OPERATIONS, reply)
    with provider(mode=mode, decides=DECIDED, **answers) as script:
        sys.modules["litellm"].token_counter = (  # type: ignore[attr-defined]
            lambda text="", **_: count_tokens(text, MODEL)
        )
        try:
            made, pages = (
                released(mode, Path(path))
                if side == "released"
                else patched(Path(tree), mode, Path(path))
            )
            found = {
                "pages": pages,
                "nodes": len(every(made)),
                "covered": covered(made, pages),
            }
        except VectorlessRagError as error:
            found = {"refused": str(error.code)}
        except SystemExit as error:
            found = {"refused": str(error)}
        except Exception as error:  # noqa: BLE001  (any end is a result here)
            found = {"refused": type(error).__name__}
        found |= spent(script)
    out.write(json.dumps(found) + "\n")
    return 0


def spent(script: Script) -> dict[str, Any]:
    """Count what was asked, alike on both sides."""
    return {
        "calls": len(script.asked),
        "prompt_tokens": sum(count_tokens(a.text, MODEL) for a in script.asked),
        "per_question": dict(Counter(script.questions)),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
