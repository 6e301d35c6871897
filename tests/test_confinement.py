"""A taken-over child reaches nothing it was not given, and every limit has its code."""

import errno
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from conftest import REPOSITORY
from hostile import forking, run_hostile
from test_launch import request as launch_request
from test_process import wait_until_gone
from vectorless_rag import confinement, landlock, run_pageindex
from vectorless_rag.confinement import close_files, without
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.process import run_tool

MIB = 2**20

Hostile = Callable[..., tuple[Any, dict[str, int]]]


@pytest.fixture(params=["direct", "forked"])
def run_taken_over(request: pytest.FixtureRequest) -> Iterator[Hostile]:
    """`run_hostile`, with a child of each kind."""
    if request.param == "direct":
        yield run_hostile
        return
    with forking() as servers:
        yield partial(run_hostile, servers=servers)


TRIES = """
def tried(act, *args):
    try:
        act(*args)
    except OSError as error:
        return errno.errorcode[error.errno]
    return "done"

def connect():
    with socket.socket() as end:
        end.connect(("127.0.0.1", {port}))

def run_own():
    with open("own", "w") as file:
        file.write("#!/bin/sh\\n")
    os.chmod("own", 0o755)
    os.execv("./own", ["own"])

return {{
    "read the store": tried(open, "{home}/data/store/secret"),
    "list the store": tried(os.listdir, "{home}/data/store"),
    "link the store": tried(os.link, "{home}/data/store/secret", "mine"),
    "change the store": tried(open, "{home}/data/store/secret", "w"),
    "add to the store": tried(open, "{home}/data/store/new", "w"),
    "add to the data": tried(open, "{home}/data/new", "w"),
    "read a neighbour": tried(open, "{home}/secret"),
    "read the parent": tried(open, "/proc/%d/environ" % os.getppid()),
    "write to /tmp": tried(open, "{home}/new", "w"),
    "signal the parent": tried(os.kill, os.getppid(), 0),
    "connect": tried(connect),
    "run its own": tried(run_own),
    "read its own": tried(open, "document.pdf"),
    "write its own": tried(open, "mine", "w"),
    "read replies": tried(os.listdir, "{home}/data/journal"),
    "look up a name": tried(open, "/etc/hosts"),
}}
"""

CLOSED = {
    "read the store": "EACCES",
    "list the store": "EACCES",
    "change the store": "EACCES",
    "add to the store": "EACCES",
    "add to the data": "EACCES",
    "read a neighbour": "EACCES",
    "read the parent": "EACCES",
    "write to /tmp": "EACCES",
    "run its own": "EACCES",
    "read its own": "done",
    "write its own": "done",
    "read replies": "EACCES",
    "look up a name": "done",
}
CLOSED_LATER = {2: {}, 4: {"connect": "EACCES"}, 6: {"signal the parent": "EPERM"}}

needs_landlock = pytest.mark.skipif(
    landlock.version() == 0, reason="this kernel offers no Landlock"
)


@needs_landlock
def test_the_child_reaches_nothing_it_was_not_given(
    tmp_path: Path, run_taken_over: Hostile
) -> None:
    """Store, neighbours, parent and network are closed; its own things work."""
    (tmp_path / "data" / "store").mkdir(parents=True)
    (tmp_path / "data" / "journal").mkdir()
    (tmp_path / "data" / "store" / "secret").touch()
    (tmp_path / "secret").touch()
    with socket.create_server(("127.0.0.1", 0)) as server:
        script = TRIES.format(home=tmp_path, port=server.getsockname()[1])
        tried, notes = run_taken_over(tmp_path, script, sandbox="required")
    version = landlock.version()
    closed = dict(CLOSED)
    for since, more in CLOSED_LATER.items():
        closed |= more if version >= since else {}

    assert {"landlock": version} == notes
    assert closed == {what: tried[what] for what in closed}
    # EXDEV, where the kernel cannot tell whether the link would give rights.
    assert tried["link the store"] in {"EACCES", "EXDEV"}


def test_without_a_sandbox_the_record_says_so(
    tmp_path: Path, run_taken_over: Hostile
) -> None:
    """Nothing is claimed that is not so."""
    (tmp_path / "secret").touch()
    script = f"return open({str(tmp_path / 'secret')!r}).read()"

    assert ("", {"landlock": 0}) == run_taken_over(tmp_path, script, sandbox="off")


PLANTED = """
fds = {}
for fd in os.listdir("/proc/self/fd"):
    try:
        fds[fd] = os.readlink("/proc/self/fd/" + fd)
    except OSError:
        pass
limits = {name: resource.getrlimit(getattr(resource, "RLIMIT_" + name))
          for name in ("CORE", "CPU", "NOFILE", "FSIZE", "NPROC")}
return {"names": sorted(os.environ), "files": sorted(fds.values()), "limits": limits}
"""


def test_the_child_inherits_no_file_and_no_secret(
    tmp_path: Path, run_taken_over: Hostile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a planted environment it sees none, of open files none, and its limits."""
    planted = {"AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "OPENAI_API_KEY", "PGPASSWORD"}
    for name in planted:
        monkeypatch.setenv(name, "canary")
    secret = tmp_path / "secret"
    with secret.open("wb") as file:
        os.set_inheritable(file.fileno(), True)  # noqa: FBT003  (positional only)
        seen, _ = run_taken_over(
            tmp_path, PLANTED, child_cpu_s=50, child_open_files=100,
            child_file_bytes=9 * MIB, child_processes=4000,
        )  # fmt: skip

    assert set() == planted & set(seen["names"])
    assert str(secret) not in seen["files"]
    assert {
        "CORE": [0, 0],
        "CPU": [55, 56],
        "NOFILE": [100, 100],
        "FSIZE": [9 * MIB, 9 * MIB],
        "NPROC": [4000, 4000],
    } == seen["limits"]


POOL = """
import math, multiprocessing
from concurrent.futures import ProcessPoolExecutor
context = multiprocessing.get_context("spawn")
with ProcessPoolExecutor(1, mp_context=context) as pool:
    return list(pool.map(math.factorial, [3, 4]))
"""


def test_a_confined_child_may_have_workers(
    tmp_path: Path, run_taken_over: Hostile
) -> None:
    """The layout parser starts some for long documents."""
    assert [6, 24] == run_taken_over(tmp_path, POOL)[0]


SPIN = "while True: pass"
# Signals are blocked, as in a library that never comes back to Python.
SPIN_DEAF = """
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPROF, signal.SIGTERM})
while True: pass
"""
MANY_FILES = "held = [open('document.pdf') for _ in range(10_000)]"
HUGE_FILE = """
with open("huge", "wb") as file:
    while True: file.write(bytes(1 << 20))
"""
MEMORY = "held = [bytearray(1 << 24) for _ in range(1000)]"


@pytest.mark.parametrize(
    ("code", "settings", "failure", "why"),
    [
        pytest.param(SPIN, {"child_cpu_s": 2}, Code.CHILD_TIMEOUT, "CPU", id="spin"),
        pytest.param(
            SPIN_DEAF,
            {"child_cpu_s": 2},
            Code.CHILD_TIMEOUT,
            "CPU",
            id="deaf",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            MANY_FILES,
            {"child_open_files": 64},
            Code.CHILD_LIMIT,
            "OPEN_FILES",
            id="files",
        ),
        pytest.param(
            HUGE_FILE,
            {"child_file_bytes": MIB},
            Code.CHILD_LIMIT,
            "FILE_BYTES",
            id="size",
        ),
        pytest.param(
            MEMORY,
            {"child_memory_bytes": 400 * MIB},
            Code.CHILD_MEMORY,
            "memory",
            id="memory",
        ),
    ],
)
def test_each_limit_has_its_code(  # noqa: PLR0917  (pytest gives them by name)
    tmp_path: Path,
    run_taken_over: Hostile,
    code: str,
    settings: dict[str, Any],
    failure: Code,
    why: str,
) -> None:
    """Whatever the child does, the parent has an answer."""
    with pytest.raises(VectorlessRagError, match=why) as caught:
        run_taken_over(tmp_path, code, **settings)

    assert failure == caught.value.code


@pytest.mark.parametrize(
    ("number", "code", "why"),
    [
        (errno.EMFILE, Code.CHILD_LIMIT, "VECTORLESS_RAG_CHILD_OPEN_FILES"),
        (errno.EFBIG, Code.CHILD_LIMIT, "VECTORLESS_RAG_CHILD_FILE_BYTES"),
        (errno.EAGAIN, Code.CHILD_LIMIT, "VECTORLESS_RAG_CHILD_PROCESSES"),
        (errno.ENOSPC, Code.STORE_UNWRITABLE, "working folder: ENOSPC"),
        (errno.EACCES, Code.INTERNAL_ERROR, "PermissionError"),
    ],
)
def test_what_the_system_says_is_told_in_our_words(
    number: int, code: Code, why: str
) -> None:
    """A limit by the name of its setting; nothing of the message."""
    failure = run_pageindex._of_the_system(OSError(number, "canary"))

    assert (code, why) == (failure.code, failure.detail)


FORK_BOMB = """
note = open("pids", "a", buffering=1)
for _ in range(6):
    os.fork()
note.write(f"{os.getpid()}\\n")
while True: pass
"""


@pytest.mark.slow
def test_a_small_fork_bomb_is_over_with_its_time(
    tmp_path: Path, run_taken_over: Hostile
) -> None:
    """All 64 go with the group."""
    with pytest.raises(VectorlessRagError, match="time limit"):
        run_taken_over(tmp_path, FORK_BOMB, child_timeout_s=15, grace_s=1)
    started = (tmp_path / "work" / "pids").read_text(encoding="ascii").split()

    assert 64 == len(started)
    for pid in started:
        wait_until_gone(int(pid))


ORPHANS = """
import os, signal, subprocess, sys
from vectorless_rag.process import ChildCommand
from vectorless_rag.supervision import run_child

code = '''
import os, subprocess, sys
from pathlib import Path
from vectorless_rag import landlock
from vectorless_rag.confinement import end_group, end_with
end_with(int(sys.argv[1]))
if landlock.version():
    root = (Path("/"),)
    landlock.restrict(landlock.Rules(readable=root, writable=root, network=True))
end_group()
worker = subprocess.Popen(["sleep", "600"])
listing = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
os.write(int(sys.argv[3]), listing.encode() + b"\\\\n")
worker.wait()
'''

def told(line):
    os.write(1, line)
    os.kill(os.getpid(), signal.SIGKILL)

argv = (sys.executable, "-c", code, str(os.getpid()))
env = {"PYTHONPATH": os.environ["PYTHONPATH"], "PATH": os.environ["PATH"]}
run_child(
    ChildCommand(argv=argv, cwd=".", env=env, stdin=b""),
    timeout_s=60, grace_s=1, on_line=told, answer_limit=9,
)
"""


def test_a_killed_parent_takes_the_workers_of_its_child_along(tmp_path: Path) -> None:
    """Nobody is left to end the group, so the group sees to it itself."""
    done = run_tool(
        (sys.executable, "-c", ORPHANS),
        cwd=tmp_path,
        env={"PYTHONPATH": str(REPOSITORY / "src"), "PATH": os.environ["PATH"]},
        timeout_s=60,
    )

    assert -signal.SIGKILL == done.status
    started = done.stdout.split()
    assert 2 == len(started)
    for pid in started:
        wait_until_gone(int(pid))


def test_a_child_whose_parent_is_gone_already_ends_at_once(tmp_path: Path) -> None:
    """It is not the child of the process it was told."""
    code = "from vectorless_rag.confinement import end_with; end_with(1); print('on')"
    done = run_tool(
        (sys.executable, "-c", code),
        cwd=tmp_path,
        env={"PYTHONPATH": str(REPOSITORY / "src")},
    )

    assert (1, b"") == (done.status, done.stdout)


def test_what_lies_above_the_closed_folder_is_spelled_out(tmp_path: Path) -> None:
    """Rules only add: its neighbours are named one by one, and no link."""
    closed = tmp_path / "app" / "data"
    for folder in (closed / "store", tmp_path / "app" / "lib", tmp_path / "etc"):
        folder.mkdir(parents=True)
    (tmp_path / "app" / "way-in").symlink_to(closed)

    assert {tmp_path / "app" / "lib", tmp_path / "etc"} == set(
        without(tmp_path, closed)
    )
    assert [] == list(without(closed, closed))
    assert [tmp_path] == list(without(tmp_path, None))


def test_a_sandbox_that_is_required_and_not_there_ends_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without Landlock: required fails, auto goes on and says 0."""
    monkeypatch.setattr(landlock, "version", lambda: 0)
    request = launch_request()

    assert 0 == close_files(replace(request, sandbox="auto"), {})
    with pytest.raises(VectorlessRagError, match="SANDBOX=required: Function not"):
        close_files(replace(request, sandbox="required"), {})


def test_a_kernel_of_another_kind_offers_no_landlock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The numbers of its calls mean something else there."""
    monkeypatch.setattr(sys, "platform", "darwin")

    assert 0 == landlock.version.__wrapped__()


def test_a_remote_model_keeps_its_replies_and_its_network(tmp_path: Path) -> None:
    """The folders that runs share are made before they are all that is left."""
    shared = {tmp_path / "journal", tmp_path / "in-flight"}
    request = replace(
        launch_request(),
        model="openai/x",
        journal_dir=str(tmp_path / "journal"),
        gate_dir=str(tmp_path / "in-flight"),
    )
    certificates = {"SSL_CERT_FILE": "/certs.pem", "HOME": "/home/x", "X": "/"}
    rules = confinement._rules(request, certificates)

    assert shared <= set(rules.writable)
    assert {True} == {path.is_dir() for path in shared} | {rules.network}
    assert Path("/certs.pem") in rules.readable
    assert set() == {Path("/home/x"), Path("/")} & set(rules.readable)


def test_a_measured_child_may_say_what_it_measured() -> None:
    """The folder of a coverage run stays open."""
    rules = confinement._rules(launch_request(), {"COVERAGE_FILE": "/measured/x"})

    assert Path("/measured") in rules.writable
