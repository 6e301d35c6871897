"""Whoever claims, cancels, ends or dies: a job is in one state, and each try counts."""

import threading
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies_jobs import RECIPE, VERSION, claim, job, there, worker
from strategies_ledger import Clock, attempt
from vectorless_rag.errors import Code, Failure
from vectorless_rag.ledger.board import Board
from vectorless_rag.ledger.book import Ledger
from vectorless_rag.ledger.job_types import Claimed, End, Held, JobState
from vectorless_rag.ledger.types import Outcome

BUILT = End(state=JobState.BUILT, artifact_id=None)
FAILED = End(state=JobState.FAILED, failure=Failure(code=Code.SOURCE_NO_TEXT))
TIMEOUT = Failure(code=Code.TIMEOUT, detail="120 s")

pytest_plugins = ["ledger_databases"]


@pytest.fixture
def board(url: str, clock: Clock) -> Iterator[Board]:
    """An empty board, on either database."""
    with Board.open(url, clock=clock) as opened:
        yield opened


def test_the_same_recipe_again_is_the_same_job(board: Board) -> None:
    """Whatever else is asked for then, the first stands."""
    first, new = board.add(job())
    second, again = board.add(job(owner="bob", run_id="other"))

    assert (True, False) == (new, again)
    assert first == second
    assert (JobState.QUEUED, 0, 0) == (first.state, first.turn, first.tries)


def test_a_claim_is_one_worker_s_and_counts_at_once(board: Board) -> None:
    """The second finds it stale; the first may ask twice."""
    board.add(job())

    assert Claimed.TAKEN is board.claim(claim())
    assert Claimed.TAKEN is board.claim(claim())
    assert Claimed.STALE is board.claim(claim("attempt-2", worker_id="worker-2"))
    found = there(board)
    assert (JobState.RUNNING, 1, "worker-1", "attempt-1") == (
        found.state,
        found.tries,
        found.worker_id,
        found.attempt_id,
    )


def test_what_is_not_there_cannot_be_claimed(board: Board) -> None:
    """Nor can a turn that is over."""
    assert Claimed.STALE is board.claim(claim())
    board.add(job())
    assert board.next_turn(RECIPE, 0)
    assert Claimed.STALE is board.claim(claim())
    assert Claimed.TAKEN is board.claim(claim(turn=1))


def test_tries_end(board: Board) -> None:
    """After the last one it has failed, and says what the last one ended with."""
    board.add(job())
    for turn in range(2):
        wish = claim(f"attempt-{turn}", turn=turn, most_tries=2)
        assert Claimed.TAKEN is board.claim(wish)
        assert board.hand_back(
            RECIPE, wish.attempt_id, turn=turn, counted=True, failure=TIMEOUT
        )

    assert Claimed.SPENT is board.claim(claim("attempt-9", turn=2, most_tries=2))
    found = there(board)
    assert found.failure is not None
    assert (JobState.FAILED, Code.JOB_TRIES_SPENT) == (found.state, found.failure.code)
    assert "2 tries, the last one ended with pageindex_timeout" == found.failure.detail


def test_a_try_that_the_worker_broke_off_does_not_count(board: Board) -> None:
    """A worker that is told to end takes nothing from the job."""
    board.add(job())
    board.claim(claim())

    assert board.hand_back(RECIPE, "attempt-1", turn=0, counted=False)
    assert board.hand_back(RECIPE, "attempt-1", turn=0, counted=False)
    found = there(board)
    assert (JobState.QUEUED, 0, 1, None) == (
        found.state,
        found.tries,
        found.turn,
        found.worker_id,
    )


def test_who_was_taken_for_dead_changes_nothing(board: Board) -> None:
    """The job is another's: its end and its state are theirs to write."""
    board.add(job())
    board.claim(claim())
    board.release("worker-1")
    board.claim(claim("attempt-2", worker_id="worker-2"))

    assert not board.finish(RECIPE, "attempt-1", BUILT)
    assert not board.hand_back(RECIPE, "attempt-1", turn=0, counted=True)
    assert JobState.RUNNING is there(board).state
    assert board.finish(RECIPE, "attempt-2", BUILT)
    assert board.finish(RECIPE, "attempt-2", BUILT)
    assert (JobState.BUILT, 2) == (there(board).state, there(board).tries)


def test_a_released_job_is_queued_in_its_turn(board: Board) -> None:
    """The try that ended with its worker counts."""
    board.add(job())
    board.claim(claim())

    expected = Held(recipe_hash=RECIPE, attempt_id="attempt-1", cancelling=False)
    assert [expected] == board.held("worker-1")
    assert [expected] == board.release("worker-1")
    assert [] == board.release("worker-1")
    assert (JobState.QUEUED, 1, 0) == (
        there(board).state,
        there(board).tries,
        there(board).turn,
    )


@pytest.mark.parametrize(
    ("step", "code"),
    [
        (lambda b: b.release("worker-1"), Code.CHILD_KILLED),
        (
            lambda b: b.hand_back(RECIPE, "attempt-1", turn=0, counted=False),
            Code.CHILD_KILLED,
        ),
        (
            lambda b: b.finish(RECIPE, "attempt-1", FAILED),
            Code.SOURCE_NO_TEXT,
        ),
    ],
    ids=["release", "hand-back", "finish"],
)
def test_an_attempt_ends_with_its_try(
    board: Board, url: str, step: Callable[[Board], object], code: Code
) -> None:
    """Its own end may be lost with its worker or its database; a seal is on it too."""
    board.add(job())
    board.claim(claim())
    with Ledger.open(url) as ledger:
        ledger.start_attempt(attempt("attempt-1"))
        step(board)
        ended = ledger.attempt("attempt-1")

        assert ended is not None
        assert (Outcome.FAILED, code) == (ended.outcome, ended.code)
        assert [] == ledger.check()


def test_a_waiting_job_is_cancelled_at_once(board: Board) -> None:
    """Nobody begins it any more."""
    board.add(job())
    board.cancel(RECIPE)

    assert JobState.CANCELLED is there(board).state
    assert Claimed.STALE is board.claim(claim())


def test_a_running_job_is_cancelled_by_its_worker(board: Board) -> None:
    """It is asked, and the job goes on until it obeys."""
    board.add(job())
    board.claim(claim())
    board.cancel(RECIPE)

    assert (JobState.RUNNING, True) == (there(board).state, there(board).cancelling)
    assert [True] == [held.cancelling for held in board.held("worker-1")]
    failure = Failure(code=Code.CANCELLED)
    board.finish(RECIPE, "attempt-1", End(state=JobState.CANCELLED, failure=failure))
    assert (JobState.CANCELLED, False) == (there(board).state, there(board).cancelling)


def test_a_cancelled_job_whose_worker_died_is_not_begun_again(board: Board) -> None:
    """Nobody was left to obey."""
    board.add(job())
    board.claim(claim())
    board.cancel(RECIPE)
    board.release("worker-1")

    assert JobState.CANCELLED is there(board).state


def test_only_what_failed_or_was_cancelled_is_queued_again(board: Board) -> None:
    """With all its tries, and a turn of its own."""
    board.add(job())
    board.again(RECIPE)
    assert 0 == there(board).turn
    board.claim(claim())
    board.finish(RECIPE, "attempt-1", End(state=JobState.FAILED, failure=TIMEOUT))
    assert TIMEOUT == there(board).failure
    board.again(RECIPE)

    found = there(board)
    assert (JobState.QUEUED, 1, 0, None) == (
        found.state,
        found.turn,
        found.tries,
        found.failure,
    )
    assert (None, None) == (found.started_us, found.ended_us)


def test_newer_code_takes_a_waiting_job_over(board: Board) -> None:
    """The old recipe says which one stands in for it; a running one is left alone."""
    heir = job("f" * 64, version="0.4.7+vr2-bbbb")
    board.add(job())
    assert JobState.QUEUED is board.supersede(RECIPE, heir).state
    assert (JobState.SUPERSEDED, heir.recipe_hash) == (
        there(board).state,
        there(board).successor,
    )
    assert Claimed.STALE is board.claim(claim())

    assert not board.is_open(VERSION)
    assert board.is_open("0.4.7+vr2-bbbb")
    assert ["0.4.7+vr2-bbbb"] == list(board.versions_waiting())
    assert [heir.recipe_hash] == [
        found.recipe_hash for found in board.of_version("0.4.7+vr2-bbbb", most=9)
    ]


def test_of_one_model_only_so_many_run(board: Board) -> None:
    """Those of another model do not count."""
    for name in "abc":
        board.add(job(name * 64, model=f"openai/{'x' if name == 'c' else 'y'}"))

    def claimed(name: str) -> Claimed:
        return board.claim(claim(name, recipe_hash=name * 64, most_of_model=1))

    assert [Claimed.TAKEN, Claimed.FULL, Claimed.TAKEN] == [*map(claimed, "abc")]
    board.finish("a" * 64, "a", BUILT)
    assert Claimed.TAKEN is claimed("b")


def test_many_claim_at_once(url: str) -> None:
    """A bound holds, however many workers see room at the same time."""
    recipes = [f"{n:064x}" for n in range(12)]
    with Board.open(url) as board:
        for recipe in recipes:
            board.add(job(recipe))
    taken: list[Claimed] = []

    def work(name: str) -> None:
        with Board.open(url) as own:
            taken.extend(
                own.claim(
                    claim(f"{name}-{r}", recipe_hash=r, worker_id=name, most_of_model=3)
                )
                for r in recipes
            )

    threads = [threading.Thread(target=work, args=(f"w{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert 3 == taken.count(Claimed.TAKEN)
    with Board.open(url) as board:
        assert 3 == sum(found.state is JobState.RUNNING for found in board.jobs())


def test_what_waits_is_told_from_what_was_put_off(board: Board, clock: Clock) -> None:
    """A pause after a failure is no waiting."""
    board.add(job("a" * 64))
    board.add(job("b" * 64))
    board.next_turn("b" * 64, 0, delay_s=60)
    clock.advance(10)

    assert ["a" * 64] == [
        found.recipe_hash for found in board.waiting(since_s=5, after="", most=9)
    ]
    assert [] == board.waiting(since_s=5, after="a" * 64, most=9)
    assert [] == board.waiting(since_s=20, after="", most=9)
    assert clock() - 10_000_000 == board.tally().oldest_ready_us


def test_a_job_that_failed_takes_the_path_it_is_submitted_under(board: Board) -> None:
    """One that waits is read from where it was; bytes have any number of jobs."""
    board.add(job(source="file:///a.pdf"))
    assert "file:///a.pdf" == board.add(job(source="file:///b.pdf"))[0].source
    board.claim(claim("a"))
    board.finish(RECIPE, "a", End(state=JobState.FAILED, failure=TIMEOUT))

    moved, new = board.add(job(source="file:///b.pdf"))
    assert (False, JobState.FAILED) == (new, moved.state)
    assert "file:///b.pdf" == moved.source
    assert [moved] == board.of_document(moved.document_sha256)
    assert [] == board.of_document("0" * 63 + "f")


def test_workers_come_and_go(board: Board) -> None:
    """One that is forgotten is told so by its next beat."""
    board.enter(worker())
    board.enter(worker("worker-2", started_us=2, slots=3))

    assert board.beat("worker-1")
    assert [1, 0] == [found.beats for found in board.workers()]
    board.stop("worker-2")
    assert [False, True] == [found.stopped for found in board.workers()]
    board.forget("worker-1")
    assert not board.beat("worker-1")
    assert ["worker-2"] == [found.worker_id for found in board.workers()]


def test_a_version_is_as_old_as_its_first_sight(board: Board, clock: Clock) -> None:
    """Whether a worker or a submission brought it."""
    board.meet("old")
    first = clock()
    clock.advance(1)
    board.meet("old")
    board.enter(worker(version="new", started_us=clock()))

    assert {"old": first, "new": first + 1_000_000} == board.versions()


def test_the_fleet_is_counted(board: Board) -> None:
    """By state, and what failed by its code."""
    for name in "abc":
        board.add(job(name * 64))
    board.claim(claim("a", recipe_hash="a" * 64))
    board.finish("a" * 64, "a", End(state=JobState.FAILED, failure=TIMEOUT))
    board.claim(claim("b", recipe_hash="b" * 64))
    tally = board.tally()

    assert {"queued": 1, "running": 1, "failed": 1} == {
        state.value: number for state, number in tally.jobs.items() if number
    }
    assert {Code.TIMEOUT: 1} == tally.failures


def test_a_job_goes_by_its_first_digits(board: Board) -> None:
    """Two answers say that it is not clear which."""
    for name in ("a" * 64, "a" * 63 + "b", "c" * 64):
        board.add(job(name))

    assert ("c" * 64,) == board.named("cccc")
    assert ("a" * 64, "a" * 63 + "b") == board.named("aaaa")
    assert () == board.named("dddd")


steps = st.lists(
    st.tuples(
        st.sampled_from(
            ["claim", "finish", "hand_back", "release", "cancel", "again", "next_turn"]
        ),
        st.integers(0, 2),
    ),
    max_size=30,
)
"""What three workers do to one job, in any order."""


@given(steps=steps)
def test_one_attempt_owns_a_job_whatever_is_done(
    steps: list[tuple[str, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Only the owner ends it, tries never pass the cap, and turns only grow."""
    path = tmp_path_factory.mktemp("board") / "ledger.sqlite3"
    with Board.open(f"sqlite:///{path}") as board:
        board.add(job())
        owner: str | None = None
        for number, (what, who) in enumerate(steps):
            before = there(board)
            mine = owner is not None and owner.startswith(f"{who}-")
            attempt = owner if mine and owner is not None else f"{who}-{number}"
            match what:
                case "claim":
                    wish = claim(attempt, turn=before.turn, worker_id=f"worker-{who}")
                    if board.claim(wish) is Claimed.TAKEN:
                        assert owner in {None, attempt}
                        owner = attempt
                case "finish":
                    assert mine is board.finish(RECIPE, attempt, BUILT) or (
                        before.state is JobState.BUILT
                    )
                    owner = None if mine else owner
                case "hand_back":
                    turn = before.turn
                    board.hand_back(RECIPE, attempt, turn=turn, counted=True)
                    owner = None if mine else owner
                case "release":
                    board.release(f"worker-{who}")
                    owner = None if mine else owner
                case "cancel":
                    board.cancel(RECIPE)
                case "again":
                    board.again(RECIPE)
                case _:
                    board.next_turn(RECIPE, before.turn)
            after = there(board)
            assert (owner is not None) is (after.state is JobState.RUNNING)
            assert before.turn <= after.turn
            assert 0 <= after.tries <= 3
