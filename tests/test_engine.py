"""The dead are found and what they left goes on; newer code builds by a new recipe."""

import dataclasses
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_stand_in import Listed
from strategies_jobs import OPTIONS, RECIPE, VERSION, claim, job, there, worker
from strategies_ledger import Clock, attempt
from strategies_tree import sample_recipe
from vectorless_rag.engine import places, rescue, turns
from vectorless_rag.engine.places import is_gone, worker_place
from vectorless_rag.engine.port import Turn
from vectorless_rag.engine.rescue import Rescue
from vectorless_rag.engine.running import Running, Stop
from vectorless_rag.engine.submission import address_of, path_of
from vectorless_rag.engine.versions import (
    ASKED,
    CODE,
    WORKERS,
    options_of,
    server_of,
    settings_for,
    version_of,
)
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.ledger.board import Board
from vectorless_rag.ledger.book import Ledger
from vectorless_rag.ledger.job_types import Held, JobState
from vectorless_rag.ledger.types import Outcome
from vectorless_rag.recipe import RESULT_SETTINGS, Configuration
from vectorless_rag.settings import Settings
from vectorless_rag.units import Sha256


@dataclass
class Seconds:
    """Seconds that pass when they are told to."""

    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Scene:
    """A worker that looks after the others."""

    settings: Settings
    board: Board
    queue: Listed
    clock: Clock
    seconds: Seconds

    at: set[str] = field(default_factory=set)
    """Attempts whose turns are being carried out here."""

    def rescue(self, **me: Any) -> Rescue:
        row = worker("me", place=worker_place(), pid=os.getpid(), **me)
        self.board.enter(row)
        return Rescue(
            settings=self.settings,
            me=row,
            board=self.board,
            queue=self.queue,
            is_at=self.at.__contains__,
            clock=self.seconds,
        )

    def begun(self, name: str = "worker-1", **changes: Any) -> None:
        """A job that a worker is at."""
        self.board.enter(worker(name, **changes))
        row, _ = self.board.add(job())
        turns.enqueue(self.queue, row)
        self.board.claim(claim(worker_id=name))
        self.queue.holders[f"{RECIPE}:0"] = name


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    """An empty board and queue."""
    clock = Clock()
    settings = Settings.load(data_dir=tmp_path / "data", dead_after_s=10)
    with Board.open(settings.effective_ledger_url, clock=clock) as board:
        yield Scene(settings, board, Listed(), clock, Seconds())


def test_a_worker_that_stopped_leaves_nothing_behind(scene: Scene) -> None:
    """What it did not get to hand back is queued at once, for a turn of its own."""
    scene.begun()
    scene.board.stop("worker-1")
    scene.rescue().look()

    assert (JobState.QUEUED, 1) == (there(scene.board).state, there(scene.board).turn)
    assert [f"{RECIPE}:1"] == list(scene.queue.turns)
    assert ["me"] == [found.worker_id for found in scene.board.workers()]


def test_a_worker_is_dead_when_its_beats_stand_still(scene: Scene) -> None:
    """By the clock of who looks; one beat more, and it lives."""
    scene.begun()
    looking = scene.rescue()
    looking.look()
    scene.seconds.now += 6
    scene.board.beat("worker-1")
    looking.look()
    scene.seconds.now += 6
    looking.look()
    assert JobState.RUNNING is there(scene.board).state
    scene.seconds.now += 6
    looking.look()

    assert JobState.QUEUED is there(scene.board).state


def test_who_was_buried_and_began_a_job_after_that_is_found(scene: Scene) -> None:
    """It stands on no list any more, and nobody hears of it again."""
    scene.begun()
    scene.board.forget("worker-1")
    looking = scene.rescue()
    looking.look()
    assert JobState.RUNNING is there(scene.board).state
    scene.seconds.now += 11
    looking.look()

    assert JobState.QUEUED is there(scene.board).state


@pytest.mark.parametrize(
    ("asked", "expected"),
    [(False, (JobState.QUEUED, 1)), (True, (JobState.CANCELLED, 0))],
    ids=["going-on", "cancelling"],
)
def test_what_this_worker_is_at_by_the_board_alone_is_let_go(
    scene: Scene, *, asked: bool, expected: tuple[JobState, int]
) -> None:
    """
    Nobody else would: it lives.

    What it is at is left alone, and so is a turn that has not reached its job yet.
    """
    scene.begun("me")
    if asked:
        scene.board.cancel(RECIPE)
    looking = scene.rescue()
    with Ledger.open(scene.settings.effective_ledger_url) as ledger:
        ledger.start_attempt(attempt("attempt-1"))
        scene.at.add("attempt-1")
        looking.look()
        assert JobState.RUNNING is there(scene.board).state
        scene.at.clear()
        looking.look()
        ended = ledger.attempt("attempt-1")

    assert expected == (there(scene.board).state, there(scene.board).turn)
    assert ended is not None
    assert Outcome.FAILED is ended.outcome


def test_who_picks_up_many_lost_turns_gives_signs_of_life(scene: Scene) -> None:
    """A look ends after one heartbeat; the next ones pick up the rest."""
    names = [Sha256(f"{number:064x}") for number in range(10)]
    for name in names:
        scene.board.add(job(name))
    scene.clock.advance(60)
    looking = scene.rescue()
    enqueue = scene.queue.enqueue

    def slowly(turn: Turn) -> None:
        scene.seconds.now += scene.settings.heartbeat_s * 0.4
        enqueue(turn)

    scene.queue.enqueue = slowly  # type: ignore[method-assign]
    after: list[int] = []
    for _ in range(3):
        looking.look()
        after.append(len(scene.queue.turns))

    assert [3, 6, 9] == after


def test_a_killed_worker_of_this_machine_is_dead_at_once(scene: Scene) -> None:
    """Its pid is gone, so nobody waits."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    place = worker_place().rpartition(" ")[0]
    started = places.started(process.pid)
    scene.begun(place=f"{place} {started}", pid=process.pid)
    looking = scene.rescue()
    looking.look()
    assert JobState.RUNNING is there(scene.board).state
    process.kill()
    # Not waited for: a dead child that nobody collects is dead all the same.
    while not is_gone(f"{place} {started}", process.pid):
        pass
    looking.look()
    process.communicate()

    assert JobState.QUEUED is there(scene.board).state


def test_the_attempt_of_a_dead_worker_is_closed(scene: Scene) -> None:
    """Its rows do not stay open until somebody reconciles the ledger."""
    with Ledger.open(scene.settings.effective_ledger_url) as ledger:
        ledger.start_attempt(attempt("attempt-1", recipe_hash=RECIPE))
        scene.begun()
        scene.board.stop("worker-1")
        scene.rescue().look()
        closed = ledger.attempt("attempt-1")

    assert closed is not None
    assert (Outcome.FAILED, Code.CHILD_KILLED) == (closed.outcome, closed.code)


def test_a_turn_that_was_handed_out_and_not_begun_is_not_lost(scene: Scene) -> None:
    """The worker died between the queue and the board."""
    row, _ = scene.board.add(job())
    turns.enqueue(scene.queue, row)
    scene.queue.holders[f"{RECIPE}:0"] = "worker-1"
    scene.board.enter(worker(stopped=True))
    scene.rescue().look()

    assert [f"{RECIPE}:1"] == list(scene.queue.turns)
    assert (1, 0) == (there(scene.board).turn, there(scene.board).tries)


def test_a_job_that_never_reached_the_queue_is_put_there(scene: Scene) -> None:
    """Whoever submitted it was killed in between; one that is there is left alone."""
    scene.board.add(job())
    there_already, _ = scene.board.add(job("f" * 64))
    turns.enqueue(scene.queue, there_already)
    looking = scene.rescue()
    looking.look()
    assert [f"{'f' * 64}:0"] == list(scene.queue.turns)
    scene.clock.advance(60)
    looking.look()

    assert {f"{'f' * 64}:0", f"{RECIPE}:1"} == scene.queue.turns.keys()


def test_a_long_queue_is_gone_through_in_pieces(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lost turn behind others is found, too."""
    monkeypatch.setattr(rescue, "_AT_ONCE", 2)
    for name in "abcd":
        row, _ = scene.board.add(job(name * 64))
        turns.enqueue(scene.queue, row)
    scene.board.add(job("e" * 64))
    scene.clock.advance(60)
    looking = scene.rescue()
    for _ in range(2):
        looking.look()
        assert f"{'e' * 64}:1" not in scene.queue.turns
    looking.look()

    assert f"{'e' * 64}:1" in scene.queue.turns


@dataclass(frozen=True)
class Code2:
    """Code that runs here."""

    configuration: Configuration


@pytest.fixture
def newer(monkeypatch: pytest.MonkeyPatch) -> Configuration:
    """What runs on this worker now."""
    configuration = dataclasses.replace(
        sample_recipe().configuration, model="offline/extractive"
    )
    monkeypatch.setattr(rescue, "running_code", lambda _: Code2(configuration))
    return configuration


def test_newer_code_builds_by_a_new_recipe(scene: Scene, newer: Configuration) -> None:
    """The old job says so, and the new one is queued for the new code."""
    scene.board.meet(VERSION)
    scene.clock.advance(1)
    row, _ = scene.board.add(job())
    turns.enqueue(scene.queue, row)
    scene.rescue(version=version_of(newer), started_us=scene.clock()).look()

    old = there(scene.board)
    assert JobState.SUPERSEDED is old.state
    assert old.successor is not None
    new = there(scene.board, old.successor)
    assert (version_of(newer), job().document_sha256, "night") == (
        new.version,
        new.document_sha256,
        new.run_id,
    )
    assert [(f"{new.recipe_hash}:0", version_of(newer))] == [
        (turn.turn_id, turn.version) for turn in scene.queue.turns.values()
    ]


@pytest.mark.usefixtures("newer")
def test_jobs_of_newer_code_wait_for_it(scene: Scene) -> None:
    """An old worker does not take them back to its own."""
    looking = scene.rescue(version="old", started_us=scene.clock())
    scene.clock.advance(1)
    scene.board.meet(VERSION)
    scene.board.add(job())
    looking.look()

    assert JobState.QUEUED is there(scene.board).state


@pytest.mark.usefixtures("newer")
def test_older_code_finishes_its_jobs_while_it_has_workers(scene: Scene) -> None:
    """They are not taken away from it."""
    scene.board.meet(VERSION)
    scene.clock.advance(1)
    scene.board.add(job())
    scene.board.enter(worker())
    scene.rescue(version="new", started_us=scene.clock()).look()

    assert JobState.QUEUED is there(scene.board).state


@pytest.mark.usefixtures("newer")
@pytest.mark.parametrize(
    "options",
    [
        pytest.param(
            OPTIONS.replace("null", f'"{"a" * 64}"'), id="meant for another server"
        ),
        pytest.param("{}", id="no options"),
        pytest.param("}", id="no JSON"),
    ],
)
def test_a_job_that_would_be_another_is_left_alone(scene: Scene, options: str) -> None:
    """Documents go to no server that nobody chose for them."""
    scene.board.meet(VERSION)
    scene.clock.advance(1)
    scene.board.add(job(options=options))
    scene.rescue(version="new", started_us=scene.clock()).look()

    assert JobState.QUEUED is there(scene.board).state


def test_every_field_of_a_recipe_is_the_code_s_or_asked_for() -> None:
    """A field that is added has to be one of them before it can be released."""
    fields = {f.name for f in dataclasses.fields(Configuration)}

    assert fields == CODE | ASKED | WORKERS
    assert RESULT_SETTINGS == ASKED | {"api_base"}


def test_a_job_s_settings_are_the_worker_s_but_for_what_was_asked() -> None:
    """Who pays and how it is built come along; where keys are sent does not."""
    own = Settings.load(api_base="http://127.0.0.1:9/v1", concurrency=3)
    configuration = dataclasses.replace(
        sample_recipe().configuration,
        model="openai/x",
        mode="flash",
        max_output_tokens=100,
        api_base_sha256=Sha256("c" * 64),
    )
    options = options_of(configuration)
    got = settings_for(options, "bob", own)

    assert "c" * 64 == server_of(options)
    assert ("openai/x", "flash", 100, "bob", 3, own.api_base) == (
        got.model,
        got.mode,
        got.max_output_tokens,
        got.owner,
        got.concurrency,
        got.api_base,
    )


def test_options_that_are_out_of_range_are_refused() -> None:
    """Whoever can write to the board cannot ask for anything."""
    options = OPTIONS.replace("4096", "1")

    with pytest.raises(VectorlessRagError, match="VECTORLESS_RAG_MAX_OUTPUT_TOKENS"):
        settings_for(options, "ann", Settings.load())


@pytest.mark.parametrize("name", sorted(CODE))
def test_every_part_of_the_code_is_in_its_version(name: str) -> None:
    """Workers of other code are handed other jobs."""
    before = sample_recipe().configuration
    value = getattr(before, name)
    other: Any = value + 1 if isinstance(value, int) else f"{value}x"
    after = dataclasses.replace(before, **{name: other})

    assert version_of(before) != version_of(after)
    assert version_of(before) == version_of(dataclasses.replace(before, mode="flash"))


@given(name=st.binary(min_size=1, max_size=40).filter(lambda b: not {0, 47} & set(b)))
def test_any_path_reads_back(name: bytes) -> None:
    """An address is text, whatever bytes a file's name has."""
    path = Path("/srv") / os.fsdecode(name)
    expected = Path(os.path.abspath(path))  # noqa: PTH100

    assert address_of(path).isascii()
    assert expected == path_of(address_of(path))


def row_of(attempt_id: str, *, cancelling: bool = False) -> Held:
    return Held(recipe_hash=RECIPE, attempt_id=attempt_id, cancelling=cancelling)


def test_a_running_job_hears_why_it_has_to_stop(scene: Scene) -> None:
    """The first reason stands; a job that began after the look is left alone."""
    scene.begun()
    row = there(scene.board)
    running = Running(60, scene.seconds)
    with (
        running.of("a", row) as a,
        running.of("b", row) as b,
        running.of("c", row) as c,
        running.of("d", row) as d,
    ):
        before = ("a", "b", "c", "gone")
        assert {"a", "b", "c", "d"} == set(running.attempts())
        running.heed(before, [row_of("a", cancelling=True), row_of("c")])
        assert (4, Stop.CANCELLED, Stop.LOST, None, None) == (
            len(running), a.why, b.why, c.why, d.why,
        )  # fmt: skip
        c.check()
        running.stop_all(Stop.ENDING)
        assert [Stop.CANCELLED, Stop.ENDING] == [a.why, c.why]
        with pytest.raises(VectorlessRagError, match="cancelled"):
            c.check()
    assert 0 == len(running)


def test_a_worker_that_gave_no_sign_stops_its_jobs_itself(scene: Scene) -> None:
    """The others begin them: two must not build one document."""
    scene.begun()
    running = Running(60, scene.seconds)
    with running.of("a", there(scene.board)) as here:
        scene.seconds.now += 50
        running.seen()
        scene.seconds.now += 50
        here.check()
        scene.seconds.now += 11
        with pytest.raises(VectorlessRagError, match="cancelled"):
            here.check()

    assert Stop.LOST is here.why


def test_turns_are_counted_before_they_begin_a_job() -> None:
    """A worker that ends waits for them."""
    running = Running(60)
    inside, leave = threading.Event(), threading.Event()

    def carry_out() -> None:
        with running.turn("a"):
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=carry_out)
    thread.start()
    inside.wait(60)
    assert (1, 0, True) == (running.turns, len(running), running.is_at("a"))
    leave.set()
    thread.join()

    assert (0, False) == (running.turns, running.is_at("a"))


def test_a_place_tells_this_machine_from_others() -> None:
    """A pid of another machine, or of before its last start, says nothing here."""
    mine = worker_place()
    where, _, when = mine.rpartition(" ")

    assert not is_gone(mine, os.getpid())
    assert is_gone(f"{where} {int(when) + 1}", os.getpid())
    assert is_gone(mine, 2**22 + 1)
    assert not is_gone(f"elsewhere {when}", 2**22 + 1)
