"""What this package relies on DBOS for, and that it keeps to itself."""

import json
import logging
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from acceptance.program import environment
from conftest import REPOSITORY
from vectorless_rag.engine import dbos_engine
from vectorless_rag.engine.dbos_engine import DbosQueue
from vectorless_rag.engine.port import Turn
from vectorless_rag.errors import VectorlessRagError

pytest_plugins = ["postgres_server"]

SCRIPT = REPOSITORY / "tests" / "dbos_script.py"


@dataclass
class Engine:
    """A queue and toy workers on one database."""

    url: str
    home: Path
    queue: DbosQueue

    @property
    def lines(self) -> list[list[str]]:
        path = self.home / "log"
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        return [line.split() for line in text.splitlines()]

    def of(self, what: str) -> list[str]:
        """What was told, of one kind, in order."""
        return [line[3] for line in self.lines if line[2] == what and len(line) > 3]

    def wait(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + 120
        while not condition():
            assert time.monotonic() < end, self.lines
            time.sleep(0.05)

    @contextmanager
    def worker(
        self, name: str, *, version: str = "v1", slots: int = 2, per_owner: str = "",
        took: float = 0, **more: str,
    ) -> Iterator[subprocess.Popen[str]]:  # fmt: skip
        words = [self.url, name, version, str(slots), per_owner, str(took)]
        process = subprocess.Popen(
            [sys.executable, SCRIPT, *words, self.home / "log"],
            cwd=self.home,
            env=environment(self.home, **more),
            stdin=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None
        try:
            self.wait(lambda: any(x[1:3] == [name, "ready"] for x in self.lines))
            yield process
        finally:
            process.stdin.close()
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def most_at_once(self, chosen: Callable[[str], bool] = lambda _: True) -> int:
        """Most turns that were carried out at the same time."""
        now = most = 0
        for line in sorted(self.lines, key=lambda line: int(line[0])):
            if line[2] in {"begin", "end"} and chosen(line[3]):
                now += 1 if line[2] == "begin" else -1
                most = max(most, now)
        return most


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("postgresql", marks=[pytest.mark.loopback, pytest.mark.slow]),
    ]
)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """An empty queue on either database."""
    url = f"sqlite:///{tmp_path}/engine.sqlite3"
    if request.param == "postgresql":
        server = request.getfixturevalue("postgres_server")
        name = f"e{os.urandom(4).hex()}"
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"create database {name}")
        url = server.replace("/postgres?", f"/{name}?")
    with closing(DbosQueue(url)) as queue:
        yield Engine(url, tmp_path, queue)


def turn(turn_id: str, **changes: object) -> Turn:
    usual = {"owner": "ann", "version": "v1", "priority": 100}
    return Turn(turn_id=turn_id, **(usual | changes))  # type: ignore[arg-type]


def test_a_turn_is_carried_out_once(engine: Engine) -> None:
    """However often it is put in, before, meanwhile and after; by priority."""
    for name, priority in (("late", 9), ("soon", 1), ("late", 1)):
        engine.queue.enqueue(turn(name, priority=priority))
    engine.queue.enqueue(turn("other", version="v2"))
    engine.queue.enqueue(turn("put-off", delay_s=3600))
    engine.queue.enqueue(turn("cancelled", priority=10))
    engine.queue.cancel(["cancelled", "nothing"])
    names = ["soon", "late", "other", "put-off", "cancelled", "nothing"]
    assert {"cancelled", "nothing"} == engine.queue.lost(names, {"w"})

    with engine.worker("w", slots=1) as process:
        engine.wait(lambda: len(engine.of("end")) == 2)
        engine.queue.enqueue(turn("soon"))
        engine.queue.enqueue(turn("last"))
        engine.wait(lambda: len(engine.of("end")) == 3)
        assert [] == listening(process.pid)
    assert ["soon", "late", "last"] == engine.of("begin")
    assert {"cancelled", "soon", "late"} == engine.queue.lost(names[:-1], {"w"})


def listening(pid: int) -> list[str]:
    """Sockets of the internet that a process has, by their inode."""
    mine = set()
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        try:
            mine.add(str(fd.readlink()))
        except FileNotFoundError:
            continue
    found = []
    for table in ("tcp", "tcp6", "udp", "udp6"):
        lines = (
            Path(f"/proc/{pid}/net/{table}").read_text(encoding="ascii").splitlines()
        )
        rows = [line.split() for line in lines[1:]]
        found += [row[1] for row in rows if f"socket:[{row[9]}]" in mine]
    return found


@pytest.mark.slow
def test_bounds_hold_over_workers(engine: Engine) -> None:
    """So many for a worker, so many for an owner over all of them."""
    for number in range(5):
        engine.queue.enqueue(turn(f"ann-{number}"))
        engine.queue.enqueue(turn(f"bob-{number}", owner="bob"))
    bounds = {"per_owner": "2", "took": 0.4}
    with (
        engine.worker("one", slots=1, **bounds),  # type: ignore[arg-type]
        engine.worker("three", slots=3, **bounds),  # type: ignore[arg-type]
    ):
        engine.wait(lambda: len(engine.of("end")) == 10)

    assert 10 == len(set(engine.of("begin"))) == len(engine.of("begin"))
    assert 2 >= engine.most_at_once(lambda turn_id: turn_id.startswith("ann"))
    assert 2 >= engine.most_at_once(lambda turn_id: turn_id.startswith("bob"))
    by = {line[3]: line[1] for line in engine.lines if line[2] == "begin"}
    assert 1 == engine.most_at_once(lambda turn_id: by[turn_id] == "one")
    assert 3 >= engine.most_at_once(lambda turn_id: by[turn_id] == "three")


@pytest.mark.slow
def test_what_a_killed_worker_held_is_known(engine: Engine) -> None:
    """And lost, but not while it is said to live; its owner's place is free again."""
    engine.queue.enqueue(turn("first"))
    engine.queue.enqueue(turn("second"))
    with engine.worker("dead", slots=1, per_owner="1", took=600) as process:
        engine.wait(lambda: engine.of("begin") == ["first"])
        assert ["first"] == engine.queue.held_by("dead")
        process.kill()
    assert set() == engine.queue.lost(["first", "second"], {"dead"})
    assert {"first"} == engine.queue.lost(["first", "second"], {"another"})

    engine.queue.cancel(["first"])
    engine.queue.enqueue(turn("again"))
    with engine.worker("live", slots=1, per_owner="1"):
        engine.wait(lambda: len(engine.of("end")) == 2)
    assert [] == engine.queue.held_by("dead")
    assert ["first", "second", "again"] == engine.of("begin")


@pytest.mark.slow
def test_a_worker_that_takes_none_finishes_what_it_has(engine: Engine) -> None:
    """What is put in meanwhile waits for another; children keep their thread."""
    engine.queue.enqueue(turn("first"))
    with engine.worker("ending", took=1.5) as process:
        engine.wait(lambda: engine.of("begin") == ["first"])
        assert process.stdin is not None
        process.stdin.write("0\n")
        process.stdin.flush()
        engine.wait(lambda: any(line[2] == "takes" for line in engine.lines))
        engine.queue.enqueue(turn("second"))
        engine.wait(lambda: engine.of("end") == ["first"])
        (thread,) = [line[4] for line in engine.lines if line[2] == "begin"]
        assert Path(f"/proc/{process.pid}/task/{thread}").exists()

    assert ["first"] == engine.of("begin")


def test_nothing_is_pickled(tmp_path: Path) -> None:
    """Who can write to the tables cannot have code run by reading them."""
    path = tmp_path / "engine.sqlite3"
    with closing(DbosQueue(f"sqlite:///{path}")) as queue:
        queue.enqueue(turn("first"))
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(
            "select i.inputs, s.serialization from workflow_input i"
            " join workflow_status s using (workflow_uuid)"
        ).fetchall()

    ((inputs, how),) = rows
    assert "portable_json" == how
    assert ["first"] == json.loads(inputs)["positionalArgs"]


def test_the_maker_s_variables_are_not_for_us(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In its cloud it would take its name, its version and its orders from them."""
    monkeypatch.setenv("DBOS__CLOUD", "true")
    monkeypatch.setenv("DBOS__CONDUCTOR_KEY", "canary")
    DbosQueue(f"sqlite:///{tmp_path}/engine.sqlite3").close()

    assert [] == [name for name in os.environ if name.startswith("DBOS_")]


@pytest.mark.parametrize(
    ("url", "why"),
    [
        pytest.param("sqlite:///{home}/file/x.sqlite3", "FileExists", id="no-folder"),
        pytest.param(
            "postgresql://u:canary@/d?host={home}", "Operational", id="no-server"
        ),
        pytest.param("nonsense", "", id="no-address"),
    ],
)
def test_a_database_that_is_not_there_is_one_line(
    tmp_path: Path, url: str, why: str
) -> None:
    """The address is not repeated: it may hold a password."""
    (tmp_path / "file").touch()
    with pytest.raises(VectorlessRagError, match="queue of jobs cannot") as caught:
        DbosQueue(url.format(home=tmp_path))

    assert why in str(caught.value)
    assert "canary" not in str(caught.value)
    assert None is caught.value.__cause__


def test_a_line_that_comes_again_and_again_is_told_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While a database is away, the engine says so several times a second."""
    told: list[tuple[str, str | None]] = []

    class Log:
        def error(self, _event: str, *, where: str, error: str | None) -> None:
            told.append((where, error))

    monkeypatch.setattr(dbos_engine, "log", Log())
    handler = dbos_engine._ToEvents(logging.WARNING)

    def line(number: int, error: Exception | None = None) -> logging.LogRecord:
        found = (type(error), error, None) if error else None
        return logging.LogRecord("dbos", logging.ERROR, "x.py", number, "", None, found)

    class DBOSAwaitedWorkflowCancelledError(Exception):
        """As the library calls it."""

    for _ in range(3):
        handler.emit(line(1))
        handler.emit(line(1, OSError()))
        handler.emit(line(2))
        handler.emit(line(3, DBOSAwaitedWorkflowCancelledError()))

    assert [("x:1", None), ("x:1", "OSError"), ("x:2", None)] == told
