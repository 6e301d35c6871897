"""
Many documents, several at a time: none is lost, and none holds up the others.

Each document is built by a thread that lives as long as the run, since a child dies
with the thread that started it.
"""

import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.results import IngestResult, Status
from vectorless_rag.wire import Progress

# The next document would fail the same way, whatever it is.
ENDS_RUN = frozenset({
    Code.AUTH, Code.QUOTA, Code.BUDGET_EXCEEDED, Code.UNPRICED_MODEL,
    Code.STORE_UNWRITABLE, Code.LEDGER_UNAVAILABLE, Code.LEDGER_CONFLICT,
    Code.UPSTREAM_UNAVAILABLE, Code.UPSTREAM_DRIFT, Code.UPSTREAM_TAMPERED,
    Code.SETTINGS_INVALID,
})  # fmt: skip

_LOOK_S = 0.2


class Ingester(Protocol):
    """Brings a document to its artifact; any number of threads may ask it."""

    def ingest(
        self,
        path: Path,
        *,
        rebuild: bool,
        on_progress: Callable[[Progress], None],
        check: Callable[[], None],
    ) -> IngestResult:
        """As `PageIndexAdapter.ingest`."""
        ...


class Watcher(Protocol):
    """Is told what happens, on the thread that called `Corpus.run`."""

    def started(self, number: int, path: Path) -> None:
        """Take note that document *number* is being worked on."""
        ...

    def progressed(self, number: int, progress: Progress) -> None:
        """Take note of how far it is."""
        ...

    def done(self, number: int, result: IngestResult) -> None:
        """Take note of how it ended; also told of those that were skipped."""
        ...


_Event = tuple[int, Path | Progress | IngestResult | BaseException | threading.Thread]
"""What happened to a document; or the last word of a thread."""


@dataclass(kw_only=True)
class Corpus:
    """
    One run over many documents.

    Args:
        adapter: Builds a document.
        jobs: Documents at a time.
        rebuild: Build again where an artifact is there.
    """

    adapter: Ingester
    jobs: int
    rebuild: bool

    _todo: deque[tuple[int, Path]] = field(default_factory=deque)
    _events: queue.SimpleQueue[_Event] = field(default_factory=queue.SimpleQueue)
    _begun: set[int] = field(default_factory=set)
    _ended: Code | None = None

    @property
    def ended(self) -> Code | None:
        """What ended the run before its time; None, if nothing did."""
        return self._ended

    def run(self, paths: Sequence[Path], watcher: Watcher) -> list[IngestResult]:
        """
        Ingest *paths*, and return a result for each, in their order.

        What goes wrong with one document is its result. After a failure that every
        document would meet, or an interrupt, none is begun any more; those that are
        being built settle what is in flight.

        Args:
            paths: The documents.
            watcher: Is told what happens.

        Raises:
            KeyboardInterrupt: Or whatever else a signal raised, after every document
                was told of.
        """
        results: dict[int, IngestResult] = {}

        def done(number: int, result: IngestResult) -> None:
            results[number] = result
            watcher.done(number, result)

        self._todo.extend(enumerate(paths))
        threads = [
            threading.Thread(target=self._work, daemon=True)
            for _ in range(min(self.jobs, len(paths)))
        ]
        for thread in threads:
            thread.start()
        interrupt = self._follow(threads, watcher, done)
        for number, path in enumerate(paths):
            if number not in results:
                done(number, self._left(number, path))
        if interrupt is not None:
            raise interrupt
        return [results[number] for number in range(len(paths))]

    def _follow(
        self,
        threads: Sequence[threading.Thread],
        watcher: Watcher,
        done: Callable[[int, IngestResult], None],
    ) -> BaseException | None:
        """Tell what happens until every thread has ended; return an interrupt."""
        interrupt: BaseException | None = None
        while True:
            try:
                # A loop of its own: a signal between two rounds must land in it.
                self._tell_all(threads, watcher, done)
            except BaseException as error:
                if isinstance(error, Exception):
                    raise
                if interrupt is not None:
                    # The second time: at once. The children die with this process.
                    return error
                interrupt = error
                self._end(Code.CANCELLED)
            else:
                return interrupt

    def _tell_all(
        self,
        threads: Sequence[threading.Thread],
        watcher: Watcher,
        done: Callable[[int, IngestResult], None],
    ) -> None:
        while True:
            alive = any(thread.is_alive() for thread in threads)
            event = self._next(wait=alive)
            if event is not None:
                self._tell(event, watcher, done)
            elif not alive:
                return

    def _left(self, number: int, path: Path) -> IngestResult:
        """Account for a document that nobody has told of."""
        if number in self._begun:
            failure = VectorlessRagError(Code.CANCELLED).failure
            return IngestResult(source=path, status=Status.FAILED, failure=failure)
        return IngestResult(source=path, status=Status.SKIPPED, skipped=self._ended)

    def _next(self, *, wait: bool) -> _Event | None:
        try:
            return (
                self._events.get(timeout=_LOOK_S) if wait else self._events.get(False)
            )
        except queue.Empty:
            return None

    def _tell(
        self,
        event: _Event,
        watcher: Watcher,
        done: Callable[[int, IngestResult], None],
    ) -> None:
        number, what = event
        match what:
            case Path():
                watcher.started(number, what)
            case Progress():
                watcher.progressed(number, what)
            case IngestResult():
                done(number, what)
            case threading.Thread():
                what.join()
            case _:
                raise what

    def _end(self, code: Code) -> None:
        self._ended = self._ended or code
        self._todo.clear()

    def _work(self) -> None:
        try:
            self._work_off()
        finally:
            # Whoever waits for events need not look for threads now and then.
            self._events.put((-1, threading.current_thread()))

    def _work_off(self) -> None:
        """Take one document after another, until none is left."""
        while True:
            try:
                number, path = self._todo.popleft()
            except IndexError:
                return
            self._begun.add(number)
            self._events.put((number, path))
            try:
                result = self._ingest(number, path)
                if result.failure is not None and result.failure.code in ENDS_RUN:
                    self._end(result.failure.code)
                self._events.put((number, result))
            except BaseException as error:  # noqa: BLE001  (raised on the other thread)
                self._events.put((number, error))
                return

    def _ingest(self, number: int, path: Path) -> IngestResult:
        return self.adapter.ingest(
            path,
            rebuild=self.rebuild,
            on_progress=lambda progress: self._events.put((number, progress)),
            check=self._check,
        )

    def _check(self) -> None:
        if self._ended is Code.CANCELLED:
            raise VectorlessRagError(Code.CANCELLED)
