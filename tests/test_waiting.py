"""Who waits for a process that builds the same says so; a worker does not stay."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine_stand_in import Handing, Listed
from pdfs import pdf
from strategies_jobs import job, there, worker
from vectorless_rag import events, pipeline
from vectorless_rag.engine import building, turns
from vectorless_rag.engine import worker as working
from vectorless_rag.engine.places import worker_place
from vectorless_rag.engine.submission import address_of
from vectorless_rag.engine.versions import options_of, version_of
from vectorless_rag.engine.worker import Worker
from vectorless_rag.errors import Code
from vectorless_rag.ledger.board import Board
from vectorless_rag.ledger.job_types import JobRow, JobState
from vectorless_rag.pageindex_adapter import PageIndexAdapter
from vectorless_rag.pipeline import Order
from vectorless_rag.recipe import Recipe
from vectorless_rag.results import Status
from vectorless_rag.settings import Settings
from vectorless_rag.source import identify
from vectorless_rag.wire import Progress

# Freezes with the lock in its hands, as a suspended worker does.
HOLD = """
import fcntl, os, signal, sys
file = open(sys.argv[1], "ab")
fcntl.flock(file, fcntl.LOCK_EX)
print("holds", flush=True)
os.kill(os.getpid(), signal.SIGSTOP)
"""

Said = Callable[[], list[tuple[str, str, str]]]
"""Level, event and recipe of every event about waiting since the last look."""


def recipe_of(document: Path, settings: Settings) -> Recipe:
    source = identify(document, max_bytes=settings.max_source_bytes)
    return Recipe(
        configuration=PageIndexAdapter(settings).code().configuration,
        document_sha256=source.sha256,
    )


@dataclass(frozen=True)
class Scene:
    """A document that another process builds, and one that nobody does."""

    settings: Settings
    document: Path
    free: Path
    holder: "subprocess.Popen[bytes]"

    @property
    def adapter(self) -> PageIndexAdapter:
        return PageIndexAdapter(self.settings, run_id="night")

    def recipe(self, document: Path) -> Recipe:
        return recipe_of(document, self.settings)

    def end_holder(self) -> None:
        self.holder.kill()
        self.holder.wait()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    """A frozen process holds the lock of the first document."""
    settings = Settings.load(
        data_dir=tmp_path / "data", model="offline/extractive", owner="ann",
        retry_s=1, jobs=1, drain_s=0,
    )  # fmt: skip
    document, free = (
        pdf(tmp_path / f"{name}.pdf", [f"1 Of the {name}\nAll about it."])
        for name in ("apple", "birch")
    )
    locks = settings.store_dir / "locks"
    locks.mkdir(parents=True)
    lock = locks / f"{recipe_of(document, settings).recipe_hash}.lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, lock], stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert b"holds\n" == holder.stdout.readline()
        yield Scene(settings, document, free, holder)
        holder.kill()


@pytest.fixture
def said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Said]:
    """Who waits says so at once."""
    monkeypatch.setattr(pipeline, "_SAID_AFTER_S", 0)
    events.configure("warning")

    def look() -> list[tuple[str, str, str]]:
        lines = capsys.readouterr().err.splitlines()
        found = [json.loads(line) for line in lines if "waits_for" in line]
        return [(line["level"], line["event"], line["recipe"]) for line in found]

    yield look
    # The next event is for another test's standard error.
    events.configure("warning")


def test_who_waits_says_so_once_and_goes_on_waiting(scene: Scene, said: Said) -> None:
    """As an event, and where progress is shown; it builds when the other is gone."""
    recipe = scene.recipe(scene.document).recipe_hash
    stages: list[str] = []
    looks: list[int] = []

    def show(progress: Progress) -> None:
        stages.append(progress.stage)

    def look() -> None:
        looks.append(1)
        if len(looks) == 5:
            scene.end_holder()

    result = scene.adapter.ingest(scene.document, on_progress=show, check=look)

    assert (Status.BUILT, None) == (result.status, result.failure)
    assert [("warning", "waits_for_another", recipe)] == said()
    assert ["waiting for another process"] == [s for s in stages if "wait" in s]


def test_a_short_wait_is_not_worth_a_word(scene: Scene) -> None:
    """Two who ask at once take turns in silence."""
    said: list[str] = []

    def show(progress: Progress) -> None:
        said.append(progress.stage)

    result = scene.adapter.ingest(
        scene.document, on_progress=show, check=scene.end_holder
    )

    assert Status.BUILT is result.status
    assert [] == [stage for stage in said if "wait" in stage]


def test_patience_ends_with_a_failure_that_may_pass(scene: Scene) -> None:
    """Nothing is built, and nothing is spent."""
    digest = scene.recipe(scene.document).document_sha256
    order = Order(document_sha256=digest, attempt_id="attempt-1", patience_s=0)
    looks: list[int] = []

    def look() -> None:
        looks.append(1)
        # Who went on waiting would build it, rather than never end.
        if len(looks) == 20:
            scene.end_holder()

    result = scene.adapter.ingest(scene.document, check=look, order=order)

    assert result.failure is not None
    assert (Status.FAILED, Code.IN_PROGRESS, True) == (
        result.status,
        result.failure.code,
        result.failure.retryable,
    )
    assert 0 == result.spend.cost


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_worker_leaves_the_slot_to_others(
    scene: Scene, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No try is counted, however often; it builds when the other is gone."""
    monkeypatch.setattr(working, "TICK_S", 0.02)
    monkeypatch.setattr(building, "_BUILDS_ELSEWHERE_S", 0)
    configuration = scene.adapter.code().configuration
    version, queue = version_of(configuration), Listed()
    with Board.open(scene.settings.effective_ledger_url) as board:
        row = worker("me", place=worker_place(), pid=os.getpid(), version=version)
        mine = Worker(
            settings=scene.settings,
            row=row,
            board=board,
            queue=queue,
            hands=Handing(queue, "me", version, 1),
        )

        def submit(document: Path) -> str:
            recipe = scene.recipe(document)
            usual = job(
                recipe.recipe_hash,
                document_sha256=recipe.document_sha256,
                source=address_of(document),
                options=options_of(configuration),
                version=version,
            )
            turns.enqueue(queue, board.add(usual)[0])
            return recipe.recipe_hash

        def found(recipe: str) -> JobRow:
            return there(board, recipe)

        held, free = submit(scene.document), submit(scene.free)
        thread = threading.Thread(target=lambda: mine.run(until_idle=True))
        thread.start()
        try:
            until(lambda: found(free).state is JobState.BUILT)
            until(lambda: found(held).turn > 1)
            assert None is found(held).ended_us
            scene.end_holder()
            thread.join()
        finally:
            mine.stopping.set()
            thread.join()

        assert (JobState.BUILT, 1) == (found(held).state, found(held).tries)
    assert ("warning", "waits_for_another", held) in said()
