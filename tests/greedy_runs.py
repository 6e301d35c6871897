"""
Runs with a model that makes as much work as its replies can.

``python greedy_runs.py CHECKOUT MODE OUTPUT_TOKENS PDF...`` prints one JSON object a
document: which share of the worst case was reached, by operation, and what of it was
exceeded.
"""

import json
import logging
import re
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from boundary import caller_for
from random_runs import LIMITS, Counted, _request, past
from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.ledger.types import TokenUsage
from vectorless_rag.pageindex_runtime.indexing import Survey, find_structure
from vectorless_rag.pageindex_runtime.offline import MODEL
from vectorless_rag.pageindex_runtime.providers import ProviderReply, ProviderRequest
from vectorless_rag.pageindex_runtime.rehearsal import worst_of
from vectorless_rag.pageindex_runtime.retry import Backoff
from vectorless_rag.pageindex_runtime.tokens import count_tokens
from vectorless_rag.pageindex_runtime.wiring import use
from vectorless_rag.prices import FREE
from vectorless_rag.source import read_pages

_PAGES = re.compile(r"<physical_index_(\d+)>")
_EXPANDED = re.compile(r"<page_(\d+)>\n(.*?)\n</page_\1>", re.DOTALL)


class GreedyModel:
    """Lists all it can, confirms two of three, and has to be asked twice."""

    def __init__(self) -> None:
        self.requests = 0
        self._seen: Counter[str] = Counter()
        self._titles = 0

    async def send(self, request: ProviderRequest) -> ProviderReply:
        """Answer with nothing first, and then with as much as fits."""
        self.requests += 1
        said = "\0".join(message.content for message in request.messages)
        self._seen[said] += 1
        first = "(reply withheld)" not in said
        text = "" if first and self._seen[said] == 1 else self._text(request, said)
        usage = TokenUsage(prompt_tokens=1, completion_tokens=1)
        return ProviderReply(text=text, finish_reason="stop", usage=usage)

    def _text(self, request: ProviderRequest, said: str) -> str:
        return json.dumps(self._value(request, said))

    def _value(self, request: ProviderRequest, said: str) -> Any:  # noqa: PLR0911
        match request.operation:
            case "toc_detector_single_page":
                return {"toc_detected": "yes"}
            case "detect_page_index":
                return {"page_index_given_in_toc": "yes"}
            case "check_if_toc_transformation_is_complete":
                return {"completed": "no"}
            case "check_title_appearance":
                return {"answer": "yes" if self.requests % 3 else "no"}
            case "check_title_appearance_in_start":
                return {"start_begin": "no"}
            case "single_toc_item_index_fixer":
                return {
                    "physical_index": f"<physical_index_{_PAGES.findall(said)[-1]}>"
                }
            case "toc_transformer":
                return {"table_of_contents": self._entries(request, [])}
            case "expand":
                return {"subsections": _headings(request, said)}
            case name if name.startswith("summary"):
                return {"summary": "word " * (request.max_tokens // 2)}
            case _:
                return self._entries(request, _PAGES.findall(said))

    def _entries(self, request: ProviderRequest, shown: list[str]) -> list[Any]:
        """As many as a reply can hold, on the pages shown in turn, none a part."""
        entries: list[Any] = []
        room = request.max_tokens
        while room > 0:
            self._titles += 1
            entry: dict[str, Any] = {"title": f"{self._titles}"}
            if shown:
                # In page order: each page may have as many.
                place = len(entries) * 8 // request.max_tokens % len(shown)
                entry["physical_index"] = int(sorted(shown, key=int)[place])
            room -= count_tokens(json.dumps(entry), request.model)
            entries.append(entry)
        return entries


def _headings(request: ProviderRequest, said: str) -> list[Any]:
    """Every line of the pages shown, while the reply holds them."""
    found: list[Any] = []
    for number, text in _EXPANDED.findall(said):
        lines = dict.fromkeys(line.strip() for line in text.splitlines())
        found += [{"title": line, "page": int(number)} for line in lines if line]
    return found[: request.max_tokens // 8]


def ran(checkout: Path, mode: str, tokens: int, path: Path) -> dict[str, Any]:
    """Index one document, and compare what was asked with the bound."""
    limits = LIMITS | {"max_output_tokens": tokens}
    request = _request(checkout, mode, path)
    request = replace(request, limits=replace(request.limits, max_output_tokens=tokens))
    pages = read_pages(path, max_pages=1000)
    model, account, survey = GreedyModel(), Counted(), Survey(pages=pages)
    caller = caller_for(
        account, offline=model, changes=limits, model=MODEL, mode=mode,
        backoff=Backoff(first_s=0.0),
    )  # fmt: skip
    ended = "tree"
    try:
        with caller, use(caller):
            find_structure(request, pages, survey)
    except VectorlessRagError as error:
        ended = str(error.code)
    worst = worst_of(request, survey, mode, FREE)
    return {
        "document": path.name,
        "ended": ended,
        "requests": model.requests,
        "foreseen": sum(tally.calls for tally in worst),
        "exceeded": past(worst, account),
        "asked": dict(account.requests),
        "at_most": {tally.operation: tally.calls for tally in worst},
    }


def main(argv: list[str]) -> int:
    """Print one line a document."""
    checkout, mode, tokens, *documents = argv
    logging.disable(logging.CRITICAL)
    # Upstream prints; the answer has a stream of its own.
    answer, sys.stdout = sys.stdout, sys.stderr
    for document in documents:
        told = ran(Path(checkout), mode, int(tokens), Path(document))
        answer.write(json.dumps(told) + "\n")
        answer.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
