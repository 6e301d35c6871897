"""The questions whose answers become summaries, and how those are read."""

import json
from collections.abc import Iterable

from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.pageindex_runtime.framing import framed
from vectorless_rag.pageindex_runtime.wiring import extract_json

_REPLY = 'Reply with JSON only: {"summary": "<the summary>"}'


def _task(what: str, max_words: int) -> str:
    return (
        f"Summarise {what} in at most {max_words} words. Cover every topic, in the "
        "order it appears, using the terms of the text itself. Add nothing that is "
        "not in it."
    )


def own_text_prompt(text: str, *, max_words: int) -> str:
    """Ask for a summary of one stretch of text, which stands first (`text_first`)."""
    task = _task("the text above, which is part of a document,", max_words)
    return f"{framed(text)}\n\n{task}\n\n{_REPLY}"


def subtree_prompt(
    title: str, opening: str, children: Iterable[tuple[str, str]], *, max_words: int
) -> str:
    """
    Ask for a summary of a section from its own text and its subsections.

    Args:
        title: Heading of the section.
        opening: The section's own text, before its first subsection; may be empty.
        children: Title and summary of each subsection, in order.
        max_words: Longest summary asked for.
    """
    listing = json.dumps(
        [{"title": name, "summary": summary} for name, summary in children],
        ensure_ascii=False,
        indent=0,
    )
    return "\n\n".join(
        [
            _task("the section of a document described below", max_words),
            f"Section Title:\n{framed(title)}",
            f"Opening Text:\n{framed(opening)}",
            f"Subsection Titles and Summaries:\n{framed(listing)}",
            _REPLY,
        ]
    )


def summary_in(reply: str) -> str:
    """
    Read the summary out of a reply.

    Raises:
        VectorlessRagError: ``pageindex_invalid_json`` if the reply is no object with
            a text ``summary``, ``pageindex_empty_response`` if that text is blank.
    """
    value = extract_json(reply)
    summary = value.get("summary") if isinstance(value, dict) else None
    if not isinstance(summary, str):
        raise VectorlessRagError(Code.INVALID_JSON, "no summary in the reply")
    if not summary.strip():
        raise VectorlessRagError(Code.EMPTY_RESPONSE, "blank summary")
    return summary.strip()
