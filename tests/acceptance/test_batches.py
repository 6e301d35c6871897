"""A corpus by batch: the program, its child, LiteLLM, HTTP and the ledger are real."""

import json
import os
import signal
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from acceptance.program import Done, command, environment, run
from acceptance.test_provider import BODY, KEY, TITLES, sensible
from fault_server import FaultServer, completion, serving
from pdfs import pdf

pytestmark = pytest.mark.loopback

IN_REPLY = "canary-in-the-reply"
BATCHED = {
    "OPENAI_API_KEY": KEY,
    "VECTORLESS_RAG_BATCH": "true",
    "VECTORLESS_RAG_BATCH_WINDOW_S": "1",
    "VECTORLESS_RAG_LOG_LEVEL": "debug",
}


@pytest.fixture
def paper(tmp_path: Path) -> Path:
    return pdf(
        tmp_path / "a.pdf", [f"{i} {t}\n{BODY}" for i, t in enumerate(TITLES, 1)]
    )


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with serving() as play:
        play.script = talkative
        yield play


def talkative(number: int, body: dict[str, Any]) -> Any:
    said = json.loads(sensible(number, body).body)["choices"][0]["message"]["content"]
    if '"summary"' in said:
        said = json.dumps({"summary": f"It tells of the {IN_REPLY}."})
    return completion(said)


def arguments(paper: Path, server: FaultServer, data: str) -> list[Any]:
    return [
        "ingest", paper, "--json", "--quiet", "--model", "openai/gpt-4o-mini",
        "--api-base", server.base, "--mode", "standard", "--data-dir", data,
    ]  # fmt: skip


def ingest(paper: Path, server: FaultServer, data: str = "data", **more: str) -> Done:
    return run(*arguments(paper, server, data), home=paper.parent, **(BATCHED | more))


def start(paper: Path, server: FaultServer) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command(*arguments(paper, server, "data")),
        cwd=paper.parent,
        env=environment(paper.parent, **BATCHED),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def rows(home: Path) -> list[tuple[str, int, int]]:
    """State, whether it was replayed, and what it counts as, by name."""
    with sqlite3.connect(home / "data" / "ledger.sqlite3") as connection:
        found = connection.execute(
            "select holds.state, replayed, amount_nano from holds"
            " join attempts using (attempt_id) order by started_us, hold_id"
        ).fetchall()
    connection.close()
    return found


def until(what: Callable[[], object]) -> None:
    end = time.monotonic() + 100
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)


def lines(server: FaultServer) -> list[str]:
    """Every prompt that was handed in, as often as it was."""
    desk = server.desk
    return [
        json.dumps(line["body"]["messages"])
        for batch in desk.batches.values()
        for line in desk.lines_of(batch)
    ]


def test_a_document_by_batch_is_the_same_at_half_the_price(
    paper: Path, server: FaultServer
) -> None:
    """The same artifact as call by call; one batch for what is asked side by side."""
    alone = ingest(paper, server, "alone", VECTORLESS_RAG_BATCH="false")
    asked = len(server.requests)
    by_batch = ingest(paper, server)
    home, desk = paper.parent, server.desk
    kept = [path for path in (home / "data" / "journal").rglob("*") if path.is_file()]
    told = alone.out + alone.err + by_batch.out + by_batch.err
    ledger = (home / "data" / "ledger.sqlite3").read_bytes()

    assert (0, 0) == (alone.status, by_batch.status), by_batch.err
    assert alone.object["artifact_id"] == by_batch.object["artifact_id"]
    assert (asked, asked) == (len(lines(server)), len(server.requests) - asked)
    assert [1, 3] == [len(desk.lines_of(batch)) for batch in desk.batches.values()]
    # 100 prompt tokens at 0.075 and 5 of output at 0.30 $ a million.
    assert [("settled", 0, 9_000)] * 4 == rows(home)
    assert {f"Bearer {KEY}"} == {h["Authorization"] for h in desk.headers}
    # Replies are in the journal, and no word anywhere else.
    assert any(IN_REPLY.encode() in path.read_bytes() for path in kept)
    assert {0o600} == {path.stat().st_mode & 0o777 for path in kept}
    assert [] == list((home / "data" / "journal" / "batches").iterdir())
    assert not [
        w for w in (KEY, IN_REPLY, "fruit") if w in told or w.encode() in ledger
    ]


@pytest.mark.parametrize("after", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_killed_run_is_taken_up_at_its_batch(
    paper: Path, server: FaultServer, after: int
) -> None:
    """The next run waits for the same batch; no question is handed in twice."""
    desk, home = server.desk, paper.parent
    desk.held = threading.Event()
    program = start(paper, server)
    until(lambda: desk.batches)
    if after > 1:
        desk.held.set()
        until(lambda: desk.batches["batch_1"]["status"] == "completed")
        desk.held = threading.Event()
    until(lambda: len(desk.batches) == after and desk.asked[-1] == "GET batches one")
    kept = b"".join(
        path.read_bytes() for path in (home / "data/journal/batches").iterdir()
    )
    os.kill(program.pid, signal.SIGKILL)
    program.wait(timeout=60)
    desk.held.set()
    again = ingest(paper, server)
    once = lines(server)
    audited = run("ledger", "verify", home=home)

    assert (0, 0) == (again.status, audited.status), again.err + audited.out
    assert sorted(set(once)) == sorted(once)
    assert [1, 3] == [len(desk.lines_of(batch)) for batch in desk.batches.values()]
    # Paid by the run that was killed, used by this one.
    paid = [row for row in rows(home) if row[1] == 0]
    assert [("settled", 0, 9_000)] * 4 == paid
    assert {("settled", 1, 0)} == {row for row in rows(home) if row[1]}
    # The record names holds, and holds no word.
    assert not [word for word in (KEY, "fruit", "Methods") if word.encode() in kept]


def test_a_run_that_is_told_to_end_cancels_its_batch(
    paper: Path, server: FaultServer
) -> None:
    """What the batch had done is paid for once, and used by the next run."""
    desk, home = server.desk, paper.parent
    desk.held = threading.Event()
    program = start(paper, server)
    until(lambda: desk.batches and desk.asked[-1] == "GET batches one")
    program.terminate()
    status = program.wait(timeout=60)
    ended = rows(home)
    desk.held.set()
    again = ingest(paper, server)
    paid = [row for row in rows(home) if row[1] == 0]

    assert (5, 0) == (status, again.status), again.err
    assert (1, [("settled", 0, 9_000)]) == (len(desk.cancelled), ended)
    assert ([("settled", 0, 9_000)] * 4, 4) == (paid, len(lines(server)))


def test_what_an_expired_batch_left_is_asked_in_another(
    paper: Path, server: FaultServer
) -> None:
    """The document is built, and what was not begun costs nothing."""
    server.desk.ends = ["completed", "expired"]
    done = ingest(paper, server)
    found = rows(paper.parent)

    assert 0 == done.status, done.err
    assert (4, 2) == (
        found.count(("settled", 0, 9_000)),
        found.count(("voided", 0, 0)),
    )


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"VECTORLESS_RAG_MODEL": "mistral/mistral-small"}, "VECTORLESS_RAG_BATCH:"),
        ({"VECTORLESS_RAG_JOURNAL": "false"}, "VECTORLESS_RAG_JOURNAL"),
    ],
)
@pytest.mark.parametrize("what", ["ingest", "plan"])
def test_what_cannot_be_batched_is_refused_before_it_costs(
    paper: Path, server: FaultServer, what: str, more: dict[str, str], why: str
) -> None:
    """With a code and a line, and nothing is asked."""
    given = {"VECTORLESS_RAG_MODEL": "openai/gpt-4o-mini"} | BATCHED | more
    done = run(
        what, paper, "--json", "--api-base", server.base, home=paper.parent, **given
    )

    assert (2, []) == (done.status, server.desk.asked)
    assert why in done.out
    assert "settings_invalid" in done.out


def test_a_plan_is_at_batch_prices(paper: Path) -> None:
    """Half of what is expected call by call, and of the worst case too."""
    plans = [
        run(
            "plan", paper, "--json", "--model", "openai/gpt-4o-mini", how,
            home=paper.parent,
        ).object
        for how in ("--no-batch", "--batch")
    ]  # fmt: skip
    alone, batched = (
        [float(plan["totals"][case]["cost_usd"]) for case in ("expected", "worst")]
        for plan in plans
    )

    assert [False, True] == [plan["batch"] for plan in plans]
    assert batched == pytest.approx([cost / 2 for cost in alone], rel=0.001)
