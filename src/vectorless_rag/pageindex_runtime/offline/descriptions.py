"""Answers to the requests for summaries and descriptions."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from vectorless_rag.pageindex_runtime.offline import literals, summaries
from vectorless_rag.pageindex_runtime.offline.prompts import words_asked
from vectorless_rag.pageindex_runtime.offline.sentences import Sentence, sentences_of
from vectorless_rag.pageindex_runtime.offline.text import (
    cut_words,
    has_letter,
    is_plain,
    squeeze,
)

Description: TypeAlias = Callable[[Mapping[str, str], str], str]
"""Takes the data of a prompt and its instructions, gives the reply."""

_LISTED = re.compile(r"several short sections: ([^\n]{1,4000})\. Also return")
_MAX_TITLE_WORDS = 12


def summary_leaf(parts: Mapping[str, str], asked: str) -> str:
    """Summarise a text; name it by one of its listed titles if a title is asked."""
    reply = {"summary": _summary(parts["text"], asked)}
    listed = _LISTED.search(asked)
    title = _title(listed[1].split("; ")) if listed else ""
    return _json({"title": title, **reply} if title else reply)


def summary_direct(parts: Mapping[str, str], asked: str) -> str:
    """Summarise a text."""
    return _json({"summary": _summary(parts["text"], asked)})


def summary_subtree(parts: Mapping[str, str], asked: str) -> str:
    """Summarise a section by its opening and by what its subsections' summaries say."""
    children = literals.records(literals.read(parts["children"]).value)
    texts = [str(child.get("summary") or "") for child in children]
    most = words_asked(asked, summaries.MAX_WORDS)
    opening = _whole(summaries.summarise(parts["opening"], most // 2))
    told = summaries.join([opening, *map(_whole, texts)], most)
    titles = [str(child["title"]) for child in children if child["title"]]
    rest = "; ".join(titles) or parts["title"]
    summary = " ".join(told) or summaries.summarise(" ".join(texts), most)
    return _json({"summary": summary or summaries.summarise(rest, most)})


def generate_node_summary(parts: Mapping[str, str], asked: str) -> str:
    """Summarise a text, as plain text."""
    return _summary(parts["text"], asked)


def generate_doc_description(parts: Mapping[str, str], asked: str) -> str:
    """Describe a document in one sentence out of its sections' summaries."""
    nodes = literals.records(literals.read(parts["structure"]).value)
    most = words_asked(asked, summaries.MAX_WORDS)
    told = [s for n in nodes for s in _whole(str(n.get("summary") or ""))]
    if sentence := summaries.best(told):
        return cut_words(sentence, most)
    titles = "; ".join(str(node["title"]) for node in nodes if node["title"])
    return summaries.first_words(titles or parts["structure"], most)


def _summary(text: str, asked: str) -> str:
    return summaries.summarise(text, words_asked(asked, summaries.MAX_WORDS))


def _whole(text: str) -> list[Sentence]:
    return [s for s in sentences_of(text, clean=True) if s.whole]


def _title(listed: list[str]) -> str:
    """Take the first listed title that is short enough for one."""
    for title in map(squeeze, listed):
        short = len(title.split()) <= _MAX_TITLE_WORDS
        if short and has_letter(title) and is_plain(title):
            return title
    return ""


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


DESCRIPTIONS: Mapping[str, Description] = {
    "summary_leaf": summary_leaf,
    "summary_direct": summary_direct,
    "summary_subtree": summary_subtree,
    "generate_node_summary": generate_node_summary,
    "generate_doc_description": generate_doc_description,
}
"""The answer to each request for a description, by operation."""
