#!/usr/bin/env python3
"""
What was planned against what a run then came to, on real documents.

    python scripts/bench/planning.py FOLDER [--seed 1] [--mode auto --mode standard]
                                     [--write docs/planning.md]

Each document is planned, and then ingested at a provider on this machine that reads
about as well as a real one (`tests/simulated_provider.py`). Printed: a row a document,
how many expectations were within a factor of two, and whether a worst case was
exceeded. The exit status is 1 if one was, or fewer than nine of ten were within two.
"""

import argparse
import math
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT), str(ROOT / "tests")]

from scripts.bench.program import said  # noqa: E402

from simulated_provider import Manner, Simulated, simulating  # noqa: E402

MODEL = "openai/gpt-4o-mini"
BEGIN, END = "<!-- measured -->", "<!-- end -->"
NINE_OF_TEN = 0.9
FACTOR = 2.0


@dataclass(frozen=True, kw_only=True)
class Row:
    """One document in one mode."""

    name: str
    mode: str
    route: str
    pages: int
    expected_calls: int
    calls: int
    expected_usd: float
    usd: float
    worst_calls: int
    worst_usd: float

    @property
    def factor(self) -> float:
        """How far the real price is from the expected one; 1: not at all."""
        return _factor(self.usd, self.expected_usd)

    @property
    def exceeded(self) -> bool:
        """Whether the worst case was no bound."""
        return self.calls > self.worst_calls or self.usd > self.worst_usd


def _factor(real: float, expected: float) -> float:
    if not real and not expected:
        return 1.0
    return max(real, expected) / min(real, expected) if real and expected else math.inf


def measured(
    folder: Path, modes: list[str], server: Simulated, home: Path
) -> Iterator[Row]:
    """Plan and ingest every document below *folder*."""
    for mode in modes:
        common = ["--model", MODEL, "--mode", mode, "--api-base", server.base]
        common += ["--budget-usd", "100", "--json", "--data-dir", str(home / mode)]
        for path in sorted(folder.rglob("*.pdf")):
            (plan,) = said(["plan", str(path), *common], home)[0]["documents"]
            if plan["refused"]:
                continue
            (result,) = said(
                ["ingest", str(path), *common, "--quiet", "--no-replay"], home
            )
            if result["failure"]:
                sys.stderr.write(f"{path.name}: {result['failure']['code']}\n")
                continue
            yield Row(
                name=path.name,
                mode=mode,
                route=plan["route"],
                pages=plan["pages"],
                expected_calls=plan["expected"]["calls"],
                calls=result["usage"]["calls"],
                expected_usd=float(plan["expected"]["cost_usd"]),
                usd=float(result["usage"]["cost_usd"]),
                worst_calls=plan["worst"]["calls"],
                worst_usd=float(plan["worst"]["cost_usd"]),
            )


def table(rows: list[Row]) -> str:
    """Spell the rows, and below them what they come to."""
    heads = (
        "document,mode,route,pages,calls expected,calls,$ expected,$,factor,$ at most"
    )
    lines = [_cells(heads.split(",")), _cells(["---"] * 3 + ["--:"] * 7)]
    lines += [
        _cells([
            r.name, r.mode, r.route, str(r.pages), str(r.expected_calls), str(r.calls),
            f"{r.expected_usd:.5f}", f"{r.usd:.5f}", f"{r.factor:.2f}",
            f"{r.worst_usd:.2f}",
        ])
        for r in rows
    ]  # fmt: skip
    near = sum(r.factor <= FACTOR for r in rows)
    over = sum(r.exceeded for r in rows)
    lines += ["", f"Within a factor of two: {near} of {len(rows)}."]
    lines.append(f"Worst case exceeded: {over} of {len(rows)}.")
    return "\n".join(lines)


def _cells(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> int:
    """Print the table, and write it where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--mode", action="append")
    parser.add_argument("--write", type=Path)
    args = parser.parse_args()
    modes = args.mode or ["auto", "standard"]
    rows: list[Row] = []
    with (
        tempfile.TemporaryDirectory() as home,
        simulating(Manner(), args.seed) as server,
    ):
        for row in measured(args.folder, modes, server, Path(home)):
            rows.append(row)
            sys.stderr.write(f"{row}\n")
    said = table(rows)
    print(said)
    if args.write:
        page = args.write.read_text(encoding="utf-8")
        head, _, rest = page.partition(BEGIN)
        _, _, tail = rest.partition(END)
        args.write.write_text(f"{head}{BEGIN}\n{said}\n{END}{tail}", encoding="utf-8")
    near = sum(row.factor <= FACTOR for row in rows)
    return int(any(row.exceeded for row in rows) or near < NINE_OF_TEN * len(rows))


if __name__ == "__main__":
    sys.exit(main())
