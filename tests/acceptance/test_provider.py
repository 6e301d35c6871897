"""A real provider: a real child, LiteLLM, HTTP to a server on this machine."""

import json
import sqlite3
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from acceptance.program import Done, run
from fault_server import (
    CONTEXT,
    DRIPPING,
    HTML,
    POLICY,
    Fault,
    FaultServer,
    completion,
    error,
    serving,
)
from pdfs import pdf

pytestmark = pytest.mark.loopback

KEY = "sk-test-CANARY-key"
TITLES = ["Introduction", "Methods", "Results"]
BODY = "\n".join(
    "Every line of this page says a little about fruit." for _ in range(30)
)


@pytest.fixture
def paper(tmp_path: Path) -> Path:
    return pdf(
        tmp_path / "a.pdf", [f"{i} {t}\n{BODY}" for i, t in enumerate(TITLES, 1)]
    )


def ingest(paper: Path, server: FaultServer, *more: str, timeout_s: int = 60) -> Done:
    return run(
        "ingest", paper, "--json", "--model", "openai/gpt-4o-mini", "--api-base",
        server.base, "--mode", "standard", *more, home=paper.parent,
        OPENAI_API_KEY=KEY, VECTORLESS_RAG_CALL_TIMEOUT_S=str(timeout_s),
    )  # fmt: skip


def sensible(_number: int, body: dict[str, Any]) -> Fault:
    """Answer each question of the standard algorithm the way a model would."""
    prompt = body["messages"][-1]["content"]
    if "toc_detected" in prompt:
        return completion('{"thinking": "none", "toc_detected": "no"}')
    if "start_begin" in prompt:
        return completion('{"start_begin": "Yes."}')
    if '"answer"' in prompt:
        return completion('```json\n{"answer": "yes"}\n```')
    if "physical_index" in prompt:
        sections = [
            {"structure": str(i), "title": f"{i} {title}", "physical_index": i}
            for i, title in enumerate(TITLES, 1)
        ]
        return completion(json.dumps(sections))
    return completion('{"summary": "Says a little about fruit."}')


def rows(home: Path) -> list[tuple[str, int]]:
    connection = sqlite3.connect(home / "data" / "ledger.sqlite3")
    found = connection.execute("select state, amount_nano from holds").fetchall()
    connection.close()
    return found


def test_a_document_is_built_and_paid_for(paper: Path) -> None:
    """
    Every request has its row, at the price of the usage that came back.

    The first answer is a rate limit: it is waited out and charged nothing.
    """
    with serving() as server:
        server.script = lambda number, body: (
            error(429, retry_after="1") if number == 0 else sensible(number, body)
        )
        done = ingest(paper, server)
    usage = done.object["usage"]
    voided, *others = sorted(rows(paper.parent), reverse=True)

    assert (0, 3) == (done.status, done.object["nodes"]), done.err
    assert len(server.requests) == usage["calls"] == len(others) + 1
    # 60 prompt tokens at 0.15, 40 cached at 0.075 and 5 output at 0.60 $ a million.
    assert [("voided", 0), {("settled", 15_000)}] == [voided, set(others)]
    assert Decimal(usage["cost_usd"]) == len(others) * Decimal("0.000015")
    assert {False} == {bool(body.get("stream")) for body in server.requests}


@pytest.mark.parametrize(
    ("fault", "code", "state"),
    [
        pytest.param(
            HTML,
            "pageindex_llm_retry_exhausted",
            "unknown",
            id="html",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            DRIPPING, "pageindex_timeout", "unknown", id="drip", marks=pytest.mark.slow
        ),
    ],
)
def test_a_failure_that_ends_the_run_is_classified(
    paper: Path, fault: Fault, code: str, state: str
) -> None:
    """The code, and what may have been billed counts at its hold."""
    with serving([fault]) as server:
        done = ingest(paper, server, timeout_s=8)
        asked = len(server.requests)
    found = rows(paper.parent)

    assert (3, code) == (done.status, done.object["failure"]["code"])
    assert ({state}, asked) == ({row[0] for row in found}, len(found))
    assert sum(amount for _, amount in found) > 0


FAULTS = {
    "Introduction": (CONTEXT, "pageindex_context_overflow"),
    "Methods": (completion("no JSON at all"), "pageindex_invalid_json"),
    "Results": (POLICY, "pageindex_content_filter"),
}


def test_a_failure_of_one_prompt_marks_its_node(paper: Path) -> None:
    """A summary that could not be had is marked, and the document is kept."""

    def script(number: int, body: dict[str, Any]) -> Fault:
        prompt = body["messages"][0]["content"]
        if '"summary"' not in prompt:
            return sensible(number, body)
        return next(fault for title, (fault, _) in FAULTS.items() if title in prompt)

    with serving() as server:
        server.script = script
        done = ingest(paper, server)
    artifact = run("show", paper, "--json", home=paper.parent).object
    marks = [mark["code"] for node in artifact["tree"] for mark in node["degraded"]]

    assert (0, "built") == (done.status, done.object["status"]), done.err
    assert [code for _, code in FAULTS.values()] == marks


def test_a_budget_stops_the_run_before_it_is_passed(paper: Path) -> None:
    """Exit 4, what was spent is told, and the ledger stays within the limit."""
    dear = {"prompt_tokens": 100, "completion_tokens": 4000, "total_tokens": 4100}

    def script(number: int, body: dict[str, Any]) -> Fault:
        said = json.loads(sensible(number, body).body)
        return completion(said["choices"][0]["message"]["content"], usage=dear)

    with serving() as server:
        server.script = script
        done = ingest(paper, server, "--budget-usd", "0.006")
        asked = len(server.requests)
    spent = sum(amount for _, amount in rows(paper.parent))

    assert (4, "pageindex_budget_exceeded") == (
        done.status,
        done.object["failure"]["code"],
    )
    # 100 prompt tokens at 0.15 and 4,000 output tokens at 0.60 $ a million.
    assert 2 * 2_415_000 == spent
    assert asked == done.object["usage"]["calls"] == len(rows(paper.parent)) == 2
