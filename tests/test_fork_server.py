"""A forked child is one like any other, and a server in the way of none."""

import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from conftest import REPOSITORY
from hostile import forking, run_hostile
from test_process import wait_until_gone
from vectorless_rag import fork_server, landlock
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.fork_messages import Order, hear, pair, receive_order, send_order
from vectorless_rag.forked import NoServerError
from vectorless_rag.prefork import ForkServer, ForkServers, Kind
from vectorless_rag.process import ChildCommand, run_tool
from vectorless_rag.supervision import ChildEnd, run_child

pytestmark = pytest.mark.skipif(
    landlock.version() == 0, reason="without a sandbox nothing is forked"
)

PARENT = "return os.getppid()"


@pytest.fixture
def servers() -> Iterator[ForkServers]:
    with forking() as found:
        yield found


@pytest.fixture
def homes(tmp_path: Path) -> Callable[[], Path]:
    """A folder for each child."""
    numbers = iter(range(1000))

    def make() -> Path:
        home = tmp_path / str(next(numbers))
        home.mkdir()
        return home

    return make


def parent_of_the_next(home: Path, servers: ForkServers | None) -> int:
    return int(run_hostile(home, PARENT, servers=servers)[0])


STATE = """
import gc, tempfile, threading
status = {}
with open("/proc/self/status") as file:
    for line in file:
        name, _, value = line.partition(":")
        if name in ("Groups", "NoNewPrivs", "SigBlk", "SigIgn", "SigCgt", "SigPnd",
                    "Threads", "Umask"):
            status[name] = value.strip()
limits = {name: resource.getrlimit(getattr(resource, name))
          for name in dir(resource) if name.startswith("RLIMIT_")}
files = []
for fd in os.listdir("/proc/self/fd"):
    try:
        files.append(os.path.basename(os.readlink("/proc/self/fd/" + fd)).split(":")[0])
    except OSError:
        pass
home = os.getcwd()
return {
    "environment": {name: value.replace(home, "HOME")
                    for name, value in os.environ.items()},
    "arguments": [sys.argv[0], len(sys.argv)],
    "numbers": all(os.readlink("/proc/self/fd/" + fd).startswith("pipe:")
                   for fd in sys.argv[1:]),
    "path": [entry for entry in sys.path if not entry.endswith("/upstream")],
    "files": sorted(files),
    "limits": limits,
    "status": status,
    "folders": [tempfile.gettempdir() == home, os.path.expanduser("~") == home],
    "leads": os.getpgrp() == os.getpid(),
    "collects": [gc.isenabled(), gc.get_threshold()],
    "threads": threading.active_count(),
    "timer": signal.getitimer(signal.ITIMER_PROF)[0] > 0,
    "nice": os.nice(0),
    "hash": hash("text"),
}
"""


def test_a_forked_child_is_as_one_that_is_started(
    servers: ForkServers, homes: Callable[[], Path]
) -> None:
    """Environment, arguments, files, limits, signals, group: all the same."""
    limits: dict[str, Any] = {
        "child_open_files": 200,
        "child_processes": 4000,
        "child_cpu_s": 60,
    }
    started, noted = run_hostile(homes(), STATE, **limits)
    forked, noted_too = run_hostile(homes(), STATE, servers=servers, **limits)

    assert started == forked
    assert noted == noted_too


def test_chance_and_time_are_each_childs_own(
    servers: ForkServers, homes: Callable[[], Path]
) -> None:
    """No two draw the same numbers, and what a server used up counts for none."""
    code = """
    import random, tempfile, uuid
    return [random.random(), random.Random().random(), uuid.uuid4().hex,
            next(tempfile._get_candidate_names()),
            time.process_time() < 2 * time.clock_gettime(time.CLOCK_MONOTONIC)]
    """
    drawn = [run_hostile(homes(), code, servers=servers)[0] for _ in range(2)]

    assert 8 == len({number for child in drawn for number in child[:-1]})


def test_one_server_starts_every_child_of_a_kind(
    servers: ForkServers, homes: Callable[[], Path]
) -> None:
    """Several at once too, each in a folder of its own."""
    code = (
        "open('mine', 'w').close(); time.sleep(0.5)\nreturn os.getppid(), os.getcwd()"
    )
    places = [homes() for _ in range(12)]
    with ThreadPoolExecutor(4) as pool:
        found = list(
            pool.map(lambda home: run_hostile(home, code, servers=servers)[0], places)
        )

    assert 1 == len({parent for parent, _ in found})
    assert os.getpid() not in {parent for parent, _ in found}
    assert [str(home / "work") for home in places] == [folder for _, folder in found]


SPOIL = """
import builtins, random, vectorless_rag.wire
tried = []
def attempt(act, *args):
    try:
        act(*args)
        tried.append("done")
    except OSError as error:
        tried.append(errno.errorcode[error.errno])
builtins.spoiled = True
vectorless_rag.wire.MAGIC = b"XXXX"
random.seed(1)
os.environ["SPOILED"] = "yes"
upstream = sys.modules["pageindex"].__file__
attempt(open, upstream, "a")
attempt(open, os.path.join(os.path.dirname(upstream), "new.py"), "w")
attempt(os.kill, os.getppid(), 9)
attempt(open, "/proc/%d/mem" % os.getppid(), "r+b")
vectorless_rag.wire.MAGIC = b"VLR1"
return tried
"""

LOOK = """
import builtins
return [hasattr(builtins, "spoiled"), "SPOILED" in os.environ, os.listdir(".")]
"""


def test_a_child_leaves_nothing_to_the_next(
    servers: ForkServers, homes: Callable[[], Path]
) -> None:
    """Neither in memory nor in the files that both were handed."""
    both = f"if os.path.exists('spoil'):\n{_indented(SPOIL)}\n{LOOK}"
    first, second = homes(), homes()
    (first / "work").mkdir()
    (first / "work" / "spoil").touch()
    tried = run_hostile(first, both, servers=servers)[0]
    seen = run_hostile(second, both, servers=servers)[0]

    assert ["EACCES", "EACCES"] == tried[:2]
    assert "EACCES" == tried[3]
    assert landlock.version() < 6 or tried[2] == "EPERM"
    assert [False, False, ["document.pdf"]] == [*seen[:2], sorted(seen[2])]


def _indented(code: str) -> str:
    return "\n".join(f"    {line}" for line in code.strip().splitlines())


def test_a_killed_child_is_one_failure(
    servers: ForkServers, homes: Callable[[], Path]
) -> None:
    """The signal is told, what it had started is gone, and the server goes on."""
    code = """
    if os.path.exists("die"):
        worker = subprocess.Popen(["sleep", "600"])
        open("pid", "w").write(str(worker.pid))
        os.kill(os.getpid(), 9)
    return os.getppid()
    """
    before = run_hostile(homes(), code, servers=servers)[0]
    home = homes()
    (home / "work").mkdir()
    (home / "work" / "die").touch()
    with pytest.raises(VectorlessRagError, match="SIGKILL") as caught:
        run_hostile(home, code, servers=servers)

    assert Code.CHILD_KILLED == caught.value.code
    wait_until_gone(int((home / "work" / "pid").read_text(encoding="ascii")))
    assert before == run_hostile(homes(), code, servers=servers)[0]


def test_a_server_that_is_killed_is_replaced(
    servers: ForkServers, homes: Callable[[], Path]
) -> None:
    """The next child comes from another."""
    first = parent_of_the_next(homes(), servers)
    os.kill(first, signal.SIGKILL)
    wait_until_gone(first)
    second = parent_of_the_next(homes(), servers)
    third = parent_of_the_next(homes(), servers)

    assert first not in {second, third}
    assert third != os.getpid()


def test_a_document_outlives_the_server_of_its_child(
    servers: ForkServers, homes: Callable[[], Path]
) -> None:
    """It is begun anew, directly; the lost child is gone by then, its worker too."""
    code = """
    if os.path.exists("pids"):
        return os.getppid()
    worker = subprocess.Popen(["sleep", "600"])
    open("begun", "w").write(f"{os.getpid()} {worker.pid} {os.getppid()}")
    os.rename("begun", "pids")
    time.sleep(600)
    """
    home = homes()
    pids = home / "work" / "pids"

    def kill() -> None:
        end = time.monotonic() + 60
        while not pids.exists() and time.monotonic() < end:
            time.sleep(0.05)
        os.kill(int(pids.read_text(encoding="ascii").split()[2]), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    parent = run_hostile(home, code, servers=servers)[0]
    killer.join()

    assert os.getpid() == parent
    for pid in pids.read_text(encoding="ascii").split():
        wait_until_gone(int(pid))


def test_a_forked_child_is_stopped_as_any_other(
    servers: ForkServers, homes: Callable[[], Path]
) -> None:
    """First it may settle, then it is killed with all that it started."""
    code = """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    worker = subprocess.Popen(["sleep", "600"])
    open("begun", "w").write(str(worker.pid))
    os.rename("begun", "pid")
    time.sleep(600)
    """
    pid = Path()
    # On a busy machine the first limit may pass before the child has begun.
    for limit_s in (3, 12, 48):
        home = homes()
        with pytest.raises(VectorlessRagError, match=f"{limit_s} s") as caught:
            run_hostile(home, code, servers=servers, child_timeout_s=limit_s, grace_s=1)
        assert Code.CHILD_TIMEOUT == caught.value.code
        pid = home / "work" / "pid"
        if pid.exists():
            break

    wait_until_gone(int(pid.read_text(encoding="ascii")))


ORPHANS = """
import os, signal, sys, threading, time
from pathlib import Path
from hostile import forking, run_hostile

code = '''
worker = subprocess.Popen(["sleep", "600"])
open("begun", "w").write(f"{os.getpid()} {os.getppid()} {worker.pid}")
os.rename("begun", "pids")
time.sleep(600)
'''
home = Path(sys.argv[1])

def end():
    while not (home / "work" / "pids").exists():
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGKILL)

threading.Thread(target=end).start()
with forking() as servers:
    run_hostile(home, code, servers=servers)
"""


def test_a_killed_parent_takes_server_and_children_along(
    homes: Callable[[], Path],
) -> None:
    """Nothing of the run is left."""
    home = homes()
    done = run_tool(
        (sys.executable, "-c", ORPHANS, str(home)),
        cwd=home,
        env={
            "PYTHONPATH": f"{REPOSITORY / 'src'}:{REPOSITORY / 'tests'}",
            "PATH": os.environ["PATH"],
        },
        timeout_s=120,
    )

    assert -signal.SIGKILL == done.status
    for pid in (home / "work" / "pids").read_text(encoding="ascii").split():
        wait_until_gone(int(pid))


def test_the_first_child_of_a_few_is_started_directly(
    homes: Callable[[], Path],
) -> None:
    """One document alone pays for no server, and the third need not wait for one."""
    servers = ForkServers(at_once=False)
    try:
        parents = [parent_of_the_next(homes(), servers) for _ in range(3)]
    finally:
        servers.close()

    assert os.getpid() == parents[0]
    assert os.getpid() not in parents[1:]
    assert parents[1] == parents[2]


def test_who_wants_none_gets_none(
    servers: ForkServers, homes: Callable[[], Path]
) -> None:
    """A setting, or no sandbox that would keep children apart."""
    for settings in ({"fork_server": False}, {"sandbox": "off"}):
        found = run_hostile(homes(), PARENT, servers=servers, **settings)[0]

        assert os.getpid() == found


def test_other_code_or_environment_has_another_server(
    servers: ForkServers, homes: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a server has imported and read is what its children would."""
    first = parent_of_the_next(homes(), servers)
    other = run_hostile(homes(), PARENT + "  # other", servers=servers)[0]
    monkeypatch.setenv("PATH", os.environ["PATH"] + ":/elsewhere")

    assert 3 == len({first, other, parent_of_the_next(homes(), servers)})


def kind(*options: str, program: str = "vectorless_rag.fork_server") -> Kind:
    return Kind(
        argv=(sys.executable, "-m", program),
        options=options or ("offline/extractive", "local"),
        env=(("PYTHONPATH", str(REPOSITORY / "src")),),
        code=(),
    )


def nothing(_place: Path) -> None:
    """Copy no upstream."""


def refuse(_place: Path) -> None:
    raise VectorlessRagError(Code.UPSTREAM_TAMPERED, "changed")


def test_what_cannot_be_imported_is_tried_a_few_times() -> None:
    """The child that is started directly says why; no server is begun for ever."""
    servers = ForkServers(at_once=True)
    for _ in range(3):
        server = servers.get(kind(), nothing)
        wait_until_gone(server.pid)
        server._keeper.join()
    with pytest.raises(NoServerError, match=r"^$"):
        servers.get(kind(), nothing)
    with pytest.raises(NoServerError, match=r"^$"):
        servers.get(kind("other/model", "local"), refuse)
    servers.close()


@pytest.mark.parametrize(
    "ahead",
    [
        pytest.param("raise ImportError", id="import"),
        pytest.param(
            "import threading\nthreading.Timer(600, print).start()", id="thread"
        ),
        pytest.param("import mmap\nshared = mmap.mmap(-1, 4096)", id="memory"),
    ],
)
def test_a_broken_server_is_in_the_way_of_no_document(
    homes: Callable[[], Path], ahead: str
) -> None:
    """What it imports breaks it, or would be shared by children: it starts none."""
    servers = ForkServers(at_once=True)
    try:
        parents = {
            run_hostile(homes(), PARENT, servers=servers, ahead=ahead)[0]
            for _ in range(2)
        }
    finally:
        servers.close()

    assert {os.getpid()} == parents


def files(status: socket.socket) -> Iterator[Order]:
    with Path(os.devnull).open("r+b") as null:
        fd = null.fileno()
        yield Order(
            cwd="/", env={}, stdin=fd, output=fd, answer=fd, progress=fd,
            status=status.fileno(),
        )  # fmt: skip


def watch(
    command: ChildCommand,
    timeout_s: float,
    server: ForkServer,
    check: Callable[[], None] = lambda: None,
) -> ChildEnd:
    return run_child(
        command, timeout_s=timeout_s, grace_s=1, on_line=print, answer_limit=9,
        check=check, start=server.start,
    )  # fmt: skip


def test_a_run_that_is_cancelled_does_not_wait_for_a_server(tmp_path: Path) -> None:
    """What says so passes at once, and so does the end of its time."""
    servers = ForkServers(at_once=True)
    sleeper = (sys.executable, "-c", "import time; time.sleep(600)")
    server = servers.get(Kind(argv=sleeper, options=(), env=(), code=()), nothing)
    command = ChildCommand(argv=(), cwd=tmp_path, env={}, stdin=b"")

    def cancel() -> None:
        raise VectorlessRagError(Code.CANCELLED)

    try:
        with pytest.raises(VectorlessRagError, match="cancelled"):
            watch(command, 60, server, cancel)
        end = watch(command, 0.1, server)
    finally:
        servers.close()

    assert (True, False) == (end.timed_out, end.lost)
    wait_until_gone(server.pid)


def test_a_retired_server_ends_with_its_last_child(
    servers: ForkServers, homes: Callable[[], Path]
) -> None:
    """The child that it has goes on; the next one has another."""
    home = homes()
    code = """
    open("begun", "w").close()
    while not os.path.exists("go"): time.sleep(0.05)
    return os.getppid()
    """
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(run_hostile, home, code, servers=servers)
        end = time.monotonic() + 60
        while not (home / "work" / "begun").exists() and time.monotonic() < end:
            time.sleep(0.02)
        servers.retire()
        (home / "work" / "go").touch()
        parent = first.result()[0]
    after = homes()
    (after / "work").mkdir()
    (after / "work" / "go").touch()

    assert os.getpid() != parent
    wait_until_gone(parent)
    assert run_hostile(after, code, servers=servers)[0] not in {parent, os.getpid()}


def test_only_a_few_servers_are_kept() -> None:
    """The one that was not asked for longest ends first."""
    servers = ForkServers(at_once=True)
    echo = (sys.executable, "-c", "import sys, os; os.read(int(sys.argv[1]), 1)")
    kinds = [Kind(argv=echo, options=(str(n),), env=(), code=()) for n in range(5)]
    try:
        began = [servers.get(kind, nothing) for kind in kinds[:4]]
        assert began[0] is servers.get(kinds[0], nothing)
        began.append(servers.get(kinds[4], nothing))
        wait_until_gone(began[1].pid)
        began[1]._keeper.join()

        assert [True, False, True, True, True] == [one.is_alive for one in began]
    finally:
        servers.close()
    for one in began:
        wait_until_gone(one.pid)


def test_forgotten_servers_end(homes: Callable[[], Path]) -> None:
    """Nobody closed them, and nobody can ask them any more."""
    servers = ForkServers(at_once=True)
    pid = parent_of_the_next(homes(), servers)
    del servers

    wait_until_gone(pid)


def test_a_fork_of_the_owner_has_no_servers(
    servers: ForkServers, homes: Callable[[], Path]
) -> None:
    """Their children would outlive it; and it does not end what is not its own."""
    first = parent_of_the_next(homes(), servers)
    if (pid := os.fork()) == 0:
        try:
            servers.get(kind(), nothing)
        except NoServerError:
            servers.close()
            os._exit(0)
        os._exit(1)

    assert 0 == os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert first == parent_of_the_next(homes(), servers)


def test_a_server_without_work_ends() -> None:
    """Its memory is better used by others."""
    ours, theirs = pair()
    with ours, theirs:
        server = fork_server.Server(control=theirs, idle_s=0.05)

        assert server.serve() is None


def test_an_order_that_nobody_waits_for_starts_nothing() -> None:
    """The child is there, and is never told to go on."""
    ours, theirs = pair()
    status, others = pair()
    with ours, theirs, others:
        for order in files(others):
            send_order(ours, order)
        ours.shutdown(socket.SHUT_WR)
        if (pid := os.fork()) == 0:
            ours.close()
            status.close()
            given = fork_server.Server(control=theirs).serve()
            os._exit(0 if given is None else fork_server.become(*given, lambda: None))
        others.close()
        heard = hear(status)
        assert heard is not None
        assert heard.handle is not None
        status.close()

        assert select.select([heard.handle], [], [], 60)[0]
        os.close(heard.handle)
        assert 0 == os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_orders_arrive_whole_and_are_not_inherited() -> None:
    """A program that is started meanwhile holds no end of a child."""
    ours, theirs = pair()
    with theirs:
        with ours, Path(os.devnull).open("rb") as null:
            fd = null.fileno()
            order = Order(
                cwd="/x", env={"A": "ü"}, stdin=fd, output=fd, answer=fd, progress=fd,
                status=fd,
            )  # fmt: skip
            send_order(ours, order)
        arrived = receive_order(theirs)

        assert arrived is not None
        assert ("/x", {"A": "ü"}) == (arrived.cwd, arrived.env)
        assert {False} == {os.get_inheritable(fd) for fd in arrived.fds}
        assert 5 == len(set(arrived.fds))
        for fd in arrived.fds:
            os.close(fd)
        assert receive_order(theirs) is None
