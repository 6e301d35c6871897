"""Many programs on the same documents, also where some of them are killed."""

import json
import os
import subprocess
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path

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


@pytest.mark.loopback
@pytest.mark.parametrize(
    "programs", [4, pytest.param(16, marks=pytest.mark.slow, id="16")]
)
def test_of_many_programs_one_builds_and_pays(tmp_path: Path, programs: int) -> None:
    """The others wait, and are handed the same artifact for nothing."""
    pages = [f"{i} {title}\n{BODY}" for i, title in enumerate(TITLES, 1)]
    paper = pdf(tmp_path / "a.pdf", pages)
    with serving() as server:
        server.script = sensible
        line = command(
            "ingest", paper, "--json", "--quiet", "--model", "openai/gpt-4o-mini",
            "--api-base", server.base, "--mode", "standard",
        )  # fmt: skip
        started = [
            subprocess.Popen(
                line, cwd=tmp_path, env=environment(tmp_path, OPENAI_API_KEY=KEY),
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )
            for _ in range(programs)
        ]  # fmt: skip
        outputs = [program.communicate(timeout=600)[0] for program in started]
        asked = len(server.requests)
    results = [json.loads(out) for out in outputs]
    costs = [Decimal(result["usage"]["cost_usd"]) for result in results]
    report = run("ledger", "report", "--json", home=tmp_path).objects
    paid = sum(Decimal(row["cost_usd"]) for row in report)

    assert Counter(built=1, reused=programs - 1) == Counter(
        result["status"] for result in results
    )
    assert 1 == len({result["artifact_id"] for result in results})
    # Every request was the builder's, and what it says it paid is all that was.
    assert asked == sum(result["usage"]["calls"] for result in results)
    assert [Decimal(0)] * (programs - 1) == sorted(costs)[:-1]
    assert paid == max(costs) > 0
    assert 0 == run("ledger", "verify", home=tmp_path).status
