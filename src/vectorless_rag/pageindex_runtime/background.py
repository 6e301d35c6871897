"""An event loop on a thread of its own, so that any thread can wait for a call."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from vectorless_rag.errors import Code, VectorlessRagError

T = TypeVar("T")

_JOIN_S = 10.0


class Background:
    """
    Runs coroutines for callers that may be inside another event loop, or in none.

    The thread starts with the first coroutine: the upstream's layout parser forks
    workers, and a process should not fork while it has threads.
    """

    def __init__(self) -> None:
        # Reentrant: a signal may interrupt the thread that holds it.
        self._lock = threading.RLock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    @property
    def started(self) -> bool:
        """Whether the loop runs."""
        return self._loop is not None

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """
        Start *coroutine* on the loop.

        Raises:
            VectorlessRagError: ``cancelled``, once it is closed.
        """
        try:
            loop = self._running()
        except VectorlessRagError:
            coroutine.close()
            raise
        return asyncio.run_coroutine_threadsafe(coroutine, loop)

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run *coroutine* on the loop and wait; interrupted, it is cancelled."""
        future = self.submit(coroutine)
        try:
            return future.result()
        finally:
            future.cancel()

    def close(self) -> None:
        """Cancel what still runs, and end the loop and its thread."""
        with self._lock:
            loop, thread, self._closed = self._loop, self._thread, True
            self._loop = self._thread = None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(_JOIN_S)

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._closed:
                raise VectorlessRagError(Code.CANCELLED, "the run is over")
            if self._loop is None:
                ready: Future[asyncio.AbstractEventLoop] = Future()
                # A daemon, so that a run that dies does not hang on its calls.
                self._thread = threading.Thread(
                    target=_serve, args=(ready,), name="model-calls", daemon=True
                )
                self._thread.start()
                self._loop = ready.result()
            return self._loop


def _serve(ready: Future[asyncio.AbstractEventLoop]) -> None:
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        # The client library's own background tasks may fail with an error that
        # quotes a reply; by default that would be printed.
        loop.set_exception_handler(lambda _loop, _context: None)
        ready.set_result(loop)
        loop.run_forever()
