"""What this package asks of an engine."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from vectorless_rag.errors import Code

AWAY = frozenset({Code.LEDGER_UNAVAILABLE, Code.ENGINE_UNAVAILABLE})
"""What passes by itself, once the database is back."""

Work = Callable[[str], str]
"""Carries out the turn of that id, and says in one word what came of it."""


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One try to have a job built, as the engine knows it."""

    turn_id: str
    """The same id again is the same turn."""

    owner: str
    version: str
    """Only workers that run this code are handed it."""

    priority: int
    """Lower goes first."""

    delay_s: float = 0
    """Not before so many seconds from now."""


class Queue(Protocol):
    """
    The end of an engine that puts turns in.

    Every method raises `VectorlessRagError` with ``engine_unavailable`` when the
    database cannot be read or written.
    """

    def enqueue(self, turn: Turn) -> None:
        """Put a turn in, unless it is there or was."""
        ...

    def cancel(self, turn_ids: Sequence[str]) -> None:
        """Take turns out; what somebody was handed is his no more."""
        ...

    def lost(self, turn_ids: Sequence[str], alive: Collection[str]) -> set[str]:
        """Tell which of these nobody has or will be handed; *alive*: the workers."""
        ...

    def held_by(self, worker_id: str) -> list[str]:
        """List the turns that a worker was handed and has not ended."""
        ...

    def close(self) -> None:
        """Let go of the database."""
        ...


class Hands(Protocol):
    """The end of an engine that hands turns out, in a worker's process."""

    def start(self, work: Work) -> None:
        """
        Begin to be handed turns, each on a thread that lives as long as this does.

        Raises:
            VectorlessRagError: ``engine_unavailable``.
        """
        ...

    def take(self, slots: int) -> None:
        """Be handed turns as long as fewer than *slots* are being carried out."""
        ...

    def stop(self) -> None:
        """Let go of the database; nothing is handed out any more."""
        ...
