"""The board: the one way in to jobs and workers, beside the ledger's money."""

from collections.abc import Callable, Sequence
from typing import Self

from vectorless_rag.errors import Failure
from vectorless_rag.ledger import jobs, workers
from vectorless_rag.ledger.book import now_us
from vectorless_rag.ledger.connection import Database
from vectorless_rag.ledger.job_types import (
    Claim,
    Claimed,
    End,
    Held,
    Job,
    JobRow,
    Tally,
    WorkerRow,
)
from vectorless_rag.ledger.opening import open_database


class Board:
    """
    What is to be built, by whom, and what became of it.

    It lies in the ledger's database, and is used as a `Ledger` is: by any number of
    processes and threads, every step whole or not at all and safe to take again.

    Any method raises `VectorlessRagError` with ``ledger_unavailable`` when the
    database cannot be read or written; nothing has changed then.
    """

    def __init__(self, database: Database, clock: Callable[[], int]) -> None:
        self._database = database
        self._clock = clock

    @classmethod
    def open(cls, url: str, *, clock: Callable[[], int] = now_us) -> Self:
        """
        Open the board; make its database and tables if need be.

        Args:
            url: As of `Ledger.open`.
            clock: The time in microseconds since 1970, UTC.

        Raises:
            VectorlessRagError: ``ledger_unavailable``.
        """
        return cls(open_database(url), clock)

    def close(self) -> None:
        """Close the connection."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Jobs.

    def add(self, job: Job) -> tuple[JobRow, bool]:
        """
        Record a job, unless it is there; return it, and whether it is new.

        One that failed or was cancelled takes the path that it is submitted under now.
        """
        now = self._clock()
        return self._database.write(lambda t: jobs.add(t, job, now))

    def job(self, recipe: str) -> JobRow | None:
        """Read one job; None if there is none."""
        return self._database.read(lambda t: jobs.read(t, recipe))

    def jobs(self) -> list[JobRow]:
        """List all jobs in the order they were submitted."""
        return self._database.read(jobs.every)

    def of_document(self, document: str) -> list[JobRow]:
        """List the jobs of certain bytes, by their SHA-256, as they were submitted."""
        return self._database.read(lambda t: jobs.of_document(t, document))

    def named(self, start: str) -> tuple[str, ...]:
        """Name the first two jobs whose recipe hash begins with *start*."""
        return self._database.read(lambda t: jobs.named(t, start))

    def claim(self, wish: Claim) -> Claimed:
        """Begin a job, unless it is not there to be begun; the try counts."""
        now = self._clock()
        return self._database.write(lambda t: jobs.claim(t, wish, now))

    def finish(self, recipe: str, attempt: str, end: End) -> bool:
        """Record how a job ended; return whether it was still this attempt's."""
        now = self._clock()
        return self._database.write(lambda t: jobs.finish(t, recipe, attempt, end, now))

    def hand_back(
        self,
        recipe: str,
        attempt: str,
        *,
        turn: int,
        counted: bool,
        failure: Failure | None = None,
        delay_s: float = 0,
    ) -> bool:
        """
        Queue a job that was begun for its next turn.

        Args:
            recipe: Which job.
            attempt: Whose it is.
            turn: The turn that ends.
            counted: Whether the try counts.
            failure: Why, if something failed.
            delay_s: Nobody begins it before, in seconds.

        Returns:
            Whether it was still this attempt's.
        """
        now, ready = self._clock(), self._later(delay_s)
        return self._database.write(
            lambda t: jobs.hand_back(
                t,
                recipe,
                attempt,
                turn=turn,
                counted=counted,
                failure=failure,
                now=now,
                ready=ready,
            )
        )

    def next_turn(self, recipe: str, turn: int, *, delay_s: float = 0) -> bool:
        """Queue a job that was not begun for its next turn, if *turn* is this one."""
        ready = self._later(delay_s)
        return self._database.write(lambda t: jobs.next_turn(t, recipe, turn, ready))

    def cancel(self, recipe: str) -> JobRow | None:
        """Cancel a job that waits; ask the worker of one that runs to stop."""
        now = self._clock()
        return self._database.write(lambda t: jobs.cancel(t, recipe, now))

    def again(self, recipe: str) -> JobRow | None:
        """Queue a job that failed or was cancelled, with all its tries."""
        now = self._clock()
        return self._database.write(lambda t: jobs.again(t, recipe, now))

    def anew(self, recipe: str) -> JobRow | None:
        """Queue a job that was built, and whose artifact is not there any more."""
        now = self._clock()
        return self._database.write(lambda t: jobs.anew(t, recipe, now))

    def supersede(self, recipe: str, heir: Job) -> JobRow:
        """Let *heir* stand in for a job that waits; return the heir."""
        now = self._clock()
        return self._database.write(lambda t: jobs.supersede(t, recipe, heir, now))

    def waiting(self, *, since_s: float, after: str, most: int) -> list[JobRow]:
        """
        List jobs that could have been begun for *since_s* seconds, by recipe.

        Args:
            since_s: For how long, in seconds.
            after: Only those whose recipe hash comes after this text.
            most: At most so many.
        """
        ready = self._later(-since_s)
        return self._database.read(lambda t: jobs.waiting(t, ready, after, most))

    def of_version(self, version: str, *, most: int) -> list[JobRow]:
        """List waiting jobs of a version of the code."""
        return self._database.read(lambda t: jobs.of_version(t, version, most))

    def versions_waiting(self) -> Sequence[str]:
        """Name the versions of the code that waiting jobs are for."""
        return self._database.read(jobs.versions_waiting)

    def is_open(self, version: str) -> bool:
        """Whether any job of a version of the code has not ended."""
        return self._database.read(lambda t: jobs.is_open(t, version))

    # Workers.

    def enter(self, worker: WorkerRow) -> None:
        """Record that a worker is there."""
        self._database.write(lambda t: workers.enter(t, worker))

    def beat(self, worker_id: str) -> bool:
        """Record that a worker lives; False: the others took it for dead."""
        now = self._clock()
        return self._database.write(lambda t: workers.beat(t, worker_id, now))

    def held(self, worker_id: str) -> list[Held]:
        """List the jobs that a worker is at."""
        return self._database.read(lambda t: jobs.held(t, worker_id))

    def holders(self) -> set[str]:
        """Name the workers that are at some job, on the list of workers or not."""
        return self._database.read(jobs.holders)

    def workers(self) -> list[WorkerRow]:
        """List all workers, those too that ended and left something."""
        return self._database.read(workers.every)

    def release(self, worker_id: str, *attempts: str) -> list[Held]:
        """
        Queue what a worker was at and nobody is at now; return what it was.

        Args:
            worker_id: Which worker.
            *attempts: Only these; if none is named, all of them.
        """
        now = self._clock()
        return self._database.write(lambda t: jobs.release(t, worker_id, attempts, now))

    def stop(self, worker_id: str) -> None:
        """Record that a worker ended by itself."""
        self._database.write(lambda t: workers.stop(t, worker_id))

    def forget(self, worker_id: str) -> None:
        """Take a worker off the list."""
        self._database.write(lambda t: workers.forget(t, worker_id))

    def meet(self, version: str) -> None:
        """Record when a version of the code was first seen."""
        now = self._clock()
        self._database.write(lambda t: workers.meet(t, version, now))

    def versions(self) -> dict[str, int]:
        """Tell when each version of the code was first seen."""
        return self._database.read(workers.since)

    def tally(self) -> Tally:
        """Count jobs."""
        now = self._clock()
        return self._database.read(lambda t: workers.tally(t, now))

    def _later(self, seconds: float) -> int:
        return self._clock() + int(seconds * 1_000_000)
