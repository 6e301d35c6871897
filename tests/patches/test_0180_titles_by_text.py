"""A title that is a line of its page is there: nobody is asked."""

import asyncio
from typing import Any

from patches.good_model import GOOD, pages_of
from patches.scripted import MODEL, provider
from patches.tree_under_test import classic
from vectorless_rag.pageindex_runtime.plans import DECIDED

PROSE = "The quick brown fox jumps over the lazy dog, again and again. " * 8


def placed(title: str, page: int) -> dict[str, Any]:
    return {"structure": None, "title": title, "physical_index": page}


def test_a_line_of_its_page_is_confirmed_without_a_call() -> None:
    """With the number before it or without, on one line or on two."""
    texts = [
        f"1 Alpha\n{PROSE}",
        f"{PROSE}\n2.1 Beta and its\nlong title\n{PROSE}",
        f"Chapter 3\nGamma\n{PROSE}",
    ]
    entries = [placed("Alpha", 1), placed("Beta and its long title", 2)]
    entries.append(placed("Gamma", 3))

    with provider(decides=DECIDED, **GOOD) as script:
        found = asyncio.run(classic.verify_toc(pages_of(texts), entries, model=MODEL))

    assert ((1.0, []), []) == (found, script.questions)
