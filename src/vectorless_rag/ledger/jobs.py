"""
Jobs: which documents are to be built, and where each stands.

Every function is a step inside a transaction, and can be taken again. What a
worker writes names its own attempt: one that was taken for dead, and whose job
another has begun, changes nothing any more.
"""

from collections.abc import Collection, Sequence

from vectorless_rag.errors import Code, Failure
from vectorless_rag.ledger import attempts
from vectorless_rag.ledger import job_statements as sql
from vectorless_rag.ledger.connection import Transaction
from vectorless_rag.ledger.drivers import Row
from vectorless_rag.ledger.job_types import (
    Claim,
    Claimed,
    End,
    Held,
    Job,
    JobRow,
    JobState,
)
from vectorless_rag.units import Sha256

# Keeps two claims apart: the second counts what the first has begun.
_ONE_AT_A_TIME = "select pg_advisory_xact_lock(7146531904217)"


def add(transaction: Transaction, job: Job, now: int) -> tuple[JobRow, bool]:
    """
    Record a job, unless it is there; return it, and whether it is new.

    One that failed or was cancelled takes the path that it is submitted under now.
    """
    fresh = transaction.count(
        sql.ADD,
        **{name: getattr(job, name) for name in Job.__dataclass_fields__},
        turn=0,
        state=JobState.QUEUED.value,
        cancelling=0,
        tries=0,
        worker_id=None,
        attempt_id=None,
        code=None,
        detail=None,
        artifact_id=None,
        successor=None,
        submitted_us=now,
        ready_us=now,
        started_us=None,
        ended_us=None,
    )
    if not fresh:
        transaction.count(sql.MOVE, recipe=job.recipe_hash, path=job.source)
    recorded = read(transaction, job.recipe_hash)
    if recorded is None:
        raise AssertionError("a job that was just recorded is not there")
    return recorded, bool(fresh)


def read(transaction: Transaction, recipe: str) -> JobRow | None:
    """Read one job."""
    row = transaction.row(sql.ONE, recipe=recipe)
    return _job(row) if row else None


def every(transaction: Transaction) -> list[JobRow]:
    """List all jobs in the order they were submitted."""
    return [_job(row) for row in transaction.rows(sql.EVERY)]


def of_document(transaction: Transaction, document: str) -> list[JobRow]:
    """List the jobs of certain bytes in the order they were submitted."""
    return [_job(row) for row in transaction.rows(sql.OF_DOCUMENT, document=document)]


def named(transaction: Transaction, start: str) -> tuple[str, ...]:
    """Name the first two jobs whose recipe hash begins with *start*."""
    return tuple(name for (name,) in transaction.rows(sql.LIKE, pattern=f"{start}%"))


def claim(transaction: Transaction, wish: Claim, now: int) -> Claimed:
    """Begin a job, and count the try before anything is started for it."""
    if _is_mine(transaction, wish):
        return Claimed.TAKEN
    if wish.most_of_model is not None and _is_full(transaction, wish):
        return Claimed.FULL
    about = {"recipe": wish.recipe_hash, "at_turn": wish.turn, "now": now}
    if transaction.count(
        sql.CLAIM,
        **about,
        most=wish.most_tries,
        worker=wish.worker_id,
        attempt=wish.attempt_id,
    ):
        return Claimed.TAKEN
    why = Code.JOB_TRIES_SPENT.value
    last = read(transaction, wish.recipe_hash)
    words = f"{wish.most_tries} tries"
    if last is not None and last.failure is not None:
        words += f", the last one ended with {last.failure.code}"
    if transaction.count(sql.GIVE_UP, **about, why=why, words=words):
        return Claimed.SPENT
    return Claimed.STALE


def _is_mine(transaction: Transaction, wish: Claim) -> bool:
    row = read(transaction, wish.recipe_hash)
    if row is None or row.state is not JobState.RUNNING:
        return False
    return (row.turn, row.attempt_id) == (wish.turn, wish.attempt_id)


def _is_full(transaction: Transaction, wish: Claim) -> bool:
    if transaction.row_locks:
        transaction.script(_ONE_AT_A_TIME)
    row = transaction.row(sql.OF_MODEL, recipe=wish.recipe_hash)
    running = row[0] if row else 0
    return wish.most_of_model is not None and running >= wish.most_of_model


def finish(
    transaction: Transaction, recipe: str, attempt: str, end: End, now: int
) -> bool:
    """Record how a claimed job ended; return whether it was still this attempt's."""
    done = transaction.count(
        sql.FINISH,
        recipe=recipe,
        attempt=attempt,
        to=end.state.value,
        artifact=end.artifact_id,
        now=now,
        **_spelled(end.failure),
    )
    if done and end.state is not JobState.BUILT:
        _end_attempt(transaction, attempt, end.failure, now)
    if done:
        return True
    row = read(transaction, recipe)
    return row is not None and (row.attempt_id, row.state) == (attempt, end.state)


def hand_back(
    transaction: Transaction,
    recipe: str,
    attempt: str,
    *,
    turn: int,
    counted: bool,
    failure: Failure | None,
    now: int,
    ready: int,
) -> bool:
    """Queue a claimed job for its next turn; return whether it was this attempt's."""
    done = transaction.count(
        sql.HAND_BACK,
        recipe=recipe,
        attempt=attempt,
        uncounted=int(not counted),
        ready=ready,
        **_spelled(failure),
    )
    if done:
        _end_attempt(transaction, attempt, failure, now)
        return True
    row = read(transaction, recipe)
    if row is None or row.state is not JobState.QUEUED:
        return False
    return (row.attempt_id, row.turn) == (attempt, turn + 1)


def _end_attempt(
    transaction: Transaction, attempt: str, failure: Failure | None, now: int
) -> None:
    """End an attempt whose own end was lost, with its database or its process."""
    code = failure.code if failure is not None else Code.CHILD_KILLED
    attempts.end_if_running(transaction, attempt, code, now)


def next_turn(transaction: Transaction, recipe: str, turn: int, ready: int) -> bool:
    """Queue a job that was not begun for its next turn; return whether it was so."""
    about = {"recipe": recipe, "at_turn": turn, "ready": ready}
    if transaction.count(sql.NEXT_TURN, **about):
        return True
    row = read(transaction, recipe)
    if row is None or row.state is not JobState.QUEUED:
        return False
    return (row.turn, row.ready_us) == (turn + 1, ready)


def cancel(transaction: Transaction, recipe: str, now: int) -> JobRow | None:
    """Cancel a job that waits, ask the worker of one that runs; return the job."""
    transaction.count(sql.CANCEL_QUEUED, recipe=recipe, now=now)
    transaction.count(sql.CANCEL_RUNNING, recipe=recipe)
    return read(transaction, recipe)


def again(transaction: Transaction, recipe: str, now: int) -> JobRow | None:
    """Queue a job that failed or was cancelled; return the job."""
    transaction.count(sql.AGAIN, recipe=recipe, now=now)
    return read(transaction, recipe)


def anew(transaction: Transaction, recipe: str, now: int) -> JobRow | None:
    """Queue a job that was built; return the job."""
    transaction.count(sql.ANEW, recipe=recipe, now=now)
    return read(transaction, recipe)


def supersede(transaction: Transaction, recipe: str, heir: Job, now: int) -> JobRow:
    """Let *heir* stand in for a job that waits; return the heir."""
    new, _ = add(transaction, heir, now)
    transaction.count(sql.SUPERSEDE, recipe=recipe, heir=heir.recipe_hash, now=now)
    return new


def held(transaction: Transaction, worker: str) -> list[Held]:
    """List the jobs that a worker is at."""
    return [
        Held(recipe_hash=Sha256(recipe), attempt_id=attempt, cancelling=bool(asked))
        for recipe, attempt, asked in transaction.rows(sql.HELD_BY, worker=worker)
    ]


def holders(transaction: Transaction) -> set[str]:
    """Name the workers that are at some job."""
    return {worker for (worker,) in transaction.rows(sql.HOLDERS)}


def release(
    transaction: Transaction, worker: str, only: Collection[str], now: int
) -> list[Held]:
    """Queue what a worker was at, each in its turn; return what it was."""
    left = [
        one for one in held(transaction, worker) if not only or one.attempt_id in only
    ]
    for one in left:
        attempts.end_if_running(transaction, one.attempt_id, Code.CHILD_KILLED, now)
        # Nobody is left to obey.
        whose = {"recipe": one.recipe_hash, "attempt": one.attempt_id}
        transaction.count(sql.RELEASE_CANCELLED, **whose, now=now)
        transaction.count(sql.RELEASE, **whose, now=now)
    return left


def waiting(
    transaction: Transaction, ready: int, after: str, most: int
) -> list[JobRow]:
    """List jobs that could be begun since before *ready*, by recipe, from *after*."""
    rows = transaction.rows(sql.WAITING, ready=ready, after=after, most=most)
    return [_job(row) for row in rows]


def of_version(transaction: Transaction, version: str, most: int) -> list[JobRow]:
    """List at most *most* waiting jobs of a version of the code."""
    rows = transaction.rows(sql.OF_VERSION, code=version, most=most)
    return [_job(row) for row in rows]


def versions_waiting(transaction: Transaction) -> Sequence[str]:
    """Name the versions of the code that waiting jobs are for."""
    return [version for (version,) in transaction.rows(sql.VERSIONS_WAITING)]


def is_open(transaction: Transaction, version: str) -> bool:
    """Whether any job of a version of the code has not ended."""
    row = transaction.row(sql.OPEN_IN_VERSION, code=version)
    return bool(row and row[0])


def _spelled(failure: Failure | None) -> dict[str, str | None]:
    if failure is None:
        return {"why": None, "words": None}
    return {"why": failure.code.value, "words": failure.detail}


def _job(row: Row) -> JobRow:
    (recipe, document, source, owner, run, model, options, version, priority, turn,
     state, cancelling, tries, worker, attempt, code, detail, artifact, successor,
     submitted, ready, started, ended) = row  # fmt: skip
    return JobRow(
        recipe_hash=Sha256(recipe),
        document_sha256=Sha256(document),
        source=source,
        owner=owner,
        run_id=run,
        model=model,
        options=options,
        version=version,
        priority=priority,
        turn=turn,
        state=JobState(state),
        cancelling=bool(cancelling),
        tries=tries,
        worker_id=worker,
        attempt_id=attempt,
        failure=Failure(code=Code(code), detail=detail or "") if code else None,
        artifact_id=Sha256(artifact) if artifact else None,
        successor=Sha256(successor) if successor else None,
        submitted_us=submitted,
        ready_us=ready,
        started_us=started,
        ended_us=ended,
    )
