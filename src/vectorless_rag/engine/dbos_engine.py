"""
DBOS as the engine, on SQLite or PostgreSQL: the one module that imports it.

It keeps to itself: no key is given, so that nothing connects to its maker's service;
this version opens no port; its telemetry is off; and what it would read from the
environment is taken away first.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from vectorless_rag import environment, events
from vectorless_rag.engine.port import Turn, Work
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.ledger.sqlite_functions import teach_subsec

APPLICATION = "vectorless-rag"
QUEUE = "documents"
WORKFLOW = "build"

_POLL_S = 0.5
_TAKE_S = 10.0
_AT_ONCE = 500
_AGAIN_S = 60.0
# A turn whose worker was taken for dead ends in it: it was cancelled by us.
_OF_OURS = frozenset({"DBOSAwaitedWorkflowCancelledError"})
_GOING_ON = ["ENQUEUED", "PENDING", "DELAYED"]

log = events.logger()


class DbosQueue:
    """
    Puts turns in.

    Args:
        url: ``sqlite:////absolute/path`` or ``postgresql://…``.

    Raises:
        VectorlessRagError: ``engine_unavailable``.
    """

    def __init__(self, url: str) -> None:
        dbos = _imported()
        with _faults():
            _make_tables(dbos, url)
            self._client = dbos.DBOSClient(
                system_database_url=url,
                serializer=dbos.DBOSPortableJSONSerializer(),
                application_name=APPLICATION,
                retry_connection_errors=False,
            )
            # Whose limits hold is for workers to say.
            self._client.register_queue(
                QUEUE, polling_interval_sec=_POLL_S, on_conflict="never_update"
            )

    def enqueue(self, turn: Turn) -> None:
        """Put a turn in, unless it is there or was."""
        options = {
            "workflow_name": WORKFLOW,
            "queue_name": QUEUE,
            "workflow_id": turn.turn_id,
            "queue_partition_key": turn.owner,
            "app_version": turn.version,
            "priority": turn.priority,
        }
        if turn.delay_s > 0:
            options["delay_seconds"] = turn.delay_s
        with _faults():
            self._client.enqueue(options, turn.turn_id)

    def cancel(self, turn_ids: Sequence[str]) -> None:
        """Take turns out; what somebody was handed is his no more."""
        with _faults():
            for some in _chunks(turn_ids):
                self._client.cancel_workflows(some)

    def lost(self, turn_ids: Sequence[str], alive: Collection[str]) -> set[str]:
        """Tell which of these nobody has or will be handed; *alive*: the workers."""
        there: set[str] = set()
        with _faults():
            for some in _chunks(turn_ids):
                there |= {
                    found.workflow_id
                    for found in self._listed(workflow_ids=some, status=_GOING_ON)
                    if found.status != "PENDING" or found.executor_id in alive
                }
        return set(turn_ids) - there

    def held_by(self, worker_id: str) -> list[str]:
        """List the turns that a worker was handed and has not ended."""
        with _faults():
            found = self._listed(executor_id=worker_id, status="PENDING")
            return [workflow.workflow_id for workflow in found]

    def _listed(self, **which: Any) -> Any:  # noqa: ANN401
        return self._client.list_workflows(load_input=False, load_output=False, **which)

    def close(self) -> None:
        """Let go of the database."""
        self._client.destroy()


class DbosHands:
    """
    Is handed turns, in a worker's process. There can be one in a process.

    Args:
        url: As of `DbosQueue`.
        worker_id: A name that no other process has or had.
        version: The code of this process.
        slots: Turns carried out at a time.
        per_owner: Turns of one owner at a time, over all workers; None: any number.
            The worker that started last decides.
    """

    def __init__(
        self,
        url: str,
        *,
        worker_id: str,
        version: str,
        slots: int,
        per_owner: int | None,
    ) -> None:
        self._url = url
        self._worker_id = worker_id
        self._version = version
        self._slots = slots
        self._per_owner = per_owner
        self._dbos: Any = None
        self._polled = threading.Condition()
        self._bound_to: int | None = None

    def start(self, work: Work) -> None:
        """Begin to be handed turns, each on a thread that lives as long as this."""
        dbos = _imported()
        with _faults():
            _make_tables(dbos, self._url)
            self._dbos = dbos.DBOS(
                config={
                    "name": APPLICATION,
                    "system_database_url": self._url,
                    "executor_id": self._worker_id,
                    # Otherwise a checksum of this module, whatever it builds.
                    "application_version": self._version,
                    # The default is pickle: to write to its tables would be to run
                    # code in every worker.
                    "serializer": dbos.DBOSPortableJSONSerializer(),
                    # A thread each needs one at its end; the default is 20.
                    "sys_db_pool_size": self._slots + 4,
                    "enable_otlp": False,
                    "run_migrations": False,
                    "log_level": "WARNING",
                }
            )
            _hear(logging.getLogger("dbos"))
            # Tries are counted on the board; one that DBOS gave up would be stuck.
            dbos.DBOS.workflow(name=WORKFLOW, max_recovery_attempts=None)(
                _carrying_out(work)
            )
            # To none until the bound on this process stands.
            dbos.DBOS.listen_queues([])
            dbos.DBOS.launch()
            self._bound_by_slots()
            dbos.DBOS.register_queue(
                QUEUE,
                partition_concurrency=self._per_owner,
                polling_interval_sec=_POLL_S,
                on_conflict="always_update",
            )
            self._dbos._listening_queues = [QUEUE]  # noqa: SLF001

    def take(self, slots: int) -> None:
        """
        Be handed turns as long as fewer than *slots* are being carried out.

        It waits until that holds: a poll that has begun takes as many as before.
        """
        with self._polled:
            self._slots = slots
            self._polled.wait_for(lambda: self._bound_to == slots, _TAKE_S)

    def stop(self) -> None:
        """Let go of the database; nothing is handed out any more."""
        if self._dbos is not None:
            with contextlib.suppress(Exception):
                type(self._dbos).destroy()
            self._dbos = None

    def _bound_by_slots(self) -> None:
        """
        Let this process's own number of slots stand.

        A queue's bound on one process lies in its row, and so is the same for all;
        machines differ. Every poll reads that row anew, through this method.
        """
        tables = self._dbos._sys_db  # noqa: SLF001
        read = tables.get_queue

        def get_queue(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            queue = read(*args, **kwargs)
            if queue is not None:
                with self._polled:
                    queue._worker_concurrency = self._slots  # noqa: SLF001
                    self._bound_to = self._slots
                    self._polled.notify_all()
            return queue

        tables.get_queue = get_queue


def _carrying_out(work: Work) -> Work:
    def build(turn_id: str) -> str:
        return work(turn_id)

    return build


def _imported() -> Any:  # noqa: ANN401
    # It takes its name, version and its maker's cloud from these.
    environment.forget("DBOS_")
    try:
        import dbos  # noqa: PLC0415  (half a second, for workers alone)
    except ImportError:
        raise VectorlessRagError(
            Code.ENGINE_UNAVAILABLE, "its library is missing: the extra 'worker'"
        ) from None
    teach_subsec()
    return dbos


_MAKING = threading.Lock()


def _make_tables(dbos: Any, url: str) -> None:  # noqa: ANN401
    if url.startswith("sqlite:"):
        Path(url.removeprefix("sqlite:///")).parent.mkdir(parents=True, exist_ok=True)
    _hear(logging.getLogger("dbos"))
    with _MAKING:
        dbos.DBOS.migrate(url, schema="dbos")


@contextlib.contextmanager
def _faults() -> Iterator[None]:
    try:
        yield
    except VectorlessRagError:
        raise
    except Exception as error:  # noqa: BLE001  (whatever its driver raises)
        # The message would quote the address and the statement.
        why = type(getattr(error, "orig", None) or error).__name__
        raise VectorlessRagError(Code.ENGINE_UNAVAILABLE, why) from None


class _ToEvents(logging.Handler):
    """
    Turns its log lines into events without their words: they quote statements.

    A line that comes again and again, while its database is away, is told once a
    minute.
    """

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self._told: dict[tuple[str, str | None], float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Report where a line came from."""
        where = f"{record.module}:{record.lineno}"
        report = log.warning if record.levelno < logging.ERROR else log.error
        kind = (
            record.exc_info[0].__name__
            if record.exc_info and record.exc_info[0]
            else None
        )
        if kind in _OF_OURS:
            return
        now, last = time.monotonic(), self._told.get((where, kind))
        if last is None or now - last >= _AGAIN_S:
            self._told[where, kind] = now
            report("engine_complained", where=where, error=kind)


def _hear(logger: logging.Logger) -> None:
    logger.handlers[:] = [_ToEvents(level=logging.WARNING)]
    logger.setLevel(logging.WARNING)
    logger.propagate = False


def _chunks(ids: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(ids), _AT_ONCE):
        yield list(ids[start : start + _AT_ONCE])
