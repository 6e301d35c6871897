"""Answers of a model that reads well, and what the standard algorithm is handed."""

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from patches.scripted import MODEL, Answer, Asked
from patches.tree_under_test import classic

FRAME = re.compile(r"<user_document>\n<!--.*?-->\n(.*?)\n</user_document>", re.DOTALL)
PAGE = re.compile(r"<physical_index_(\d+)>\n(.*?)\n<physical_index_\1>", re.DOTALL)
TITLE = re.compile(r"given section title is (?:<user_document>\n<!--.*?-->\n)?(.*)")

Entry = dict[str, Any]
Pages = list[tuple[str, int]]


class Log:
    """Stands where the upstream wants a logger."""

    def info(self, *_: Any) -> None:
        """Drop it."""

    error = debug = exception = warning = info


def options(**changed: Any) -> SimpleNamespace:
    """The upstream's options with their defaults."""
    defaults = {
        "model": MODEL,
        "toc_check_page_num": 20,
        "max_page_num_each_node": 10,
        "max_token_num_each_node": 20000,
    }
    return SimpleNamespace(**{**defaults, **changed})


def pages_of(texts: Sequence[str], tokens: int = 10) -> Pages:
    return [(text, tokens) for text in texts]


def entry(title: str, page: int | str | None, code: str | None = None) -> Entry:
    """An entry as a model replies it; a number becomes the page's marker."""
    spelled = f"<physical_index_{page}>" if isinstance(page, int) else page
    return {"structure": code, "title": title, "physical_index": spelled}


def shown_pages(asked: Asked) -> dict[int, str]:
    """Page texts that stand between markers in a prompt."""
    return {int(number): text for number, text in PAGE.findall(asked.prompt)}


def page_shown(asked: Asked) -> str:
    """The page that a question about one page shows."""
    return str(FRAME.findall(asked.prompt)[-1])


def title_asked(asked: Asked) -> str:
    found = TITLE.search(asked.prompt)
    assert found
    return found[1].removesuffix(".").strip()


def appears(asked: Asked) -> Answer:
    """Say whether the title is on the page."""
    yes = title_asked(asked).rstrip(".").casefold() in page_shown(asked).casefold()
    return {"answer": "yes" if yes else "no"}


def opens(asked: Asked) -> Answer:
    """Say whether the title is the first thing on the page."""
    first = page_shown(asked).strip().casefold()
    return {
        "start_begin": "yes"
        if first.startswith(title_asked(asked).casefold())
        else "no"
    }


def headings(*found: tuple[str, int]) -> Callable[[Asked], Answer]:
    """Name those of *found* whose pages are shown."""

    def answer(asked: Asked) -> Answer:
        shown = shown_pages(asked)
        return [
            entry(title, page, str(number))
            for number, (title, page) in enumerate(found, 1)
            if page in shown
        ]

    return answer


def printed(*found: tuple[str | None, str, int | str | None]) -> Answer:
    """A table of contents: number, title and printed page."""
    return {
        "table_of_contents": [
            {"structure": code, "title": title, "page": page}
            for code, title, page in found
        ]
    }


GOOD: dict[str, Answer] = {
    "toc_detector_single_page": {"toc_detected": "no"},
    "detect_page_index": {"page_index_given_in_toc": "no"},
    "check_if_toc_transformation_is_complete": {"completed": "yes"},
    "check_title_appearance": appears,
    "check_title_appearance_in_start": opens,
}


def parsed(texts: Sequence[str], **changed: Any) -> Any:
    """Run the standard algorithm over pages; a list of (title, first, last)."""
    tokens = changed.pop("tokens", 10)
    pages = pages_of(texts, tokens)
    return asyncio.run(classic.tree_parser(pages, options(**changed), logger=Log()))


def outline(tree: Sequence[Entry]) -> list[Any]:
    """Titles and pages of a tree, and of what is below each node."""
    return [
        (node["title"], node["start_index"], node["end_index"])
        + ((outline(node["nodes"]),) if node.get("nodes") else ())
        for node in tree
    ]


def titles(tree: Sequence[Entry]) -> list[str]:
    """Every title in reading order."""
    return [
        title
        for node in tree
        for title in (node["title"], *titles(node.get("nodes") or []))
    ]


def all_marks(tree: Sequence[Entry]) -> list[dict[str, str]]:
    """Every mark in reading order."""
    return [
        mark
        for node in tree
        for mark in (
            *(node.get("degraded") or []),
            *all_marks(node.get("nodes") or []),
        )
    ]


def spell(value: Any) -> str:
    return json.dumps(value)
