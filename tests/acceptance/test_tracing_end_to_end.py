"""Traces are a copy of the ledger, and a dead endpoint costs the run nothing."""

import json
import sqlite3
from pathlib import Path

import pytest

from acceptance.program import run
from otlp_receiver import dead_url, receiving
from pdfs import pdf
from vectorless_rag.tracing_ids import trace_id

pytestmark = pytest.mark.loopback

KEYS = {"LANGFUSE_PUBLIC_KEY": "pk-1", "LANGFUSE_SECRET_KEY": "sk-CANARY-trace"}
BODY = "\n".join(f"Sentence {n} of the page speaks of canary birds." for n in range(60))


@pytest.fixture
def paper(tmp_path: Path) -> Path:
    return pdf(tmp_path / "a.pdf", [f"1 Introduction\n{BODY}"])


def rows(home: Path) -> list[tuple[str, str]]:
    connection = sqlite3.connect(home / "data" / "ledger.sqlite3")
    found = connection.execute("select attempt_id, operation from holds").fetchall()
    connection.close()
    return found


def test_each_row_is_a_generation_in_the_attempts_trace(
    paper: Path, tmp_path: Path
) -> None:
    """The parent could compute the trace id; no word of the document is sent."""
    # A run waits a second for the endpoint; on a busy machine that may be too short.
    number = 0
    while True:
        number += 1
        home = tmp_path / str(number)
        home.mkdir()
        with receiving() as receiver:
            done = run("ingest", paper, "--json", home=home, **KEYS,
                       LANGFUSE_BASE_URL=receiver.url)  # fmt: skip
            sent = receiver.generations
            raw = receiver.raw
        assert 0 == done.status, done.err
        record = Path(done.object["artifact_path"], "run.json").read_bytes()
        if number == 5 or not json.loads(record).get("traces_dropped"):
            break
    found = rows(home)

    assert [(trace_id(attempt), name) for attempt, name in found] == [
        (g.trace_id, g.name) for g in sent
    ]
    assert [False, False] == [word in raw for word in (b"canary birds", b"CANARY")]


def test_a_dead_endpoint_costs_the_run_nothing(paper: Path) -> None:
    """The artifact is built, and what was not delivered stands in the run record."""
    done = run("ingest", paper, "--json", home=paper.parent, **KEYS,
               LANGFUSE_BASE_URL=dead_url())  # fmt: skip
    record = Path(done.object["artifact_path"], "run.json").read_text(encoding="utf-8")

    assert 0 == done.status
    assert '"traces_dropped":1' in record
