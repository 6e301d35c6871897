"""The reply formats shown to the model are JSON."""

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from patches.good_model import GOOD
from patches.scripted import MODEL, outcome, provider
from patches.tree_under_test import classic

ITEM = {"title": "Alpha", "list_index": 0, "physical_index": 1}
PAGE = "<physical_index_1>\nAlpha\n<physical_index_1>"

ASKS: dict[str, Callable[[], Any]] = {
    "check_title_appearance": lambda: asyncio.run(
        classic.check_title_appearance(ITEM, [("Alpha", 1)], 1, MODEL)
    ),
    "check_title_appearance_in_start": lambda: asyncio.run(
        classic.check_title_appearance_in_start("Alpha", "Alpha", MODEL)
    ),
    "toc_detector_single_page": lambda: classic.toc_detector_single_page("A", MODEL),
    "check_if_toc_transformation_is_complete": lambda: (
        classic.check_if_toc_transformation_is_complete("A", "A", MODEL)
    ),
    "check_if_toc_extraction_is_complete": lambda: (
        classic.check_if_toc_extraction_is_complete("A", "A", MODEL)
    ),
    "detect_page_index": lambda: classic.detect_page_index("A ... 1", MODEL),
    "single_toc_item_index_fixer": lambda: asyncio.run(
        classic.single_toc_item_index_fixer("Alpha", PAGE, MODEL)
    ),
}
ANSWERS = {
    **GOOD,
    "check_if_toc_extraction_is_complete": {"completed": "yes"},
    "single_toc_item_index_fixer": {"physical_index": 1},
}


@pytest.mark.parametrize("question", ASKS)
def test_each_format_shown_is_json(question: str) -> None:
    """A model that copies the format, its places filled, writes JSON."""
    with provider(**ANSWERS) as script:
        outcome(ASKS[question])
    (shown,) = re.findall(r"\{\s*\"thinking\".*?\}", script.asked[0].prompt, re.DOTALL)
    filled = re.sub(r'"?<(?:[^<>]|<[^<>]*>)*>"?', '"x"', shown)

    read = outcome(lambda: json.loads(filled))

    assert isinstance(read, dict)
    assert "thinking" in read
