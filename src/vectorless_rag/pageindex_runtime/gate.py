"""How many requests are in flight to one provider, over all processes here."""

import asyncio
import fcntl
import os
import random
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

from vectorless_rag.canon import digest
from vectorless_rag.errors import Code, VectorlessRagError

_POLL_S = 0.02
"""Shortest wait for a place, in seconds; it grows to `_LONGEST_POLL_S`."""

_LONGEST_POLL_S = 0.25


class Gate(Protocol):
    """Lets a number of requests through at once."""

    def place(self) -> AbstractAsyncContextManager[None]:
        """Wait for a place, and give it back at the end."""
        ...


class OpenGate:
    """Lets everything through."""

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Wait for nothing."""
        yield


class FileGate:
    """
    A folder with one locked file for each request in flight.

    The kernel lets go of a lock when its holder dies, however it dies, so no place
    is ever lost. Waiting processes look again after short random waits.

    Args:
        folder: Shared by the processes that are bounded together; made on first use.
        provider: Which places are meant: those of one provider at one address.
        most: Requests in flight at once.
        rng: Spreads the waits and the places.
    """

    def __init__(
        self, folder: Path, *, provider: tuple[str, str | None], most: int,
        rng: random.Random,
    ) -> None:  # fmt: skip
        name, server = provider
        self._folder = folder / f"{name}-{digest('gate/1', server)[:12]}"
        self._most = most
        self._rng = rng

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """
        Wait for a place, and give it back at the end.

        Raises:
            VectorlessRagError: ``store_unwritable``, if the folder cannot be used.
        """
        held, wait_s = self._try(), _POLL_S
        while held is None:
            await asyncio.sleep(wait_s * self._rng.uniform(0.5, 1.5))
            wait_s = min(2 * wait_s, _LONGEST_POLL_S)
            held = self._try()
        try:
            yield
        finally:
            os.close(held)

    def _try(self) -> int | None:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Spread: all that look in one order would meet at the same file.
            for number in self._rng.sample(range(self._most), self._most):
                held = _locked(self._folder / f"{number}.lock")
                if held is not None:
                    return held
        except OSError as error:
            raise VectorlessRagError(
                Code.STORE_UNWRITABLE, f"{self._folder.parent.name}: {error.strerror}"
            ) from None
        return None


def _locked(path: Path) -> int | None:
    """Lock *path* and return its descriptor; None, if another has it."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    except BaseException:
        os.close(fd)
        raise
    return fd
