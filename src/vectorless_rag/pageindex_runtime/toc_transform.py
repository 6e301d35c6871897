"""
A printed table of contents turned into entries, however the replies are cut.

The text is asked about in bounded stretches. A reply cut at the output limit keeps
its whole entries, and is continued until the stretch is covered or a continuation
brings nothing new.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.pageindex_runtime.entries import (
    Entry,
    code_of,
    title_key,
)
from vectorless_rag.pageindex_runtime.framing import framed
from vectorless_rag.pageindex_runtime.operations import operation_named, read
from vectorless_rag.pageindex_runtime.pieces import pieces
from vectorless_rag.pageindex_runtime.replies import ReplyError, unfenced
from vectorless_rag.pageindex_runtime.setbacks import is_fatal
from vectorless_rag.pageindex_runtime.toc_lines import holds_all
from vectorless_rag.pageindex_runtime.wiring import decides

MAX_TOKENS = 2_500
"""Tokens of a table of contents in one question."""

MAX_CONTINUATIONS = 5

OPERATION = "toc_transformer"
_COMPLETE = "check_if_toc_transformation_is_complete"

_TASK = """Turn the table of contents below into JSON, every line that names a section.

"structure" is the section's place in the hierarchy: 1 for the first section, 1.1 for
its first subsection; null if none can be told. "title" is the section's title as it
is printed. "page" is the page printed beside it, or null.

Reply with JSON only:
{"table_of_contents": [{"structure": "<x.x.x>", "title": "<title>", "page": "<page>"}]}
"""

_CONTINUE = (
    "The reply stopped before the end of the table of contents. Reply with JSON of the "
    "same shape that holds only the entries still missing."
)

_DECODER = json.JSONDecoder()


def transformer_in(upstream: Mapping[str, Any]) -> Callable[..., list[Entry]]:
    """Return ``toc_transformer`` for the module whose names are *upstream*."""

    def toc_transformer(toc_content: str, model: str | None = None) -> list[Entry]:
        """
        Read the entries of a table of contents.

        Returns:
            Entries with ``structure``, ``title`` and ``page``: a printed number, a
            label such as ``"xii"``, or None.

        Raises:
            VectorlessRagError: What a call failed with, or ``pageindex_invalid_json``
                if no entry could be read.
        """
        entries: list[Entry] = []

        def count(text: str) -> int:
            return int(upstream["count_tokens"](text, model))

        for part in pieces(toc_content, cap=MAX_TOKENS, count=count):
            if part.strip():
                entries = _joined(entries, _transformed(upstream, part, model))
        if not entries:
            raise VectorlessRagError(Code.INVALID_JSON, "no entry in the reply")
        return entries

    return toc_transformer


def _transformed(
    upstream: Mapping[str, Any], part: str, model: str | None
) -> list[Entry]:
    prompt = f"{_TASK}\nGiven table of contents:\n{framed(part)}"
    text, finish = upstream["llm_completion"](
        model, prompt, return_finish_reason=True, operation=OPERATION
    )
    cut = finish != "finished"
    entries = list(whole_entries(text))
    for _ in range(MAX_CONTINUATIONS):
        if not cut and _complete(upstream, part, entries, model):
            break
        more, finish = upstream["llm_completion"](
            model,
            _CONTINUE,
            chat_history=[
                {"role": "user", "content": prompt},
                {"role": "assistant", "content": text},
            ],
            return_finish_reason=True,
            operation=OPERATION,
        )
        cut = finish != "finished"
        longer = _joined(entries, continued(text, more))
        if len(longer) == len(entries):
            break
        entries = longer
        text = json.dumps({"table_of_contents": entries}, ensure_ascii=False)
    return entries


def _complete(
    upstream: Mapping[str, Any], part: str, entries: list[Entry], model: str | None
) -> bool:
    """
    Tell whether nothing is missing, by the text or by asking.

    An unusable answer is no reason to go on.
    """
    if decides(_COMPLETE) and holds_all(entries, part):
        return True
    listed = json.dumps(entries, ensure_ascii=False)
    check = upstream[_COMPLETE]
    try:
        return bool(check(part, listed, model) == "yes")
    except VectorlessRagError as error:
        if is_fatal(error):
            raise
        return True


def continued(cut: str, more: str) -> list[Entry]:
    """
    Read the entries that a continuation adds to a cut reply.

    The continuation may stand for itself (an object, a list, one entry), go on from
    the very character where the cut reply stopped, or go on behind its last whole
    entry. The first reading that brings an entry is taken; nothing is repaired.

    Args:
        cut: The reply that stopped, as it came.
        more: The continuation, as it came.
    """
    bare = unfenced(more)
    known = list(whole_entries(cut))
    head = cut[: _end_of_entries(cut)]
    for text in (bare, cut + bare, f"{head},{bare}"):
        found = list(whole_entries(text))
        if len(_joined(known, found)) > len(known):
            return found
    return []


def whole_entries(text: str) -> Iterator[Entry]:
    """
    Yield the entries that stand whole in *text*, up to where it breaks off.

    *text* is an object with ``table_of_contents``, a list, or one entry.
    """
    for value, _ in _objects(text):
        found = [value]
        if isinstance(value.get("table_of_contents"), list):
            found = value["table_of_contents"]
        for item in found:
            try:
                reply = json.dumps({"table_of_contents": [item]})
                yield from read(operation_named(OPERATION), reply).value[
                    "table_of_contents"
                ]
            except ReplyError:
                continue


def _objects(text: str) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield the outermost whole objects, each with where it ends."""
    place = text.find("{")
    while place != -1:
        try:
            value, end = _DECODER.raw_decode(text, place)
        except (ValueError, RecursionError):
            # Cut inside: what is whole stands further in.
            end = place + 1
        else:
            yield value, end
        place = text.find("{", end)


def _end_of_entries(text: str) -> int:
    return max((end for _, end in _objects(text)), default=0)


def _joined(entries: list[Entry], more: list[Entry]) -> list[Entry]:
    """Add entries that are new, in the order they come: that of the document."""
    seen = {_key(entry) for entry in entries}
    joined = list(entries)
    for entry in more:
        if _key(entry) not in seen:
            seen.add(_key(entry))
            joined.append(entry)
    return joined


def _key(entry: Entry) -> tuple[str | None, str, str]:
    page = str(entry.get("page"))
    return code_of(entry.get("structure")), title_key(entry.get("title")), page
