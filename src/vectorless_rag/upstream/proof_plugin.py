"""
A pytest plugin that says how each test ended, and in which phase.

The proof runner loads it by name. It reports more than an exit status can: a
failure in the call phase with its exception is a FAIL, an error while importing
or in a fixture is not.
"""

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

OUTCOMES = "--proof-outcomes"
NODES = "--proof-nodes"

_MOST = 160
_LOCAL = frozenset({"127.0.0.1", "::1", "localhost", None})


class _Parser(Protocol):
    def addoption(self, name: str, *, default: str | None, help: str) -> None: ...  # noqa: A002  (pytest's own word)


class _Plugins(Protocol):
    def register(self, plugin: object) -> object: ...


class _Config(Protocol):
    @property
    def pluginmanager(self) -> _Plugins: ...

    def getoption(self, name: str) -> str | None: ...


class _Report(Protocol):
    nodeid: str
    outcome: str
    longrepr: object


class _ExcInfo(Protocol):
    value: BaseException

    def exconly(self) -> str: ...


class _Call(Protocol):
    excinfo: _ExcInfo | None
    when: str


class _Node(Protocol):
    nodeid: str


def pytest_addoption(parser: _Parser) -> None:
    """Let the runner say where the outcomes go."""
    parser.addoption(
        OUTCOMES, default=None, help="file that takes the outcomes as JSON"
    )
    parser.addoption(NODES, default=None, help="file that lists the tests to run")


def pytest_configure(config: _Config) -> None:
    """Record outcomes, with no way to the network, where the runner asks for it."""
    path = config.getoption(OUTCOMES)
    if path is not None:
        recorder = Recorder(Path(path), forbid_network())
        config.pluginmanager.register(recorder)


def pytest_collection_modifyitems(config: _Config, items: list[_Node]) -> None:
    """
    Keep the listed tests, and those inside what is listed.

    A list, because one id on the command line that is not there stops them all.
    """
    path = config.getoption(NODES)
    if path is not None:
        listed = Path(path).read_text(encoding="utf-8").splitlines()
        items[:] = [
            item for item in items if any(within(item.nodeid, node) for node in listed)
        ]


def within(test: str, node: str) -> bool:
    """Tell whether a test is *node*, a case of it, or stands inside it."""
    return test == node or test.startswith((f"{node}[", f"{node}::", f"{node}/"))


def forbid_network() -> Callable[[], None]:
    """
    Let this process connect to its own machine only.

    Returns:
        What gives it the network back.
    """
    connect: Any = socket.socket.connect
    resolve: Any = socket.getaddrinfo

    def local_connect(self: socket.socket, address: object) -> None:
        if isinstance(address, tuple) and address[0] not in _LOCAL:
            raise ConnectionRefusedError("a proof has no network")
        connect(self, address)

    def local_resolve(host: object, *args: object, **more: object) -> object:
        if host not in _LOCAL:
            raise socket.gaierror("a proof has no network")
        return resolve(host, *args, **more)

    socket.socket.connect = local_connect  # type: ignore[method-assign,assignment]
    socket.getaddrinfo = local_resolve  # type: ignore[assignment]

    def allow() -> None:
        socket.socket.connect = connect  # type: ignore[method-assign]
        socket.getaddrinfo = resolve

    return allow


class Recorder:
    """Collects what pytest reports and writes it when the session ends."""

    def __init__(self, path: Path, allow_network: Callable[[], None]) -> None:
        self._path = path
        self._allow_network = allow_network
        self._phases: dict[str, dict[str, str]] = {}
        self._raised: dict[str, list[str]] = {}
        self._said: dict[str, str] = {}
        self._broken: dict[str, str] = {}

    def pytest_collectreport(self, report: _Report) -> None:
        """Keep what could not be collected."""
        if report.outcome != "passed":
            self._broken[report.nodeid] = _last(str(report.longrepr))

    def pytest_runtest_logreport(self, report: _Report) -> None:
        """Keep the outcome of one phase of one test."""
        when: str = getattr(report, "when", "")
        outcome = "xfail" if hasattr(report, "wasxfail") else report.outcome
        self._phases.setdefault(report.nodeid, {})[when] = outcome

    def pytest_exception_interact(self, node: _Node, call: _Call) -> None:
        """Keep the names of what a test raised, and its first line."""
        if call.excinfo is None:
            return
        if call.when == "call":
            self._raised[node.nodeid] = sorted(set(names(call.excinfo.value)))
        self._said[node.nodeid] = _first(call.excinfo.exconly())

    def pytest_sessionfinish(self) -> None:
        """Write it all."""
        tests = [
            {
                "node": node,
                "phases": phases,
                "raised": self._raised.get(node, []),
                "said": self._said.get(node, ""),
            }
            for node, phases in self._phases.items()
        ]
        outcomes = {"tests": tests, "broken": self._broken}
        self._path.write_text(json.dumps(outcomes), encoding="utf-8")

    def pytest_unconfigure(self) -> None:
        """Give the process its network back, for a pytest inside a pytest."""
        self._allow_network()


def names(error: BaseException) -> list[str]:
    """Name an exception's type, or those of all that a group holds."""
    if isinstance(error, BaseExceptionGroup):
        return [name for inner in error.exceptions for name in names(inner)]
    return [type(error).__name__]


def _first(text: str) -> str:
    return text.strip().partition("\n")[0][:_MOST]


def _last(text: str) -> str:
    # pytest marks the lines of the exception itself with an E.
    lines = [line for line in text.splitlines() if line.startswith("E ")]
    return " ".join((lines or text.splitlines())[-1:])[1:].strip()[:_MOST]
