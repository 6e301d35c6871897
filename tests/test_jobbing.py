"""Jobs on the command line: which are meant, what is shown, and what is done."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pdfs import pdf
from published import faults
from strategies_jobs import claim, job, there, worker
from strategies_ledger import attempt
from vectorless_rag.cli import main
from vectorless_rag.errors import Code, Failure
from vectorless_rag.ledger.board import Board
from vectorless_rag.ledger.book import Ledger, now_us
from vectorless_rag.ledger.job_types import End, JobState
from vectorless_rag.units import Sha256

A, B, C = (Sha256(name * 64) for name in "abc")

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def url(tmp_path: Path) -> str:
    """One failed job, one that runs, and one that waits."""
    address = f"sqlite:///{tmp_path}/data/ledger.sqlite3"
    with Board.open(address) as board, Ledger.open(address) as ledger:
        for number, name in enumerate((A, B, C)):
            owner = "bob" if name == C else "ann"
            board.add(job(name, source=f"file:///srv/{number}.pdf", owner=owner))
        board.enter(worker(seen_us=now_us()))
        board.enter(worker("worker-2", slots=5))
        board.claim(claim("a-1", recipe_hash=A))
        ledger.start_attempt(attempt("a-1", recipe_hash=A, run_id="night"))
        ledger.end_attempt("a-1", "failed", Code.TIMEOUT)
        failure = Failure(code=Code.TIMEOUT, detail="120 s")
        board.finish(A, "a-1", End(state=JobState.FAILED, failure=failure))
        board.claim(claim("b-1", recipe_hash=B))
    return address


@pytest.fixture
def run(url: str, capsys: pytest.CaptureFixture[str]) -> Run:
    """Carry out a command; return status, standard output and error."""
    assert url

    def carry_out(*words: str) -> tuple[int, str, str]:
        status = main(["jobs", *words])
        out, err = capsys.readouterr()
        return status, out, err

    return carry_out


def objects(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ((), [A, B, C]),
        (("--state", "queued"), [C]),
        (("--owner", "bob"), [C]),
        (("--run", "another"), []),
    ],
)
def test_jobs_are_listed(run: Run, words: tuple[str, ...], names: list[str]) -> None:
    """All, or those of a state, an owner or a run."""
    status, out, _ = run("ls", "--json", *words)

    assert (0, names) == (status, [o["recipe_hash"] for o in objects(out)])
    assert [[]] * len(names) == [faults("job-1", o) for o in objects(out)]


def test_people_get_a_line_a_job_and_the_sum(run: Run) -> None:
    """With the code of what failed."""
    status, out, err = run("ls")

    assert 0 == status
    assert "failed     aaaaaaaaaaaa  0.pdf  pageindex_timeout\n" in out
    silent = "not heard of any more: 1"
    jobs = "jobs: 1 queued, 1 running, 1 failed"
    assert f"{jobs}; workers: 1, slots: 2; {silent}\n" == err
    _, out, err = run("ls", "--run", "another")
    assert ("", "jobs: none;") == (out, err[:11])


@pytest.mark.parametrize(
    ("name", "waits"), [("aaaaaaaa", None), ("cccccccc", "a free worker")]
)
def test_a_job_is_shown(run: Run, name: str, waits: str | None) -> None:
    """With its attempts, and what it waits for."""
    status, out, _ = run("show", name, "--json")
    (shown,) = objects(out)

    assert (0, waits) == (status, shown["waits_for"])
    assert [] == faults("job-show-1", shown)
    assert (1 if name == "aaaaaaaa" else 0) == len(shown["attempts"])
    _, out, _ = run("show", name)
    assert f"/srv/{'0' if waits is None else '2'}.pdf" in out
    assert f"waits for  {waits or 'nothing'}" in out


def test_a_job_waits_for_code_that_no_worker_has(run: Run, url: str) -> None:
    """Or for the pause after a failure; a superseded one says by what."""
    with Board.open(url) as board:
        board.add(job("d" * 64, version="newer"))
        board.hand_back(
            B, "b-1", turn=0, counted=True, failure=Failure(code=Code.TIMEOUT)
        )
        board.supersede(C, job("e" * 64))

    assert "a worker with the code newer" in run("show", "dddddddd")[1]
    assert "another try from 20" in run("show", "bbbbbbbb")[1]
    assert f"successor  {'e' * 64}" in run("show", "cccccccc")[1]


def test_jobs_are_cancelled_by_name_or_run(run: Run, url: str) -> None:
    """One that waits at once, one that runs by its worker; one that ended stays."""
    status, out, err = run("cancel", "cccccccc", "--json")
    assert (0, ["cancelled"]) == (status, [o["state"] for o in objects(out)])
    _, out, err = run("cancel", "--run", "night")

    assert "cancelling bbbbbbbbbbbb" in out
    assert "cancelled: 1\n" == err
    with Board.open(url) as board:
        assert ["failed", "running", "cancelled"] == [
            found.state.value for found in board.jobs()
        ]


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("--class", "retryable"), [A]),
        (("--class", "pageindex_timeout"), [A]),
        (("--class", "pageindex_auth"), []),
        (("aaaaaaaa",), [A]),
        (("--run", "night"), [A]),
    ],
)
def test_jobs_are_queued_again(
    run: Run, url: str, words: tuple[str, ...], names: list[str]
) -> None:
    """Those that failed or were cancelled, by class, name or run."""
    status, out, err = run("retry", *words, "--json")

    assert (0, names) == (status, [o["recipe_hash"] for o in objects(out)])
    assert f"queued again: {len(names)}\n" == err
    with Board.open(url) as board:
        expected = JobState.QUEUED if names else JobState.FAILED
        assert expected is there(board, A).state


def test_what_was_named_and_is_left_as_it_is_says_so(run: Run) -> None:
    """Nothing is cancelled twice, and what waits is not queued again."""
    assert "left: aaaaaaaaaaaa is failed\ncancelled: 0\n" == run("cancel", A)[2]
    said = run("retry", "aaaaaaaa", "cccccccc")[2]
    assert "left: cccccccccccc is queued\nqueued again: 1\n" == said


def test_a_pdf_stands_for_all_jobs_of_its_bytes(
    run: Run, url: str, tmp_path: Path
) -> None:
    """Whatever settings they were submitted with; one has to be chosen to be shown."""
    paper = pdf(tmp_path / "twice.pdf", ["Some words"])
    digest = Sha256(hashlib.sha256(paper.read_bytes()).hexdigest())
    with Board.open(url) as board:
        board.add(job("d" * 64, document_sha256=digest))
        assert "recipe     dddd" in run("show", str(paper))[1]
        board.add(job("e" * 64, document_sha256=digest))

    status, _, err = run("show", str(paper))
    assert 3 == status
    assert "twice.pdf: more than one job, name dddddddddddd, eeeeeeeeeeee" in err
    assert "cancelled: 2\n" == run("cancel", str(paper))[2]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        pytest.param(("cancel",), "name jobs, or say --run", id="all-of-them"),
        pytest.param(("retry",), "name jobs, or say --run", id="all-failed"),
        pytest.param(("retry", "--class", "luck"), "luck: no failure code", id="class"),
        pytest.param(("show", "ffffffff"), "ffffffff: no such job", id="unknown"),
        pytest.param(("show", "no.pdf"), "no.pdf: no such job", id="no-file"),
        pytest.param(("show", "own.pdf"), "own.pdf: no such job", id="not-submitted"),
    ],
)
def test_what_is_not_clear_is_refused(
    run: Run, tmp_path: Path, words: tuple[str, ...], why: str
) -> None:
    """In one line, with nothing done."""
    pdf(tmp_path / "own.pdf", ["Words"])
    status, out, err = run(*words)

    assert status in {2, 3}
    assert "" == out
    assert why in err


def test_digits_that_two_jobs_share_name_neither(run: Run, url: str) -> None:
    """More digits do."""
    with Board.open(url) as board:
        board.add(job("a" * 63 + "f"))

    assert "more than one job" in run("show", "aaaaaaaa")[2]
    assert 0 == run("show", A)[0]
