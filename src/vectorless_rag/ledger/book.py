"""The ledger: the one way to hold money, to spend it and to ask where it went."""

import time
from collections.abc import Callable, Iterable
from typing import Self

from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.ledger import (
    attempts,
    audit,
    budgets,
    outcomes,
    reports,
    reservations,
)
from vectorless_rag.ledger.connection import Transaction
from vectorless_rag.ledger.faults import conflict
from vectorless_rag.ledger.holding import Holding
from vectorless_rag.ledger.opening import open_database
from vectorless_rag.ledger.types import (
    Attempt,
    AttemptRow,
    Budget,
    By,
    Closed,
    Correction,
    HoldRow,
    LateUsage,
    Outcome,
    Reconciled,
    ReportRow,
    Usage,
)
from vectorless_rag.units import NanoUsd


def now_us() -> int:
    """Return the time in microseconds since 1970, UTC."""
    return time.time_ns() // 1000


class Ledger(Holding):
    """
    The record of every provider request, on SQLite or PostgreSQL.

    Any number of processes and threads may share one database; a `Ledger` may be
    shared by threads, and by a forked child, which then opens its own connection.
    Methods block for as long as the other writers need, some milliseconds.

    Every step can be taken twice with no effect the second time, so that a caller
    who does not know whether it was taken may take it again.

    Any method raises `VectorlessRagError` with ``ledger_unavailable`` when the
    database cannot be read or written; nothing has changed then, unless it was the
    disk that failed at the very end. A step that contradicts the record raises
    ``ledger_conflict``.
    """

    @classmethod
    def open(cls, url: str, *, clock: Callable[[], int] = now_us) -> Self:
        """
        Open a ledger; make its file, its folder and its tables if need be.

        Args:
            url: ``sqlite:////absolute/path`` on a local disk, or
                ``postgresql://user:password@host/database``, which needs the
                extra ``postgres``.
            clock: The time in microseconds since 1970, UTC.

        Raises:
            VectorlessRagError: ``ledger_unavailable``, also if a newer version
                of this package has written it. The address is not repeated.
        """
        return cls(open_database(url), clock)

    def close(self) -> None:
        """Close the connection. What is held stays held."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Attempts.

    def start_attempt(self, attempt: Attempt) -> None:
        """Record that an attempt starts; before that it can reserve nothing."""
        now = self._clock()
        self._database.write(lambda t: attempts.start(t, attempt, now))

    def end_attempt(
        self, attempt_id: str, outcome: str, code: Code | None = None
    ) -> int:
        """
        Record that an attempt ended, and expire what it still holds.

        Args:
            attempt_id: Which one; from here on it can reserve nothing.
            outcome: ``built``, ``failed`` or ``cancelled``.
            code: Why, if it was not built.

        Returns:
            How many holds were open.
        """
        now, how = self._clock(), Outcome(outcome)
        self._database.write(lambda t: attempts.end(t, attempt_id, how, code, now))
        return self.expire(attempt_id)

    def attempt(self, attempt_id: str) -> AttemptRow | None:
        """Read one attempt; None if there is none of that id."""
        return self._database.read(lambda t: attempts.read(t, attempt_id))

    def attempts(self, run_id: str) -> list[AttemptRow]:
        """List a run's attempts in the order they started."""
        return self._database.read(lambda t: attempts.of_run(t, run_id))

    def built(self) -> list[AttemptRow]:
        """List the attempts that built something, by id."""
        return self._database.read(attempts.built)

    # Budgets.

    def set_budget(
        self, budget_id: str, limit: NanoUsd | None, *, keep: bool = False
    ) -> None:
        """
        Limit a budget; holds that are open already stay.

        Args:
            budget_id: Such as `run_budget` and its neighbours spell it.
            limit: Nano-dollars; None: count, and limit nothing.
            keep: Leave a limit that is there as it is.
        """

        def step(transaction: Transaction) -> None:
            if keep and budgets.balance(transaction, budget_id).limit is not None:
                return
            budgets.set_limit(transaction, budget_id, limit)

        self._database.write(step)

    def budget(self, budget_id: str) -> Budget:
        """Read a budget; one that nothing has named yet is empty and unlimited."""
        return self._database.read(lambda t: budgets.balance(t, budget_id))

    def budgets(self) -> dict[str, Budget]:
        """Read every budget, by id."""
        return self._database.read(budgets.balances)

    # Reports and reconciliation.

    def reconcile(self, late: Iterable[LateUsage] = ()) -> Reconciled:
        """
        Expire what nobody will close, and post corrections for usage that came late.

        Holds are expired whose lease ran out, and whose attempt has ended: its database
        was away, or its disk was full, when they were to be closed.

        Args:
            late: By hold or by response, each at its real price.

        Returns:
            What was done, and what a person has to look at.
        """
        ended = self._database.read(attempts.unsettled)
        expired = self.expire() + sum(map(self.expire, ended))
        corrected, unmatched = 0, []
        for item in late:
            done = self._correct_late(item)
            corrected += done is Closed.CORRECTED
            if done is None:
                unmatched.append(item.key)
        return Reconciled(
            expired=expired,
            corrected=corrected,
            unmatched=tuple(unmatched),
            running=self._database.read(attempts.idle),
        )

    def usage(self, attempt_id: str) -> Usage:
        """Sum up what an attempt used so far."""
        return self._database.read(lambda t: reports.usage(t, attempt_id))

    def holds(self, attempt_id: str) -> list[HoldRow]:
        """List an attempt's holds in the order they were opened."""
        return self._database.read(lambda t: reports.of_attempt(t, attempt_id))

    def report(self, by: str = By.OPERATION) -> list[ReportRow]:
        """
        Sum up all requests in groups.

        Args:
            by: ``operation``, ``model``, ``owner``, ``day`` or ``attempt``.

        Raises:
            ValueError: *by* is none of these.
        """
        group = By(by)
        return self._database.read(lambda t: reports.report(t, group))

    def ends(self) -> list[outcomes.EndRow]:
        """Count all attempts by how they ended."""
        return self._database.read(outcomes.ends)

    def failed_requests(self) -> list[outcomes.FailedRequests]:
        """Count all failed requests by their code."""
        return self._database.read(outcomes.failed_requests)

    def check(self) -> list[str]:
        """
        Audit everything: balances against holds and entries, holds against leases.

        Returns:
            One line for each problem; none: the ledger is sound.
        """
        found = self.problems()
        return found.wrong + found.overdue

    def problems(self) -> audit.Problems:
        """Audit everything, as `check`; what a crash left open is told apart."""
        now = self._clock()
        return self._database.read(lambda t: audit.problems(t, now))

    def strays(self) -> list[str]:
        """List holds that count towards no budget of their attempt's run."""
        return self._database.read(audit.strays)

    def corrections(self, attempt_id: str) -> list[Correction]:
        """List the corrections posted to an attempt's holds, oldest first."""
        return self._database.read(lambda t: reports.corrections(t, attempt_id))

    def _correct_late(self, item: LateUsage) -> Closed | None:
        """Post one correction; None if no hold, or no single one, takes it."""

        def step(transaction: Transaction) -> Closed:
            names = reports.found(transaction, item.key)
            if len(names) != 1:
                raise conflict(f"{len(names)} holds go by one key")
            how = self._correction(names[0], item.amount, item.usage)
            return reservations.correct(transaction, how)

        try:
            return self._database.write(step)
        except VectorlessRagError as error:
            if error.code is Code.LEDGER_CONFLICT:
                return None
            raise
