"""Every model call goes through the call boundary and says what it asks."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from patches.good_model import Log
from patches.questions import PHRASES
from patches.scripted import (
    MODEL,
    NO_KEY,
    TOO_LONG,
    Cut,
    HttpError,
    outcome,
    provider,
    turns,
)
from patches.tree_under_test import classic, flash, tree_optimize, utils
from pdfs import pdf
from vectorless_rag.errors import VectorlessRagError

PAGES = [("Alpha starts here", 4), ("Beta starts here", 4)]
TEXT = "<physical_index_1>\nAlpha starts here\n<physical_index_1>\n"
ALPHA = {"structure": "1", "title": "Alpha", "physical_index": "<physical_index_1>"}
TOC = {"table_of_contents": [{"structure": "1", "title": "Alpha", "page": 1}]}
LONG = [(f"Paragraph {n}. " + "All work and no play. " * 80, 500) for n in range(4)]


def prose(tmp_path: Path) -> str:
    """Write four pages of prose that are long enough to be summarised."""
    pages = [
        "\n".join(f"page {n} line {m} says that all work is no play" for m in range(30))
        for n in range(4)
    ]
    return str(pdf(tmp_path / "a.pdf", pages))


def summarised(nodes: list[dict[str, Any]]) -> Any:
    return asyncio.run(utils.summarize_tree(nodes, LONG, model=MODEL))


def two_leaves() -> list[dict[str, Any]]:
    return [
        {"title": "A", "start_index": 1, "end_index": 2},
        {"title": "B", "start_index": 3, "end_index": 4},
    ]


def a_parent() -> list[dict[str, Any]]:
    return [{"title": "P", "start_index": 1, "end_index": 4, "nodes": two_leaves()}]


ASKS: dict[str, tuple[Callable[[], Any], Any]] = {
    "check_title_appearance": (
        lambda: asyncio.run(
            classic.check_title_appearance(
                {"title": "Alpha", "list_index": 0, "physical_index": 1},
                PAGES,
                1,
                MODEL,
            )
        ),
        {"answer": "yes"},
    ),
    "check_title_appearance_in_start": (
        lambda: asyncio.run(
            classic.check_title_appearance_in_start("Alpha", PAGES[0][0], MODEL)
        ),
        {"start_begin": "yes"},
    ),
    "toc_detector_single_page": (
        lambda: classic.toc_detector_single_page("Contents", MODEL),
        {"toc_detected": "yes"},
    ),
    "check_if_toc_extraction_is_complete": (
        lambda: classic.check_if_toc_extraction_is_complete("Alpha", "Alpha", MODEL),
        {"completed": "yes"},
    ),
    "check_if_toc_transformation_is_complete": (
        lambda: classic.check_if_toc_transformation_is_complete("A", "A", MODEL),
        {"completed": "yes"},
    ),
    "detect_page_index": (
        lambda: classic.detect_page_index("Alpha ..... 1", MODEL),
        {"page_index_given_in_toc": "yes"},
    ),
    "toc_index_extractor": (
        lambda: classic.toc_index_extractor([ALPHA], TEXT, MODEL),
        [ALPHA],
    ),
    "add_page_number_to_toc": (
        lambda: classic.add_page_number_to_toc(TEXT, [ALPHA], MODEL),
        [{**ALPHA, "start": "yes"}],
    ),
    "generate_toc_init": (lambda: classic.generate_toc_init(TEXT, MODEL), [ALPHA]),
    "generate_toc_continue": (
        lambda: classic.generate_toc_continue([ALPHA], TEXT, MODEL),
        [ALPHA],
    ),
    "single_toc_item_index_fixer": (
        lambda: asyncio.run(classic.single_toc_item_index_fixer("Alpha", TEXT, MODEL)),
        {"physical_index": "<physical_index_1>"},
    ),
    "generate_node_summary": (
        lambda: asyncio.run(utils.generate_node_summary({"text": "Alpha"}, MODEL)),
        "About Alpha.",
    ),
    "generate_doc_description": (
        lambda: utils.generate_doc_description([{"title": "Alpha"}], MODEL),
        "A document about Alpha.",
    ),
    "summary_leaf": (lambda: summarised(two_leaves()), {"summary": "All work."}),
    "expand": (
        lambda: asyncio.run(tree_optimize.ask_model(MODEL, "List the subsections")),
        {"subsections": []},
    ),
}


@pytest.mark.parametrize("operation", ASKS)
def test_each_question_names_its_operation(
    operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record of a request says which question it served."""
    ask, answer = ASKS[operation]
    # A tree without the boundary is known by the prompt alone.
    monkeypatch.setitem(PHRASES, "expand", "List the subsections")

    with provider(**{operation: answer}) as script:
        outcome(ask)

    assert {(operation, True)} == {(a.question, a.named) for a in script.asked}


def test_a_parents_summary_names_its_operation() -> None:
    """What a parent asks is told apart from what a leaf asks."""
    answer = {"summary": "All work."}

    with provider(
        summary_leaf=answer, summary_subtree=answer, summary_direct=answer
    ) as script:
        summarised(a_parent())

    assert ("summary_subtree", True) in {(a.question, a.named) for a in script.asked}


def test_the_toc_transformer_names_its_operation() -> None:
    """The first request and the continuation of a cut reply both say it."""
    cut = Cut('{"table_of_contents": [{"structure": "1", "title": "Al')

    with provider(
        toc_transformer=turns(cut, '{"structure": "1", "title": "Alpha", "page": 1}]}'),
        check_if_toc_transformation_is_complete=turns(
            {"completed": "no"}, {"completed": "yes"}
        ),
    ) as script:
        outcome(lambda: classic.toc_transformer("Alpha ... 1", MODEL))

    assert [True, True] == [a.named for a in script.to("toc_transformer")][:2]


def test_the_dead_toc_extraction_names_its_operation() -> None:
    """Code that nothing calls today is accounted if it is ever called."""
    with provider(
        extract_toc_content=turns(Cut("Alpha: "), "1"),
        check_if_toc_transformation_is_complete=turns(
            {"completed": "no"}, {"completed": "yes"}
        ),
    ) as script:
        outcome(lambda: classic.extract_toc_content("Alpha ... 1", MODEL))

    assert [True, True] == [a.named for a in script.to("extract_toc_content")]


UNREADABLE = {
    "open fence": '```json\n{"toc_detected": "yes"}',
    "plain fence": '```\n{"toc_detected": "yes"}\n```',
    "upper-case fence": '```JSON\n{"toc_detected": "yes"}\n```',
    "prose before": 'Here is the result: {"toc_detected": "yes"}',
    "prose after": '{"toc_detected": "yes"}\nDone.',
    "trailing comma": '{"toc_detected": "yes", "pages": [1, 2, ]}',
    "Python's True": '{"toc_detected": "yes", "sure": True}',
    "single quotes": "{'toc_detected': 'yes'}",
    "no comma": '{"thinking": "x"\n"toc_detected": "yes"}',
    "null": "null",
    "list": "[]",
    "text": '"yes"',
    "number": "1",
}


@pytest.mark.parametrize("reply", UNREADABLE.values(), ids=UNREADABLE)
def test_an_unreadable_reply_is_read_or_asked_again(reply: str) -> None:
    """No reply turns into a silent "no": it says yes, or it is asked anew."""
    with provider(
        toc_detector_single_page=turns(reply, {"toc_detected": "yes"})
    ) as script:
        found = outcome(lambda: classic.toc_detector_single_page("Contents", MODEL))

    assert ("yes", True) == (found, len(script.asked) <= 2)


@pytest.mark.parametrize("reply", ["Yes", "YES", "yes.", True])
def test_a_yes_is_a_yes_in_any_spelling(reply: object) -> None:
    """A verdict is read by its meaning."""
    item = {"title": "Alpha", "list_index": 0, "physical_index": 1}

    with provider(check_title_appearance={"answer": reply}):
        found = asyncio.run(classic.check_title_appearance(item, PAGES, 1, MODEL))

    assert "yes" == found["answer"]


@pytest.mark.parametrize("spelled", [1, "1", "physical_index_1"])
def test_a_page_is_a_page_in_any_spelling(spelled: object) -> None:
    """A headings reply that writes its pages otherwise keeps them."""
    second = 2 if isinstance(spelled, int) else str(spelled).replace("1", "2", 1)
    reply = [
        {**ALPHA, "physical_index": spelled},
        {"structure": "2", "title": "Beta", "physical_index": second},
    ]

    with provider(generate_toc_init=reply):
        found = outcome(
            lambda: classic.process_no_toc(PAGES, model=MODEL, logger=Log())
        )

    assert isinstance(found, list)
    assert [1, 2] == [entry["physical_index"] for entry in found]


def test_words_of_a_title_stay_as_they_are() -> None:
    """Reading a reply changes neither None nor a line break inside a text."""
    title = "None of\nthe  above,]"

    with provider(
        toc_transformer={
            "table_of_contents": [{"structure": "1", "title": title, "page": 1}]
        },
        check_if_toc_transformation_is_complete={"completed": "yes"},
    ):
        (entry,) = classic.toc_transformer("None of the above ... 1", MODEL)

    assert title == entry["title"]


def test_a_failing_provider_is_tried_a_few_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Retries are bounded by the boundary, and what ends them is classified."""
    monkeypatch.setattr("time.sleep", lambda _: None)

    with provider(toc_detector_single_page=HttpError(500)) as script:
        found = outcome(lambda: classic.toc_detector_single_page("Contents", MODEL))

    assert "pageindex_llm_retry_exhausted" == found
    assert len(script.asked) <= 3


@pytest.mark.parametrize(
    ("refusal", "most"),
    [
        pytest.param(HttpError(402), 1, id="no-money"),
        pytest.param(HttpError(413), 1, id="too-large"),
        pytest.param(HttpError(422), 1, id="not-understood"),
        pytest.param(HttpError(429), 3, id="too-often"),
        pytest.param(TypeError("of the client"), 1, id="a-defect"),
    ],
)
def test_what_no_try_can_help_is_tried_once(
    refusal: Exception, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outcomes are told apart; each ends as a classified failure."""
    monkeypatch.setattr("time.sleep", lambda _: None)

    with provider(toc_detector_single_page=refusal) as script:
        found = outcome(lambda: classic.toc_detector_single_page("Contents", MODEL))

    assert most >= len(script.asked)
    assert found in {
        "pageindex_quota", "pageindex_bad_request", "pageindex_llm_retry_exhausted",
        "internal_error",
    }  # fmt: skip


def test_refused_credentials_end_the_run() -> None:
    """A failure that every later call would meet is not taken for a bad node."""
    with provider(summary_leaf=NO_KEY):
        found = outcome(lambda: summarised(two_leaves()))

    assert "pageindex_auth" == found


def test_a_prompt_that_is_too_long_costs_the_description_only() -> None:
    """The indexed document survives without its description."""
    with provider(generate_doc_description=TOO_LONG) as script:
        found = outcome(lambda: utils.generate_doc_description([], MODEL))

    assert ("", [True]) == (found, [a.named for a in script.asked])


def test_litellm_is_out_of_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither algorithm touches LiteLLM: not to count, look up or complete."""
    path = prose(tmp_path)
    answers = {
        "summary_leaf": {"summary": "All work."},
        "summary_direct": {"summary": "All work."},
        "summary_subtree": {"summary": "All work."},
        "expand": {"subsections": []},
    }

    with provider(mode="flash", **answers) as script:
        monkeypatch.setitem(sys.modules, "litellm", None)
        found = outcome(lambda: flash.page_index_flash(path, summary_model=MODEL))
        counted = outcome(lambda: utils.count_tokens("three words here", MODEL))

    assert isinstance(found, dict)
    assert isinstance(counted, int)
    assert script.asked


def test_effort_is_sent_only_when_asked_for(tmp_path: Path) -> None:
    """No look-up decides that a request gets a parameter nobody asked for."""
    path = prose(tmp_path)
    answer = {"summary": "All work."}

    with provider(
        mode="flash",
        summary_leaf=answer,
        summary_subtree=answer,
        expand={"subsections": []},
    ) as script:
        flash.page_index_flash(path, summary_model=MODEL)

    assert [] == [a.params for a in script.asked if a.params]
    assert [] == script.touched


@pytest.mark.parametrize(
    "index",
    [
        pytest.param(
            lambda path: flash.page_index_flash(
                path, summary_model="claude-code/x", summary_reasoning_effort="high"
            ),
            id="flash",
        ),
        pytest.param(
            lambda path: classic.page_index(path, model="claude-code/x"), id="standard"
        ),
    ],
)
def test_no_model_goes_around_the_boundary(
    index: Callable[[str], Any], tmp_path: Path
) -> None:
    """A model that another program would answer meets the boundary, as any other."""
    path = prose(tmp_path)

    with provider(mode="flash"):
        found = outcome(lambda: index(path))

    assert "pageindex_unpriced_model" == found


REPAIRED: list[tuple[Callable[[str], Any], str]] = [
    (utils.parse_summary, '{"summary": "a",}'),
    (utils.extract_json, '{"a": [1,],}'),
    (tree_optimize.extract_json, 'Sure: {"a": 1} as asked'),
]


@pytest.mark.parametrize(
    ("read", "reply"), REPAIRED, ids=["parse_summary", "extract_json", "expand"]
)
def test_no_reader_repairs(read: Callable[[str], Any], reply: str) -> None:
    """Every parser of the upstream refuses what is not JSON."""
    with pytest.raises(VectorlessRagError, match="not the JSON asked for"):
        read(reply)


def test_a_fence_inside_a_reply_is_part_of_it() -> None:
    """Only a fence around the whole reply is taken off."""
    reply = '{"title": "How to write ``` in Markdown", "page": 1}'

    assert reply == utils.get_json_content(reply)
