"""The statements over jobs; `vectorless_rag.ledger.jobs` runs them."""

from typing import Final

from sqlalchemy import BigInteger, Text, bindparam, func, or_, select, update

from vectorless_rag.ledger.budgets import insert_new
from vectorless_rag.ledger.job_types import JobState
from vectorless_rag.ledger.tables import jobs

_recipe = bindparam("recipe", type_=Text)
_worker = bindparam("worker", type_=Text)
_attempt = bindparam("attempt", type_=Text)
_turn = bindparam("at_turn", type_=BigInteger)
_now = bindparam("now", type_=BigInteger)
_ready = bindparam("ready", type_=BigInteger)

_QUEUED: Final = JobState.QUEUED.value
_RUNNING: Final = JobState.RUNNING.value
_HELD: Final = (
    jobs.c.recipe_hash == _recipe,
    jobs.c.attempt_id == _attempt,
    jobs.c.state == _RUNNING,
)

_ENDED_BADLY: Final = or_(
    jobs.c.state == JobState.FAILED.value, jobs.c.state == JobState.CANCELLED.value
)

ADD: Final = insert_new(jobs)
ONE: Final = select(jobs).where(jobs.c.recipe_hash == _recipe)
EVERY: Final = select(jobs).order_by(jobs.c.submitted_us, jobs.c.recipe_hash)

# A job that waits or runs keeps its path: it is the one it is read from.
MOVE: Final = (
    update(jobs)
    .where(jobs.c.recipe_hash == _recipe, _ENDED_BADLY)
    .values(source=bindparam("path", type_=Text))
)

OF_DOCUMENT: Final = (
    select(jobs)
    .where(jobs.c.document_sha256 == bindparam("document", type_=Text))
    .order_by(jobs.c.submitted_us, jobs.c.recipe_hash)
)

LIKE: Final = (
    select(jobs.c.recipe_hash)
    .where(jobs.c.recipe_hash.like(bindparam("pattern", type_=Text)))
    .order_by(jobs.c.recipe_hash)
    .limit(2)
)

OF_MODEL: Final = select(func.count()).where(
    jobs.c.state == _RUNNING,
    jobs.c.model
    == select(jobs.c.model).where(jobs.c.recipe_hash == _recipe).scalar_subquery(),
)

_BEGINS: Final = (
    jobs.c.recipe_hash == _recipe,
    jobs.c.turn == _turn,
    jobs.c.state == _QUEUED,
)

CLAIM: Final = (
    update(jobs)
    .where(*_BEGINS, jobs.c.tries < bindparam("most", type_=BigInteger))
    .values(
        state=_RUNNING,
        worker_id=_worker,
        attempt_id=_attempt,
        tries=jobs.c.tries + 1,
        started_us=_now,
    )
)

GIVE_UP: Final = (
    update(jobs)
    .where(*_BEGINS)
    .values(
        state=JobState.FAILED.value,
        code=bindparam("why", type_=Text),
        detail=bindparam("words", type_=Text),
        ended_us=_now,
    )
)

FINISH: Final = (
    update(jobs)
    .where(*_HELD)
    .values(
        state=bindparam("to", type_=Text),
        worker_id=None,
        cancelling=0,
        code=bindparam("why", type_=Text),
        detail=bindparam("words", type_=Text),
        artifact_id=bindparam("artifact", type_=Text),
        ended_us=_now,
    )
)

HAND_BACK: Final = (
    update(jobs)
    .where(*_HELD)
    .values(
        state=_QUEUED,
        worker_id=None,
        turn=jobs.c.turn + 1,
        # A try that the worker broke off by itself does not count.
        tries=jobs.c.tries - bindparam("uncounted", type_=BigInteger),
        code=bindparam("why", type_=Text),
        detail=bindparam("words", type_=Text),
        ready_us=_ready,
    )
)

NEXT_TURN: Final = (
    update(jobs).where(*_BEGINS).values(turn=jobs.c.turn + 1, ready_us=_ready)
)

CANCEL_QUEUED: Final = (
    update(jobs)
    .where(jobs.c.recipe_hash == _recipe, jobs.c.state == _QUEUED)
    .values(state=JobState.CANCELLED.value, code="cancelled", detail="", ended_us=_now)
)

CANCEL_RUNNING: Final = (
    update(jobs)
    .where(jobs.c.recipe_hash == _recipe, jobs.c.state == _RUNNING)
    .values(cancelling=1)
)

_ANEW: Final = (
    update(jobs)
    .where(jobs.c.recipe_hash == _recipe)
    .values(
        state=_QUEUED,
        turn=jobs.c.turn + 1,
        tries=0,
        cancelling=0,
        code=None,
        detail=None,
        artifact_id=None,
        ready_us=_now,
        started_us=None,
        ended_us=None,
    )
)
AGAIN: Final = _ANEW.where(_ENDED_BADLY)
ANEW: Final = _ANEW.where(jobs.c.state == JobState.BUILT.value)
"""Queues a job whose artifact is not there any more."""

SUPERSEDE: Final = (
    update(jobs)
    .where(jobs.c.recipe_hash == _recipe, jobs.c.state == _QUEUED)
    .values(
        state=JobState.SUPERSEDED.value,
        successor=bindparam("heir", type_=Text),
        ended_us=_now,
    )
)

HELD_BY: Final = (
    select(jobs.c.recipe_hash, jobs.c.attempt_id, jobs.c.cancelling)
    .where(jobs.c.worker_id == _worker, jobs.c.state == _RUNNING)
    .order_by(jobs.c.recipe_hash)
)

HOLDERS: Final = select(jobs.c.worker_id).where(jobs.c.state == _RUNNING).distinct()

RELEASE_CANCELLED: Final = (
    update(jobs)
    .where(*_HELD, jobs.c.cancelling == 1)
    .values(
        state=JobState.CANCELLED.value,
        worker_id=None,
        cancelling=0,
        code="cancelled",
        detail="",
        ended_us=_now,
    )
)

RELEASE: Final = (
    update(jobs).where(*_HELD).values(state=_QUEUED, worker_id=None, ready_us=_now)
)

WAITING: Final = (
    select(jobs)
    .where(
        jobs.c.state == _QUEUED,
        jobs.c.ready_us < _ready,
        jobs.c.recipe_hash > bindparam("after", type_=Text),
    )
    .order_by(jobs.c.recipe_hash)
    .limit(bindparam("most", type_=BigInteger))
)

OF_VERSION: Final = (
    select(jobs)
    .where(jobs.c.state == _QUEUED, jobs.c.version == bindparam("code", type_=Text))
    .order_by(jobs.c.ready_us, jobs.c.recipe_hash)
    .limit(bindparam("most", type_=BigInteger))
)

VERSIONS_WAITING: Final = (
    select(jobs.c.version).where(jobs.c.state == _QUEUED).distinct()
)

STATES: Final = select(jobs.c.state, func.count()).group_by(jobs.c.state)

FAILURES: Final = (
    select(jobs.c.code, func.count())
    .where(jobs.c.state == JobState.FAILED.value)
    .group_by(jobs.c.code)
)

OLDEST: Final = select(func.min(jobs.c.ready_us)).where(
    jobs.c.state == _QUEUED, jobs.c.ready_us <= _now
)

OPEN_IN_VERSION: Final = select(func.count()).where(
    or_(jobs.c.state == _QUEUED, jobs.c.state == _RUNNING),
    jobs.c.version == bindparam("code", type_=Text),
)
