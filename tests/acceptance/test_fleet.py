"""Documents are submitted, built by workers, cancelled, retried and handed on."""

import contextlib
import json
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from acceptance.program import Done, command, environment, run
from acceptance.test_corpus_runs import dear
from acceptance.test_provider import KEY, TITLES, sensible
from conftest import REPOSITORY
from fault_server import Fault, FaultServer, serving
from killing import documents_of
from otlp_collector import collecting
from pdfs import pdf
from published import faults
from test_process import wait_until_gone
from vectorless_rag.ledger.board import Board
from vectorless_rag.ledger.book import Ledger
from vectorless_rag.ledger.job_types import JobRow, JobState
from vectorless_rag.ledger.types import Outcome, State
from vectorless_rag.process import run_tool

pytestmark = pytest.mark.loopback

PROVIDER = ("--model", "openai/gpt-4o-mini", "--mode", "standard")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Three documents in a folder, each with words of its own."""
    (tmp_path / "in").mkdir()
    for name in ("apple", "birch", "cedar"):
        pages = [
            f"{i} {title}\nAll about the {name}." for i, title in enumerate(TITLES)
        ]
        pdf(tmp_path / "in" / f"{name}.pdf", pages)
    return tmp_path


def url(home: Path) -> str:
    return f"sqlite:///{home}/data/ledger.sqlite3"


def jobs(home: Path) -> dict[str, JobRow]:
    """Every job by its document's name."""
    with Board.open(url(home)) as board:
        return {Path(job.source).stem: job for job in board.jobs()}


def states(home: Path) -> dict[str, str]:
    return {name: job.state.value for name, job in jobs(home).items()}


def until(condition: Callable[[], bool], what: object = "it") -> None:
    end = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < end, f"{what} did not come about"
        time.sleep(0.1)


@contextlib.contextmanager
def worker(home: Path, *words: str, **more: str) -> Iterator[subprocess.Popen[bytes]]:
    """A worker that is killed at the end, if it has not ended."""
    with (home / "worker.log").open("ab") as log:
        process = subprocess.Popen(
            command("worker", *words),
            cwd=home,
            env=environment(
                home, VECTORLESS_RAG_HEARTBEAT_S="1", OPENAI_API_KEY=KEY, **more
            ),
            stdin=subprocess.DEVNULL,
            stderr=log,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def events(home: Path) -> list[dict[str, Any]]:
    lines = (home / "worker.log").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def test_documents_are_submitted_and_built(home: Path) -> None:
    """Once each, refused if they changed; and what failed can be tried again."""
    (home / "in" / "again.pdf").write_bytes((home / "in" / "birch.pdf").read_bytes())
    (home / "in" / "none.pdf").write_bytes(b"no PDF")
    submitted = run("submit", "in", "--run", "night", "--json", home=home)
    cancelled = run("jobs", "cancel", "in/cedar.pdf", "--json", home=home)
    shutil.copy(home / "in" / "apple.pdf", home / "kept.pdf")
    pdf(home / "in" / "apple.pdf", ["Other words"])
    with worker(home, "--until-idle") as process:
        assert 0 == process.wait(timeout=300)
    shown = run("jobs", "show", "in/birch.pdf", "--json", home=home)

    assert 3 == submitted.status
    assert {"again": True, "apple": True, "birch": False, "cedar": True} == {
        Path(o["source"]).stem: o["new"] for o in submitted.objects if not o["failure"]
    }
    assert [True] == [o["source"] == "in/none.pdf" for o in submitted.objects
                      if o["failure"]]  # fmt: skip
    assert "cancelled" == cancelled.object["state"]
    assert {"apple": "failed", "again": "built", "cedar": "cancelled"} == states(home)
    assert "source_changed" == str(getattr(jobs(home)["apple"].failure, "code", None))
    assert ["built"] == [a["outcome"] for a in shown.object["attempts"]]
    assert (
        home / "data" / "store" / "artifacts" / shown.object["recipe_hash"]
    ).is_dir()
    ended = {e["how"]: e for e in events(home) if e["event"] == "job_ended"}
    assert {"built", "failed"} == ended.keys()

    assert [] == faults("job-show-1", shown.object)
    assert [[]] * 5 == [faults("submit-1", o) for o in submitted.objects]
    assert [] == faults("job-1", cancelled.object)

    assert "submitted, and failed: 1 " in run("failures", "ls", home=home).err
    # Its bytes under another path: there they are, and the job goes on.
    moved = run("submit", "kept.pdf", "--json", home=home)
    assert (True, "queued") == (moved.object["new"], moved.object["state"])
    assert JobState.QUEUED is jobs(home)["kept"].state
    listed = run("jobs", "ls", "--state", "built", home=home)
    assert "again.pdf" in listed.out
    assert "jobs: 1 built; workers: 0" in listed.err
    assert "submitted, and failed: 1 " not in run("failures", "ls", home=home).err
    assert "left: " in run("jobs", "cancel", "in/birch.pdf", home=home).err
    assert "cancelled: 1\n" == run("jobs", "cancel", "kept.pdf", home=home).err
    assert 2 == run("jobs", "cancel", home=home).status
    assert 3 == run("jobs", "show", "00000000", home=home).status

    # Built by the board, and not there: what it takes is asked for again.
    shutil.rmtree(home / "data" / "store")
    lost = run("submit", "in/birch.pdf", "--json", home=home)
    assert (True, "queued") == (lost.object["new"], lost.object["state"])


def test_a_worker_that_sees_no_document_ends(home: Path) -> None:
    """It leaves the queue as it was, to those whose folder is mounted."""
    assert 0 == run("submit", "in", home=home).status
    (home / "in").rename(home / "elsewhere")
    with worker(home, VECTORLESS_RAG_RETRY_S="1") as process:
        assert 3 == process.wait(timeout=300)
    told = (home / "worker.log").read_text(encoding="utf-8").splitlines()[-1]
    assert told.startswith("vectorless-rag: source_unreadable: ")
    assert "this worker could begin none of its first jobs" in told
    assert {("queued", 0)} == {(j.state.value, j.tries) for j in jobs(home).values()}

    (home / "elsewhere").rename(home / "in")
    with worker(home, "--until-idle") as process:
        assert 0 == process.wait(timeout=300)
    assert {"built"} == set(states(home).values())


def submitted(home: Path, server: FaultServer, *names: str) -> Done:
    paths = [home / "in" / f"{name}.pdf" for name in names]
    done = run(
        "submit", *paths, *PROVIDER, "--run", "night", "--api-base", server.base,
        home=home,
    )  # fmt: skip
    assert 0 == done.status, done.err
    return done


class Stalling:
    """A provider that keeps one document waiting, until it is told to answer."""

    def __init__(self, word: str) -> None:
        self.word = word
        self.asked = 0
        self.answers = False

    def __call__(self, number: int, body: dict[str, Any]) -> Fault:
        if self.answers or self.word not in json.dumps(body):
            return sensible(number, body)
        self.asked += 1
        return Fault(stall_s=3600)


@pytest.mark.slow
def test_a_running_job_is_cancelled_with_its_child(home: Path) -> None:
    """The others go on; what was in flight counts at its hold."""
    with serving() as server:
        server.script = script = Stalling("apple")
        submitted(home, server, "apple", "birch")
        with worker(
            home, "--jobs", "2", VECTORLESS_RAG_API_BASE=server.base,
            VECTORLESS_RAG_GRACE_S="1",
        ) as process:  # fmt: skip
            until(lambda: bool(script.asked))
            until(lambda: states(home)["birch"] == "built")
            (child,) = documents_of(process.pid)
            run("jobs", "cancel", "--run", "night", home=home)
            until(lambda: states(home)["apple"] == "cancelled")
            wait_until_gone(child)
            process.send_signal(signal.SIGTERM)
            assert 0 == process.wait(timeout=120)
    job = jobs(home)["apple"]
    with Ledger.open(url(home)) as ledger:
        (hold, *_) = ledger.holds(str(job.attempt_id))

    assert {"apple": "cancelled", "birch": "built"} == states(home)
    # Settled by the child in its grace, or closed after it: spent at the hold.
    assert hold.state in {State.UNKNOWN, State.EXPIRED}
    assert hold.amount_nano == hold.reserved_nano


@pytest.mark.slow
def test_a_worker_that_is_told_to_end_hands_on(home: Path) -> None:
    """What ends in time is finished; the rest is another's, and no try is lost."""
    with serving() as server:
        server.script = script = Stalling("apple")
        submitted(home, server, "apple")
        about = {"VECTORLESS_RAG_API_BASE": server.base, "VECTORLESS_RAG_GRACE_S": "1"}
        with worker(home, VECTORLESS_RAG_DRAIN_S="1", **about) as process:
            until(lambda: bool(script.asked))
            process.send_signal(signal.SIGTERM)
            assert 0 == process.wait(timeout=120)
        job = jobs(home)["apple"]
        assert (JobState.QUEUED, 0, None) == (job.state, job.tries, job.worker_id)
        script.answers = True
        with worker(home, "--until-idle", **about) as process:
            assert 0 == process.wait(timeout=300)
    with Ledger.open(url(home)) as ledger:
        outcomes = [attempt.outcome for attempt in ledger.attempts("night")]

    assert {"apple": "built"} == states(home)
    assert [Outcome.CANCELLED, Outcome.BUILT] == outcomes
    assert 1 == jobs(home)["apple"].tries


@pytest.mark.slow
def test_a_second_signal_ends_a_worker_at_once(home: Path) -> None:
    """Its child dies with it, and the next worker finds the job."""
    with serving() as server:
        server.script = script = Stalling("apple")
        submitted(home, server, "apple")
        about = {"VECTORLESS_RAG_API_BASE": server.base}
        with worker(home, **about) as process:
            until(lambda: bool(script.asked))
            (child,) = documents_of(process.pid)
            process.send_signal(signal.SIGTERM)
            until(lambda: any(e["event"] == "worker_draining" for e in events(home)))
            process.send_signal(signal.SIGTERM)
            assert 128 + signal.SIGTERM == process.wait(timeout=60)
            wait_until_gone(child)
        script.answers = True
        with worker(home, "--until-idle", **about) as process:
            assert 0 == process.wait(timeout=300)

    assert ("built", 2) == (states(home)["apple"], jobs(home)["apple"].tries)


@pytest.mark.slow
def test_tries_end_with_what_the_last_one_ended_with(home: Path) -> None:
    """A child that takes too long is tried again, and not for ever."""
    shutil.copy(REPOSITORY / "tests" / "samples" / "sp-intro.pdf", home / "in")
    run("submit", "in/sp-intro.pdf", home=home)
    with worker(
        home, "--until-idle", VECTORLESS_RAG_CHILD_TIMEOUT_S="1",
        VECTORLESS_RAG_GRACE_S="0", VECTORLESS_RAG_JOB_TRIES="2",
        VECTORLESS_RAG_RETRY_S="1",
    ) as process:  # fmt: skip
        assert 0 == process.wait(timeout=300)
    job = jobs(home)["sp-intro"]

    assert ("failed", 2) == (job.state.value, job.tries)
    assert job.failure is not None
    assert "child_timeout" == job.failure.code.value


@pytest.mark.slow
def test_of_one_model_only_so_many_are_built_by_all_workers(home: Path) -> None:
    """Workers with room leave the rest for later."""
    most = 0
    with serving() as server:
        submitted(home, server, "apple", "birch", "cedar")
        server.script = sensible
        about = {
            "VECTORLESS_RAG_API_BASE": server.base,
            "VECTORLESS_RAG_JOBS_PER_MODEL": "1",
        }
        with worker(home, "--jobs", "2", **about), worker(home, "--jobs", "2", **about):

            def done() -> bool:
                nonlocal most
                found = states(home)
                most = max(most, list(found.values()).count("running"))
                return {"built"} == set(found.values())

            until(done)

    assert 1 == most


@pytest.mark.slow
def test_a_worker_of_another_server_does_not_ask_its_own(home: Path) -> None:
    """A job that was submitted for one address is not sent to another."""
    with serving() as server:
        submitted(home, server, "apple")
        with worker(home, "--until-idle") as process:
            assert 0 == process.wait(timeout=300)
        assert [] == server.requests
    job = jobs(home)["apple"]

    assert job.failure is not None
    assert ("failed", "settings_invalid") == (job.state.value, job.failure.code.value)
    assert "VECTORLESS_RAG_API_BASE" in job.failure.detail


@pytest.mark.slow
def test_a_budget_holds_over_workers_that_are_killed(home: Path) -> None:
    """It stops all of them; with more, what failed by it is built, nothing twice."""
    limit = 45_000_000
    with serving() as server:
        server.script = dear
        run(
            "submit", "in", *PROVIDER, "--run", "night", "--api-base", server.base,
            "--budget-usd", "0.045", home=home,
        )  # fmt: skip
        about = {
            "VECTORLESS_RAG_API_BASE": server.base,
            "VECTORLESS_RAG_JOB_TRIES": "20",
            "VECTORLESS_RAG_RETRY_S": "1",
        }
        with worker(home, **about), worker(home, **about) as victim:
            until(lambda: len(server.requests) > 5)
            victim.kill()
            with worker(home, **about):
                until(lambda: not {"queued", "running"} & set(states(home).values()))
        first = states(home)
        codes = {job.failure.code.value for job in jobs(home).values() if job.failure}
        with Ledger.open(url(home)) as ledger:
            before = ledger.budget("run:night")
        run(
            "submit", "in", *PROVIDER, "--run", "night", "--api-base", server.base,
            "--budget-usd", "1", home=home,
        )  # fmt: skip
        run("jobs", "retry", "--run", "night", home=home)
        with worker(home, "--until-idle", **about) as process:
            assert 0 == process.wait(timeout=600)
    with Ledger.open(url(home)) as ledger:
        assert [] == ledger.check()
        attempts = ledger.attempts("night")
    built = [a.recipe_hash for a in attempts if a.outcome is Outcome.BUILT]

    assert "failed" in first.values()
    assert {"pageindex_budget_exceeded"} == codes
    assert before.spent + before.reserved <= limit == before.limit
    assert {"built"} == set(states(home).values())
    assert sorted(built) == sorted(job.recipe_hash for job in jobs(home).values())


@pytest.mark.slow
def test_newer_code_gives_waiting_jobs_a_new_recipe(home: Path) -> None:
    """What was submitted with the code of before is built by that of now, once."""
    newer = home / "newer"
    shutil.copytree(REPOSITORY / "src", newer / "src")
    for name in ("patches", "upstream.toml"):
        (newer / name).symlink_to(REPOSITORY / name)
    with (newer / "src/vectorless_rag/pageindex_runtime/calls.py").open("a") as file:
        file.write("\n# Another byte is another behaviour.\n")
    run("submit", "in/apple.pdf", home=home)
    path = str(newer / "src")
    build = str(REPOSITORY / "build" / "pageindex")
    with worker(
        home, "--until-idle", PYTHONPATH=path, VECTORLESS_RAG_BUILD_DIR=build
    ) as process:
        assert 0 == process.wait(timeout=300)
    with Board.open(url(home)) as board:
        old, new = board.jobs()
    listed = run("jobs", "ls", home=home)

    assert (JobState.SUPERSEDED, new.recipe_hash) == (old.state, old.successor)
    assert (JobState.BUILT, old.document_sha256) == (new.state, new.document_sha256)
    assert old.version != new.version
    assert (
        f"superseded {old.recipe_hash[:12]}  apple.pdf  by {new.recipe_hash[:12]}"
        in (listed.out)
    )
    # Submitted again by what ran before, it is known: nobody builds it that way.
    assert "superseded" in run("submit", "in/apple.pdf", home=home).err


@pytest.mark.slow
def test_a_worker_is_watched_by_http_and_by_otlp(home: Path) -> None:
    """Probes, figures and spans; no document, path or key in any of them."""
    run("submit", "in", "--run", "night", home=home)
    with collecting() as collector:
        with worker(
            home, "--listen", "127.0.0.1:0", VECTORLESS_RAG_OTEL="true",
            OTEL_EXPORTER_OTLP_ENDPOINT=collector.base,
            OTEL_METRIC_EXPORT_INTERVAL="500",
        ) as process:  # fmt: skip
            until(lambda: set(states(home).values()) == {"built"})
            (port,) = [
                e["port"] for e in events(home) if e["event"] == "worker_listens"
            ]
            pages = {}
            for page in ("healthz", "readyz", "metrics"):
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}") as got:
                    pages[page] = got.read().decode()
            until(lambda: collector.value("vectorless_rag_jobs", state="built") == 3.0)
            process.send_signal(signal.SIGTERM)
            assert 0 == process.wait(timeout=120)
        spans = collector.spans

    assert ['{"ok": true}'] * 2 == [pages[p].strip() for p in ("healthz", "readyz")]
    assert 'vectorless_rag_jobs{state="built"} 3\n' in pages["metrics"]
    assert 'vectorless_rag_worker_turns_total{how="built"} 3\n' in pages["metrics"]
    assert {job.recipe_hash for job in jobs(home).values()} == {
        span["job.recipe_hash"] for span in spans
    }
    assert ["built"] * 3 == [span["job.how"] for span in spans]
    told = pages["metrics"].encode() + b"".join(collector.bodies)
    for secret in (b"apple", KEY.encode(), str(home).encode()):
        assert secret not in told


@pytest.mark.slow
def test_a_dead_collector_delays_no_worker(home: Path) -> None:
    """It builds, and ends in order."""
    run("submit", "in/apple.pdf", home=home)
    with worker(
        home, "--until-idle", VECTORLESS_RAG_OTEL="true",
        OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9",
    ) as process:  # fmt: skip
        assert 0 == process.wait(timeout=300)

    assert {"apple": "built"} == states(home)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_workers_and_databases_are_killed(tmp_path: Path, kind: str) -> None:
    """Every document ends in one state, built once; `make test-fleet` does many."""
    paths = ":".join(map(str, (REPOSITORY / "src", REPOSITORY / "tests")))
    script = str(REPOSITORY / "tests" / "fleet.py")
    done = run_tool(
        (sys.executable, script, str(tmp_path / "fleet"), kind, "8", "2", "4"),
        cwd=tmp_path,
        env=environment(tmp_path, PYTHONPATH=paths),
        timeout_s=1800,
    )

    assert 0 == done.status, done.stderr.decode()[-3000:]
    assert "every document built once" in done.stdout.decode()
