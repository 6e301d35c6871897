"""
Children from fork servers: processes that have imported everything already.

There is one server for each kind of child. It dies with this process, and its children
die with it. A server makes a run faster and never makes it fail: where none can be had,
or one is killed, its child is started directly.
"""

import os
import socket
import threading
import weakref
from collections import Counter, OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.fork_messages import Order, pair, send_order
from vectorless_rag.forked import END_S, NoServerError, await_child
from vectorless_rag.process import Child, ChildCommand, ChildFiles, Helper, start_helper
from vectorless_rag.workspace import working_folder

_CHECKOUT = "upstream"

# Each holds some hundred megabytes, most of them shared with its children.
_MOST = 4

# A server that keeps ending before its first child is not tried again.
_MOST_FAILURES = 3

Prepare = Callable[[Path], None]
"""Makes the private copy of the upstream, as a folder of the name given."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What all children of one server have in common."""

    argv: tuple[str, ...]
    """
    The server's program. Appended are the number of a descriptor for orders, that
    of this process, and the folder of the upstream; then *options*.
    """

    options: tuple[str, ...]

    env: tuple[tuple[str, str], ...]
    """The environment of each child but for its own folder, sorted."""

    code: tuple[str, ...]
    """Names the code that it imports, so that other code gets another server."""


class ForkServers:
    """
    The servers of this process, started as they are needed.

    Args:
        at_once: Start one for the first child of a kind; else the first child is
            started directly, as one that stays alone would be.
    """

    def __init__(self, *, at_once: bool) -> None:
        self._at_once = at_once
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._asked: set[Kind] = set()
        self._failures: Counter[Kind] = Counter()
        self._servers: OrderedDict[Kind, ForkServer] = OrderedDict()
        # Whoever forgets to close them must not leave them behind.
        weakref.finalize(self, _end_all, self._servers, self._owner)

    def get(self, kind: Kind, prepare: Prepare) -> "ForkServer":
        """
        Return the server of a kind.

        Raises:
            NoServerError: There is to be none, now or for good.
        """
        with self._lock:
            if os.getpid() != self._owner:
                # A fork's children must not outlive it.
                raise NoServerError
            server = self._servers.get(kind)
            if server is not None and server.is_alive:
                self._servers.move_to_end(kind)
                return server
            if server is not None:
                self._failures[kind] += not server.has_served
                self._servers.pop(kind).retire()
            first = kind not in self._asked
            self._asked.add(kind)
            if self._failures[kind] >= _MOST_FAILURES:
                raise NoServerError
            if first and not self._at_once:
                raise NoServerError
            server = ForkServer(kind, prepare)
            self._servers[kind] = server
            while len(self._servers) > _MOST:
                self._servers.popitem(last=False)[1].retire()
            return server

    def retire(self) -> None:
        """Have each end with its last child, and start others from now on."""
        with self._lock:
            while self._servers:
                self._servers.popitem()[1].retire()

    def close(self) -> None:
        """End all of them, and their children."""
        with self._lock:
            _end_all(self._servers, self._owner)


def _end_all(servers: "OrderedDict[Kind, ForkServer]", owner: int) -> None:
    while os.getpid() == owner and servers:
        servers.popitem()[1].end()


@dataclass(frozen=True, kw_only=True)
class _Running:
    process: Helper
    checkout: Path


class ForkServer:
    """
    One server, with a folder of its own for the upstream that it has imported.

    Args:
        kind: What its children have in common.
        prepare: Makes the copy of the upstream.

    Raises:
        NoServerError: It cannot be started.
    """

    def __init__(self, kind: Kind, prepare: Prepare) -> None:
        self.has_served = False
        self._orders, theirs = pair()
        self._running: _Running | None = None
        self._begun, self._over = threading.Event(), threading.Event()
        # A server dies with the thread that started it: that one does nothing else.
        self._keeper = threading.Thread(
            target=self._keep,
            args=(kind, prepare, theirs),
            name="fork-server",
            daemon=True,
        )
        self._keeper.start()
        self._begun.wait()
        if self._running is None:
            self._orders.close()
            raise NoServerError

    def _keep(self, kind: Kind, prepare: Prepare, theirs: socket.socket) -> None:
        # No copy, no folder, no process: a child that is started directly says why.
        with suppress(VectorlessRagError, OSError), theirs, working_folder() as home:
            checkout = home / _CHECKOUT
            prepare(checkout)
            own = (str(theirs.fileno()), str(os.getpid()), str(checkout))
            process = start_helper(
                (*kind.argv, *own, *kind.options),
                cwd=home,
                env={**dict(kind.env), "HOME": str(home), "TMPDIR": str(home)},
                keep=theirs.fileno(),
            )
            theirs.close()
            self._running = _Running(process=process, checkout=checkout)
            self._begun.set()
            process.wait()
        self._over.set()
        self._begun.set()

    @property
    def pid(self) -> int:
        """Its number: the parent of its children."""
        return self._started().process.pid

    @property
    def checkout(self) -> Path:
        """The copy of the upstream that its children run."""
        return self._started().checkout

    @property
    def is_alive(self) -> bool:
        """Whether it may still start children."""
        return not self._over.is_set()

    def retire(self) -> None:
        """Have it end with its last child."""
        self._orders.close()

    def end(self) -> None:
        """End it and its children."""
        self._orders.close()
        self._started().process.kill()
        self._keeper.join(END_S)

    def start(
        self,
        command: ChildCommand,
        files: ChildFiles,
        check: Callable[[], None],
        timeout_s: float,
    ) -> Child:
        """
        Start a child; see `vectorless_rag.process.Start`.

        Args:
            command: Its program is the server's; what it is given is its own.
            files: Its descriptors.
            check: Is called while the server is not ready.
            timeout_s: How long to wait for it, in seconds.

        Raises:
            NoServerError: The server is gone, or could not start it.
            TimeoutError: It did not in time.
        """
        mine, theirs = pair()
        try:
            with theirs:
                self._order(command, files, theirs)
            child = await_child(mine, check, timeout_s)
        except BaseException:
            # Then the child, if there is one, is never told to go on.
            mine.close()
            raise
        self.has_served = True
        return child

    def _started(self) -> "_Running":
        if self._running is None:
            raise NoServerError
        return self._running

    def _order(
        self, command: ChildCommand, files: ChildFiles, status: socket.socket
    ) -> None:
        with Path(os.devnull).open("wb") as nothing:
            order = Order(
                cwd=str(command.cwd),
                env=command.env,
                stdin=files.stdin,
                output=nothing.fileno() if files.output is None else files.output,
                answer=files.answer,
                progress=files.progress,
                status=status.fileno(),
            )
            try:
                send_order(self._orders, order)
            except OSError:
                raise NoServerError from None
