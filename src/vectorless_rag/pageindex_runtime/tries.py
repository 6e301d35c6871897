"""
One call's tries: each reserved, sent, and closed in the ledger.

Everything that touches the ledger here is a plain call without an await inside, so
that no cancellation can come between a request and its record.
"""

import asyncio
import contextlib
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.ledger.types import Hold
from vectorless_rag.pageindex_runtime.closing import Closer, Sent, now_us
from vectorless_rag.pageindex_runtime.gate import Gate, OpenGate
from vectorless_rag.pageindex_runtime.journal import Journal, NoJournal
from vectorless_rag.pageindex_runtime.plans import Plan, Shared
from vectorless_rag.pageindex_runtime.providers import (
    Message,
    Money,
    ProviderFailure,
    ProviderReply,
    ProviderRequest,
)
from vectorless_rag.pageindex_runtime.tokens import bound_tokens
from vectorless_rag.prices import OFFLINE_PREFIX
from vectorless_rag.units import NanoUsd, Sha256

LEASE_MARGIN_S = 30.0
"""How much longer a hold is leased than its call may take, in seconds."""

BATCH_LEASE_S = 120.0
"""How long a hold of a batch is leased, in seconds; whoever waits for it renews it."""

# Of the call's deadline: the longest single try, so that a stalled socket leaves
# time for another, and the shortest that is worth a request.
_LONGEST_TRY = 0.6
_SHORTEST_TRY = 0.05


# What a provider answers when it gets more requests than it takes.
_SLOW_DOWN = frozenset({429, 503, 529})


class Tries:
    """
    The tries of one call, within one deadline that starts with this object.

    Args:
        plan: What is asked.
        shared: What it shares with other calls.
    """

    def __init__(self, plan: Plan, shared: Shared) -> None:
        self._plan = plan
        self._shared = shared
        self._closer = Closer(plan, shared)
        # An offline model answers the same way each time, for free.
        offline = plan.model.startswith(OFFLINE_PREFIX)
        self._journal: Journal = NoJournal() if offline else shared.journal
        # A batch is one request, for hours: it must not hold up those of others.
        free = offline or plan.batched
        self._gate: Gate = OpenGate() if free else shared.gate
        self._keys: list[Sha256] = []
        self._made = 0
        self._deadline = _now() + plan.timeout_s

    @property
    def exhausted(self) -> bool:
        """Whether no further request may be made."""
        return self._made >= self._plan.attempts or not self._fits(0)

    async def ask(self, messages: tuple[Message, ...]) -> ProviderReply:
        """
        Send *messages* until there is a reply.

        Raises:
            VectorlessRagError: The failure of the last try, or a refusal.
        """
        key = self._journal.key(self._request(messages, 0))
        self._keys.append(key)
        kept = self._kept(key, messages)
        if kept is not None:
            return kept
        failures = 0
        while True:
            try:
                return await self._next(messages, key)
            except ProviderFailure as error:
                failure = error
            failures += 1
            wait_s = self._wait_s(failures, failure.retry_after_s)
            if not self._again(failure, wait_s):
                raise self._error(failure)
            self._shared.counts.retries += 1
            await self._pause(wait_s)

    def reject(self) -> None:
        """Take note that no use could be made of the replies."""
        for key in self._keys:
            self._journal.reject(key)

    def _again(self, failure: ProviderFailure, wait_s: float) -> bool:
        """Decide before waiting: a wait that ends past the deadline helps nobody."""
        return (
            failure.retry
            and self._made < self._plan.attempts
            and self._fits(wait_s)
            and (self._is_free(failure) or self._shared.allowance.take())
        )

    def _is_free(self, failure: ProviderFailure) -> bool:
        """Say whether it is no storm: a batch that ends early fails all it left."""
        return self._plan.batched and failure.money is Money.VOID

    def _error(self, failure: ProviderFailure) -> VectorlessRagError:
        name, tries = self._plan.operation.name, self._made
        return VectorlessRagError(
            failure.code, f"{name}: {failure.detail}, try {tries}"
        )

    def _kept(self, key: Sha256, messages: tuple[Message, ...]) -> ProviderReply | None:
        """Return the reply that an earlier run paid for, if there is one."""
        self._shared.check()
        reply = self._journal.find(key)
        if reply is None:
            return None
        self._closer.replay(self._sent(messages, free=True), reply)
        return reply

    async def _next(self, messages: tuple[Message, ...], key: Sha256) -> ProviderReply:
        asked = _now()
        async with self._gate.place():
            # Other documents' requests are no fault of the provider.
            self._deadline += _now() - asked
            return await self._try(messages, key)

    async def _try(self, messages: tuple[Message, ...], key: Sha256) -> ProviderReply:
        self._shared.check()
        sent = self._sent(messages, free=False)
        await self._reserve(sent.hold)
        self._shared.counts.requests += 1
        self._shared.counts.unpriced += self._plan.price is None
        try:
            reply = await self._send(sent, key)
        except ProviderFailure as error:
            self._closer.fail(sent, error)
            if error.status in _SLOW_DOWN and not self._plan.batched:
                self._shared.slots.refused()
            raise
        except BaseException:
            # Cancelled, or out of memory: the request may have left.
            self._closer.interrupt(sent)
            raise
        if reply.usage is not None:
            # Before the row is settled, so that no settled call is paid for twice.
            self._journal.keep(key, reply)
        self._closer.settle(sent, reply)
        self._shared.slots.answered()
        return reply

    def _sent(self, messages: tuple[Message, ...], *, free: bool) -> Sent:
        self._made += 1
        hold = self._hold(messages, free=free)
        return Sent(hold=hold, messages=messages, started_us=now_us())

    def _hold(self, messages: tuple[Message, ...], *, free: bool) -> Hold:
        plan = self._plan
        prompt_tokens = bound_tokens(messages, plan.model)
        amount = NanoUsd(0)
        if plan.price is not None and not free:
            amount = plan.price.most(
                prompt_tokens=prompt_tokens, output_tokens=plan.max_tokens
            )
        return Hold(
            hold_id=f"{plan.call_id}:{self._made}",
            attempt_id=plan.attempt_id,
            operation=plan.operation.name,
            model=plan.model,
            amount=amount,
            prompt_tokens=prompt_tokens,
            budgets=plan.budgets,
            lease_s=BATCH_LEASE_S
            if plan.batched
            else max(self._rest_s(), 0) + LEASE_MARGIN_S,
            call_id=plan.call_id,
            try_no=self._made,
        )

    async def _reserve(self, hold: Hold) -> None:
        """Reserve; while others hold the rest of a budget, wait for them."""
        rounds = 0
        while True:
            try:
                self._shared.account.reserve(hold)
            except VectorlessRagError as error:
                if error.code is not Code.BUDGET_CONTENDED:
                    raise
                contended = error
            else:
                return
            rounds += 1
            wait_s = self._wait_s(rounds, None)
            if not self._fits(wait_s):
                raise contended
            await self._pause(wait_s)
            self._shared.check()

    async def _send(self, sent: Sent, key: Sha256) -> ProviderReply:
        timeout_s = self._rest_s()
        if not self._plan.batched:
            timeout_s = min(timeout_s, self._plan.timeout_s * _LONGEST_TRY)
        request = replace(
            self._request(sent.messages, timeout_s), hold_id=sent.hold.hold_id, key=key
        )
        failure = _timeout()
        try:
            # A client's own timeout bounds each read, not the whole reply. A batch
            # ends by itself, since what it has done must be asked for.
            async with asyncio.timeout(None if self._plan.batched else timeout_s):
                sending = self._plan.provider.send(request)
                if self._plan.batched:
                    return await self._unless_ended(sending)
                return await sending
        except (ProviderFailure, MemoryError):
            raise
        except TimeoutError:
            pass
        except Exception:  # noqa: BLE001  (a provider's defect may quote the prompt)
            failure = _defect()
        # Outside the clauses: what they caught must not become its context.
        raise failure

    async def _unless_ended(
        self, sending: Coroutine[Any, Any, ProviderReply]
    ) -> ProviderReply:
        """Wait for hours, or until the run has ended: nobody needs a reply then."""
        task = asyncio.create_task(sending)
        ended = asyncio.create_task(self._shared.ended.wait())
        try:
            await asyncio.wait({task, ended}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            # It may bring what it has all the same.
            await _at_its_end(task)
            return task.result()
        finally:
            ended.cancel()
        await _at_its_end(task)
        if task.cancelled():
            raise _interrupted()
        return task.result()

    def _request(
        self, messages: tuple[Message, ...], timeout_s: float
    ) -> ProviderRequest:
        plan = self._plan
        return ProviderRequest(
            operation=plan.operation.name,
            model=plan.model,
            messages=messages,
            max_tokens=plan.max_tokens,
            timeout_s=timeout_s,
            params=plan.params,
        )

    def _wait_s(self, failures: int, retry_after_s: float | None) -> float:
        return self._plan.backoff.wait_s(failures, retry_after_s, self._shared.rng)

    def _rest_s(self) -> float:
        return self._deadline - _now()

    def _fits(self, wait_s: float) -> bool:
        """Say whether a useful try fits in after waiting *wait_s*."""
        return wait_s + self._plan.timeout_s * _SHORTEST_TRY < self._rest_s()

    async def _pause(self, wait_s: float) -> None:
        """Wait, or stop waiting when the run has ended."""
        ended = asyncio.ensure_future(self._shared.ended.wait())
        try:
            await asyncio.wait({ended}, timeout=wait_s)
        finally:
            ended.cancel()


async def _at_its_end(task: asyncio.Task[ProviderReply]) -> None:
    """Have *task* end, and wait for it, also where this is told to end meanwhile."""
    task.cancel()
    while not task.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait({task})


def _now() -> float:
    return asyncio.get_running_loop().time()


def _timeout() -> ProviderFailure:
    return ProviderFailure("timeout", Code.TIMEOUT, retry=True, money=Money.UNKNOWN)


def _interrupted() -> ProviderFailure:
    return ProviderFailure(
        "interrupted", Code.CANCELLED, retry=False, money=Money.UNKNOWN
    )


def _defect() -> ProviderFailure:
    return ProviderFailure(
        "internal", Code.INTERNAL_ERROR, retry=False, money=Money.UNKNOWN
    )
