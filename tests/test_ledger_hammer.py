"""Many processes, killed at random, cannot pass a budget or lose a record."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import REPOSITORY
from strategies_ledger import BUDGETS
from vectorless_rag.ledger.book import Ledger

pytest_plugins = ["ledger_databases"]

# Kills a worker in the middle of a transaction, after every statement but the last.
DIES_INSIDE = """
import os, signal, sys
from strategies_ledger import attempt, hold
from vectorless_rag.ledger import budgets, reservations
from vectorless_rag.ledger.book import Ledger

ledger = Ledger.open(sys.argv[1])
new = hold("call-1:1")

def step(transaction):
    reservations.reserve(transaction, new, budgets.set_id(new.budgets), 0)
    os.kill(os.getpid(), signal.SIGKILL)

ledger.start_attempt(attempt())
ledger.reserve(hold("call-0:1"))
ledger._database.write(step)
"""


def program(*words: str) -> "subprocess.CompletedProcess[str]":
    paths = [str(REPOSITORY / "src"), str(REPOSITORY / "tests")]
    return subprocess.run(
        [sys.executable, *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def hammer(url: str, *, workers: int, kills: int) -> dict[str, Any]:
    path = str(REPOSITORY / "tests" / "ledger_hammer.py")
    limits = ("--workers", str(workers), "--kills", str(kills))
    done = program(path, url, *limits)
    assert "" == done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def test_killed_processes_pass_no_budget(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """8 processes at work, one killed every twentieth of a second; sums are exact."""
    report = hammer(url, workers=8, kills=25)
    with capsys.disabled():
        sys.stdout.write(f"\n8 processes, {report['kills']} kills: {report} ")

    assert [] == report["wrong"]
    assert report["kills"] >= 25
    assert report["told"] > 0


@pytest.mark.slow
def test_32_killed_processes_pass_no_budget(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same with 32 processes and for longer."""
    report = hammer(url, workers=32, kills=400)
    with capsys.disabled():
        sys.stdout.write(f"\n32 processes, {report['kills']} kills: {report} ")

    assert [] == report["wrong"]
    assert report["kills"] >= 250
    assert report["told"] > 0


def test_death_inside_a_transaction_leaves_nothing_of_it(
    url: str, tmp_path: Path
) -> None:
    """What was committed before stays; the step that was cut off never was."""
    path = tmp_path / "dies.py"
    path.write_text(DIES_INSIDE, encoding="ascii")

    assert -9 == program(str(path), url).returncode
    with Ledger.open(url) as ledger:
        assert ["call-0:1"] == [row.hold_id for row in ledger.holds("attempt-1")]
        assert 1000 == ledger.budget(BUDGETS[0]).reserved
        assert [] == ledger.check()
