"""``vectorless-rag worker``: one worker process, until it is told to end."""

import os
import socket
import threading
import uuid
from contextlib import ExitStack, closing

from vectorless_rag import events
from vectorless_rag.engine.answering import Answers, answering
from vectorless_rag.engine.dbos_engine import DbosHands, DbosQueue
from vectorless_rag.engine.figures import prometheus
from vectorless_rag.engine.places import worker_place
from vectorless_rag.engine.telemetry import Telemetry
from vectorless_rag.engine.versions import version_of
from vectorless_rag.engine.worker import Worker
from vectorless_rag.ledger.board import Board
from vectorless_rag.ledger.book import now_us
from vectorless_rag.ledger.job_types import WorkerRow
from vectorless_rag.running import running_code
from vectorless_rag.settings import Settings

log = events.logger()


def work(settings: Settings, stopping: threading.Event, *, until_idle: bool) -> int:
    """
    Work until *stopping* is set; return the exit status.

    What it is at then is finished or handed back.
    """
    row = _row(settings)
    with ExitStack() as stack:
        board = stack.enter_context(Board.open(settings.effective_ledger_url))
        queue = stack.enter_context(closing(DbosQueue(settings.effective_engine_url)))
        hands = DbosHands(
            settings.effective_engine_url,
            worker_id=row.worker_id,
            version=row.version,
            slots=settings.jobs,
            per_owner=settings.jobs_per_owner,
        )
        worker = Worker(
            settings=settings,
            row=row,
            board=board,
            queue=queue,
            hands=hands,
            stopping=stopping,
        )
        _watched(worker, stack)
        worker.run(until_idle=until_idle)
    return 0


def _watched(worker: Worker, stack: ExitStack) -> None:
    """Let others see how it does, where the settings say so."""
    settings = worker.settings
    if settings.otel:
        telemetry = Telemetry(
            worker_id=worker.row.worker_id,
            version=worker.row.version,
            read=worker.figures,
        )
        stack.callback(telemetry.close)
        worker.on_end = telemetry.ended
    if settings.listen is not None:
        answers = Answers(
            healthy=lambda: worker.is_healthy,
            ready=lambda: worker.is_ready,
            metrics=lambda: prometheus(worker.figures()),
        )
        port = stack.enter_context(answering(settings.listen, answers))
        log.info("worker_listens", port=port)


def _row(settings: Settings) -> WorkerRow:
    now = now_us()
    pid = os.getpid()
    return WorkerRow(
        # Never the same twice: what a dead one left is told apart from what the one
        # started in its place does.
        worker_id=f"{socket.gethostname()}-{pid}-{uuid.uuid4().hex[:8]}",
        place=worker_place(),
        pid=pid,
        version=version_of(running_code(settings).configuration),
        slots=settings.jobs,
        beats=0,
        started_us=now,
        seen_us=now,
        stopped=False,
    )
