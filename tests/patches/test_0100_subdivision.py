"""Large nodes are divided as long as it helps, and stay whatever happens."""

import asyncio
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from patches.good_model import (
    GOOD,
    Log,
    all_marks,
    entry,
    options,
    outline,
    parsed,
    shown_pages,
    titles,
)
from patches.scripted import NO_KEY, TOO_LONG, Asked, outcome, provider
from patches.tree_under_test import classic

YES = {
    "check_title_appearance": {"answer": "yes"},
    "check_title_appearance_in_start": {"start_begin": "yes"},
}


def node_over(last: int, first: int = 1) -> dict[str, Any]:
    return {"title": "Whole", "start_index": first, "end_index": last}


def divided(
    node: dict[str, Any], texts: list[str], tokens: int, **answers: Any
) -> tuple[Any, Any]:
    pages = [(text, tokens) for text in texts]
    with provider(**{**YES, **answers}) as script:
        found = outcome(
            lambda: asyncio.run(
                classic.process_large_node_recursively(
                    node, pages, options(), logger=Log()
                )
            )
        )
    return found, script


def named(*numbers: int) -> Any:
    """Headings on those of *numbers* that are shown."""

    def answer(asked: Asked) -> Any:
        shown = shown_pages(asked)
        return [entry(f"Part on {n}", n, None) for n in numbers if n in shown]

    return answer


def ends_shown(asked: Asked) -> Any:
    """Name only the first and the last page shown."""
    shown = sorted(shown_pages(asked))
    size = len(shown)
    return [entry(f"Part {size} on {n}", n, None) for n in (shown[0], shown[-1])]


@pytest.mark.parametrize(("count", "tokens"), [(10, 20_000), (120, 150)])
def test_pages_or_tokens_are_enough_to_divide(count: int, tokens: int) -> None:
    """A node with too many of either is divided."""
    answer = named(1, count // 2)

    found, _ = divided(
        node_over(count),
        ["text"] * count,
        tokens,
        generate_toc_init=answer,
        generate_toc_continue=answer,
    )

    assert isinstance(found, dict)
    wanted = [f"Part on {n}" for n in (1, count // 2)]
    assert wanted == [n["title"] for n in found.get("nodes", [])]


def test_a_small_node_is_left_alone() -> None:
    """Five pages with 750 tokens are no large node (holds before too)"""
    found, script = divided(node_over(5), ["text"] * 5, 150, generate_toc_init=[])

    assert ([], None) == (script.asked, found.get("nodes"))


def test_a_failed_division_keeps_the_verified_node() -> None:
    """One heading that is rejected costs neither its node nor the document."""
    texts = [f"page {n} " + "word " * 100 for n in range(1, 41)]
    texts[0], texts[29] = "Ch1 " + texts[0], "Ch2 " + texts[29]

    def answer(asked: Asked) -> Any:
        shown = shown_pages(asked)
        if 30 in shown:
            return [entry("Ch1", 1, "1"), entry("Ch2", 30, "2")]
        return [entry("noise", min(shown), "1")]

    with provider(
        **{**GOOD, "generate_toc_init": answer, "generate_toc_continue": answer}
    ):
        tree = outcome(lambda: parsed(texts, tokens=2000))

    assert isinstance(tree, list)
    assert [("Ch1", 1, 29), ("Ch2", 30, 40)] == outline(tree)
    assert {"subsections"} == {mark["what"] for mark in all_marks(tree)}


@pytest.mark.parametrize("reply", [TOO_LONG, "Sorry.", []], ids=["long", "prose", "no"])
def test_a_node_that_cannot_be_divided_says_so(reply: Any) -> None:
    """Whatever goes wrong inside, the node itself stays."""
    found, _ = divided(node_over(20), ["text"] * 20, 10, generate_toc_init=reply)

    assert isinstance(found, dict)
    assert ("Whole", 1, 20) == outline([found])[0]
    assert ["subsections"] == [mark["what"] for mark in all_marks([found])]


def levels(node: dict[str, Any]) -> int:
    return 1 + max(map(levels, node.get("nodes") or []), default=0)


def test_dividing_without_headway_ends() -> None:
    """Naming the ends of what is shown does not go on level by level."""
    found, script = divided(
        node_over(60), ["text"] * 60, 3000, generate_toc_init=ends_shown
    )

    assert isinstance(found, dict)
    assert levels(found) <= 17
    sent = sum(len(shown_pages(asked)) for asked in script.to("generate_toc_init"))
    assert sent <= 4 * 60
    assert len(script.asked) <= 80


def test_dividing_with_headway_goes_on() -> None:
    """Six parts of ten pages are six nodes."""
    every_tenth = named(*range(1, 61, 10))

    found, _ = divided(
        node_over(60),
        ["text"] * 60,
        100,
        generate_toc_init=every_tenth,
        generate_toc_continue=every_tenth,
    )

    assert isinstance(found, dict)
    assert [(n, n + 9) for n in range(1, 61, 10)] == [
        (n["start_index"], n["end_index"]) for n in found.get("nodes", [])
    ]


def test_parts_are_those_on_the_nodes_own_pages() -> None:
    """The first page is one of them; the node's own heading is no part of it."""
    headings = [
        entry("Whole", 5, None),
        entry("On the first page", 5, None),
        entry("Inside", 12, None),
        entry("Outside", 25, None),
    ]

    found, _ = divided(
        node_over(20, 5),
        ["text"] * 30,
        10,
        generate_toc_init=headings,
        single_toc_item_index_fixer={"physical_index": None},
    )

    assert isinstance(found, dict)
    assert ["On the first page", "Inside"] == [
        n["title"] for n in found.get("nodes", [])
    ]
    assert (5, 20) == (found["start_index"], found["end_index"])


def test_refused_credentials_end_the_run() -> None:
    """A failure of every call is no reason to keep the node (holds before too)"""
    found, _ = divided(node_over(20), ["text"] * 20, 30_000, generate_toc_init=NO_KEY)

    assert "pageindex_auth" == found


@settings(max_examples=30, phases=[Phase.generate], deadline=None)
@given(
    st.integers(1, 40),
    st.integers(1, 4000),
    st.lists(st.integers(-2, 45), max_size=6),
)
def test_any_division_stays_inside_and_ends(
    count: int, tokens: int, numbers: list[int]
) -> None:
    """Parts lie on the node's pages; no title is made up (holds before too)"""
    answer = named(*numbers)

    found, _ = divided(
        node_over(count),
        ["text"] * count,
        tokens,
        generate_toc_init=answer,
        generate_toc_continue=answer,
    )

    assert isinstance(found, dict)
    assert levels(found) <= 17
    for part in found.get("nodes") or []:
        assert 1 <= part["start_index"] <= part["end_index"] <= count
    assert {"Whole", *(f"Part on {n}" for n in numbers)} >= set(titles([found]))
