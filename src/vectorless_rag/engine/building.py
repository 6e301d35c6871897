"""
One turn of a job, from the claim to its end, on a thread of the worker.

The try is counted on the board before anything is started for it. Whatever ends the
turn, the job is in one state afterwards: ended, or queued for its next turn.
"""

import threading
import time
import traceback
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from vectorless_rag import events
from vectorless_rag.engine import turns
from vectorless_rag.engine.figures import Ended
from vectorless_rag.engine.port import AWAY, Queue
from vectorless_rag.engine.running import Running, Stop
from vectorless_rag.engine.submission import path_of
from vectorless_rag.engine.trial import Trial
from vectorless_rag.engine.versions import settings_for
from vectorless_rag.errors import Code, Failure, VectorlessRagError
from vectorless_rag.ledger.board import Board
from vectorless_rag.ledger.book import Ledger
from vectorless_rag.ledger.job_types import Claim, Claimed, End, JobRow, JobState
from vectorless_rag.pageindex_adapter import PageIndexAdapter
from vectorless_rag.pipeline import Order
from vectorless_rag.prefork import ForkServers
from vectorless_rag.recipe import Recipe
from vectorless_rag.results import IngestResult, Status
from vectorless_rag.settings import Settings
from vectorless_rag.units import Sha256

T = TypeVar("T")

log = events.logger()

# Not the document's fault: it may go well elsewhere, or once the disk has room.
_NOT_ITS_FAULT = frozenset({Code.LEDGER_UNAVAILABLE, Code.STORE_UNWRITABLE})

# A job is for certain bytes; they do not come back by waiting.
_FOR_GOOD = frozenset({Code.SOURCE_CHANGED})

_FULL_S = 2.0
_LONGEST_PAUSE_S = 3600.0
_PATIENCE_S = 0.5

# Who builds the same on this machine may be frozen: the slot is for others meanwhile.
_BUILDS_ELSEWHERE_S = 30.0


@dataclass(frozen=True, kw_only=True)
class Builder:
    """
    Carries out turns; any number of threads at once.

    Args:
        settings: The worker's own.
        worker_id: Its name.
        board: Where jobs are recorded.
        queue: Where a job is queued for its next turn.
        running: What is being built here, for others to stop.
        on_end: Is told of every turn that was carried out, on its thread.
        draining: Set when nothing is begun any more.
        ending: Set when nothing is waited for any more.
    """

    settings: Settings
    worker_id: str
    board: Board
    queue: Queue
    running: Running
    on_end: Callable[[Ended], None]
    draining: threading.Event
    ending: threading.Event
    trial: Trial = field(default_factory=Trial)
    """Whether the worker can do its work at all."""

    servers: ForkServers = field(default_factory=lambda: ForkServers(at_once=True))
    """What its children are forked from."""

    def work(self, turn_id: str) -> str:
        """Carry out a turn, and say in one word what came of it."""
        # Before it is on the board: what stands there and is not here, nobody is at.
        attempt = uuid.uuid4().hex
        try:
            with self.running.turn(attempt):
                return self._turn(*turns.read_turn(turn_id), attempt)
        except _EndingError:
            # The others find out what was left, and go on with it.
            return "left"

    def _turn(self, recipe: Sha256, turn: int, attempt: str) -> str:
        if self.draining.is_set():
            # Handed out while this worker was told to end.
            return self._pass_on(recipe, turn, delay_s=0)
        wish = Claim(
            recipe_hash=recipe,
            turn=turn,
            worker_id=self.worker_id,
            attempt_id=attempt,
            most_tries=self.settings.job_tries,
            most_of_model=self.settings.jobs_per_model,
        )
        claimed = self._patiently(lambda: self.board.claim(wish))
        if claimed is Claimed.FULL:
            return self._pass_on(recipe, turn, delay_s=_FULL_S)
        job = self._patiently(lambda: self.board.job(recipe))
        if job is None or claimed is not Claimed.TAKEN:
            log.info("job_not_begun", recipe=recipe, turn=turn, why=claimed.value)
            return claimed.value
        return self._build(job, attempt)

    def _pass_on(self, recipe: Sha256, turn: int, *, delay_s: float) -> str:
        """Leave a job that was not begun to another turn."""

        def step() -> None:
            job = self.board.job(recipe)
            if job is not None and (job.state, job.turn) == (JobState.QUEUED, turn):
                # Not cancelled: it is this very turn, which ends by itself.
                turns.enqueue_next(
                    self.board, self.queue, job, delay_s=delay_s, cancel=False
                )

        self._patiently(step)
        return "passed_on"

    def _build(self, job: JobRow, attempt: str) -> str:
        log.info(
            "job_begun", recipe=job.recipe_hash, attempt=attempt, turn=job.turn,
            tries=job.tries, owner=job.owner, model=job.model, run=job.run_id,
        )  # fmt: skip
        began_ns = time.time_ns()
        with self.running.of(attempt, job) as here:
            result = self._result(job, attempt, here.check)
            how = self._end(job, attempt, here.why, result)
            if result.failure is not None:
                self._patiently(lambda: self._close_holds(attempt))
        ended = Ended(
            job=job,
            attempt_id=attempt,
            how=how,
            code=result.failure.code.value if result.failure is not None else None,
            spend=result.spend,
            began_ns=began_ns,
            ended_ns=time.time_ns(),
        )
        log.info(
            "job_ended", recipe=job.recipe_hash, attempt=attempt, how=how,
            code=ended.code, wall_ms=int(ended.seconds * 1000),
            **result.spend.to_json(),
        )  # fmt: skip
        self.on_end(ended)
        return how

    def _result(
        self, job: JobRow, attempt: str, check: Callable[[], None]
    ) -> IngestResult:
        try:
            return self._ingest(job, attempt, check)
        except VectorlessRagError as error:
            failure = error.failure
        except Exception as error:  # noqa: BLE001
            # A defect of ours must not take the worker and its other jobs along. Its
            # message may quote the document: where it was is enough to find it.
            *_, place = traceback.extract_tb(error.__traceback__)
            log.error(  # noqa: TRY400
                "job_broke",
                recipe=job.recipe_hash,
                error=type(error).__name__,
                where=f"{Path(place.filename).name}:{place.lineno}",
            )
            failure = Failure(code=Code.INTERNAL_ERROR)
        return IngestResult(
            source=path_of(job.source), status=Status.FAILED, failure=failure
        )

    def _ingest(
        self, job: JobRow, attempt: str, check: Callable[[], None]
    ) -> IngestResult:
        settings = settings_for(job.options, job.owner, self.settings)
        adapter = PageIndexAdapter(settings, run_id=job.run_id, servers=self.servers)
        recipe = Recipe(
            configuration=adapter.code().configuration,
            document_sha256=job.document_sha256,
        )
        if recipe.recipe_hash != job.recipe_hash:
            raise VectorlessRagError(
                Code.SETTINGS_INVALID,
                "VECTORLESS_RAG_API_BASE of the worker is not what the job is for",
            )
        order = Order(
            document_sha256=job.document_sha256,
            attempt_id=attempt,
            patience_s=_BUILDS_ELSEWHERE_S,
        )
        return adapter.ingest(path_of(job.source), check=check, order=order)

    def _end(
        self, job: JobRow, attempt: str, why: Stop | None, result: IngestResult
    ) -> str:
        failure = result.failure
        if failure is None:
            self.trial.blames_worker(job.recipe_hash, None)
            end = End(state=JobState.BUILT, artifact_id=result.artifact_id)
            return self._finish(job, attempt, end)
        if failure.code is Code.CANCELLED:
            return self._end_stopped(job, attempt, why, failure)
        elsewhere = failure.code is Code.IN_PROGRESS
        if elsewhere or self.trial.blames_worker(job.recipe_hash, failure):
            delay_s = float(self.settings.retry_s)
            return self._hand_back(job, attempt, None, delay_s=delay_s)
        again = failure.retryable or failure.code in _NOT_ITS_FAULT
        again = again and failure.code not in _FOR_GOOD
        if again and job.tries < self.settings.job_tries:
            pause = self.settings.retry_s * 2.0 ** (job.tries - 1)
            delay_s = min(pause, _LONGEST_PAUSE_S)
            return self._hand_back(job, attempt, failure, delay_s=delay_s)
        return self._finish(job, attempt, End(state=JobState.FAILED, failure=failure))

    def _end_stopped(
        self, job: JobRow, attempt: str, why: Stop | None, failure: Failure
    ) -> str:
        if why is Stop.LOST:
            # Another worker is at it, or will be.
            return Stop.LOST.value
        if why is Stop.ENDING:
            return self._hand_back(job, attempt, None, delay_s=0)
        end = End(state=JobState.CANCELLED, failure=failure)
        return self._finish(job, attempt, end)

    def _close_holds(self, attempt: str) -> None:
        """Count what is still held: its database was away when the attempt ended."""
        with Ledger.open(self.settings.effective_ledger_url) as ledger:
            ledger.expire(attempt)

    def _finish(self, job: JobRow, attempt: str, end: End) -> str:
        mine = self._patiently(lambda: self.board.finish(job.recipe_hash, attempt, end))
        return end.state.value if mine else Stop.LOST.value

    def _hand_back(
        self, job: JobRow, attempt: str, failure: Failure | None, *, delay_s: float
    ) -> str:
        mine = self._patiently(
            lambda: self.board.hand_back(
                job.recipe_hash,
                attempt,
                turn=job.turn,
                counted=failure is not None,
                failure=failure,
                delay_s=delay_s,
            )
        )
        if not mine:
            return Stop.LOST.value
        after = replace(job, turn=job.turn + 1)
        self._patiently(lambda: turns.enqueue(self.queue, after, delay_s=delay_s))
        return "handed_back"

    def _patiently(self, step: Callable[[], T]) -> T:
        """Take a step again and again while its database is away."""
        while True:
            try:
                return step()
            except VectorlessRagError as error:
                if error.code not in AWAY:
                    raise
                if self.ending.wait(_PATIENCE_S):
                    raise _EndingError from None


class _EndingError(Exception):
    """The worker ends, and its database is away: there is nothing left to do."""
