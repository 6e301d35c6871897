"""Summaries from the bottom up."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from boundary import caller_for, failure, opened, said
from strategies_sections import trees
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.pageindex_runtime.page_text import Node, children_of, walk
from vectorless_rag.pageindex_runtime.providers import ProviderReply, ProviderRequest
from vectorless_rag.pageindex_runtime.summaries import SummaryScheduler
from vectorless_rag.pageindex_runtime.summary_prompts import summary_in
from vectorless_rag.pageindex_runtime.wiring import use

LONG = "One sentence of many words that says very little. " * 60


class Model:
    """Answers a summary question as a function of it; keeps what it was asked."""

    def __init__(self, answer: Callable[[ProviderRequest], Any]) -> None:
        self.answer = answer
        self.asked: list[ProviderRequest] = []

    async def send(self, request: ProviderRequest) -> ProviderReply:
        self.asked.append(request)
        answer = self.answer(request)
        if isinstance(answer, Exception):
            raise answer
        return said(answer if isinstance(answer, str) else json.dumps(answer))


def by_operation(request: ProviderRequest) -> Any:
    return {"summary": request.operation}


def leaf(title: str, first: int, last: int | None = None) -> Node:
    return {"title": title, "start_index": first, "end_index": last or first}


def run(
    folder: Path,
    nodes: list[Node],
    texts: list[str],
    answer: Callable[[ProviderRequest], Any] = by_operation,
    kind: type[Model] = Model,
    **options: Any,
) -> Model:
    model = kind(answer)
    pages = [(text, 0) for text in texts]

    async def summarise() -> None:
        scheduler = SummaryScheduler(nodes, pages, "offline/scripted", **options)
        scheduler.mark_final(nodes)
        scheduler.mark_final(list(walk(nodes)))
        await scheduler.finish()

    with opened(folder) as ledger:
        caller = caller_for(ledger, offline=model)
        with use(caller):
            try:
                asyncio.run(summarise())
            finally:
                caller._shut_down()
    return model


def told(node: Node) -> list[Any]:
    return [node[k] for k in ("direct_summary", "subtree_summary", "summary")]


def test_every_node_gets_its_summaries(tmp_path: Path) -> None:
    """A leaf one, a parent two, in one order: children first."""
    parent = leaf("P", 1, 3) | {"nodes": [leaf("A", 2), leaf("B", 3)]}

    model = run(tmp_path, [parent], [LONG, LONG + "a", LONG + "b"])

    assert ["summary_direct", *["summary_subtree"] * 2] == told(parent)
    assert [["summary_leaf"] * 3] * 2 == [told(n) for n in parent["nodes"]]
    assert "summary_subtree" == model.asked[-1].operation


def test_what_others_wait_for_is_asked_first(tmp_path: Path) -> None:
    """One at a time: the longest row of summaries begins before single leaves."""
    deep = leaf("1.1.1", 3)
    middle = leaf("1.1", 3) | {"nodes": [deep]}
    top = leaf("1", 3) | {"nodes": [middle]}
    texts = [LONG + "first", LONG + "second", LONG + "deep", LONG + "last"]
    nodes = [leaf("0", 1), leaf("0b", 2), top, leaf("2", 4)]

    model = run(tmp_path, nodes, texts, concurrency=1)
    asked = [r.operation for r in model.asked if r.operation != "summary_direct"]

    assert "deep" in model.asked[0].messages[0].content
    assert "summary_leaf" in asked[asked.index("summary_subtree") :]


def test_a_section_s_own_text_does_not_wait_for_its_subsections(
    tmp_path: Path,
) -> None:
    """Both are in flight at once; what is made of them comes last."""
    parent = leaf("P", 1, 2) | {"nodes": [leaf("A", 2)]}
    flying: list[str] = []
    most: list[int] = []

    class Slow(Model):
        async def send(self, request: ProviderRequest) -> ProviderReply:
            flying.append(request.operation)
            most.append(len(flying))
            await asyncio.sleep(0.05)
            flying.remove(request.operation)
            return await super().send(request)

    model = run(tmp_path, [parent], [LONG, LONG + "a"], kind=Slow)

    assert [1, 2, 1] == most
    assert "summary_subtree" == model.asked[-1].operation


def test_short_text_is_its_own_summary(tmp_path: Path) -> None:
    """Without a call, and split where leaves share the page."""
    nodes = [leaf("Alpha", 1), leaf("Beta", 1)]

    model = run(tmp_path, nodes, ["Alpha\none\nBeta\ntwo"], split_shared_pages=True)

    assert ["Alpha\none", "Beta\ntwo"] == [n["summary"] for n in nodes]
    assert [] == model.asked


def test_a_leaf_without_text_says_so(tmp_path: Path) -> None:
    """Its title stands in, and a summary that is there already is left alone."""
    nodes = [leaf("Scan", 1), leaf("Done", 1) | {"summary": "kept"}]

    run(tmp_path, nodes, [" "])

    assert ("Scan", "source_no_text") == (
        nodes[0]["summary"],
        nodes[0]["degraded"][0]["code"],
    )
    assert ("kept", None) == (nodes[1]["summary"], nodes[1].get("degraded"))


def test_long_text_is_summarised_in_parts(tmp_path: Path) -> None:
    """Then the parts' summaries are; replies as long as the text make headway too."""
    page = "word " * 30_000

    def long(request: ProviderRequest) -> Any:
        first = "word word" in request.messages[0].content
        return {"summary": "echo " * 30_000 if first else "short"}

    for answer in (by_operation, long):
        nodes = [leaf("Big", 1)]
        run(tmp_path, nodes, [page], answer)

        assert len(nodes[0]["summary"]) < 20


def test_effort_and_length_are_passed_on(tmp_path: Path) -> None:
    """What was asked for reaches the provider."""
    model = run(
        tmp_path, [leaf("A", 1)], [LONG], reasoning_effort="low", max_words=20,
        concurrency=1, small_node_tokens=0, drop_refused_effort=True,
    )  # fmt: skip

    assert {"reasoning_effort": "low"} == dict(model.asked[0].params)
    assert "20 words" in model.asked[0].messages[0].content


def test_one_refused_text_costs_its_node_only(tmp_path: Path) -> None:
    """The parent's summaries fall back one by one."""
    parent = leaf("P", 1, 2) | {"nodes": [leaf("A", 2), leaf("", 2)]}
    too_long = failure(Code.CONTEXT_OVERFLOW, retry=False)

    run(tmp_path, [parent], [LONG, LONG + "a"], lambda _: too_long)

    marks = [mark["what"] for node in walk([parent]) for mark in node["degraded"]]
    assert ["direct_summary", "subtree_summary", "summary", "summary"] == marks
    assert "Subsections: A" == parent["summary"]
    assert parent["nodes"][0]["summary"].startswith("Opening words: One sentence")


def test_what_ends_the_run_ends_it(tmp_path: Path) -> None:
    """And the rest is not asked."""
    nodes = [leaf(str(n), n) for n in range(1, 30)]
    texts = [f"{LONG}{n}" for n in range(1, 30)]

    with pytest.raises(VectorlessRagError, match="credentials"):
        run(tmp_path, nodes, texts, lambda _: failure(Code.AUTH, retry=False),
            concurrency=2)  # fmt: skip
    with pytest.raises(VectorlessRagError, match="credentials"):
        run(
            tmp_path,
            [leaf("P", 1) | {"nodes": [leaf("A", 1)]}],
            [LONG],
            lambda r: (
                failure(Code.AUTH, retry=False)
                if r.operation == "summary_subtree"
                else by_operation(r)
            ),
        )


def test_a_broken_promise_is_a_defect(tmp_path: Path) -> None:
    """A node that changed after it was final, or that nobody decided."""

    async def changed() -> None:
        node = leaf("P", 1) | {"nodes": [leaf("A", 1)]}
        scheduler = SummaryScheduler([node], [("a", 0)])
        scheduler.mark_final([node])
        node["nodes"] = []
        await scheduler.finish()

    async def undecided() -> None:
        await SummaryScheduler([leaf("P", 1)], [("a", 0)]).finish()

    with opened(tmp_path) as ledger, use(caller_for(ledger)):
        for broken in (changed, undecided):
            with pytest.raises(VectorlessRagError, match="a node changed"):
                asyncio.run(broken())


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ('{"title": "x"}', Code.INVALID_JSON),
        ("[]", Code.INVALID_JSON),
        ('{"summary": 3}', Code.INVALID_JSON),
        ('{"summary": " "}', Code.EMPTY_RESPONSE),
    ],
)
def test_a_reply_without_a_summary_is_refused(reply: str, code: Code) -> None:
    """It is never filled in from elsewhere."""
    with pytest.raises(VectorlessRagError, match="summary") as refused:
        summary_in(reply)

    assert code is refused.value.code


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(document=trees())
def test_any_tree_is_summarised_or_says_why(
    tmp_path: Path, document: tuple[list[tuple[str, int]], list[Node]]
) -> None:
    """Every node ends with its summaries; a parent never takes a child's text."""
    pages, nodes = document

    run(tmp_path, nodes, [text for text, _ in pages], small_node_tokens=0)

    for node in walk(nodes):
        assert all(isinstance(text, str) for text in told(node))
        if not children_of(node):
            assert {node["summary"]} == set(told(node))
        assert node["summary"] or not node["title"]
