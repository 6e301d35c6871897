"""
Kill workers and their database at random moments, and look at what is left.

``python fleet.py HOME sqlite|postgresql DOCUMENTS WORKERS KILLS`` submits documents,
runs workers, ends them with SIGKILL again and again, on PostgreSQL the server too, and
starts others in their place. In the end every document is in one state, and was built
once. It says how many it killed.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from acceptance.program import command, environment, run_long
from killing import children_of
from pdfs import pdf
from postgres_server import Server, serving
from test_process import gone, wait_until_gone
from vectorless_rag.audit import Verdict, verify_store
from vectorless_rag.engine.submission import path_of
from vectorless_rag.ledger.board import Board
from vectorless_rag.ledger.book import Ledger
from vectorless_rag.ledger.job_types import OPEN, JobRow, JobState
from vectorless_rag.ledger.types import Outcome, run_budget
from vectorless_rag.store import Store

SEED = 20
RUN = "night"
BUDGET_NANO = 500_000_000

_LIMIT_S = 3600
_NO_DATABASE = 10
_SETTINGS = {
    "VECTORLESS_RAG_JOBS": "2",
    "VECTORLESS_RAG_JOB_TRIES": "50",
    "VECTORLESS_RAG_RETRY_S": "1",
    "VECTORLESS_RAG_HEARTBEAT_S": "1",
    "VECTORLESS_RAG_DEAD_AFTER_S": "20",
    "VECTORLESS_RAG_BUDGET_USD": "0.5",
}


@dataclass
class Fleet:
    """Workers on the documents of one folder."""

    home: Path
    server: Server | None
    rng: random.Random
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    killed: Counter[str] = field(default_factory=Counter)

    @property
    def ledger_url(self) -> str:
        """Address of the ledger and the board."""
        if self.server is not None:
            return self.server.address
        return f"sqlite:///{self.home}/data/ledger.sqlite3"

    @property
    def environment(self) -> dict[str, str]:
        """What every program is given."""
        more = dict(_SETTINGS)
        if self.server is not None:
            more["VECTORLESS_RAG_LEDGER_URL"] = self.server.address
        # What killed children leave is seen, and in nobody's way.
        return {**more, "TMPDIR": str(self.home / "tmp")}

    def submit(self, documents: list[Path]) -> int:
        """Submit documents; return how many were new."""
        about = ("--run", RUN, "--json")
        done = run_long(
            600, "submit", *documents, *about, home=self.home, **self.environment
        )
        assert 0 == done.status, done.err
        return sum(line["new"] for line in done.objects)

    def start_worker(self) -> None:
        """Start one more worker."""
        with (self.home / "workers.log").open("ab") as log:
            self.workers.append(
                subprocess.Popen(
                    command("worker"),
                    cwd=self.home,
                    env=environment(self.home, **self.environment),
                    stdin=subprocess.DEVNULL,
                    stderr=log,
                )
            )

    def mind(self) -> None:
        """Start those again that found no database to begin with."""
        for worker in self.workers[:]:
            if worker.poll() == _NO_DATABASE:
                self.workers.remove(worker)
                self.start_worker()

    def kill_worker(self) -> None:
        """End one at a random moment; its children go with it."""
        worker = self.workers.pop(self.rng.randrange(len(self.workers)))
        children = children_of(worker.pid)
        if children and self.rng.random() < 0.2:
            # Only a child: its worker sees to it.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.rng.choice(children), signal.SIGKILL)
            self.killed["child"] += 1
            self.workers.append(worker)
            return
        worker.kill()
        worker.wait()
        self.killed["worker"] += 1
        for child in children:
            wait_until_gone(child)
        self.start_worker()

    def kill_server(self, server: Server) -> None:
        """End the database at a random moment, and start it some time after."""
        server.kill()
        self.killed["database"] += 1
        time.sleep(self.rng.uniform(0, 3))
        server.run_again()

    def jobs(self) -> list[JobRow]:
        """Read where every job stands."""
        with Board.open(self.ledger_url) as board:
            return board.jobs()

    def end(self) -> None:
        """Tell the workers to end, and see that they do so in order."""
        # A signal that comes before would end Python itself.
        limit = time.monotonic() + 120
        while not all(self.has_begun(worker.pid) for worker in self.workers):
            assert time.monotonic() < limit
            time.sleep(0.1)
            self.mind()
        for worker in self.workers:
            worker.send_signal(signal.SIGTERM)
        assert [0] * len(self.workers) == [w.wait(timeout=120) for w in self.workers]

    def has_begun(self, pid: int) -> bool:
        """Tell whether a worker said that it began."""
        return f"-{pid}-" in (self.home / "workers.log").read_text(encoding="utf-8")


def orphans(home: Path) -> Iterator[int]:
    """Find children of ours, by their own folder, that still run."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "cwd").readlink().is_relative_to(home / "tmp"):
                pid = int(process.name)
                if not gone(pid):
                    yield pid


def papers(home: Path, count: int) -> list[Path]:
    """Write *count* documents, each with words of its own."""
    (home / "in").mkdir(parents=True)
    return [
        pdf(
            home / "in" / f"{n:04}.pdf",
            [f"{page} Title\nSome words about number {n}." for page in range(1, 4)],
        )
        for n in range(count)
    ]


def play(fleet: Fleet, documents: list[Path], workers: int, kills: int) -> None:
    """Submit, work and kill, until every job has ended."""
    half = len(documents) // 2
    assert half == fleet.submit(documents[:half])
    for _ in range(workers):
        fleet.start_worker()
    # Some a second time, while they are worked on.
    assert len(documents) - half == fleet.submit(documents[half // 2 :])
    end = time.monotonic() + _LIMIT_S
    while True:
        left = [job for job in fleet.jobs() if job.state in OPEN]
        if not left:
            return
        assert time.monotonic() < end, [(j.recipe_hash, j.state, j.turn) for j in left]
        time.sleep(fleet.rng.uniform(0.2, 2.5))
        fleet.mind()
        if fleet.killed.total() >= kills:
            continue
        if fleet.server is not None and fleet.rng.random() < 0.2:
            fleet.kill_server(fleet.server)
        else:
            fleet.kill_worker()


def check(fleet: Fleet, documents: list[Path]) -> None:
    """See that every document was built, once, within the budget, and no more."""
    jobs = fleet.jobs()
    assert {JobState.BUILT} == {job.state for job in jobs}
    assert sorted(documents) == sorted(path_of(job.source) for job in jobs)
    store = Store(fleet.home / "data" / "store")
    bad = [f for f in verify_store(store) if f.verdict is not Verdict.NOTE]
    assert [] == bad
    with Ledger.open(fleet.ledger_url) as ledger:
        ledger.expire()
        assert [] == ledger.check()
        attempts = ledger.attempts(RUN)
        budget = ledger.budget(run_budget(RUN))
    built = Counter(a.recipe_hash for a in attempts if a.outcome is Outcome.BUILT)
    assert all(count == 1 for count in built.values()), built
    assert not [a for a in attempts if a.outcome is None]
    assert BUDGET_NANO == budget.limit
    assert budget.spent + budget.reserved <= BUDGET_NANO
    for job in jobs:
        assert [0] == store.generations(job.recipe_hash)
        stored = store.find(job.recipe_hash)
        assert stored is not None
        assert job.artifact_id == stored.artifact_id
    assert [] == list(orphans(fleet.home))


def main(home: Path, kind: str, count: int, workers: int, kills: int) -> Fleet:
    """Play the whole of it on one kind of database."""
    (home / "tmp").mkdir(parents=True)
    documents = papers(home, count)
    with contextlib.ExitStack() as stack:
        server = None
        if kind == "postgresql":
            server = stack.enter_context(serving(fsync=False))
        fleet = Fleet(home, server, random.Random(SEED))  # noqa: S311
        try:
            play(fleet, documents, workers, kills)
            fleet.end()
            check(fleet, documents)
        finally:
            for worker in fleet.workers:
                worker.kill()
                worker.wait()
    return fleet


if __name__ == "__main__":
    began = time.monotonic()
    done = main(Path(sys.argv[1]).absolute(), sys.argv[2], *map(int, sys.argv[3:6]))
    killed = ", ".join(f"{number} x {what}" for what, number in done.killed.items())
    took = time.monotonic() - began
    sys.stdout.write(f"killed: {killed}; every document built once, {took:.0f} s\n")
