"""
The one boundary through which every model call of the patched upstream goes.

The order of a call: validate, count, price; reserve; the provider, within a
deadline; classify; settle, void or leave unknown; read strictly; ask again once.
"""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Self

from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.pageindex_runtime.answers import Reply, asked_again, judge
from vectorless_rag.pageindex_runtime.background import Background
from vectorless_rag.pageindex_runtime.failures import ends_run
from vectorless_rag.pageindex_runtime.gate import Gate, OpenGate
from vectorless_rag.pageindex_runtime.journal import Journal, NoJournal
from vectorless_rag.pageindex_runtime.observations import NoObserver, Observer
from vectorless_rag.pageindex_runtime.planning import Planner
from vectorless_rag.pageindex_runtime.plans import Account, Counts, Plan, Policy, Shared
from vectorless_rag.pageindex_runtime.providers import (
    Message,
    Provider,
    ProviderReply,
    RemoteProvider,
)
from vectorless_rag.pageindex_runtime.replies import ReplyError
from vectorless_rag.pageindex_runtime.retry import Allowance
from vectorless_rag.pageindex_runtime.slots import Slots
from vectorless_rag.pageindex_runtime.tries import Tries
from vectorless_rag.prices import Prices

__all__ = ["Account", "Caller", "Counts", "Policy", "Reply"]


def _nothing(_counts: Counts) -> None:
    """Listen to no call."""


class Caller:
    """
    Makes the model calls of one run.

    Any thread may use it, also one that runs an event loop: the calls live on a
    thread of their own, which starts with the first of them. After a failure that
    ends the run no further request leaves, and `close` raises that failure again,
    even if the upstream swallowed it.

    Args:
        policy: What the calls may do.
        account: Where they are charged.
        prices: What they cost.
        offline: Answers models called ``offline/...``.
        remote: Makes the provider for all others, when the first is asked.
        on_call: Is told the counts before and after every call, on the calls' thread.
        journal: Keeps replies between runs; default: nothing is kept.
        gate: Bounds requests over all runs; default: only this run's are bounded.
        observer: Is told of every closed ledger row.
        content: Whether the observer is told prompts and replies too.
    """

    def __init__(
        self,
        *,
        policy: Policy,
        account: Account,
        prices: Prices,
        offline: Provider,
        remote: Callable[[], RemoteProvider],
        on_call: Callable[[Counts], None] = _nothing,
        journal: Journal | None = None,
        gate: Gate | None = None,
        observer: Observer | None = None,
        content: bool = False,
    ) -> None:
        self.policy = policy
        self.counts = Counts()
        self._planner = Planner(policy, prices, offline, remote)
        self._on_call = on_call
        self._tasks: set[asyncio.Task[Reply]] = set()
        self._refusal: VectorlessRagError | None = None
        self._stopped = False
        self._end: asyncio.Task[None] | None = None
        self._background = Background()
        self._shared = Shared(
            account=account,
            allowance=Allowance(concurrency=policy.limits.concurrency),
            slots=Slots(_at_once(policy)),
            gate=gate or OpenGate(),
            counts=self.counts,
            rng=random.Random(policy.attempt_id),  # noqa: S311  (jitter, no secret)
            check=self._check,
            journal=journal or NoJournal(),
            observer=observer or NoObserver(),
            content=content,
            ended=asyncio.Event(),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._shut_down()
        if error is None or isinstance(error, Exception):
            # The upstream may have raised something of its own over our failure.
            self._raise_refusal()

    def complete(
        self,
        operation: str,
        prompt: str,
        *,
        history: Sequence[Message] = (),
        model: str | None = None,
        params: Mapping[str, str] | None = None,
    ) -> Reply:
        """
        Ask a model and wait for the answer.

        Args:
            operation: What is asked, a key of `operations.OPERATIONS`.
            prompt: The question.
            history: Earlier turns, oldest first.
            model: ``provider/name``; default: the policy's.
            params: Further parameters; only ``reasoning_effort`` is known.

        Raises:
            VectorlessRagError: ``pageindex_...``, ``ledger_...`` or ``cancelled``.
                No text of prompt, reply or provider is in it.
        """
        return self._background.call(
            self._guarded(operation, prompt, history, model, params)
        )

    async def acomplete(
        self,
        operation: str,
        prompt: str,
        *,
        history: Sequence[Message] = (),
        model: str | None = None,
        params: Mapping[str, str] | None = None,
    ) -> Reply:
        """Ask a model; as `complete`. Cancelled, it records the request as unknown."""
        call = self._guarded(operation, prompt, history, model, params)
        return await asyncio.wrap_future(self._background.submit(call))

    def ends(self, error: VectorlessRagError) -> bool:
        """
        Say whether *error* ends the run.

        A refused request ends it at the start, where the model or the address is
        wrong. Once the model has answered, it is that prompt which is refused.
        """
        one_prompt = error.code is Code.BAD_REQUEST and self.counts.answered > 0
        return ends_run(error.code) and not one_prompt

    def cancel(self) -> None:
        """End the run: no further request leaves, and those in flight stop waiting."""
        self.interrupt()
        if self._background.started:
            self._background.call(self._stop(None))

    def interrupt(self) -> None:
        """
        Have the run end, and do not wait: a handler of signals may say so.

        Threads that wait for a reply go on at once, and whoever waits for them does.
        """
        cancelled = VectorlessRagError(Code.CANCELLED)
        if self._background.started:
            self._background.submit(self._stop(cancelled))
        else:
            self._refusal = self._refusal or cancelled

    def close(self) -> None:
        """
        Stop calls in flight, record them, and end the thread.

        Raises:
            VectorlessRagError: The failure that ended the run, if one did.
        """
        self._shut_down()
        self._raise_refusal()

    def _shut_down(self) -> None:
        if self._background.started:
            self._background.call(self._stop(None))
        self._background.close()

    async def _stop(self, refusal: VectorlessRagError | None) -> None:
        if refusal is not None:
            self._latch(refusal)
        if self._end is None:
            # Once, however many ask for it: a call that is settling what it has must
            # not be cancelled again.
            self._end = asyncio.create_task(self._end_calls())
        await asyncio.shield(self._end)

    async def _end_calls(self) -> None:
        self._stopped = True
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._planner.close()

    def _check(self) -> None:
        self._raise_refusal()
        if self._stopped:
            raise VectorlessRagError(Code.CANCELLED, "the run is over")

    def _raise_refusal(self) -> None:
        """Raise the failure that ended the run anew, without old tracebacks."""
        if self._refusal is not None:
            raise VectorlessRagError(self._refusal.code, self._refusal.detail) from None

    def _latch(self, error: VectorlessRagError) -> None:
        # The first failure is the reason; the others follow from it.
        self._refusal = self._refusal or error
        self._shared.ended.set()

    async def _guarded(
        self,
        operation: str,
        prompt: str,
        history: Sequence[Message],
        model: str | None,
        params: Mapping[str, str] | None,
    ) -> Reply:
        """Make a call; remember a failure that ends the run."""
        task = asyncio.current_task()
        if task is None:
            raise AssertionError
        self._tasks.add(task)
        try:
            return await self._call(operation, prompt, history, model, params)
        except VectorlessRagError as error:
            if self.ends(error) and not self._stopped:
                self._latch(error)
            raise
        except asyncio.CancelledError:
            if not self._stopped:
                raise
            stopped = VectorlessRagError(Code.CANCELLED, "the run is over")
        finally:
            self._tasks.discard(task)
        raise stopped

    async def _call(
        self,
        operation: str,
        prompt: str,
        history: Sequence[Message],
        model: str | None,
        params: Mapping[str, str] | None,
    ) -> Reply:
        async with self._shared.slots.turn():
            self._check()
            self.counts.in_flight += 1
            self._on_call(self.counts)
            try:
                plan = await self._planner.plan(
                    operation,
                    (*history, Message("user", prompt)),
                    model or self.policy.model,
                    dict(params or {}),
                )
                # The deadline runs from here: waiting for a slot is no fault of
                # the provider.
                reply = await self._answer(plan, Tries(plan, self._shared))
                self.counts.answered += 1
                return reply
            finally:
                self.counts.in_flight -= 1
                self.counts.calls += 1
                self._on_call(self.counts)

    async def _answer(self, plan: Plan, tries: Tries) -> Reply:
        self._shared.allowance.call()
        first = await tries.ask(plan.messages)
        try:
            return judge(plan.operation, first, continues=plan.continues)
        except VectorlessRagError as error:
            failed = error
        if not isinstance(failed, ReplyError) or tries.exhausted:
            tries.reject()
            raise failed
        self.counts.reasks += 1
        try:
            second = await tries.ask(asked_again(plan.messages, failed))
        except VectorlessRagError as error:
            # What went wrong first is the unusable reply, not the second request.
            if error.code not in {Code.TIMEOUT, Code.LLM_RETRY_EXHAUSTED}:
                raise
        else:
            return _last(plan, tries, second)
        raise failed


def _at_once(policy: Policy) -> int:
    """Return how many calls may be in flight: all of a batch, where there is one."""
    batched = policy.batching.requests if policy.batching else 0
    return max(policy.limits.concurrency, batched)


def _last(plan: Plan, tries: Tries, reply: ProviderReply) -> Reply:
    """Read a reply after which there is no other."""
    try:
        return judge(plan.operation, reply, continues=plan.continues)
    except VectorlessRagError:
        tries.reject()
        raise
