"""What goes out by OTLP, and that nothing is imported or waited for without need."""

import builtins
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from acceptance.program import environment
from otlp_collector import collecting
from strategies_jobs import job
from vectorless_rag.engine.figures import HELP, Ended, Figure
from vectorless_rag.engine.telemetry import Telemetry
from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.ledger.board import Board
from vectorless_rag.process import run_tool
from vectorless_rag.results import Spend
from vectorless_rag.units import NanoUsd

FIGURES = [
    Figure(name="vectorless_rag_jobs", value=3, labels=(("state", "built"),)),
    Figure(
        name="vectorless_rag_worker_turns_total", value=2, labels=(("how", "built"),)
    ),
]


def ended(tmp_path: Path, how: str, code: str | None = None) -> Ended:
    with Board.open(f"sqlite:///{tmp_path}/ledger.sqlite3") as board:
        row, _ = board.add(job())
    return Ended(
        job=row,
        attempt_id="attempt-1",
        how=how,
        code=code,
        spend=Spend(calls=2, cost=NanoUsd(1_500_000_000)),
        began_ns=10**18,
        ended_ns=10**18 + 10**9,
    )


@pytest.mark.loopback
def test_turns_and_figures_go_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A span for each turn, and each figure under its name, read once a round."""
    reads: list[int] = []

    def read() -> list[Figure]:
        reads.append(1)
        return FIGURES

    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.base)
        telemetry = Telemetry(worker_id="w", version="v", read=read)
        telemetry.ended(ended(tmp_path, "built"))
        telemetry.ended(ended(tmp_path, "failed", "pageindex_timeout"))
        telemetry.close()
    built, failed = collector.spans

    assert ("built", "", 2, 1.5, job().recipe_hash) == (
        built["job.how"],
        built["job.code"],
        built["job.calls"],
        built["job.cost_usd"],
        built["job.recipe_hash"],
    )
    assert "pageindex_timeout" == failed["job.code"]
    assert 3.0 == collector.value("vectorless_rag_jobs", state="built")
    assert 2.0 == collector.value("vectorless_rag_worker_turns_total", how="built")
    assert len(reads) < len(HELP)
    assert b"a.pdf" not in b"".join(collector.bodies)


def test_without_its_extra_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a worker has begun anything."""
    real: Callable[..., Any] = builtins.__import__

    def missing(
        name: str,
        names: Mapping[str, object] | None = None,
        local: Mapping[str, object] | None = None,
        wanted: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        if name.startswith("opentelemetry"):
            raise ImportError(name)
        return real(name, names, local, wanted, level)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(VectorlessRagError, match="VECTORLESS_RAG_OTEL: the extra"):
        Telemetry(worker_id="w", version="v", read=list)


def test_a_worker_imports_none_of_it_unasked(tmp_path: Path) -> None:
    """Nor does anything that only looks at jobs import the engine's library."""
    script = (
        "import sys; import vectorless_rag.cli.working; import vectorless_rag.cli.app;"
        "print({'dbos', 'opentelemetry'} & {m.split('.')[0] for m in sys.modules})"
    )
    done = run_tool(
        (sys.executable, "-c", script), cwd=tmp_path, env=environment(tmp_path)
    )

    assert (0, b"set()\n") == (done.status, done.stdout), done.stderr
