"""The tree of a one-page document: one node, no tree builder."""

from typing import Any

from vectorless_rag.pageindex_runtime.calls import Caller
from vectorless_rag.pageindex_runtime.framing import framed
from vectorless_rag.pageindex_runtime.wiring import count_tokens

# A text no longer than a summary would be is its own summary.
_OWN_SUMMARY_TOKENS = 200

_LONGEST_TITLE = 200


def one_page_tree(caller: Caller, text: str) -> list[dict[str, Any]]:
    """
    Make the one node of a one-page document.

    Args:
        caller: Asks for the summary where the text is long.
        text: The page's text; not blank.

    Returns:
        A list of one node, spelled as PageIndex spells nodes.
    """
    summary = _summary(caller, text)
    node = {
        "title": _title(text),
        "start_index": 1,
        "end_index": 1,
        "direct_summary": summary,
        "subtree_summary": summary,
        "summary": summary,
    }
    return [node]


def _title(text: str) -> str:
    """Take the first line: the title must stand in the document."""
    first = next(line for line in text.splitlines() if line.strip())
    return " ".join(first.split())[:_LONGEST_TITLE]


def _summary(caller: Caller, text: str) -> str:
    plain = " ".join(text.split())
    if count_tokens(text) <= _OWN_SUMMARY_TOKENS:
        return plain
    reply = caller.complete("summary_leaf", _prompt(text))
    return str(reply.value["summary"])


def _prompt(text: str) -> str:
    return (
        "Summarise the document page below within 150 words, using its own terms.\n\n"
        f"{framed(text)}\n\n"
        'Reply with JSON only: {"summary": "<the summary>"}'
    )
