"""
A worker: is handed jobs, builds them, and looks after those of workers that died.

Nobody else looks after anything: each worker does, and the board sees to it that of
several that do the same at once only one does it.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from vectorless_rag import events
from vectorless_rag.engine.building import Builder
from vectorless_rag.engine.figures import Counts, Ended, Figure, figures
from vectorless_rag.engine.footing import Footing
from vectorless_rag.engine.port import AWAY, Hands, Queue
from vectorless_rag.engine.rescue import Rescue
from vectorless_rag.engine.running import Running, Stop
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.ledger.board import Board
from vectorless_rag.ledger.job_types import WorkerRow
from vectorless_rag.settings import Settings

TICK_S = 0.5
"""How often a worker looks for what was cancelled, in seconds."""

log = events.logger()


# So long it may be at one step, the database's own patience included.
_STUCK_S = 120.0


def _ignore(_ended: Ended) -> None:
    """Tell nobody."""


@dataclass(kw_only=True)
class Worker:
    """
    One worker process.

    Args:
        settings: Its own.
        row: As it enters the board.
        board: Where jobs are recorded.
        queue: Where jobs are queued.
        hands: From where it is handed them.
    """

    settings: Settings
    row: WorkerRow
    board: Board
    queue: Queue
    hands: Hands

    on_end: Callable[[Ended], None] = _ignore
    """Is told of every turn that was carried out, on the turn's thread."""

    counts: Counts = field(default_factory=Counts)
    """What it has done."""

    stopping: threading.Event = field(default_factory=threading.Event)
    """Set to have it end, after what it is at."""

    hurry: threading.Event = field(default_factory=threading.Event)
    """Set to have it end at once."""

    draining: threading.Event = field(default_factory=threading.Event)
    """Set once it begins nothing any more."""

    away: Code | None = None
    """Why its database cannot be reached now; None: it can."""

    began: bool = False

    ticked: float = field(default_factory=time.monotonic)
    """When it last went round, in seconds of `time.monotonic`."""

    _beat_at: float = 0
    _look_at: float = 0

    def __post_init__(self) -> None:
        # Before the others do, so that no two build one document.
        alone_after_s = self.settings.dead_after_s - 1.0
        self.running = Running(alone_after_s)
        self.builder = Builder(
            settings=self.settings,
            worker_id=self.row.worker_id,
            board=self.board,
            queue=self.queue,
            running=self.running,
            on_end=self._ended,
            draining=self.draining,
            ending=self.hurry,
        )
        self.rescue = Rescue(
            settings=self.settings,
            me=self.row,
            board=self.board,
            queue=self.queue,
            is_at=self.running.is_at,
        )

    @property
    def is_healthy(self) -> bool:
        """Whether it still goes round."""
        return time.monotonic() - self.ticked < _STUCK_S

    @property
    def is_ready(self) -> bool:
        """Whether it takes jobs: it has begun, reaches its database, and goes on."""
        reached = self.away is None and not self.running.is_alone()
        return self.began and reached and not self.stopping.is_set()

    def figures(self) -> list[Figure]:
        """Count the fleet and this worker."""
        url = self.settings.effective_ledger_url
        dead_after_s = self.settings.dead_after_s
        return figures(url, self.counts, len(self.running), dead_after_s=dead_after_s)

    def _ended(self, ended: Ended) -> None:
        self.counts.add(ended)
        self.on_end(ended)

    def run(self, *, until_idle: bool) -> None:
        """
        Build until it is told to stop.

        Args:
            until_idle: Also end when no job that it could build is left.

        Raises:
            VectorlessRagError: ``ledger_unavailable`` or ``engine_unavailable``, at
                the start alone; later it waits until the database is back.
                ``store_unwritable``: the database's file is another one now. What
                it could begin none of its first jobs for, see `engine.trial`.
        """
        if self.stopping.is_set():
            return
        self.board.enter(self.row)
        log.info("worker_began", worker=self.row.worker_id, version=self.row.version)
        self.hands.start(self.builder.work)
        footing = Footing.of(self.settings)
        self.began = True
        try:
            self._go_round(footing, until_idle=until_idle)
            self._drain()
        finally:
            # Whatever is left here is not waited for, and begun anew by others.
            self.running.stop_all(Stop.ENDING)
            self.hurry.set()
            self.hands.stop()
            self.builder.servers.close()
        self._leave()
        if (failure := self.builder.trial.failure) is not None:
            why = "this worker could begin none of its first jobs"
            detail = "; ".join(filter(None, [failure.detail, why]))
            raise VectorlessRagError(failure.code, detail)

    def _go_round(self, footing: Footing, *, until_idle: bool) -> None:
        while not self.stopping.wait(TICK_S) and self.builder.trial.failure is None:
            self.ticked = time.monotonic()
            footing.check()
            try:
                self._beat_if_due()
                self._heed()
                self._look_if_due()
                idle = until_idle and not self.board.is_open(self.row.version)
            except VectorlessRagError as error:
                if error.code not in AWAY:
                    raise
                self._note(error.code)
                continue
            self._note(None)
            if idle:
                return

    def _beat_if_due(self) -> None:
        if self.ticked >= self._beat_at:
            self._beat()
            self._beat_at = self.ticked + self.settings.heartbeat_s

    def _look_if_due(self) -> None:
        if self.ticked >= self._look_at:
            self.rescue.look()
            self._look_at = self.ticked + self.settings.heartbeat_s

    def _note(self, away: Code | None) -> None:
        """Report that the database went away, and that it is back: once each."""
        if away is not self.away:
            if away is None:
                log.info("database_back")
            else:
                log.warning("database_away", code=away.value)
        self.away = away

    def _beat(self) -> None:
        if not self.board.beat(self.row.worker_id):
            # The others took it for dead, and its jobs along.
            self.board.enter(self.row)
        self.running.seen()

    def _heed(self) -> None:
        before = self.running.attempts()
        if before:
            self.running.heed(before, self.board.held(self.row.worker_id))

    def _drain(self) -> None:
        """Take nothing new, wait for what runs, and hand back what does not end."""
        self.draining.set()
        self.hands.take(0)
        log.info("worker_draining", worker=self.row.worker_id, jobs=len(self.running))
        if not self._wait_until_done(self.settings.drain_s):
            self.running.stop_all(Stop.ENDING)
            self._wait_until_done(self.settings.grace_s + 30)

    def _wait_until_done(self, limit_s: float) -> bool:
        end = time.monotonic() + limit_s
        while self.running.turns and time.monotonic() < end:
            if self.hurry.wait(TICK_S):
                return False
            self.ticked = time.monotonic()
            self._whatever_comes(self._heed, self._beat_if_due)
        return not self.running.turns

    def _leave(self) -> None:
        self._whatever_comes(lambda: self.board.stop(self.row.worker_id))
        log.info("worker_ended", worker=self.row.worker_id)

    def _whatever_comes(self, *steps: Callable[[], None]) -> None:
        try:
            for step in steps:
                step()
        except VectorlessRagError as error:
            self._note(error.code)
        else:
            self._note(None)
