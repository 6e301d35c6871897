"""
Attempts: who owns the holds.

Every function is a step inside a transaction.
"""

from typing import Final

from sqlalchemy import BigInteger, Text, bindparam, exists, select, update

from vectorless_rag.errors import Code
from vectorless_rag.ledger import sealing
from vectorless_rag.ledger.budgets import insert_new
from vectorless_rag.ledger.connection import Transaction
from vectorless_rag.ledger.drivers import Row
from vectorless_rag.ledger.faults import conflict
from vectorless_rag.ledger.sealing import RUNNING
from vectorless_rag.ledger.tables import attempts, holds
from vectorless_rag.ledger.types import Attempt, AttemptRow, Outcome, State
from vectorless_rag.units import Sha256

_id = bindparam("id", type_=Text)
_run = bindparam("run", type_=Text)

_START: Final = insert_new(attempts)

_END: Final = (
    update(attempts)
    .where(attempts.c.attempt_id == _id, attempts.c.state == RUNNING)
    .values(
        state=bindparam("outcome", type_=Text),
        code=bindparam("why", type_=Text),
        ended_us=bindparam("now", type_=BigInteger),
    )
)

_ONE: Final = select(attempts).where(attempts.c.attempt_id == _id)

_OF_RUN: Final = (
    select(attempts)
    .where(attempts.c.run_id == _run)
    .order_by(attempts.c.started_us, attempts.c.attempt_id)
)

_BUILT: Final = (
    select(attempts)
    .where(attempts.c.state == bindparam("outcome", type_=Text))
    .order_by(attempts.c.attempt_id)
)

_HOLDS: Final = exists().where(
    holds.c.attempt_id == attempts.c.attempt_id, holds.c.state == State.RESERVED.value
)

_IDLE: Final = (
    select(attempts.c.attempt_id)
    .where(attempts.c.state == RUNNING, ~_HOLDS)
    .order_by(attempts.c.started_us, attempts.c.attempt_id)
)

_UNSETTLED: Final = (
    select(attempts.c.attempt_id)
    .where(attempts.c.state != RUNNING, _HOLDS)
    .order_by(attempts.c.attempt_id)
)


def start(transaction: Transaction, attempt: Attempt, now: int) -> None:
    """
    Record that an attempt starts.

    Raises:
        VectorlessRagError: ``ledger_conflict``: another one has its id.
    """
    transaction.count(
        _START,
        attempt_id=attempt.attempt_id,
        run_id=attempt.run_id,
        owner=attempt.owner,
        document_sha256=attempt.document_sha256,
        recipe_hash=attempt.recipe_hash,
        model=attempt.model,
        price_table=attempt.price_table,
        state=RUNNING,
        code=None,
        started_us=now,
        ended_us=None,
        seal=None,
    )
    recorded = read(transaction, attempt.attempt_id)
    if recorded is None or _started(recorded) != attempt or recorded.outcome:
        raise conflict(f"attempt {attempt.attempt_id} was started before, otherwise")


def end(
    transaction: Transaction,
    attempt_id: str,
    outcome: Outcome,
    code: Code | None,
    now: int,
) -> None:
    """
    Record that an attempt ended; from here on it can reserve nothing.

    Raises:
        VectorlessRagError: ``ledger_conflict``: there is no such attempt, or it
            ended otherwise.
    """
    why = code and code.value
    if transaction.count(_END, id=attempt_id, outcome=outcome.value, why=why, now=now):
        sealing.seal(transaction, attempt_id)
        return
    recorded = read(transaction, attempt_id)
    if recorded is None:
        raise conflict(f"there is no attempt {attempt_id}")
    if (recorded.outcome, recorded.code) != (outcome, code):
        raise conflict(f"attempt {attempt_id} ended before, otherwise")


def end_if_running(
    transaction: Transaction, attempt_id: str, code: Code, now: int
) -> None:
    """End an attempt as failed, unless it has ended or never started."""
    given = {"outcome": Outcome.FAILED.value, "why": code.value, "now": now}
    if transaction.count(_END, id=attempt_id, **given):
        sealing.seal(transaction, attempt_id)


def read(transaction: Transaction, attempt_id: str) -> AttemptRow | None:
    """Read one attempt."""
    row = transaction.row(_ONE, id=attempt_id)
    return _attempt(row) if row else None


def of_run(transaction: Transaction, run_id: str) -> list[AttemptRow]:
    """List a run's attempts in the order they started."""
    return [_attempt(row) for row in transaction.rows(_OF_RUN, run=run_id)]


def built(transaction: Transaction) -> list[AttemptRow]:
    """List the attempts that built something, by id."""
    rows = transaction.rows(_BUILT, outcome=Outcome.BUILT.value)
    return [_attempt(row) for row in rows]


def idle(transaction: Transaction) -> tuple[str, ...]:
    """Name the attempts that have not ended and hold nothing."""
    return tuple(name for (name,) in transaction.rows(_IDLE))


def unsettled(transaction: Transaction) -> tuple[str, ...]:
    """Name the attempts that have ended and hold something."""
    return tuple(name for (name,) in transaction.rows(_UNSETTLED))


def _attempt(row: Row) -> AttemptRow:
    (
        ident,
        run,
        owner,
        document,
        recipe,
        model,
        prices,
        state,
        code,
        start,
        end,
        _,
    ) = row
    return AttemptRow(
        attempt_id=ident,
        run_id=run,
        owner=owner,
        document_sha256=Sha256(document),
        recipe_hash=Sha256(recipe),
        model=model,
        price_table=prices,
        outcome=None if state == RUNNING else Outcome(state),
        code=Code(code) if code else None,
        started_us=start,
        ended_us=end,
    )


def _started(row: AttemptRow) -> Attempt:
    return Attempt(
        attempt_id=row.attempt_id,
        run_id=row.run_id,
        owner=row.owner,
        document_sha256=row.document_sha256,
        recipe_hash=row.recipe_hash,
        model=row.model,
        price_table=row.price_table,
    )
