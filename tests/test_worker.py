"""A worker builds, hands back, gives up, and ends; whatever its database does."""

import dataclasses
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from engine_stand_in import Handing, Listed
from strategies_jobs import RECIPE, claim, job, there, worker
from strategies_tree import sample_recipe
from vectorless_rag.engine import building, turns
from vectorless_rag.engine import worker as working
from vectorless_rag.engine.places import worker_place
from vectorless_rag.engine.running import Stop
from vectorless_rag.engine.versions import options_of, version_of
from vectorless_rag.engine.worker import Worker
from vectorless_rag.errors import Code, Failure, VectorlessRagError
from vectorless_rag.ledger.board import Board
from vectorless_rag.ledger.job_types import Job, JobState
from vectorless_rag.pipeline import Order
from vectorless_rag.prefork import ForkServers
from vectorless_rag.recipe import Configuration, Recipe
from vectorless_rag.results import IngestResult, Status
from vectorless_rag.settings import Settings
from vectorless_rag.units import Sha256

CONFIGURATION = dataclasses.replace(
    sample_recipe().configuration, model="offline/extractive"
)
ARTIFACT = Sha256("a" * 64)

Build = Callable[[Callable[[], None]], Failure | None]
"""Builds a document, and calls what it is given as often as a child is looked at."""


def built(_check: Callable[[], None]) -> None:
    """Without a failure."""


def failing(code: Code) -> Build:
    return lambda _: Failure(code=code)


def stalling(check: Callable[[], None]) -> Failure | None:
    """Until it is told to stop."""
    while True:
        try:
            check()
        except VectorlessRagError as error:
            return error.failure
        time.sleep(0.01)


@dataclass(frozen=True)
class Running:
    configuration: Configuration


@dataclass
class Site:
    """One worker, its board, its queue and what becomes of documents."""

    settings: Settings
    board: Board
    queue: Listed
    builds: list[Build] = field(default_factory=list)
    """What happens to the next documents; then they are built."""

    orders: list[Order] = field(default_factory=list)

    def __post_init__(self) -> None:
        row = worker(
            "me", place=worker_place(), pid=os.getpid(),
            version=version_of(CONFIGURATION), slots=self.settings.jobs,
        )  # fmt: skip
        self.hands = Handing(self.queue, "me", row.version, self.settings.jobs)
        self.worker = Worker(
            settings=self.settings,
            row=row,
            board=self.board,
            queue=self.queue,
            hands=self.hands,
        )

    def submit(self, number: int = 0, **changes: Any) -> Job:
        digest = Sha256(f"{number:064x}")
        recipe = Recipe(configuration=CONFIGURATION, document_sha256=digest)
        usual = job(
            recipe.recipe_hash,
            document_sha256=digest,
            options=options_of(CONFIGURATION),
            version=version_of(CONFIGURATION),
            **changes,
        )
        row, _ = self.board.add(usual)
        turns.enqueue(self.queue, row)
        return usual

    def submit_while_away(self, number: int) -> Job:
        """Submit past a queue that is away."""
        self.queue.away = False
        submitted = self.submit(number)
        self.queue.away = True
        return submitted

    def run(self) -> None:
        self.worker.run(until_idle=True)

    def start(self) -> threading.Thread:
        thread = threading.Thread(target=lambda: self.worker.run(until_idle=False))
        thread.start()
        return thread

    def until(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + 120
        while not condition():
            assert time.monotonic() < end, self.board.jobs()
            time.sleep(0.01)


@pytest.fixture
def new_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Site]]:
    """Make a worker whose documents are built as its site says."""
    monkeypatch.setattr(working, "TICK_S", 0.02)
    monkeypatch.setattr(building, "_PATIENCE_S", 0.02)
    monkeypatch.setattr(building, "_FULL_S", 0.05)
    opened: list[Board] = []

    def make(**settings: Any) -> Site:
        usual = {"data_dir": tmp_path / "data", "retry_s": 0, "drain_s": 0, "jobs": 2}
        loaded = Settings.load(**(usual | settings))
        board = Board.open(loaded.effective_ledger_url)
        opened.append(board)
        site = Site(loaded, board, Listed())

        class Adapter:
            def __init__(
                self, settings: Settings, *, run_id: str, servers: ForkServers
            ) -> None:
                assert (run_id, settings.owner) == ("night", "ann")
                # All jobs of a worker share them.
                assert servers is site.worker.builder.servers

            def code(self) -> Running:
                return Running(CONFIGURATION)

            def ingest(
                self, path: Path, *, check: Callable[[], None], order: Order
            ) -> IngestResult:
                site.orders.append(order)
                build = site.builds.pop(0) if site.builds else built
                failure = build(check)
                if failure is None:
                    return IngestResult(
                        source=path, status=Status.BUILT, artifact_id=ARTIFACT
                    )
                return IngestResult(source=path, status=Status.FAILED, failure=failure)

        monkeypatch.setattr(building, "PageIndexAdapter", Adapter)
        return site

    yield make
    for board in opened:
        board.close()


def test_a_worker_that_is_told_to_end_before_it_began_takes_nothing(
    new_site: Callable[..., Site],
) -> None:
    """It is not on the board, and the job is for the others."""
    site = new_site()
    site.submit()
    site.worker.stopping.set()
    site.run()

    assert [] == site.board.workers()
    assert [JobState.QUEUED] == [found.state for found in site.board.jobs()]


def test_a_worker_whose_database_was_taken_away_ends(
    new_site: Callable[..., Site],
) -> None:
    """What it would go on writing, nobody would read."""
    site = new_site()
    file = site.settings.ledger_file
    taken = file.with_name("taken")

    def take(check: Callable[[], None]) -> Failure | None:
        file.rename(taken)
        return stalling(check)

    site.builds.append(take)
    site.submit()

    with pytest.raises(VectorlessRagError, match="removed or replaced") as caught:
        site.run()
    assert Code.STORE_UNWRITABLE == caught.value.code
    assert "ledger.sqlite3" in str(caught.value)


def test_a_worker_builds_what_is_queued_and_ends(new_site: Callable[..., Site]) -> None:
    """Each try counts, and is told of."""
    site = new_site()
    told: list[str] = []
    site.worker.on_end = lambda ended: told.append(ended.job.recipe_hash)
    jobs = [site.submit(number) for number in range(5)]
    assert not site.worker.is_ready
    site.run()

    assert {JobState.BUILT} == {found.state for found in site.board.jobs()}
    assert {ARTIFACT} == {found.artifact_id for found in site.board.jobs()}
    assert {1} == {found.tries for found in site.board.jobs()}
    assert sorted(told) == sorted(found.recipe_hash for found in jobs)
    assert [found.attempt_id for found in site.board.jobs()] != [None] * 5
    assert {order.attempt_id for order in site.orders} == {
        found.attempt_id for found in site.board.jobs()
    }
    (me,) = site.board.workers()
    assert me.stopped
    assert ("vectorless_rag_worker_turns_total", 5) in [
        (figure.name, figure.value) for figure in site.worker.figures()
    ]


@pytest.mark.parametrize(
    ("code", "tries", "state", "ends_with"),
    [
        pytest.param(Code.TIMEOUT, 3, "failed", Code.TIMEOUT, id="may-pass"),
        pytest.param(Code.STORE_UNWRITABLE, 3, "failed", None, id="full-disk"),
        pytest.param(Code.AUTH, 1, "failed", Code.AUTH, id="will-not-pass"),
        pytest.param(Code.SOURCE_CHANGED, 1, "failed", None, id="other-bytes"),
    ],
)
def test_what_may_pass_is_tried_again(
    new_site: Callable[..., Site],
    code: Code,
    tries: int,
    state: str,
    ends_with: Code | None,
) -> None:
    """And ends with the failure of the last try."""
    site = new_site(job_tries=3)
    site.builds = [failing(code)] * 5
    submitted = site.submit()
    site.run()
    found = there(site.board, submitted.recipe_hash)

    assert (state, tries) == (found.state.value, found.tries)
    assert found.failure is not None
    assert (ends_with or code) is found.failure.code


def test_a_second_try_may_go_well(new_site: Callable[..., Site]) -> None:
    """The job is built, and keeps no failure."""
    site = new_site()
    site.builds = [failing(Code.CHILD_KILLED), built]
    submitted = site.submit()
    site.run()
    found = there(site.board, submitted.recipe_hash)

    assert (JobState.BUILT, 2, 1, None) == (
        found.state,
        found.tries,
        found.turn,
        found.failure,
    )


def test_a_defect_of_ours_ends_the_job_and_not_the_worker(
    new_site: Callable[..., Site],
) -> None:
    """The next one is built."""

    def breaking(_check: Callable[[], None]) -> None:
        raise ZeroDivisionError

    site = new_site(jobs=1)
    site.builds = [breaking]
    site.submit(0)
    site.submit(1)
    site.run()
    codes = [found.failure and found.failure.code for found in site.board.jobs()]

    assert {Code.INTERNAL_ERROR, None} == set(codes)


def test_a_recipe_that_this_worker_would_not_build_is_refused(
    new_site: Callable[..., Site],
) -> None:
    """It was submitted for another server."""
    site = new_site()
    row, _ = site.board.add(job(options=options_of(CONFIGURATION),
                                version=version_of(CONFIGURATION)))  # fmt: skip
    turns.enqueue(site.queue, row)
    site.run()
    found = there(site.board)

    assert found.failure is not None
    assert (JobState.FAILED, Code.SETTINGS_INVALID) == (found.state, found.failure.code)
    assert [] == site.orders


def test_a_worker_that_can_begin_nothing_ends(new_site: Callable[..., Site]) -> None:
    """
    After three jobs in a row, none of which counts a try: others may build them.

    One job that it is handed a second time is to blame itself.
    """
    site = new_site(retry_s=1)
    for number in range(4):
        site.submit(number)
    site.builds = [failing(Code.SOURCE_UNREADABLE)] * 9
    with pytest.raises(VectorlessRagError, match="none of its first jobs") as error:
        site.run()

    assert Code.SOURCE_UNREADABLE is error.value.code
    assert {(JobState.QUEUED, 0)} == {(j.state, j.tries) for j in site.board.jobs()}


@pytest.mark.parametrize(
    ("before", "codes"),
    [
        ([built], [None, Code.SOURCE_UNREADABLE, Code.SOURCE_UNREADABLE]),
        (
            [failing(Code.SOURCE_NO_TEXT)],
            [Code.SOURCE_NO_TEXT, *[Code.SOURCE_UNREADABLE] * 2],
        ),
        ([], [Code.SOURCE_UNREADABLE, None, None]),
    ],
    ids=["built", "read", "one-twice"],
)
def test_a_worker_that_could_begin_a_job_goes_on(
    new_site: Callable[..., Site], before: list[Build], codes: list[Code | None]
) -> None:
    """What it cannot begin after that is the job's own fault, and fails at once."""
    site = new_site(retry_s=1, jobs=1)
    for number in range(3 if before else 1):
        site.submit(number)
    site.builds = before + [failing(Code.SOURCE_UNREADABLE)] * 2
    site.run()
    found = [job.failure and job.failure.code for job in site.board.jobs()]

    assert codes[: len(found)] == found


def test_a_worker_that_reaches_nobody_is_not_ready(
    new_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its database may hang without a word, and the others begin its jobs."""
    site = new_site()
    thread = site.start()
    site.until(lambda: site.worker.is_ready)
    monkeypatch.setattr(site.worker.running, "is_alone", lambda: True)
    ready = site.worker.is_ready
    site.worker.stopping.set()
    thread.join()

    assert not ready


def test_a_cancelled_job_is_stopped_and_ends(new_site: Callable[..., Site]) -> None:
    """Within a moment, and for good."""
    site = new_site()
    site.builds = [stalling]
    submitted = site.submit()
    thread = site.start()
    site.until(lambda: len(site.worker.running) == 1)
    assert site.worker.is_ready
    assert site.worker.is_healthy
    site.board.cancel(submitted.recipe_hash)
    site.until(lambda: there(site.board, submitted.recipe_hash).ended_us is not None)
    site.worker.stopping.set()
    thread.join()

    assert JobState.CANCELLED is there(site.board, submitted.recipe_hash).state


def test_a_worker_that_ends_hands_back(new_site: Callable[..., Site]) -> None:
    """No try is lost, and the next turn is in the queue."""
    site = new_site()
    site.builds = [stalling]
    submitted = site.submit()
    thread = site.start()
    site.until(lambda: len(site.worker.running) == 1)
    site.worker.stopping.set()
    thread.join()
    found = there(site.board, submitted.recipe_hash)

    assert (JobState.QUEUED, 0, 1) == (found.state, found.tries, found.turn)
    assert [f"{submitted.recipe_hash}:1"] == list(site.queue.turns)
    assert not site.worker.is_ready


def test_what_is_handed_out_too_late_is_passed_on(
    new_site: Callable[..., Site],
) -> None:
    """A worker that ends begins nothing."""
    site = new_site()
    submitted = site.submit()
    site.worker.draining.set()

    assert "passed_on" == site.worker.builder.work(f"{submitted.recipe_hash}:0")
    found = there(site.board, submitted.recipe_hash)
    assert (JobState.QUEUED, 0, 1) == (found.state, found.tries, found.turn)


def test_a_job_that_another_has_taken_is_left_to_it(
    new_site: Callable[..., Site],
) -> None:
    """Its child is stopped, and nothing is written for it."""
    site = new_site()
    site.builds = [stalling]
    submitted = site.submit()
    thread = site.start()
    site.until(lambda: len(site.worker.running) == 1)
    site.board.release("me")
    wish = claim("other", recipe_hash=submitted.recipe_hash, worker_id="other")
    site.board.claim(wish)
    site.until(lambda: site.hands.said == {f"{submitted.recipe_hash}:0": "lost"})
    assert "stale" == site.worker.builder.work(f"{submitted.recipe_hash}:0")
    site.worker.stopping.set()
    thread.join()
    found = there(site.board, submitted.recipe_hash)

    assert (JobState.RUNNING, "other") == (found.state, found.worker_id)


def test_a_worker_that_was_taken_for_dead_comes_back(
    new_site: Callable[..., Site],
) -> None:
    """It enters again, and takes jobs."""
    site = new_site(heartbeat_s=1)
    thread = site.start()
    site.until(lambda: bool(site.board.workers()))
    site.board.forget("me")
    site.until(lambda: bool(site.board.workers()))
    submitted = site.submit()
    site.until(lambda: there(site.board, submitted.recipe_hash).ended_us is not None)
    site.worker.stopping.set()
    thread.join()

    assert JobState.BUILT is there(site.board, submitted.recipe_hash).state


def test_what_was_stopped_as_another_s_and_is_not_goes_on(
    new_site: Callable[..., Site],
) -> None:
    """
    A worker that gave no sign for too long stops its jobs and leaves them to others.

    Where nobody took it for dead, they are its own to queue again.
    """
    site = new_site(heartbeat_s=1)
    site.builds = [stalling]
    submitted = site.submit()
    thread = site.start()
    site.until(lambda: len(site.worker.running) == 1)
    site.worker.running.stop_all(Stop.LOST)
    site.until(lambda: there(site.board, submitted.recipe_hash).ended_us is not None)
    site.worker.stopping.set()
    thread.join()
    found = there(site.board, submitted.recipe_hash)

    assert (JobState.BUILT, 1, 2) == (found.state, found.turn, found.tries)
    assert "lost" == site.hands.said[f"{submitted.recipe_hash}:0"]


def test_a_model_that_is_full_leaves_room_for_others(
    new_site: Callable[..., Site],
) -> None:
    """The job goes on when there is room."""
    site = new_site(jobs_per_model=1)
    site.board.add(job(model="offline/extractive"))
    site.board.claim(claim(worker_id="other"))
    site.board.enter(worker("other"))
    waits = site.submit(1)
    other = site.submit(2, model="offline/other")
    thread = site.start()
    site.until(lambda: there(site.board, other.recipe_hash).state is JobState.BUILT)
    site.until(lambda: there(site.board, waits.recipe_hash).turn > 1)
    assert 0 == there(site.board, waits.recipe_hash).tries
    site.board.cancel(RECIPE)
    site.board.release("other")
    site.until(lambda: there(site.board, waits.recipe_hash).state is JobState.BUILT)
    site.worker.stopping.set()
    thread.join()


def test_a_queue_that_is_away_is_waited_for(new_site: Callable[..., Site]) -> None:
    """What was to be queued is, once it is back; a worker that ends waits no more."""
    site = new_site()
    site.builds = [failing(Code.TIMEOUT)]
    submitted = site.submit()
    site.queue.away = True
    thread = site.start()
    site.until(lambda: there(site.board, submitted.recipe_hash).turn == 1)
    assert f"{submitted.recipe_hash}:1" not in site.queue.turns
    site.queue.away = False
    site.until(lambda: there(site.board, submitted.recipe_hash).state is JobState.BUILT)
    site.queue.away = True
    site.builds = [failing(Code.TIMEOUT)]
    another = site.submit_while_away(1)
    site.until(lambda: there(site.board, another.recipe_hash).turn == 1)
    site.worker.hurry.set()
    site.worker.stopping.set()
    thread.join()

    assert "left" == site.hands.said[f"{another.recipe_hash}:0"]


def test_a_ledger_that_is_away_is_waited_for(
    new_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker says so once, takes no jobs for ready, and goes on by itself."""
    site = new_site()
    there_again = site.board.is_open
    away = threading.Event()

    def is_open(version: str) -> bool:
        if not away.is_set():
            raise VectorlessRagError(Code.LEDGER_UNAVAILABLE)
        return there_again(version)

    monkeypatch.setattr(site.board, "is_open", is_open)
    thread = threading.Thread(target=site.run)
    thread.start()
    site.until(lambda: site.worker.away is Code.LEDGER_UNAVAILABLE)
    assert not site.worker.is_ready
    away.set()
    thread.join()

    assert None is site.worker.away


def test_another_failure_ends_a_worker(
    new_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not hidden, and its documents are stopped."""
    site = new_site()

    def look() -> None:
        raise VectorlessRagError(Code.LEDGER_CONFLICT)

    monkeypatch.setattr(site.worker.rescue, "look", look)
    with pytest.raises(VectorlessRagError, match="closed twice"):
        site.run()
    assert site.worker.hurry.is_set()
