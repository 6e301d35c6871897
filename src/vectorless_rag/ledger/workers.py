"""
Worker processes: who is there, and which code they run.

Every function is a step inside a transaction, and can be taken again.
"""

from typing import Final

from sqlalchemy import BigInteger, Text, bindparam, delete, select, update

from vectorless_rag.errors import Code
from vectorless_rag.ledger import job_statements as sql
from vectorless_rag.ledger.budgets import insert_new
from vectorless_rag.ledger.connection import Transaction
from vectorless_rag.ledger.drivers import Row
from vectorless_rag.ledger.job_types import JobState, Tally, WorkerRow
from vectorless_rag.ledger.tables import versions, workers

_worker = bindparam("worker", type_=Text)
_now = bindparam("now", type_=BigInteger)

_NEW: Final = insert_new(workers)
_NEW_VERSION: Final = insert_new(versions)
_EVERY: Final = select(workers).order_by(workers.c.started_us, workers.c.worker_id)

_BEAT: Final = (
    update(workers)
    .where(workers.c.worker_id == _worker)
    .values(beats=workers.c.beats + 1, seen_us=_now)
)

_STOP: Final = update(workers).where(workers.c.worker_id == _worker).values(stopped=1)
_FORGET: Final = delete(workers).where(workers.c.worker_id == _worker)
_SINCE: Final = select(versions.c.version, versions.c.first_us)


def enter(transaction: Transaction, worker: WorkerRow) -> None:
    """Record that a worker is there, and its code."""
    transaction.count(
        _NEW,
        worker_id=worker.worker_id,
        place=worker.place,
        pid=worker.pid,
        version=worker.version,
        slots=worker.slots,
        beats=worker.beats,
        started_us=worker.started_us,
        seen_us=worker.seen_us,
        stopped=int(worker.stopped),
    )
    meet(transaction, worker.version, worker.started_us)


def meet(transaction: Transaction, version: str, now: int) -> None:
    """Record when a version of the code was first seen."""
    transaction.count(_NEW_VERSION, version=version, first_us=now)


def since(transaction: Transaction) -> dict[str, int]:
    """Tell when each version of the code was first seen."""
    return dict(transaction.rows(_SINCE))


def beat(transaction: Transaction, worker: str, now: int) -> bool:
    """Record that a worker lives; return whether the others still count on it."""
    return bool(transaction.count(_BEAT, worker=worker, now=now))


def every(transaction: Transaction) -> list[WorkerRow]:
    """List all workers, those too that ended and left something."""
    return [_row(row) for row in transaction.rows(_EVERY)]


def stop(transaction: Transaction, worker: str) -> None:
    """Record that a worker ended by itself."""
    transaction.count(_STOP, worker=worker)


def forget(transaction: Transaction, worker: str) -> None:
    """Take a worker off the list, once nothing is left that it was at."""
    transaction.count(_FORGET, worker=worker)


def tally(transaction: Transaction, now: int) -> Tally:
    """Count jobs."""
    states: dict[str, int] = dict(transaction.rows(sql.STATES))
    oldest = transaction.row(sql.OLDEST, now=now)
    return Tally(
        jobs={state: states.get(state.value, 0) for state in JobState},
        failures={Code(code): n for code, n in transaction.rows(sql.FAILURES)},
        oldest_ready_us=oldest[0] if oldest else None,
    )


def _row(row: Row) -> WorkerRow:
    worker, place, pid, version, slots, beats, started, seen, stopped = row
    return WorkerRow(
        worker_id=worker,
        place=place,
        pid=pid,
        version=version,
        slots=slots,
        beats=beats,
        started_us=started,
        seen_us=seen,
        stopped=bool(stopped),
    )
