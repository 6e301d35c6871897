"""How many calls are in flight: bounded, and fewer when the provider says so."""

import asyncio
import heapq
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count


class Slots:
    """
    Lets a number of calls in at once; the others wait, the most urgent in front.

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
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._numbers = count()

    @property
    def limit(self) -> int:
        """Calls that may be in flight now."""
        return int(self._limit)

    @asynccontextmanager
    async def turn(self, rank: int = 0) -> AsyncIterator[None]:
        """
        Wait for a slot, and hold it while the block runs.

        Args:
            rank: Of two that wait the lower goes first, of equals who came first.
        """
        while self._taken >= self.limit:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            heapq.heappush(self._waiting, (rank, next(self._numbers), turn))
            try:
                await turn
            except asyncio.CancelledError:
                # The turn goes to the next, whether it had come or not.
                self._let_in()
                raise
        self._taken += 1
        try:
            yield
        finally:
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
            *_, turn = heapq.heappop(self._waiting)
            if not turn.done():
                turn.set_result(None)
                free -= 1
