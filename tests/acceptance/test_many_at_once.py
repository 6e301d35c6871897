"""Many programs on the same documents, also where some of them are killed."""

import json
import os
import subprocess
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from acceptance.program import command, environment, run
from acceptance.test_provider import BODY, KEY, TITLES, sensible
from conftest import REPOSITORY
from fault_server import serving
from pdfs import pdf
from vectorless_rag.process import run_tool


@pytest.mark.parametrize(
    ("kills", "at_once"), [(2, 2), pytest.param(200, 3, marks=pytest.mark.slow)]
)
def test_killed_programs_leave_nothing_half_done(
    tmp_path: Path, kills: int, at_once: int
) -> None:
    """Whenever they are killed: nothing lost, sums agree, one artifact a recipe."""
    coverage = {k: v for k, v in os.environ.items() if k.startswith("COVERAGE_")}
    paths = os.pathsep.join(map(str, (REPOSITORY / "src", REPOSITORY / "tests")))
    done = run_tool(
        (sys.executable, str(REPOSITORY / "tests" / "killing.py"), str(tmp_path),
         str(kills), str(at_once)),
        cwd=tmp_path,
        env={"PYTHONPATH": paths, "PATH": os.environ["PATH"], **coverage},
        timeout_s=60 + 30 * kills,
    )  # fmt: skip

    assert 0 == done.status, done.stderr.decode()[-2000:]
    assert f"{kills} killed, " in done.stdout.decode()


def together(folder: Path, count: int, *options: str) -> list[dict[str, Any]]:
    """Ingest one paper with *count* programs at once; return what each says."""
    pages = [f"{i} {title}\n{BODY}" for i, title in enumerate(TITLES, 1)]
    paper = pdf(folder / "a.pdf", pages)
    started = [
        subprocess.Popen(
            command("ingest", paper, "--json", "--quiet", *options),
            cwd=folder,
            env=environment(folder, OPENAI_API_KEY=KEY),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(count)
    ]
    outputs = [program.communicate(timeout=900)[0] for program in started]
    return [json.loads(out) for out in outputs]


def check_one_built(results: list[dict[str, Any]]) -> None:
    others = len(results) - 1
    assert Counter(built=1, reused=others) == Counter(r["status"] for r in results)
    assert 1 == len({result["artifact_id"] for result in results})
    # What was not built cost nothing.
    assert others == [result["usage"]["calls"] for result in results].count(0)


def test_of_some_programs_one_builds(tmp_path: Path) -> None:
    """The others wait, and are handed the same artifact."""
    check_one_built(together(tmp_path, 3))


@pytest.mark.slow
@pytest.mark.loopback
def test_of_sixteen_programs_one_pays(tmp_path: Path) -> None:
    """The others wait, and are handed the same artifact for nothing."""
    with serving() as server:
        server.script = sensible
        results = together(
            tmp_path, 16, "--model", "openai/gpt-4o-mini", "--mode", "standard",
            "--api-base", server.base,
        )  # fmt: skip
        asked = len(server.requests)
    check_one_built(results)
    costs = [Decimal(result["usage"]["cost_usd"]) for result in results]
    report = run("ledger", "report", "--json", home=tmp_path).objects
    paid = sum(Decimal(row["cost_usd"]) for row in report)

    assert asked == sum(result["usage"]["calls"] for result in results)
    assert paid == sum(costs) > 0
    assert 0 == run("ledger", "verify", home=tmp_path).status
