"""How many calls are in flight: bounded, and fewer when the provider says so."""

import asyncio
from collections import deque
from types import TracebackType
from typing import Self


class Slots:
    """
    Lets a number of calls in at once, and others wait in order.

    Additive increase, multiplicative decrease: a refusal for rate halves the
    number, and each success adds a fraction of one, up to *most*. Used from one
    event loop.

    Args:
        most: Calls in flight at once, at the start and at best.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._limit = float(most)
        self._taken = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def limit(self) -> int:
        """Calls that may be in flight now."""
        return int(self._limit)

    async def __aenter__(self) -> Self:
        while self._taken >= self.limit:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                # The turn goes to the next, whether it had come or not.
                self._let_in()
                raise
        self._taken += 1
        return self

    async def __aexit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._taken -= 1
        self._let_in()

    def refused(self) -> None:
        """Take note that the provider asked for fewer requests."""
        self._limit = max(1.0, self._limit / 2)

    def answered(self) -> None:
        """Take note of a success."""
        self._limit = min(self._most, self._limit + 1 / self._limit)
        self._let_in()

    def _let_in(self) -> None:
        free = self.limit - self._taken
        while free > 0 and self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                free -= 1
