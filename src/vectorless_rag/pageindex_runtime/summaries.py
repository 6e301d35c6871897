"""
Bottom-up summaries: what a node says itself, and what it says with its children.

Every node gets ``direct_summary`` (its own text), ``subtree_summary`` (its own text
and its children's summaries) and ``summary``, which is the latter. Where a summary
could not be had, the node's ``degraded`` list says which one and why, and the text
in its place says what it is.
"""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.pageindex_runtime.page_text import (
    Node,
    Pages,
    children_of,
    leaf_text,
    parent_text,
    text_of_pages,
    walk,
)
from vectorless_rag.pageindex_runtime.pieces import pieces
from vectorless_rag.pageindex_runtime.slots import Slots
from vectorless_rag.pageindex_runtime.summary_prompts import (
    own_text_prompt,
    subtree_prompt,
    summary_in,
)
from vectorless_rag.pageindex_runtime.wiring import concurrency as run_concurrency
from vectorless_rag.pageindex_runtime.wiring import (
    count_tokens,
    is_terminal,
    llm_acompletion,
)

CONCURRENCY = 64
"""Summary calls in flight at once, unless somebody asks for fewer."""

MAX_WORDS = 150
"""Length asked of a summary, in words."""

TOKENS_PER_WORD = 4 / 3

MAX_PROMPT_TOKENS = 20_000
"""Document text in one prompt; more is summarised in parts first."""

FALLBACK_CHARS = 600

DEEPEST = 64
"""Levels that are told apart where one call is more urgent than another."""


@dataclass(frozen=True, kw_only=True)
class Lost:
    """A summary that could not be had."""

    code: Code
    fallback: str


class SummaryScheduler:
    """
    Summarise a tree that is still growing, taking nodes as they become final.

    A node waits until its children cannot change any more and have summaries, then
    asks for its own.

    Args:
        structure: Root nodes; summaries are written into the nodes.
        pdf_pages: ``(text, tokens)`` of every page.
        model: ``provider/name``, passed to the call boundary.
        small_node_tokens: A text below this is its own summary, without a call.
            The default is the length asked of a summary.
        concurrency: Calls in flight at once; never more than the run may have.
        max_words: Length asked of a summary.
        split_shared_pages: Whether a leaf reads only its side of a page that it
            shares with a neighbour.
        reasoning_effort: Sent with each call when given.
        unused: What the upstream passes for its own retries; calls are retried by
            the boundary, and a node's own text is never cut to a number of pages.
    """

    def __init__(
        self,
        structure: list[Node],
        pdf_pages: Pages,
        model: str | None = None,
        small_node_tokens: float | None = None,
        *,
        concurrency: int | None = None,
        max_words: int | None = None,
        split_shared_pages: bool = False,
        reasoning_effort: str | None = None,
        **unused: object,
    ) -> None:
        del unused
        self.structure = structure
        self._pages = pdf_pages
        self._model = model
        self._max_words = max_words or MAX_WORDS
        if small_node_tokens is None:
            small_node_tokens = TOKENS_PER_WORD * self._max_words
        self._small = small_node_tokens
        self._split = split_shared_pages
        effort = {"reasoning_effort": reasoning_effort} if reasoning_effort else {}
        self._params: dict[str, Any] = effort
        self._slots = Slots(min(concurrency or CONCURRENCY, run_concurrency()))
        self._parents: dict[int, int] = {}
        self._marks: dict[int, asyncio.Future[None]] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._asked: dict[tuple[str, str], asyncio.Task[str]] = {}
        self._promised: list[tuple[Node, list[int]]] = []
        self._ended: Exception | None = None

    def mark_final(self, nodes: Iterable[Node]) -> None:
        """Promise that these nodes stay in the tree with the children they have."""
        marked = list(nodes)
        for node in marked:
            mark = self._mark(node)
            if not mark.done():
                mark.set_result(None)
                self._promised.append((node, [id(c) for c in children_of(node)]))
        below = list(walk(marked))
        self._parents |= {id(c): id(node) for node in below for c in children_of(node)}
        # What the most others wait for takes the first slots.
        for node in sorted(below, key=self._rank):
            self._start(node)

    async def finish(self) -> list[Node]:
        """
        Wait for every summary.

        Returns:
            The root nodes, each node with its summaries.

        Raises:
            VectorlessRagError: A failure that ends the run, or ``internal_error``
                if a promise of `mark_final` was broken.
        """
        self._check_promises()
        with suppress(Exception):
            await _all(self._task(root) for root in self.structure)
        if self._ended:
            raise self._ended
        for node in walk(self.structure):
            node.pop("_same_page", None)
        return self.structure

    def _check_promises(self) -> None:
        live = {id(node) for node in walk(self.structure)}
        broken = any(
            id(node) not in live or [id(c) for c in children_of(node)] != children
            for node, children in self._promised
        )
        if broken or not all(
            key in self._marks and self._marks[key].done() for key in live
        ):
            for task in self._tasks.values():
                task.cancel()
            raise VectorlessRagError(
                Code.INTERNAL_ERROR, "a node changed after it was final, or never was"
            )

    def _mark(self, node: Node) -> asyncio.Future[None]:
        mark = self._marks.get(id(node))
        if mark is None:
            mark = asyncio.get_running_loop().create_future()
            self._marks[id(node)] = mark
        return mark

    def _start(self, node: Node) -> None:
        if id(node) not in self._tasks:
            self._tasks[id(node)] = asyncio.create_task(self._visit(node))

    def _task(self, node: Node) -> asyncio.Task[None]:
        self._start(node)
        return self._tasks[id(node)]

    async def _visit(self, node: Node) -> None:
        try:
            await self._mark(node)
            below = [self._task(child) for child in children_of(node)]
            if node.get("summary"):
                await _all(below)
            else:
                # Its own text waits for nobody.
                own, rank = self._own_text(node), self._rank(node)
                direct = asyncio.create_task(self._direct(node, own, rank))
                await _all([*below, direct])
                await self._summarise(node, own, direct.result(), rank)
        except Exception as error:
            # The first failure is the reason; the rest follow from it.
            self._ended = self._ended or error
            raise

    async def _summarise(
        self, node: Node, own: str, direct: str | Lost, rank: int
    ) -> None:
        said, parent = _text(direct), children_of(node)
        subtree = await self._subtree(node, own, said, rank) if parent else None
        lost = {"direct_summary": direct, "subtree_summary": subtree}
        if subtree is None:
            lost = {"summary": direct}
        node["direct_summary"] = said
        node["subtree_summary"] = _text(direct if subtree is None else subtree)
        node["summary"] = node["subtree_summary"]
        marks = [
            {"code": str(outcome.code), "what": what}
            for what, outcome in lost.items()
            if isinstance(outcome, Lost)
        ]
        if marks:
            node["degraded"] = [*(node.get("degraded") or []), *marks]

    def _rank(self, node: Node) -> int:
        """Put the calls in front that the most others wait for, one after another."""
        depth, key = 0, id(node)
        while key in self._parents and depth < DEEPEST:
            depth, key = depth + 1, self._parents[key]
        return -depth

    def _own_text(self, node: Node) -> str:
        if children_of(node):
            return parent_text(node, self._pages).strip()
        if self._split:
            return leaf_text(self.structure, node, self._pages).strip()
        first, last = node.get("start_index"), node.get("end_index")
        return text_of_pages(self._pages, first, last).strip()

    async def _direct(self, node: Node, own: str, rank: int) -> str | Lost:
        """Summarise a node's own text; short text is its own summary."""
        parent = bool(children_of(node))
        if not own:
            # Nothing was asked, so a parent without text of its own lacks nothing.
            title = node.get("title") or ""
            return "" if parent else Lost(code=Code.SOURCE_NO_TEXT, fallback=title)
        if self._count(own) < self._small:
            return own
        operation = "summary_direct" if parent else "summary_leaf"
        try:
            return await self._reduce(operation, own, rank)
        except VectorlessRagError as error:
            return self._lost(error, f"Opening words: {' '.join(own.split())}")

    async def _reduce(self, operation: str, text: str, rank: int) -> str:
        """Summarise *text*, in parts while it is too long for one prompt."""
        prompt = partial(own_text_prompt, max_words=self._max_words)
        parts = list(pieces(text, cap=MAX_PROMPT_TOKENS, count=self._count))
        while len(parts) > 1:
            told = [await self._ask(operation, prompt(part), rank) for part in parts]
            joined = "\n".join(told)
            if len(joined) >= sum(map(len, parts)):
                # A reply as long as its text makes no headway: keep what fits.
                joined = joined[: len(joined) // 2]
            parts = list(pieces(joined, cap=MAX_PROMPT_TOKENS, count=self._count))
        return await self._ask(operation, prompt(parts[0]), rank)

    async def _subtree(
        self, node: Node, own: str, direct: str, rank: int
    ) -> str | Lost:
        opening = own if self._count(own) <= MAX_PROMPT_TOKENS // 2 else direct
        children = list(self._listing(children_of(node)))
        title = node.get("title") or ""
        prompt = subtree_prompt(title, opening, children, max_words=self._max_words)
        try:
            return await self._ask("summary_subtree", prompt, rank)
        except VectorlessRagError as error:
            titles = "; ".join(name for name, _ in children if name)
            return self._lost(error, f"Subsections: {titles}")

    def _listing(self, children: list[Node]) -> Iterator[tuple[str, str]]:
        """Title and summary of each child, all of them together under the cap."""
        share = MAX_PROMPT_TOKENS // 2 // len(children)
        for child in children:
            title, summary = child.get("title") or "", child.get("summary") or ""
            yield self._head(title, max(share // 2, 1)), self._head(summary, share // 2)

    def _head(self, text: str, cap: int) -> str:
        return next(pieces(text, cap=cap, count=self._count), "") if cap else ""

    def _lost(self, error: VectorlessRagError, fallback: str) -> Lost:
        if is_terminal(error):
            raise error
        return Lost(code=error.code, fallback=fallback[:FALLBACK_CHARS])

    async def _ask(self, operation: str, prompt: str, rank: int) -> str:
        # Siblings over exactly the same pages share one answer.
        key = operation, prompt
        if key not in self._asked:
            self._asked[key] = asyncio.create_task(self._call(operation, prompt, rank))
        return await self._asked[key]

    async def _call(self, operation: str, prompt: str, rank: int) -> str:
        async with self._slots.turn(rank):
            if self._ended:
                # The run is over: spend nothing more.
                raise self._ended
            reply = await llm_acompletion(
                self._model, prompt, operation=operation, **self._params
            )
        return summary_in(reply)

    def _count(self, text: str) -> int:
        return count_tokens(text, model=self._model)


async def _all(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Let every task end, so that none is left running; raise the first failure."""
    for ended in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(ended, BaseException):
            raise ended


def _text(outcome: str | Lost) -> str:
    return outcome.fallback if isinstance(outcome, Lost) else outcome
