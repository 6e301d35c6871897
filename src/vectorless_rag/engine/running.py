"""What a worker is building now, and why a job of it has to stop."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum

from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.ledger.job_types import Held, JobRow


class Stop(StrEnum):
    """Why a job stops before its end."""

    CANCELLED = "cancelled"
    """Somebody asked for it."""

    ENDING = "ending"
    """The worker ends, and hands it back."""

    LOST = "lost"
    """The job is another worker's now, or will be."""


@dataclass
class Here:
    """One job that is being built here."""

    job: JobRow
    since: float
    is_alone: Callable[[], bool]
    why: Stop | None = None

    def stop(self, why: Stop) -> None:
        """Have it stop soon; the first reason stands."""
        self.why = self.why or why

    def check(self) -> None:
        """
        Do nothing, unless it has to stop.

        Raises:
            VectorlessRagError: ``cancelled``.
        """
        if self.is_alone():
            self.stop(Stop.LOST)
        if self.why is not None:
            raise VectorlessRagError(Code.CANCELLED)


@dataclass
class Running:
    """
    The jobs that a worker is building.

    Args:
        alone_after_s: Without a sign of life for so long, in seconds, the others
            take this worker for dead and begin its jobs: it stops them itself.
        clock: Seconds that only ever grow.
    """

    alone_after_s: float
    clock: Callable[[], float] = time.monotonic
    _by_attempt: dict[str, Here] = field(default_factory=dict)
    _guard: threading.Lock = field(default_factory=threading.Lock)
    _seen: float = 0
    _turns: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._seen = self.clock()

    def __len__(self) -> int:
        return len(self._by_attempt)

    @property
    def turns(self) -> int:
        """Turns that are being carried out, those too that have not begun a job."""
        return len(self._turns)

    @contextmanager
    def turn(self, attempt: str) -> Iterator[None]:
        """Count a turn while the block runs; a job begun in it is of *attempt*."""
        with self._guard:
            self._turns.add(attempt)
        try:
            yield
        finally:
            with self._guard:
                self._turns.remove(attempt)

    def is_at(self, attempt: str) -> bool:
        """Whether the turn of an attempt is being carried out."""
        return attempt in self._turns

    @contextmanager
    def of(self, attempt: str, job: JobRow) -> Iterator[Here]:
        """Take note of a job while the block runs."""
        here = Here(job, self.clock(), self.is_alone)
        with self._guard:
            self._by_attempt[attempt] = here
        try:
            yield here
        finally:
            with self._guard:
                del self._by_attempt[attempt]

    def seen(self) -> None:
        """Take note that the others were given a sign of life."""
        self._seen = self.clock()

    def stop_all(self, why: Stop) -> None:
        """Have every job stop soon."""
        for here in self._all().values():
            here.stop(why)

    def heed(self, before: Iterable[str], held: Iterable[Held]) -> None:
        """
        Stop what was cancelled, and what is this worker's no more.

        Args:
            before: Attempts that ran before *held* was read.
            held: What the board says this worker is at.
        """
        known = {h.attempt_id: h for h in held}
        running = self._all()
        for attempt in before:
            here = running.get(attempt)
            if here is None:
                continue
            if attempt not in known:
                here.stop(Stop.LOST)
            elif known[attempt].cancelling:
                here.stop(Stop.CANCELLED)

    def attempts(self) -> tuple[str, ...]:
        """Name the attempts that run."""
        return tuple(self._all())

    def _all(self) -> dict[str, Here]:
        with self._guard:
            return dict(self._by_attempt)

    def is_alone(self) -> bool:
        """Whether the others were given no sign of life for too long."""
        return self.clock() - self._seen > self.alone_after_s
