"""Requests that wait for others to share a batch with."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from vectorless_rag.pageindex_runtime.batch_lines import Outcome
from vectorless_rag.pageindex_runtime.batch_rounds import Round
from vectorless_rag.pageindex_runtime.providers import ProviderRequest

MOST_BYTES = 100_000_000
"""Requests of one batch, in bytes; providers take twice as many."""


@dataclass(eq=False)
class Call:
    """One request, and who waits for what comes of it."""

    request: ProviderRequest
    line: bytes
    outcome: asyncio.Future[Outcome]

    sent: "Sent | None" = None
    """None: it is gathered."""

    leaving: bool = False
    """Whoever asked was told to end, and waits a little longer."""

    left: bool = False
    """Nobody waits any more."""


@dataclass(frozen=True)
class Sent:
    """A batch, and all its requests."""

    round: Round
    calls: list[Call]


class Gathering:
    """
    Gathers calls until there are enough, or some time after the first.

    Args:
        window_s: How long, in seconds.
        most: Calls of one batch.
        send: Is handed calls for one model.
    """

    def __init__(
        self, window_s: float, most: int, send: Callable[[list[Call]], None]
    ) -> None:
        self._window_s = window_s
        self._most = most
        self._send = send
        self._calls: list[Call] = []
        self._bytes = 0
        self._end: asyncio.TimerHandle | None = None

    def add(self, call: Call) -> None:
        """Gather *call*; it may be sent at once."""
        self._calls.append(call)
        self._bytes += len(call.line)
        if len(self._calls) >= self._most or self._bytes >= MOST_BYTES:
            self._close()
        elif self._end is None:
            loop = asyncio.get_running_loop()
            self._end = loop.call_later(self._window_s, self._close)

    def remove(self, call: Call) -> None:
        """Forget a call that was not sent yet."""
        self._calls.remove(call)
        self._bytes -= len(call.line)

    def stop(self) -> None:
        """Send nothing any more."""
        if self._end is not None:
            self._end.cancel()
            self._end = None

    def _close(self) -> None:
        self.stop()
        calls, self._calls, self._bytes = self._calls, [], 0
        for model in dict.fromkeys(call.request.model for call in calls):
            # A batch is for one model.
            self._send([call for call in calls if call.request.model == model])
