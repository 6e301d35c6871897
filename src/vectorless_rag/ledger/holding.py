"""Holding money for a request before it leaves, and charging it afterwards."""

from collections.abc import Callable

from vectorless_rag.errors import Code
from vectorless_rag.ledger import budgets, reservations
from vectorless_rag.ledger.connection import Database, Transaction
from vectorless_rag.ledger.reservations import Close
from vectorless_rag.ledger.types import (
    MOST_NANO,
    Closed,
    Hold,
    State,
    Step,
    TokenUsage,
)
from vectorless_rag.units import NanoUsd


class Holding:
    """The half of the ledger that a model call needs."""

    def __init__(self, database: Database, clock: Callable[[], int]) -> None:
        self._database = database
        self._clock = clock
        self._sets: dict[tuple[str, ...], str] = {}

    def reserve(self, hold: Hold) -> None:
        """
        Set the amount of *hold* aside in each of its budgets, or in none.

        A budget that does not exist yet is created, and limits nothing.

        Raises:
            VectorlessRagError: ``budget_exceeded``: a limit leaves less beside
                what is spent; ``budget_contended``: it would fit once others
                close their holds; ``ledger_conflict``: the attempt is not
                running, or the id was used for something else.
        """
        of_set, now = self._set_of(hold), self._clock()
        self._database.write(lambda t: reservations.reserve(t, hold, of_set, now))

    def replay(self, hold: Hold) -> None:
        """
        Record a request that was answered from a journal, at cost 0.

        Args:
            hold: Its amount is 0.

        Raises:
            ValueError: *hold* has an amount.
            VectorlessRagError: ``ledger_conflict``, as `reserve`.
        """
        if hold.amount:
            raise ValueError("a replayed request costs nothing")
        of_set, now = self._set_of(hold), self._clock()
        self._database.write(lambda t: reservations.replay(t, hold, of_set, now))

    def settle(
        self,
        hold_id: str,
        amount: NanoUsd,
        usage: TokenUsage,
        response_id: str | None = None,
        finish_reason: str | None = None,
    ) -> Closed:
        """
        Charge the real price of a request.

        Args:
            hold_id: A hold that is open, or was counted at its amount since its
                outcome was not known.
            amount: Its price. Above the hold it is an overrun, which is recorded
                and flagged: the money is gone already.
            usage: What the provider counted.
            response_id: The provider's name for the reply.
            finish_reason: Why the reply ended.

        Returns:
            What that did: done, overrun, corrected or unchanged.

        Raises:
            ValueError: *amount* is out of range.
            VectorlessRagError: ``ledger_conflict``: it was voided, or settled at
                another price.
        """
        how = Close(
            hold_id=hold_id,
            now=self._clock(),
            state=State.SETTLED,
            step=Step.SETTLE,
            amount=_price(amount),
            usage=usage,
            response_id=response_id,
            finish_reason=finish_reason,
        )
        return self._database.write(lambda t: reservations.close(t, how))

    def void(self, hold_id: str, reason: str, code: Code | None = None) -> Closed:
        """
        Give a hold back: its request certainly cost nothing.

        Args:
            hold_id: A hold that is open, or whose lease ran out.
            reason: A few words of ours, never a provider's.
            code: The failure it stands for.

        Raises:
            VectorlessRagError: ``ledger_conflict``: it was settled, or closed as
                unknown.
        """
        how = Close(
            hold_id=hold_id,
            now=self._clock(),
            state=State.VOIDED,
            step=Step.VOID,
            amount=0,
            reason=reason,
            code=code,
        )
        return self._database.write(lambda t: reservations.close(t, how))

    def unknown(
        self,
        hold_id: str,
        reason: str,
        code: Code | None = None,
        response_id: str | None = None,
    ) -> Closed:
        """
        Count a hold as spent at its amount: its request may have been billed.

        Args:
            hold_id: A hold that is open, or whose lease ran out.
            reason: A few words of ours, never a provider's.
            code: The failure it stands for.
            response_id: The provider's name for the reply, if there was one: it
                finds the hold when its real usage turns up.

        Raises:
            VectorlessRagError: ``ledger_conflict``: it was settled or voided.
        """
        how = Close(
            hold_id=hold_id,
            now=self._clock(),
            state=State.UNKNOWN,
            step=Step.UNKNOWN,
            amount=None,
            reason=reason,
            code=code,
            response_id=response_id,
        )
        return self._database.write(lambda t: reservations.close(t, how))

    def renew(self, attempt_id: str, lease_s: float) -> None:
        """
        Let no other take the open holds of an attempt for dead, from now on so long.

        Args:
            attempt_id: Whose holds.
            lease_s: In seconds.
        """
        until = self._clock() + int(lease_s * 1_000_000)
        self._database.write(lambda t: reservations.renew(t, attempt_id, until))

    def correct(self, hold_id: str, amount: NanoUsd, usage: TokenUsage) -> Closed:
        """
        Give its real price to a hold that expired or is unknown.

        Raises:
            ValueError: *amount* is out of range.
            VectorlessRagError: ``ledger_conflict``: it is still open, was voided,
                or was settled at another price.
        """
        how = self._correction(hold_id, amount, usage)
        return self._database.write(lambda t: reservations.correct(t, how))

    def expire(self, attempt_id: str | None = None) -> int:
        """
        Count as spent what nobody will close any more.

        Args:
            attempt_id: All holds of this attempt, whose child is known to be
                gone. None: every hold whose lease has run out.

        Returns:
            How many holds that were.
        """
        now, done = self._clock(), 0
        gone = attempt_id is not None

        def groups(transaction: Transaction) -> list[tuple[str, str]]:
            if attempt_id is None:
                return reservations.overdue(transaction, now)
            return reservations.abandoned(transaction, attempt_id)

        for attempt, of_set in self._database.read(groups):
            while count := self._expire(attempt, of_set, now, gone=gone):
                done += count
        return done

    def _correction(self, hold_id: str, amount: int, usage: TokenUsage) -> Close:
        return Close(
            hold_id=hold_id,
            now=self._clock(),
            state=State.SETTLED,
            step=Step.CORRECT,
            amount=_price(amount),
            usage=usage,
        )

    def _set_of(self, hold: Hold) -> str:
        """Name the set of a hold's budgets, which exists from then on."""
        known = self._sets.get(hold.budgets)
        if known is None:
            self._database.prepare(reservations.STATEMENTS)
            self._database.write(lambda t: budgets.create(t, hold.budgets))
            known = self._sets[hold.budgets] = budgets.set_id(hold.budgets)
        return known

    def _expire(self, attempt: str, of_set: str, now: int, *, gone: bool) -> int:
        return self._database.write(
            lambda t: reservations.expire(t, attempt, of_set, now, gone=gone)
        )


def _price(amount: int) -> int:
    if not 0 <= amount <= MOST_NANO:
        raise ValueError("a price is out of range")
    return amount
