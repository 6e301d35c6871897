"""
A provider that gathers requests, and sends them as batches.

A request waits for others for a short time, and for its batch for hours. Replies are in
the journal before anybody is handed one, and a batch of a run that is gone is waited
for before anything is sent: no request is paid for twice.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from vectorless_rag.batching import Batching
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.pageindex_runtime import batch_lines
from vectorless_rag.pageindex_runtime.batch_gathering import Call, Gathering, Sent
from vectorless_rag.pageindex_runtime.batch_lines import Outcome
from vectorless_rag.pageindex_runtime.batch_records import Line, Record, Records
from vectorless_rag.pageindex_runtime.batch_rounds import Desk, Round
from vectorless_rag.pageindex_runtime.closing import Late
from vectorless_rag.pageindex_runtime.journal import Journal
from vectorless_rag.pageindex_runtime.litellm_batches import ENDPOINT
from vectorless_rag.pageindex_runtime.providers import (
    Money,
    ProviderFailure,
    ProviderReply,
    ProviderRequest,
)

BEAT_S = 5.0
"""Between two signs of life while batches are out, in seconds."""

_NOT_FOUND = 404


class OpenDesk(Desk, Protocol):
    """A desk that must be loaded first, and spells requests."""

    async def open(self) -> None: ...  # noqa: D102
    async def close(self) -> None: ...  # noqa: D102
    def body(self, request: ProviderRequest) -> dict[str, Any]: ...  # noqa: D102


@dataclass(frozen=True, kw_only=True)
class Behind:
    """What stands behind a provider of batches."""

    desk: OpenDesk
    journal: Journal
    records: Records
    late: Late
    billed: frozenset[int] = field(default_factory=frozenset)


class BatchProvider:
    """
    Answers requests by batch.

    Args:
        behind: Where batches are handed in and what is kept of them.
        batching: When a batch is sent, and for how long it is waited for.
        on_beat: Is told every few seconds, while batches are out, for how many
            seconds that was so until now.
        beat_s: How often, in seconds.
    """

    def __init__(
        self,
        behind: Behind,
        batching: Batching,
        *,
        on_beat: Callable[[int], None],
        beat_s: float = BEAT_S,
    ) -> None:
        self._behind = behind
        self._batching = batching
        self._on_beat = on_beat
        self._beat_s = beat_s
        self._gathering = Gathering(
            batching.window_s, batching.requests, self._send_batch
        )
        self._out: set[asyncio.Task[None]] = set()
        self._beating: asyncio.Task[None] | None = None
        self._waited_s = 0.0

    async def open(self) -> None:
        """
        Load what is needed, and wait for the batches of runs that are gone.

        Raises:
            VectorlessRagError: What became of one could not be found out: the next
                run looks again, and nothing is sent meanwhile.
        """
        await self._behind.desk.open()
        rounds = [self._round(record) for record in self._behind.records.left()]
        if not rounds:
            return
        for each in rounds:
            self._follow(self._take_up(each))
        tasks = tuple(self._out)
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError:
            for each in rounds:
                each.stop()
            await asyncio.wait(tasks, timeout=self._batching.stop_s)
            await self._end(tasks)
            raise
        failed = [error for task in tasks if (error := task.exception()) is not None]
        if failed:
            raise failed[0]

    async def close(self) -> None:
        """Leave what is still out to the next run."""
        self._gathering.stop()
        await self._end(self._out)
        await self._behind.desk.close()

    async def _end(self, tasks: Iterable[asyncio.Task[None]]) -> None:
        every = [*tasks, *filter(None, (self._beating,))]
        for task in every:
            task.cancel()
        await asyncio.gather(*every, return_exceptions=True)

    async def send(self, request: ProviderRequest) -> ProviderReply:
        """
        Send one request with others, once.

        Raises:
            ProviderFailure: There is no reply.
        """
        body = self._behind.desk.body(request)
        call = Call(
            request,
            batch_lines.line(request.hold_id, ENDPOINT, body),
            asyncio.get_running_loop().create_future(),
        )
        self._gathering.add(call)
        try:
            return _told(await asyncio.shield(call.outcome))
        except asyncio.CancelledError:
            outcome = await self._leave(call)
            if outcome is None:
                raise
        return _told(outcome)

    def _send_batch(self, calls: list[Call]) -> None:
        first, most_s = calls[0].request, min(call.request.timeout_s for call in calls)
        lines = tuple(
            Line(hold_id=call.request.hold_id, key=call.request.key) for call in calls
        )
        try:
            record = self._behind.records.add(first.model, time.time() + most_s, lines)
        except OSError:
            failure = ProviderFailure(
                "journal", Code.STORE_UNWRITABLE, retry=False, money=Money.VOID
            )
            for call in calls:
                call.outcome.set_result(failure.anew())
            return
        this = self._round(record)
        for call in calls:
            call.sent = Sent(this, calls)
        self._follow(self._carry_out(this, calls))

    def _round(self, record: Record) -> Round:
        return Round(
            self._behind.desk,
            record,
            poll_s=self._batching.poll_s,
            billed=self._behind.billed,
        )

    async def _carry_out(self, this: Round, calls: list[Call]) -> None:
        """Carry out a batch; whatever happens, each of *calls* is told."""
        outcomes: Mapping[str, Outcome] = {}
        why = _unknown(Code.INTERNAL_ERROR, "internal")
        try:
            data = b"".join(call.line for call in calls)
            outcomes = await this.run(data)
            self._keep(this.record, outcomes, {c.request.hold_id: c for c in calls})
        except ProviderFailure as failure:
            # The batch may be out: to try again would be to pay twice.
            why = failure.anew(money=Money.UNKNOWN, retry=False)
        except VectorlessRagError as error:
            why = _unknown(error.code, "account")
        finally:
            this.record.leave()
            for call in calls:
                if not call.outcome.done():
                    outcome = outcomes.get(call.request.hold_id) or why.anew()
                    call.outcome.set_result(outcome)

    async def _take_up(self, this: Round) -> None:
        """Wait for a batch of a run that is gone."""
        failed: ProviderFailure | None = None
        try:
            self._keep(this.record, await this.run(None), {})
        except ProviderFailure as failure:
            failed = failure
        finally:
            this.record.leave()
        if failed is not None and failed.status == _NOT_FOUND:
            # The provider has thrown it away. Its rows stay as they are.
            self._behind.records.remove(this.record)
        elif failed is not None:
            raise VectorlessRagError(failed.code, f"earlier batch: {failed.detail}")

    def _keep(
        self,
        record: Record,
        outcomes: Mapping[str, Outcome],
        calls: Mapping[str, Call],
    ) -> None:
        """Keep every reply, and close what nobody else will close."""
        for line in record.lines:
            outcome = outcomes[line.hold_id]
            if isinstance(outcome, ProviderReply) and outcome.usage is not None:
                self._behind.journal.keep(line.key, outcome)
            call = calls.get(line.hold_id)
            if call is None or call.left:
                self._behind.late.close(line.hold_id, record.model, outcome)
        self._behind.records.remove(record)

    async def _leave(self, call: Call) -> Outcome | None:
        """Stop waiting; return what came of it, if that is known in time."""
        if call.outcome.done():
            return call.outcome.result()
        if call.sent is None:
            self._gathering.remove(call)
            return _unsent()
        call.leaving = True
        if all(each.leaving for each in call.sent.calls):
            call.sent.round.stop()
        try:
            await asyncio.wait({call.outcome}, timeout=self._batching.stop_s)
        finally:
            call.left = not call.outcome.done()
        return None if call.left else call.outcome.result()

    def _follow(self, work: Coroutine[Any, Any, None]) -> None:
        """Have *work* done while others go on, and give signs of life meanwhile."""
        task = asyncio.create_task(work)
        self._out.add(task)
        task.add_done_callback(self._out.discard)
        if self._beating is None or self._beating.done():
            self._beating = asyncio.create_task(self._beat())

    async def _beat(self) -> None:
        """Give signs of life while batches are out."""
        began = time.monotonic()
        while self._out:
            await asyncio.wait(self._out, timeout=self._beat_s)
            now = time.monotonic()
            self._waited_s += now - began
            began = now
            # A database that is away is met by whoever needs it.
            with contextlib.suppress(VectorlessRagError):
                self._on_beat(int(self._waited_s))


def _unknown(code: Code, kind: str) -> ProviderFailure:
    return ProviderFailure(kind, code, retry=False, money=Money.UNKNOWN)


def _told(outcome: Outcome) -> ProviderReply:
    """Return a reply, or raise a failure."""
    if isinstance(outcome, ProviderFailure):
        raise outcome
    return outcome


def _unsent() -> ProviderFailure:
    return ProviderFailure("not_sent", Code.CANCELLED, retry=False, money=Money.VOID)
