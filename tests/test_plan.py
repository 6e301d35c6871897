"""What an ingest would come to is said before anything is spent."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from conftest import REPOSITORY
from pdfs import encrypted, pdf
from published import faults
from strategies_ledger import attempt
from test_process import wait_until_gone
from vectorless_rag import cli
from vectorless_rag.errors import Code
from vectorless_rag.estimates import Estimate, Tally
from vectorless_rag.funds import Allows, Funds, Needs, funds
from vectorless_rag.ledger.book import Ledger
from vectorless_rag.ledger.types import Hold, TokenUsage, day_budget, run_budget
from vectorless_rag.pageindex_runtime.rehearsal import (
    REASONING_TOKENS,
    RehearsedAccount,
)
from vectorless_rag.settings import Settings
from vectorless_rag.units import NanoUsd
from vectorless_rag.wire import Answer

MODEL = "openai/gpt-4o-mini"
TODAY = date(2026, 11, 30)

LONG = "\n".join(["a page of words that is long"] * 33)
"""A page above the length of its summary."""

FRUIT = [f"{n} {title}\n{LONG}" for n, title in enumerate(("Apples", "Pears"), 1)]
"""Two pages with a section each."""


def planned(
    *arguments: str, capsys: pytest.CaptureFixture[str], status: int = 0
) -> dict[str, Any]:
    """The one object that is printed; it fits its schema."""
    assert status == cli.main(["plan", *arguments, "--json"])
    (line,) = capsys.readouterr().out.splitlines()
    found: dict[str, Any] = json.loads(line)
    assert [] == faults("plan-1", found)
    return found


def rehearsed(
    tmp_path: Path, document: Path, capsys: pytest.CaptureFixture[str]
) -> dict[str, Any]:
    """
    Plan a document, ingest it with the offline model, and compare every figure.

    Returns:
        What was planned.
    """
    planned_: dict[str, Any] = planned(str(document), capsys=capsys)["documents"][0]
    assert not (tmp_path / "data").exists()
    assert 0 == cli.main(["ingest", str(document), "--json"])
    result = json.loads(capsys.readouterr().out)
    with closing(Ledger.open(f"sqlite:///{tmp_path}/data/ledger.sqlite3")) as ledger:
        calls = {row.key: row.calls for row in ledger.report()}

    assert (result["usage"], result["recipe_hash"], calls) == (
        planned_["expected"],
        planned_["recipe_hash"],
        planned_["calls_by_operation"],
    )
    again = planned(str(document), capsys=capsys)["documents"][0]
    assert ("stored", result["artifact_id"]) == (
        again["answered"],
        again["artifact_id"],
    )
    assert 0 == again["worst"]["calls"] == again["expected"]["calls"]
    return planned_


def test_a_free_plan_is_what_the_run_then_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    The offline model rehearses itself: every figure of the run is known before.

    After it the document is answered, and nothing was kept in between.
    """
    plan = rehearsed(tmp_path, pdf(tmp_path / "fruit.pdf", FRUIT), capsys)

    assert (2, 2, "standard", None) == tuple(
        plan[key] for key in ("pages", "pages_with_text", "route", "refused")
    )


@pytest.mark.slow
def test_a_plan_of_flash_is_what_the_run_then_does(
    tmp_path: Path, sample: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same holds where the layout shows the sections; built again, it is built."""
    plan = rehearsed(tmp_path, sample, capsys)
    again = planned(str(sample), "--rebuild", capsys=capsys)["documents"][0]

    assert "flash" == plan["route"] == again["route"]
    assert plan["expected"] == again["expected"]


def test_every_input_is_accounted_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Built, the same twice, refused and why; no key is needed, nothing is kept."""
    one = pdf(tmp_path / "one.pdf", [LONG])
    pdf(tmp_path / "twin.pdf", [LONG])
    pdf(tmp_path / "fruit.pdf", FRUIT)
    pdf(tmp_path / "blank.pdf", ["", ""])
    encrypted(tmp_path / "locked.pdf", user="secret")
    names = ["one.pdf", "twin.pdf", "fruit.pdf", "blank.pdf", "locked.pdf", "gone.pdf"]
    lines = "\n".join(str(tmp_path / name) for name in names)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))

    plan = planned("-", "--model", MODEL, "--jobs", "2", capsys=capsys, status=3)

    found = [
        (d["route"], d["answered"], d["refused"] and d["refused"]["code"])
        for d in plan["documents"]
    ]
    assert [
        ("shortcut", None, None),
        ("shortcut", "duplicate", None),
        ("standard", None, None),
        (None, None, Code.SOURCE_NO_TEXT),
        (None, None, Code.SOURCE_ENCRYPTED),
        (None, None, Code.SOURCE_UNREADABLE),
    ] == found
    assert (2, 1, 3) == tuple(
        plan["totals"][key] for key in ("to_build", "answered", "refused")
    )
    assert [0, 0] == plan["documents"][3]["page_tokens"]
    document = plan["documents"][0]
    assert {"summary_leaf": 1} == document["calls_by_operation"]
    fruit, total = plan["documents"][2]["expected"], plan["totals"]["expected"]
    assert total["calls"] == fruit["calls"] + 1
    # Every answer begins with what the model thinks.
    assert fruit["calls"] * REASONING_TOKENS < fruit["completion_tokens"]
    # The worst case of the standard route is far above any budget.
    assert "likely" == plan["budget"]["allows"]
    assert "1" == plan["totals"]["worst"]["within_budget_usd"]
    assert not (tmp_path / "data").exists()
    assert one.exists()


@pytest.mark.slow
def test_an_interrupt_ends_every_rehearsal(tmp_path: Path, sample: Path) -> None:
    """Those at work are stopped, and the others are not begun."""
    for number in range(50):
        (tmp_path / f"{number}.pdf").write_bytes(sample.read_bytes() + b"%d" % number)
    program = subprocess.Popen(
        [sys.executable, "-m", "vectorless_rag", "plan", str(tmp_path), "--jobs", "2"],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    children: list[int] = []
    while len(children) < 2:
        assert program.poll() is None
        time.sleep(0.02)
        children = children_of(program.pid)
    program.send_signal(signal.SIGINT)
    out, err = program.communicate(timeout=60)

    assert (130, b"") == (program.returncode, out)
    assert b"vectorless-rag: interrupted\n" == err
    for child in children:
        wait_until_gone(child)


def children_of(pid: int) -> list[int]:
    """Started by whichever of its threads."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for path in tasks for child in path.read_text("ascii").split()]


def test_people_are_told_in_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line a document, then the sums, then whether the budget is enough."""
    one = pdf(tmp_path / "one.pdf", [LONG])
    twin = pdf(tmp_path / "twin.pdf", [LONG])
    blank = pdf(tmp_path / "blank.pdf", ["", ""])

    said = ["plan", *map(str, (one, twin, blank)), "--model", MODEL]
    assert 3 == cli.main(said)
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith(f"shortcut  {one}  1 page, ")
    assert "(1 call, $0.000" in out[0]
    assert f"duplicate {twin}" == out[1]
    assert out[2].startswith(f"refused   {blank}  2 pages, 0 tokens, 2 pages without")
    assert "3 documents, 1 to build" == out[3]
    assert out[4].startswith("expected  1 call, ")
    assert out[5].startswith("at most   3 calls, ")
    assert out[6].endswith(": enough, in the worst case too")

    # What no budget allows has the status of a run that it would stop.
    assert 4 == cli.main(["plan", str(one), "--model", MODEL, "--budget-usd", "0"])
    out = capsys.readouterr().out.splitlines()
    assert out[0].endswith("at most $0, where the budget ends it)")
    assert out[-1].endswith(": not enough")


def test_a_model_without_a_price_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a run would, unless it is allowed; then the calls are told, at no price."""
    one = str(pdf(tmp_path / "one.pdf", [LONG]))
    refused = "openai/nobody-knows-it"

    plan = planned(one, "--model", refused, capsys=capsys, status=3)
    assert Code.UNPRICED_MODEL == plan["documents"][0]["refused"]["code"]
    allowed = planned(one, "--model", refused, "--allow-unpriced", capsys=capsys)
    document = allowed["documents"][0]
    assert (1, "0") == (document["expected"]["calls"], document["expected"]["cost_usd"])


def test_the_tightest_budget_counts(tmp_path: Path) -> None:
    """What a run has spent is gone; other holds stand in the way of their owner."""
    settings = Settings.load(data_dir=tmp_path, budget_usd="0.000002", owner="me")
    run, day = run_budget("night"), day_budget("me", TODAY)
    assert Funds(left=NanoUsd(2000), budget=run) == funds(
        settings, None, "night", TODAY
    )
    with closing(Ledger.open(f"sqlite:///{tmp_path}/ledger.sqlite3")) as ledger:
        ledger.start_attempt(attempt(attempt_id="a"))
        ledger.set_budget(run, NanoUsd(10_000))
        ledger.reserve(_hold("a:1", 500, run))
        ledger.unknown("a:1", "lost", None)

        assert Funds(left=NanoUsd(1500), budget=run) == funds(
            settings, ledger, "night", TODAY
        )
        ledger.set_budget(day, NanoUsd(900))
        ledger.reserve(_hold("b:1", 200, day))
        assert Funds(left=NanoUsd(700), budget=day) == funds(
            settings, ledger, "night", TODAY
        )
        ledger.unknown("b:1", "lost", None)
        ledger.set_budget(day, NanoUsd(1))
        assert NanoUsd(0) == funds(settings, ledger, "night", TODAY).left


def _hold(name: str, amount: int, budget: str) -> Hold:
    return Hold(
        hold_id=name,
        attempt_id="a",
        operation="summary_leaf",
        model=MODEL,
        amount=NanoUsd(amount),
        prompt_tokens=1,
        budgets=(budget,),
        lease_s=60,
        call_id=name.partition(":")[0],
        try_no=1,
    )


def _costing(cost: int) -> Tally:
    return Tally(
        operation="all",
        calls=1,
        prompt_tokens=1,
        completion_tokens=1,
        cost=NanoUsd(cost),
    )


@pytest.mark.parametrize(
    ("allows", "expected", "worst", "slack"),
    [
        (Allows.YES, 1, 10, 0),
        (Allows.YES, 1, 10, 10),
        (Allows.LIKELY, 10, 11, 0),
        (Allows.LIKELY, 8, 11, 2),
        (Allows.NO, 8, 11, 3),
        (Allows.NO, 11, 11, 0),
    ],
)
def test_a_budget_allows_to_the_last_nano_dollar(
    allows: Allows, expected: int, worst: int, slack: int
) -> None:
    """Exactly what is left is enough, for what is set aside at a time too."""
    left = Funds(left=NanoUsd(10), budget="run:x")

    assert allows == left.allow(
        Needs(expected=_costing(expected), worst=_costing(worst), slack=NanoUsd(slack))
    )


def test_what_is_not_billed_is_not_expected() -> None:
    """Only what was settled is summed up."""
    account, budget = RehearsedAccount(), run_budget("rehearsal")
    for name in ("a:1", "b:1", "c:1", "d:1"):
        account.reserve(_hold(name, 9, budget))
    account.void("a:1", "rate_limit", None)
    account.unknown("b:1", "timeout", None)
    account.replay(_hold("e:1", 9, budget))
    usage = TokenUsage(prompt_tokens=5, completion_tokens=2)
    for name in ("c:1", "d:1"):
        account.settle(name, NanoUsd(7), usage, None, "stop")

    (tally,) = account.tallies
    assert 2 == account.slack
    assert (2, 10, 4, 14) == (
        tally.calls,
        tally.prompt_tokens,
        tally.completion_tokens,
        tally.cost,
    )


def test_an_estimate_survives_the_wire() -> None:
    """With a failure beside it, too."""
    tally = Tally(
        operation="expand",
        calls=1,
        prompt_tokens=2,
        completion_tokens=3,
        cost=NanoUsd(4),
    )
    answer = Answer(
        estimate=Estimate(
            page_tokens=(0, 7),
            expected=(tally,),
            worst=(tally, tally),
            slack=NanoUsd(5),
        )
    )

    assert answer == Answer.decode(answer.encode())


@pytest.mark.parametrize(
    "raw",
    [
        {"page_tokens": [1.5], "expected": [], "worst": [], "slack": 0},
        {"page_tokens": [True], "expected": [], "worst": [], "slack": 0},
        {"page_tokens": [-1], "expected": [], "worst": [], "slack": 0},
        {"page_tokens": [], "expected": [{"operation": 7}], "worst": [], "slack": 0},
        {"page_tokens": [], "expected": []},
        {"page_tokens": [], "expected": [], "worst": [], "slack": -1},
        {"page_tokens": [], "expected": [], "worst": []},
        {
            "page_tokens": [],
            "worst": [],
            "expected": [
                {
                    "operation": 7,
                    "calls": 1,
                    "prompt_tokens": 1,
                    "completion_tokens": 1,
                    "cost": 1,
                }
            ],
        },
    ],
)
def test_an_estimate_of_a_child_is_not_believed(raw: dict[str, Any]) -> None:
    """A child may have been taken over: types and signs are looked at."""
    with pytest.raises(
        (TypeError, ValueError, KeyError), match=r"count|Tally|operation|worst|slack"
    ):
        Estimate.of(raw)


def test_the_example_in_the_docs_fits_its_schema() -> None:
    """A reader of docs/planning.md sees what is printed."""
    page = (REPOSITORY / "docs" / "planning.md").read_text("utf-8")
    body = page.split("<!-- example: plan-1 -->\n```json\n")[1].split("```")[0]
    example = json.loads(body)

    assert [] == faults("plan-1", example)
    assert [] != faults("plan-1", {**example, "colour": "red"})
