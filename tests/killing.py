"""
Kill ingest runs at random moments, and look at what is left after each.

``python killing.py HOME KILLS AT_ONCE`` starts a few programs at once on the same
documents, ends one with SIGKILL again and again, and checks the store and the
ledger each time. It says how many it killed.
"""

import contextlib
import os
import random
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from pdfs import pdf
from test_process import wait_until_gone
from vectorless_rag.audit import Verdict, verify_store
from vectorless_rag.ledger.book import Ledger
from vectorless_rag.pageindex_adapter import PageIndexAdapter
from vectorless_rag.results import Status
from vectorless_rag.settings import Settings
from vectorless_rag.store import Store
from vectorless_rag.units import Sha256

SEED = 20
KILLS_A_RECIPE = 6


@dataclass
class Program:
    """One process that ingests every document."""

    pid: int
    told: int
    """Where it writes a line for each artifact that it was handed."""

    def children(self) -> list[int]:
        """Return its children that have a document, forked ones too."""
        return documents_of(self.pid)

    def servers(self) -> list[int]:
        """Return what its children are forked from."""
        return [p for p in children_of(self.pid) if "fork_server" in command_of(p)]


def children_of(pid: int) -> list[int]:
    """Return the children of every thread of a process, as the kernel knows them."""
    found: list[int] = []
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found += map(int, listing.read_text(encoding="ascii").split())
    return found


def documents_of(pid: int) -> list[int]:
    """Return the children of a process that have a document, forked ones too."""
    found = []
    for child in children_of(pid):
        # A server has none; those that it forked have.
        forked = "fork_server" in command_of(child)
        found += children_of(child) if forked else [child]
    return found


def command_of(pid: int) -> str:
    """Return how a process was started; empty once it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return ""


@dataclass
class Play:
    """What is ingested, and what was handed out so far."""

    home: Path
    rng: random.Random
    documents: list[Path]
    recipe: int = 0
    handed_out: dict[Sha256, str] = field(default_factory=dict)
    """Artifact by recipe."""

    kills: int = 0

    @property
    def settings(self) -> Settings:
        """Every recipe is one that was not built yet."""
        return Settings.load(
            data_dir=self.home / "data", max_output_tokens=4096 + self.recipe
        )

    def start(self) -> Program:
        """Start a program on all documents."""
        told, tell = os.pipe()
        if (pid := os.fork()) == 0:
            os.close(told)
            os._exit(self._ingest(tell))
        os.close(tell)
        return Program(pid, told)

    def _ingest(self, tell: int) -> int:
        # A fork shares the generator: each would go the same way.
        documents = sorted(self.documents, key=lambda _: os.urandom(4))
        adapter = PageIndexAdapter(self.settings)
        for document in documents:
            result = adapter.ingest(document)
            if result.status is Status.FAILED:
                os.write(2, f"{result.failure}\n".encode())
                return 1
            os.write(tell, f"{result.recipe_hash} {result.artifact_id}\n".encode())
        return 0

    def end(self, program: Program) -> int:
        """Wait for the end; take down what it was handed, return its status."""
        status = os.waitstatus_to_exitcode(os.waitpid(program.pid, 0)[1])
        # Less than a pipe holds.
        lines = os.read(program.told, 1 << 16).decode().splitlines()
        os.close(program.told)
        for line in lines:
            recipe, artifact = line.split()
            assert self.handed_out.setdefault(Sha256(recipe), artifact) == artifact
        return status

    def kill(self, program: Program) -> None:
        """End it at a random moment, sometimes by its child, and check."""
        self._wait_a_moment(program)
        children, servers = program.children(), program.servers()
        victim = program.pid
        if children and self.rng.random() < 0.2:
            victim = children[0]
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
        if victim != program.pid:
            # Its parent goes on with the next document, or reports the failure.
            os.kill(program.pid, signal.SIGKILL)
        self.end(program)
        self.kills += 1
        for child in children + servers:
            wait_until_gone(child)
        self.check()

    def _wait_a_moment(self, program: Program) -> None:
        if self.rng.random() < 0.5:
            time.sleep(self.rng.uniform(0, 3))
            return
        # Around the end of a child is where artifacts are written.
        end = time.monotonic() + 20
        while not program.children() and time.monotonic() < end:
            time.sleep(0.005)
        while program.children() and time.monotonic() < end:
            time.sleep(0.001)
        time.sleep(self.rng.uniform(0, 0.06))

    def check(self) -> None:
        """See that nothing is half there, and nothing handed out is lost."""
        settings = self.settings
        store = Store(settings.store_dir)
        bad = [f for f in verify_store(store) if f.verdict is not Verdict.NOTE]
        assert not bad, bad
        with Ledger.open(settings.effective_ledger_url) as ledger:
            problems = ledger.check()
        assert not problems, problems
        for recipe, artifact in self.handed_out.items():
            stored = store.find(recipe)
            assert stored is not None, recipe
            assert stored.artifact_id == artifact
            records = store.chain.newest_first(stored.document_sha256)
            assert recipe in {record.recipe_hash for record in records}
        for stored in store.all():
            assert store.generations(stored.recipe_hash) == [0]


def play(home: Path, kills: int, at_once: int) -> Play:
    """Kill *kills* programs; every recipe is finished in the end."""
    # What killed runs leave is seen, and is not in anyone's way.
    (home / "tmp").mkdir()
    tempfile.tempdir = str(home / "tmp")
    pages = [f"{n} Title\nSome words to read about it." for n in range(1, 4)]
    documents = [
        pdf(home / f"{name}.pdf", [f"{name} {page}" for page in pages])
        for name in ("a", "b")
    ]
    state = Play(home, random.Random(SEED), documents)  # noqa: S311
    while state.kills < kills:
        state.recipe += 1
        running = [state.start() for _ in range(at_once)]
        for _ in range(min(KILLS_A_RECIPE, kills - state.kills)):
            state.kill(running.pop(state.rng.randrange(len(running))))
            running.append(state.start())
        assert [0] * at_once == [state.end(program) for program in running]
        state.check()
        assert len(documents) * state.recipe == len(state.handed_out)
    return state


if __name__ == "__main__":
    done = play(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
    sys.stdout.write(
        f"{done.kills} killed, {len(done.handed_out)} artifacts, each once\n"
    )
