"""A run over many documents is stopped, told of, and taken up again."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from acceptance.program import Done, run
from acceptance.test_provider import KEY, TITLES, sensible
from fault_server import Fault, FaultServer, completion, serving
from pdfs import pdf

pytestmark = pytest.mark.loopback

# 100 prompt tokens at 0.15 and 4,000 output tokens at 0.60 $ a million.
DEAR = {"prompt_tokens": 100, "completion_tokens": 4000, "total_tokens": 4100}
CALL_NANO = 2_415_000


def dear(number: int, body: dict[str, Any]) -> Fault:
    said = json.loads(sensible(number, body).body)
    return completion(said["choices"][0]["message"]["content"], usage=DEAR)


@pytest.fixture
def papers(tmp_path: Path) -> Path:
    """Three documents in a folder, each with words of its own."""
    (tmp_path / "in").mkdir()
    for name in ("apple", "birch", "cedar"):
        body = "\n".join(f"Line {n} tells of the {name}." for n in range(30))
        pages = [f"{i} {title}\n{body}" for i, title in enumerate(TITLES, 1)]
        pdf(tmp_path / "in" / f"{name}.pdf", pages)
    return tmp_path


def ingest(papers: Path, server: FaultServer, *more: str) -> Done:
    return run(
        "ingest", "in", "--run", "night", "--json", "--model", "openai/gpt-4o-mini",
        "--api-base", server.base, "--mode", "standard", *more, home=papers,
        OPENAI_API_KEY=KEY,
    )  # fmt: skip


def manifest(papers: Path) -> dict[str, Any]:
    path = papers / "data" / "runs" / "night" / "manifest.json"
    return dict(json.loads(path.read_bytes()))


def spent(papers: Path) -> int:
    connection = sqlite3.connect(papers / "data" / "ledger.sqlite3")
    (row,) = connection.execute(
        "select spent_nano from budgets where budget_id = 'run:night'"
    )
    connection.close()
    return int(row[0])


@pytest.mark.slow
def test_a_budget_stops_a_run_that_can_be_taken_up_again(papers: Path) -> None:
    """Exit 4, every input told of; with more money the rest, and nothing twice."""
    with serving() as server:
        server.script = dear
        stopped = ingest(papers, server, "--budget-usd", "0.015")
        first = manifest(papers)
        before = spent(papers)
        rest = run("failures", "ls", "--json", home=papers)
        again = ingest(papers, server, "--budget-usd", "0.2")
        asked = len(server.requests)
    second = manifest(papers)

    assert (4, 0) == (stopped.status, again.status), again.err
    assert ["built", "failed", "skipped"] == [o["status"] for o in stopped.objects]
    assert "pageindex_budget_exceeded" == stopped.objects[2]["skipped"]
    assert "pageindex_budget_exceeded" == first["ended"]
    assert (1, 1, 1) == tuple(
        first["totals"][s] for s in ("built", "failed", "skipped")
    )
    assert before <= 15_000_000
    assert ["birch.pdf", "cedar.pdf"] == [Path(o["path"]).name for o in rest.objects]
    assert ["reused", "built", "built"] == [o["status"] for o in again.objects]
    assert ("complete", 2) == (second["ended"], second["totals"]["built"])
    # One budget over both: every request once.
    assert asked * CALL_NANO == spent(papers)
    assert "" == run("failures", "ls", home=papers).out


def test_what_failed_can_be_tried_again(papers: Path) -> None:
    """By class; a document that cannot end better is left alone."""
    (papers / "in" / "bad.pdf").write_bytes(b"no PDF")
    first = run("ingest", "in", "--jobs", "2", home=papers, VECTORLESS_RAG_MODE="flash",
                VECTORLESS_RAG_MAX_SOURCE_BYTES="10")  # fmt: skip
    none = run("failures", "retry", "--class", "retryable", home=papers)
    wrong = run("failures", "ls", "--class", "bad_luck", home=papers)
    again = run("failures", "retry", "--class", "source_too_large", "--jobs", "2",
                home=papers)  # fmt: skip
    left = run("failures", "ls", home=papers)

    assert [3, 0, 2, 0, 0] == [d.status for d in (first, none, wrong, again, left)]
    assert "4 documents: 4 failed" in first.err
    assert "nothing to retry" in none.err
    assert "3 documents: 3 built" in again.err
    assert left.out.startswith("source_unreadable")
    assert "bad.pdf" in left.out
