"""
What every worker does for the others: find who died, and what fell between chairs.

Whether a worker is dead is judged by a pid, where it is of this machine, and else by
whether its beats go on: by how long they stood still on the clock of the one who
looks, so that machines' clocks need not agree.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from vectorless_rag import events
from vectorless_rag.engine import turns
from vectorless_rag.engine.places import is_gone
from vectorless_rag.engine.port import Queue
from vectorless_rag.engine.versions import (
    options_of,
    server_of,
    settings_for,
    version_of,
)
from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.ledger.board import Board
from vectorless_rag.ledger.book import Ledger
from vectorless_rag.ledger.job_types import Held, Job, JobRow, JobState, WorkerRow
from vectorless_rag.recipe import Recipe
from vectorless_rag.running import running_code
from vectorless_rag.settings import Settings
from vectorless_rag.units import Sha256

log = events.logger()

_AT_ONCE = 100
_OVERDUE_S = 15.0
"""So long a job may wait before it is asked whether its turn is still there."""


@dataclass(kw_only=True)
class Rescue:
    """
    Looks after jobs that nobody is at.

    Args:
        settings: Of the worker that looks.
        me: The worker that looks.
        board: Where jobs are recorded.
        queue: Where jobs are queued.
        is_at: Whether an attempt's turn is being carried out by this worker.
        clock: Seconds that only ever grow.
    """

    settings: Settings
    me: WorkerRow
    board: Board
    queue: Queue
    is_at: Callable[[str], bool]
    clock: Callable[[], float] = time.monotonic
    _beats: dict[str, tuple[int, float]] = field(default_factory=dict)
    _reached: str = ""

    def look(self) -> None:
        """Bury the dead, and queue what they, others and this worker left."""
        self._let_go()
        alive: list[WorkerRow] = []
        for worker in self._workers():
            if worker.worker_id != self.me.worker_id and self._is_dead(worker):
                self._bury(worker)
            else:
                alive.append(worker)
        self._pick_up({worker.worker_id for worker in alive})
        self._renew({worker.version for worker in alive})

    def _workers(self) -> list[WorkerRow]:
        """List all workers, those too that were buried and began a job after that."""
        listed = self.board.workers()
        ghosts = self.board.holders() - {worker.worker_id for worker in listed}
        return listed + [_ghost(name) for name in sorted(ghosts)]

    def _is_dead(self, worker: WorkerRow) -> bool:
        if worker.stopped or is_gone(worker.place, worker.pid):
            return True
        now = self.clock()
        beats, since = self._beats.setdefault(worker.worker_id, (worker.beats, now))
        if beats != worker.beats:
            self._beats[worker.worker_id] = (worker.beats, now)
            return False
        return now - since > self.settings.dead_after_s

    def _bury(self, worker: WorkerRow) -> None:
        """Queue what a worker was at or had been handed, then take it off the list."""
        held = self.board.release(worker.worker_id)
        self._close_holds(held)
        left = {
            turns.read_turn(name)[0] for name in self.queue.held_by(worker.worker_id)
        }
        left |= {h.recipe_hash for h in held}
        self._queue(left)
        self.board.forget(worker.worker_id)
        self._beats.pop(worker.worker_id, None)
        if left or not worker.stopped:
            log.warning("worker_died", worker=worker.worker_id, jobs=len(left))

    def _let_go(self) -> None:
        """
        Queue what this worker is at by the board, and is not.

        Its database was away, so it stopped its jobs and left them to the others, who
        were away as well or had buried it before it began them.
        """
        me = self.me.worker_id
        left = [
            h.attempt_id for h in self.board.held(me) if not self.is_at(h.attempt_id)
        ]
        if not left:
            return
        held = self.board.release(me, *left)
        self._close_holds(held)
        self._queue({h.recipe_hash for h in held})
        log.warning("jobs_let_go", worker=me, jobs=len(held))

    def _queue(self, recipes: set[Sha256]) -> None:
        for recipe in sorted(recipes):
            job = self.board.job(recipe)
            if job is not None and job.state is JobState.QUEUED:
                turns.enqueue_next(self.board, self.queue, job)

    def _close_holds(self, held: list[Held]) -> None:
        if not held:
            return
        with Ledger.open(self.settings.effective_ledger_url) as ledger:
            for one in held:
                ledger.expire(one.attempt_id)

    def _pick_up(self, alive: set[str]) -> None:
        """Queue jobs whose turn is lost: whoever was to queue it did not get to."""
        jobs = self.board.waiting(
            since_s=_OVERDUE_S, after=self._reached, most=_AT_ONCE
        )
        # Some at a time, from where the last look ended, and round again.
        self._reached = jobs[-1].recipe_hash if len(jobs) == _AT_ONCE else ""
        names = {turns.turn_id(job.recipe_hash, job.turn): job for job in jobs}
        lost = self.queue.lost(sorted(names), alive)
        end = self.clock() + self.settings.heartbeat_s
        for name in sorted(lost):
            if self.clock() > end:
                # To give a sign of life; the next look begins with what is left.
                self._reached = ""
                return
            job = names[name]
            log.warning("turn_lost", recipe=job.recipe_hash, turn=job.turn)
            turns.enqueue_next(self.board, self.queue, job)

    def _renew(self, versions: set[str]) -> None:
        """Give jobs of older code, which no worker runs any more, a new recipe."""
        waiting = set(self.board.versions_waiting()) - versions - {self.me.version}
        if not waiting:
            return
        since = self.board.versions()
        mine = since.get(self.me.version, 0)
        for version in sorted(waiting):
            # Of code that is newer than this: its workers are yet to come.
            if since.get(version, 0) < mine:
                for job in self.board.of_version(version, most=_AT_ONCE):
                    self._renew_one(job)

    def _renew_one(self, job: JobRow) -> None:
        try:
            settings = settings_for(job.options, job.owner, self.settings)
            configuration = running_code(settings).configuration
        except VectorlessRagError as error:
            log.warning("job_not_renewed", recipe=job.recipe_hash, code=error.code)
            return
        if server_of(options_of(configuration)) != server_of(job.options):
            return
        recipe = Recipe(
            configuration=configuration, document_sha256=job.document_sha256
        )
        heir = self.board.supersede(
            job.recipe_hash,
            Job(
                recipe_hash=recipe.recipe_hash,
                document_sha256=job.document_sha256,
                source=job.source,
                owner=job.owner,
                run_id=job.run_id,
                model=job.model,
                options=options_of(configuration),
                version=version_of(configuration),
                priority=job.priority,
            ),
        )
        self.queue.cancel([turns.turn_id(job.recipe_hash, job.turn)])
        if heir.state is JobState.QUEUED:
            turns.enqueue(self.queue, heir)
        log.info("job_renewed", recipe=job.recipe_hash, successor=heir.recipe_hash)


def _ghost(worker_id: str) -> WorkerRow:
    """Stand in for a worker of which nothing but its name is known."""
    return WorkerRow(
        worker_id=worker_id,
        place="",
        pid=0,
        version="",
        slots=0,
        beats=0,
        started_us=0,
        seen_us=0,
        stopped=False,
    )
