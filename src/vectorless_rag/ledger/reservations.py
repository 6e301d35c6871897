"""
Holds: reserved before a request leaves, closed when its outcome is known.

Every function is a step inside a transaction, and can be taken again: the state
of the row decides what it still has to do. Locks are taken in one order, the
attempt, its holds, their budgets, so that no two steps can deadlock.
"""

from dataclasses import dataclass
from typing import Final

from vectorless_rag.errors import Code
from vectorless_rag.ledger import budgets, sealing
from vectorless_rag.ledger import hold_statements as sql
from vectorless_rag.ledger.connection import Transaction
from vectorless_rag.ledger.drivers import Row
from vectorless_rag.ledger.faults import conflict
from vectorless_rag.ledger.types import Closed, Hold, State, Step, TokenUsage

STATEMENTS: Final = (sql.open_hold, sql.ENTRY, sql.CLOSE, *budgets.STATEMENTS)
"""What every request runs."""


@dataclass(frozen=True, kw_only=True)
class Close:
    """How a hold is closed, and what was learnt about its request."""

    hold_id: str
    now: int
    state: State
    step: Step

    amount: int | None
    """What it counts as; None: what was held."""

    usage: TokenUsage | None = None
    response_id: str | None = None
    finish_reason: str | None = None
    reason: str | None = None
    code: Code | None = None


def reserve(transaction: Transaction, hold: Hold, of_set: str, now: int) -> None:
    """
    Open a hold and take its amount from every budget of its set, or neither.

    Raises:
        VectorlessRagError: ``budget_exceeded``, ``budget_contended``;
            ``ledger_conflict``: the attempt is not running, or the id was used
            for something else.
    """
    if _opened(transaction, hold, of_set, now, replayed=False):
        size = len(set(hold.budgets))
        budgets.take(transaction, of_set, size, hold.amount)
        _enter(transaction, hold.hold_id, Step.RESERVE, now, reserved=hold.amount)


def replay(transaction: Transaction, hold: Hold, of_set: str, now: int) -> None:
    """
    Record a request that was not sent, since its reply was known already.

    Raises:
        VectorlessRagError: ``ledger_conflict``, as `reserve`.
    """
    if _opened(transaction, hold, of_set, now, replayed=True):
        _enter(transaction, hold.hold_id, Step.REPLAY, now)


def close(transaction: Transaction, how: Close) -> Closed:
    """
    Close a hold, open or already counted at its amount.

    Raises:
        VectorlessRagError: ``ledger_conflict``: there is no such hold, or it was
            closed in another way that does not allow this one.
    """
    row = transaction.row(sql.CLOSE, **_params(how))
    if row is None:
        return _close_late(transaction, how)
    return _book(transaction, how, row)


def _book(transaction: Transaction, how: Close, row: Row) -> Closed:
    held, amount, of_set = row
    budgets.move(transaction, of_set, reserved=-held, spent=amount)
    _enter(transaction, how.hold_id, how.step, how.now, reserved=-held, spent=amount)
    return Closed.OVERRUN if amount > held else Closed.DONE


def correct(transaction: Transaction, how: Close) -> Closed:
    """
    Give the real price to a hold that counts at its amount.

    Raises:
        VectorlessRagError: ``ledger_conflict``, also while the hold is open.
    """
    return _close_late(transaction, how)


def renew(transaction: Transaction, attempt: str, until: int) -> None:
    """Put off when the leases of an attempt's open holds run out."""
    transaction.count(sql.RENEW, attempt=attempt, lease=until)


def overdue(transaction: Transaction, now: int) -> list[tuple[str, str]]:
    """Name the attempts with overdue holds, and the budget sets of these."""
    return sorted((a, s) for a, s in transaction.rows(sql.OVERDUE, now=now))


def abandoned(transaction: Transaction, attempt: str) -> list[tuple[str, str]]:
    """Name the budget sets of an attempt's open holds, as `overdue` does."""
    return sorted((a, s) for a, s in transaction.rows(sql.ABANDONED, attempt=attempt))


def expire(
    transaction: Transaction, attempt: str, of_set: str, now: int, *, gone: bool
) -> int:
    """
    Count holds of one attempt and set as spent: nobody will close them.

    Args:
        transaction: The step's.
        attempt: Whose holds.
        of_set: Which budgets they count towards.
        now: When.
        gone: All open ones, since the attempt's child is; else the overdue ones.

    Returns:
        How many; some more may be left while it is not 0.
    """
    statement = sql.EXPIRE_ABANDONED if gone else sql.EXPIRE_OVERDUE
    with sealing.amending(transaction, attempt):
        rows = transaction.rows(statement, attempt=attempt, of_set=of_set, now=now)
        if rows:
            total = sum(held for _, held in rows)
            budgets.move(transaction, of_set, reserved=-total, spent=total)
        for hold_id, held in rows:
            _enter(transaction, hold_id, Step.EXPIRE, now, reserved=-held, spent=held)
    return len(rows)


def _opened(
    transaction: Transaction, hold: Hold, of_set: str, now: int, *, replayed: bool
) -> bool:
    """Insert the hold's row; False if this very step was taken before."""
    state = State.SETTLED if replayed else State.RESERVED
    inserted = transaction.count(
        sql.open_hold,
        hold=hold.hold_id,
        attempt=hold.attempt_id,
        of_set=of_set,
        call=hold.call_id,
        try_number=hold.try_no,
        for_operation=hold.operation,
        of_model=hold.model,
        new_state=state.value,
        is_replayed=int(replayed),
        held=hold.amount,
        amount=0 if replayed else None,
        tokens=hold.prompt_tokens,
        now=now,
        lease=now + int(hold.lease_s * 1_000_000),
        closed=now if replayed else None,
    )
    if inserted:
        return True
    same = (hold.attempt_id, hold.operation, hold.model, hold.amount, of_set)
    row = transaction.row(sql.SAME, hold=hold.hold_id)
    if row is None:
        raise conflict(f"attempt {hold.attempt_id} is not running")
    if row != (*same, int(replayed), state):
        raise conflict(f"hold {hold.hold_id} was used before, otherwise")
    return False


def _close_late(transaction: Transaction, how: Close) -> Closed:
    """Take a step on a hold that is not open any more, or whose attempt ended."""
    with sealing.amending_hold(transaction, how.hold_id):
        return _amend(transaction, how)


def _amend(transaction: Transaction, how: Close) -> Closed:
    row = transaction.row(sql.STANDING, hold=how.hold_id)
    if row is None:
        raise conflict(f"there is no hold {how.hold_id}")
    state, amount, held, of_set = row
    match State(state), how.state:
        case State.RESERVED, _ if how.step is not Step.CORRECT:
            (row,) = transaction.rows(sql.CLOSE_LATE, **_params(how))
            return _book(transaction, how, row)
        case State.SETTLED, State.SETTLED if amount == how.amount:
            return Closed.UNCHANGED
        case (State.VOIDED, State.VOIDED) | (State.UNKNOWN, State.UNKNOWN):
            return Closed.UNCHANGED
        case State.EXPIRED, State.UNKNOWN:
            # It counts at its amount already.
            return Closed.UNCHANGED
        case (State.UNKNOWN | State.EXPIRED, State.SETTLED):
            pass
        case State.EXPIRED, State.VOIDED:
            # A slow call that outlived its lease, and cost nothing.
            pass
        case _:
            raise conflict(f"hold {how.hold_id} is {state}, not to be {how.state}")
    final = how.amount or 0
    transaction.count(sql.AMEND, **_params(how))
    budgets.move(transaction, of_set, reserved=0, spent=final - held)
    _enter(transaction, how.hold_id, Step.CORRECT, how.now, spent=final - held)
    return Closed.CORRECTED


def _params(how: Close) -> dict[str, object]:
    usage = how.usage
    return {
        "hold": how.hold_id,
        "now": how.now,
        "new_state": how.state.value,
        "amount": how.amount,
        "prompt": usage and usage.prompt_tokens,
        "completion": usage and usage.completion_tokens,
        "cached": usage and usage.cached_tokens,
        "reasoning": usage and usage.reasoning_tokens,
        "response": label(how.response_id),
        "finish": label(how.finish_reason),
        "why": label(how.reason),
        "failure": how.code and how.code.value,
    }


def _enter(
    transaction: Transaction,
    hold_id: str,
    step: Step,
    now: int,
    *,
    reserved: int = 0,
    spent: int = 0,
) -> None:
    transaction.count(
        sql.ENTRY,
        hold_id=hold_id,
        kind=step.value,
        reserved_delta=reserved,
        spent_delta=spent,
        at_us=now,
    )


def label(text: str | None) -> str | None:
    """
    Make a short printable text of what may come from a provider.

    A settlement must not fail because an id holds a zero byte or half a
    surrogate pair, and a whole reply must not slip into the record as one.
    """
    if text is None:
        return None
    return "".join(c if "!" <= c <= "~" else " " for c in text[:200]).strip()
