"""A child that a fork server started for this process."""

import os
import select
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress

from vectorless_rag.fork_messages import GO, hear

_LOOK_S = 0.25

END_S = 5.0
"""How long a server may take to end, or to tell how a child did, in seconds."""


class NoServerError(Exception):
    """There is no server to start a child; it is to be started directly."""


def await_child(
    status: socket.socket, check: Callable[[], None], timeout_s: float
) -> "Forked":
    """
    Wait until a child is there, and tell it to go on.

    Args:
        status: The socket of its order; the child that is returned closes it.
        check: Is called a few times a second meanwhile; what it raises passes.
        timeout_s: How long to wait, in seconds.

    Raises:
        NoServerError: There will be none.
        TimeoutError: There is none in time.
    """
    end = time.monotonic() + timeout_s
    while not _ready(_LOOK_S, status.fileno()):
        check()
        if time.monotonic() >= end:
            raise TimeoutError
    heard = hear(status)
    if heard is None or heard.handle is None:
        raise NoServerError
    child = Forked(status, heard.number, heard.handle)
    try:
        status.send(GO)
    except OSError:
        os.close(heard.handle)
        raise NoServerError from None
    return child


def _ready(timeout_s: float | None, *fds: int) -> bool:
    """Wait until one of *fds* has something to say."""
    waiting = select.poll()
    for fd in fds:
        waiting.register(fd, select.POLLIN)
    return bool(waiting.poll(None if timeout_s is None else timeout_s * 1000))


class Forked:
    """A child that a server started, known by a handle that no other process gets."""

    def __init__(self, status: socket.socket, pid: int, handle: int) -> None:
        self.pid = pid
        self.lost = False
        self.returncode: int | None = None
        self._status = status
        self._handle = handle

    def poll(self) -> int | None:
        """See `vectorless_rag.process.Child`."""
        if self.returncode is None and _ready(0, self._status.fileno()):
            heard = hear(self._status)
            if heard is None:
                self._lose()
            else:
                self._end(heard.number)
        return self.returncode

    def wait(self, timeout_s: float | None = None) -> bool:
        """See `vectorless_rag.process.Child`."""
        if self.returncode is None:
            _ready(timeout_s, self._status.fileno(), self._handle)
        gone = self.returncode is None and _ready(0, self._handle)
        if gone and not _ready(END_S, self._status.fileno()):
            self._lose()
        return self.poll() is not None

    def terminate(self) -> None:
        """Ask it to end."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it."""
        # The rest of its group is the server's to kill; without one, its guardian's.
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        if self.returncode is None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, number)

    def _lose(self) -> None:
        """Its server is gone: see that it is, too."""
        self.kill()
        _ready(None, self._handle)
        self.lost = True
        self._end(-signal.SIGKILL)

    def _end(self, status: int) -> None:
        self.returncode = status
        self._status.close()
        os.close(self._handle)
