"""
The fork server: children of one kind, forked from a process that is warm.

``python -m vectorless_rag.fork_server CONTROL_FD PARENT CHECKOUT MODEL REMOTE`` imports
what a child would import, and then starts one for each order. It opens no document,
no connection and no ledger, has one thread, and ends with its parent. A child is
forked before anything is read; from there on it is one like any other, confined by
`run_pageindex.main`. The server takes nothing from a child but its end, so that none
can change what the next one is forked from.
"""

import contextlib
import gc
import os
import random
import selectors
import signal
import socket
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from vectorless_rag import run_pageindex
from vectorless_rag.confinement import end_with
from vectorless_rag.fork_messages import (
    Order,
    close_all,
    receive_order,
    tell_ended,
    tell_started,
)
from vectorless_rag.pageindex_runtime.preloading import preload

IDLE_S = 300.0
"""Without a child for so long, the server ends; the next document starts another."""


@dataclass(frozen=True, kw_only=True)
class _Running:
    """A child that was forked."""

    pid: int
    handle: int
    status: socket.socket


@dataclass(kw_only=True)
class Server:
    """
    Forks a child for each order.

    Args:
        control: Where orders arrive.
        idle_s: Without a child for so long, it ends.
    """

    control: socket.socket
    idle_s: float = IDLE_S
    _events: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    _open: bool = True
    _running: dict[int, _Running] = field(default_factory=dict)

    def serve(self) -> tuple[Order, socket.socket] | None:
        """
        Start children until there are no more orders, or none for a long time.

        Returns:
            None in the server itself, once it ends; in a child the order that it is
            to carry out, and the socket over which it is told to.
        """
        self._events.register(self.control, selectors.EVENT_READ)
        while self._open or self._running:
            events = self._events.select(None if self._running else self.idle_s)
            if not events:
                return None
            for key, _ in events:
                if key.fileobj is not self.control:
                    self._reap(key.fd)
                elif (order := receive_order(self.control)) is None:
                    self._events.unregister(self.control)
                    self._open = False
                else:
                    status = socket.socket(fileno=order.status)
                    if self._fork(order, status):
                        self._forget(status)
                        return order, status
        return None

    def _fork(self, order: Order, status: socket.socket) -> bool:
        """Start a child; return whether this is the child."""
        if not is_alone():
            # At once: a thread would keep this process, and whoever waits for it.
            os._exit(1)
        try:
            pid = os.fork()
        except OSError:
            # Whoever ordered it starts it, or finds out why that cannot be.
            pid = None
        if pid == 0:
            return True
        close_all(order.fds[:-1])
        if pid is None:
            status.close()
            return False
        # The child does the same: whoever comes first.
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)
        child = _Running(pid=pid, handle=os.pidfd_open(pid), status=status)
        self._running[child.handle] = child
        self._events.register(child.handle, selectors.EVENT_READ)
        with contextlib.suppress(OSError):
            # If nobody wants to know, the child is not told to go on.
            tell_started(status, pid, child.handle)
        return False

    def _reap(self, handle: int) -> None:
        """Tell how a child ended, and see that its group is gone before."""
        child = self._running.pop(handle)
        self._events.unregister(handle)
        os.close(handle)
        # Until it is waited for, the number is no other group's.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        _, status = os.waitpid(child.pid, 0)
        with child.status, contextlib.suppress(OSError):
            tell_ended(child.status, os.waitstatus_to_exitcode(status))

    def _forget(self, mine: socket.socket) -> None:
        """Close, in a child, what the server and its other children hold."""
        self._events.close()
        self.control.close()
        for child in self._running.values():
            os.close(child.handle)
            if child.status is not mine:
                child.status.close()
        self._running.clear()


def is_alone() -> bool:
    """
    Tell whether a fork would share nothing but memory that is copied.

    A second thread's locks would stay as they are for ever, and what is written to
    shared memory would be written for all.
    """
    threads = len(list(Path("/proc/self/task").iterdir()))
    with Path("/proc/self/maps").open(encoding="utf-8", errors="replace") as maps:
        shared = any(line.split(maxsplit=2)[1] in _SHARED for line in maps)
    return threads == 1 and not shared


_SHARED = {"rw-s", "-w-s", "rwxs"}


def become(order: Order, status: socket.socket, reseed: Callable[[], None]) -> int:
    """
    Be the child of an order; return the exit status.

    Args:
        order: What it was given, beside the request on its standard input.
        status: Over which it is told to go on.
        reseed: Makes chance another one than the server's.
    """
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)
    with status:
        told = status.recv(64)
    if not told:
        # Whoever ordered it has gone, or thought better of it.
        os._exit(1)
    for fd, place in ((order.stdin, 0), (order.output, 1), (order.output, 2)):
        os.dup2(fd, place)
    _close_all_but(order.answer, order.progress)
    os.chdir(order.cwd)
    # The environment of a child is the one its parent chose for it.
    os.environ.clear()  # noqa: TID251
    os.environ.update(order.env)  # noqa: TID251
    tempfile.tempdir = None
    reseed()
    given = [str(order.answer), str(order.progress)]
    sys.argv = [run_pageindex.__file__, *given]
    return run_pageindex.main(given)


def _close_all_but(*kept: int) -> None:
    low = 3
    for fd in sorted(kept):
        os.closerange(low, fd)
        low = fd + 1
    os.closerange(low, os.sysconf("SC_OPEN_MAX"))


def reseeding() -> Callable[[], None]:
    """Return what gives each generator of this process a seed of its own."""
    found = [
        thing
        for thing in gc.get_objects()
        if isinstance(thing, random.Random)
        and not isinstance(thing, random.SystemRandom)
    ]

    def reseed() -> None:
        for generator in found:
            generator.seed()

    return reseed


def main(argv: list[str]) -> int:
    """Serve until there is no more to do; return the exit status."""
    control, parent, checkout, model, remote = argv
    end_with(int(parent))
    with socket.socket(fileno=int(control)) as orders:
        orders.set_inheritable(False)
        # The environment is the one its parent chose, as for a child.
        preload(checkout, model, os.environ, remote=remote == "remote")  # noqa: TID251
        gc.unfreeze()
        gc.collect()
        reseed = reseeding()
        # What is there now is looked at no more, so that children share it.
        gc.freeze()
        given = Server(control=orders).serve()
    return become(*given, reseed) if given else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
