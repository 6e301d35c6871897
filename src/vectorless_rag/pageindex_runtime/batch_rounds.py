"""
One batch, from its requests to what became of each.

A request for a batch whose answer is lost may have been heard all the same, so the
provider is asked for the batch by its name before anything is sent again.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol, TypeVar

from vectorless_rag.errors import Code
from vectorless_rag.pageindex_runtime import batch_lines
from vectorless_rag.pageindex_runtime.batch_lines import Outcome
from vectorless_rag.pageindex_runtime.batch_records import Record
from vectorless_rag.pageindex_runtime.litellm_batches import Batch
from vectorless_rag.pageindex_runtime.providers import Money, ProviderFailure

T = TypeVar("T")

FIRST_POLL_S = 0.5
"""Pause before the second look, in seconds; each one is half as long again."""

_GROWTH = 1.5
_STOPPING_POLL_S = 0.25

# The provider may need minutes to end a batch that was cancelled.
_CANCELLING_S = 900.0

_LOOKS_BY_NAME = 3
"""How often a batch is looked for before it counts as never created."""

_FETCHES = 8

_CLIENT_ERRORS = range(400, 500)


# From 429 on a whole batch: the provider has as much of ours as it takes.
_LONGEST_PAUSE_S = 600.0

_CameOfIt = tuple[ProviderFailure, Mapping[str, Outcome]]
"""What requests came to, by name, and what all others failed of."""


class Desk(Protocol):
    """Where batches are handed in; see `litellm_batches.LiteLLMBatches`."""

    async def upload(self, name: str, data: bytes) -> str: ...  # noqa: D102
    async def create(self, file_id: str, name: str) -> str: ...  # noqa: D102
    async def look(self, batch_id: str) -> Batch: ...  # noqa: D102
    async def find(self, name: str) -> Batch | None: ...  # noqa: D102
    async def cancel(self, batch_id: str) -> None: ...  # noqa: D102
    async def content(self, file_id: str) -> bytes: ...  # noqa: D102


class Round:
    """
    Carries out one batch.

    Args:
        desk: Where it is handed in.
        record: What is kept of it.
        poll_s: Longest pause between two looks, in seconds.
        billed: HTTP statuses after which a request counts as billed.
    """

    def __init__(
        self, desk: Desk, record: Record, *, poll_s: float, billed: frozenset[int]
    ) -> None:
        self.record = record
        self._desk = desk
        self._poll_s = poll_s
        self._billed = billed
        self._stopped = asyncio.Event()
        self._cancelled = False

    def stop(self) -> None:
        """Have the batch cancelled: what it has done by then still counts."""
        self._stopped.set()

    async def run(self, data: bytes | None) -> Mapping[str, Outcome]:
        """
        Hand the batch in, wait for its end and read what came of it.

        Args:
            data: Its requests; None: it was handed in by a run that is gone.

        Returns:
            What became of each request of the record.

        Raises:
            ProviderFailure: That could not be found out. The batch may be out.
        """
        refused, found = await (
            self._came_of_it() if data is None else self._ordered(data)
        )
        return {
            line.hold_id: found.get(line.hold_id) or refused.anew()
            for line in self.record.lines
        }

    async def _came_of_it(self) -> _CameOfIt:
        """Return what its files say of requests, and what all others failed of."""
        batch = await self._until_end()
        if batch is None:
            return batch_lines.NOT_CREATED, {}
        if batch.status == "failed":
            return batch_lines.refused(batch.error_code), {}
        found: dict[str, Outcome] = {}
        # A request that has a reply was answered, whatever else is said of it.
        for file_id in filter(None, (batch.error_file, batch.output_file)):
            data = await self._fetched(file_id)
            found |= batch_lines.outcomes(data, billed=self._billed)
        return batch_lines.MISSING, found

    async def _ordered(self, data: bytes) -> _CameOfIt:
        """Have *data* carried out; while the provider takes no more, try again."""
        try:
            file_id = await _patiently(
                lambda: self._desk.upload(self.record.name, data)
            )
        except ProviderFailure as failure:
            # A file costs nothing.
            return failure.anew(money=Money.VOID), {}
        wait_s = FIRST_POLL_S
        while True:
            refused = await self._create(file_id)
            found: Mapping[str, Outcome] = {}
            if refused is None:
                refused, found = await self._came_of_it()
            wait_s = max(wait_s, refused.retry_after_s or 0)
            if found or not self._try_again(refused, wait_s):
                return refused, found
            await self._pause(wait_s)
            wait_s = min(2 * wait_s, _LONGEST_PAUSE_S)

    async def _create(self, file_id: str) -> ProviderFailure | None:
        """Return why nothing was ordered; None: it was, or may have been."""
        if self._stopped.is_set():
            return ProviderFailure(
                "not_sent", Code.CANCELLED, retry=False, money=Money.VOID
            )
        self.record.creating()
        try:
            batch_id = await self._desk.create(file_id, self.record.name)
        except ProviderFailure as failure:
            unsent = failure.money is Money.VOID and failure.status is None
            if unsent or failure.status in _CLIENT_ERRORS:
                return failure.anew(money=Money.VOID)
        else:
            self.record.created(batch_id)
        return None

    def _try_again(self, refused: ProviderFailure, wait_s: float) -> bool:
        """Say whether nothing was done, and may be done later."""
        unbilled = refused.retry and refused.money is Money.VOID
        in_time = time.time() + wait_s < self.record.deadline
        return unbilled and in_time and not self._stopped.is_set()

    async def _until_end(self) -> Batch | None:
        """Wait until the batch has ended; None: it was never created."""
        looks, wait_s, began = 0, FIRST_POLL_S, time.time()
        while True:
            try:
                batch = await self._look()
            except ProviderFailure as failure:
                if not failure.retry:
                    raise
                wait_s = max(wait_s, failure.retry_after_s or 0)
            else:
                if batch is not None and batch.ended:
                    return batch
                looks += 1
                if batch is None and looks >= _LOOKS_BY_NAME:
                    return None
            # A run that takes it up later has its own time to end it.
            late_s = time.time() - max(self.record.deadline, began)
            if late_s > _CANCELLING_S:
                raise ProviderFailure(
                    "batch_not_ended", Code.TIMEOUT, retry=False, money=Money.UNKNOWN
                )
            if late_s > 0 or self._stopped.is_set():
                await self._cancel()
            await self._pause(wait_s)
            wait_s = min(wait_s * _GROWTH, self._poll_s)

    async def _look(self) -> Batch | None:
        if self.record.batch_id is not None:
            return await self._desk.look(self.record.batch_id)
        batch = await self._desk.find(self.record.name)
        if batch is not None:
            self.record.created(batch.batch_id)
        return batch

    async def _cancel(self) -> None:
        if self._cancelled or self.record.batch_id is None:
            return
        with contextlib.suppress(ProviderFailure):
            await self._desk.cancel(self.record.batch_id)
            self._cancelled = True

    async def _pause(self, wait_s: float) -> None:
        left_s = self.record.deadline - time.time()
        if self._stopped.is_set():
            await asyncio.sleep(_STOPPING_POLL_S)
            return
        # A deadline in between is kept.
        wait_s = min(wait_s, left_s) if left_s > 0 else wait_s
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._stopped.wait()

    async def _fetched(self, file_id: str) -> bytes:
        return await _patiently(lambda: self._desk.content(file_id))


async def _patiently(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask again while the failure may pass."""
    wait_s = FIRST_POLL_S
    for _ in range(_FETCHES - 1):
        try:
            return await ask()
        except ProviderFailure as failure:
            if not failure.retry:
                raise
            wait_s = max(wait_s, failure.retry_after_s or 0)
        await asyncio.sleep(wait_s)
        wait_s *= 2
    return await ask()
