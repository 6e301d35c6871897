#!/usr/bin/env python3
"""
How fast and how dear: the released PageIndex against ours, in the same run.

    scripts/bench/speed.py [--runs 5] [--json FILE] [--write FILE] [PDF|FOLDER...]

Both sides ask the same scripted model, which takes half a second to answer. Each
ratio is ours by the released one's, as minimum, median and maximum over the runs. A
side that has not ended in time with all runs of a document is stopped, and said to be.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT), str(ROOT / "tests")]

from scripts.bench.caching import measured  # noqa: E402
from scripts.bench.speed_report import report  # noqa: E402
from scripts.compare_upstream import pdf_files, trees  # noqa: E402

from vectorless_rag.pageindex_runtime.plans import DECIDED  # noqa: E402
from vectorless_rag.settings import Settings  # noqa: E402
from vectorless_rag.upstream.proofs import old_parser  # noqa: E402

SIDES = ("released", "patched")
SIDE = Path(__file__).with_name("speed_side.py")
START = Path(__file__).with_name("speed_start.py")
GROWTH = (10, 50, 200, 500, 1000, 2000)
"""Pages of the generated documents."""

_SAMPLE_S = 0.05
NONE: frozenset[str] = frozenset()
_PARTS = ("standard", "decided", "growth", "cached", "flash", "start")


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Where both sides lie, and how they are run."""

    before: Path
    after: Path
    runs: int
    latency_s: float
    concurrency: int
    limit_s: float
    """How long a side may take for all runs of one document."""

    def tree(self, side: str) -> Path:
        """Return the package's folder."""
        return self.before if side == "released" else self.after

    def command(
        self, side: str, mode: str, path: Path, *, runs: int, decides: frozenset[str]
    ) -> list[str]:
        """Spell the command that indexes *path*."""
        tree = self.tree(side)
        options = (
            side, tree, mode, path, runs, self.latency_s, self.concurrency,
            ",".join(sorted(decides)),
        )  # fmt: skip
        return [sys.executable, "-W", "ignore", str(SIDE), *map(str, options)]

    def environment(self, side: str) -> dict[str, str]:
        """Build the child's environment from nothing."""
        tree = self.tree(side)
        folders = [tree, *old_parser(ROOT, tree), ROOT / "src", ROOT / "tests"]
        return {
            "PYTHONPATH": os.pathsep.join(map(str, folders)),
            "PYTHONHASHSEED": "0",
            "PYTHON_DOTENV_DISABLED": "1",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "PATH": os.defpath,
        }

    def index(
        self,
        side: str,
        mode: str,
        path: Path,
        *,
        runs: int,
        decides: frozenset[str] = DECIDED,
    ) -> dict[str, Any]:
        """Index *path*, and add the most memory that it held."""
        with tempfile.TemporaryFile() as out:
            process = subprocess.Popen(
                self.command(side, mode, path, runs=runs, decides=decides),
                env=self.environment(side), cwd=self.tree(side),
                stdout=out, stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
            peak = _watched(process, self.limit_s)
            if peak is None:
                return {"refused": f"stopped after {self.limit_s:g} s"}
            out.seek(0)
            lines = out.read().decode().splitlines()
        if process.returncode or not lines:
            return {"refused": f"exit {process.returncode}"}
        found: dict[str, Any] = json.loads(lines[-1])
        return found | {"peak_mb": round(peak / 1024, 1)}


def _watched(process: "subprocess.Popen[bytes]", limit_s: float) -> int | None:
    """
    Wait; return the most memory the process and its children held, in kB.

    None: it had not ended after *limit_s* seconds, and was killed with its children.
    """
    peak, end = 0, time.monotonic() + limit_s
    while process.poll() is None:
        if time.monotonic() > end:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return None
        peak = max(peak, sum(map(_held, _family(process.pid))))
        time.sleep(_SAMPLE_S)
    return peak


def _family(pid: int) -> Iterator[int]:
    yield pid
    tasks = Path(f"/proc/{pid}/task")
    try:
        told = [task.joinpath("children").read_text() for task in tasks.iterdir()]
    except OSError:
        return
    for child in " ".join(told).split():
        yield from _family(int(child))


def _held(pid: int) -> int:
    """Return the memory of a process, what it shares with others by its share."""
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    lines = (line.split() for line in rollup.splitlines())
    return next((int(words[1]) for words in lines if words[0] == "Pss:"), 0)


def standard(bench: Bench, files: Sequence[tuple[str, Path]]) -> list[dict[str, Any]]:
    """Index every file with the standard algorithm on both sides."""
    found = []
    for name, path in files:
        row: dict[str, Any] = {"name": name}
        for side in SIDES:
            row[side] = bench.index(side, "standard", path, runs=bench.runs)
        # The same code with every question asked: does it come to the same tree?
        row["asked"] = bench.index("patched", "standard", path, runs=0, decides=NONE)
        row["same_tree"] = _same_tree(row["asked"], row["patched"])
        _told(row)
        found.append(row)
    return found


def decided(bench: Bench, files: Sequence[tuple[str, Path]]) -> list[dict[str, Any]]:
    """Index every file with one question alone answered by the text, in turn."""
    found = []
    for name, path in files:
        asked = bench.index("patched", "standard", path, runs=0, decides=NONE)
        for question in sorted(DECIDED) if "refused" not in asked else ():
            only = frozenset({question})
            ours = bench.index("patched", "standard", path, runs=0, decides=only)
            calls = [one["per_question"].get(question, 0) for one in (asked, ours)]
            one = {
                "question": question,
                "calls": calls,
                "asked": asked,
                "patched": ours,
            }
            found.append({"name": name, **one})
            sys.stderr.write(f"{name}: {question} {calls}\n")
    return found


def _same_tree(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(one.get(name) == other.get(name) for name in ("headings", "ends"))


def growth(bench: Bench, folder: Path, sizes: Sequence[int]) -> list[dict[str, Any]]:
    """Index generated documents of growing length, without latency."""
    from scripts.bench.generated import write_document  # noqa: PLC0415

    found = []
    for pages in sizes:
        path = folder / f"generated-{pages}.pdf"
        write_document(path, pages)
        row: dict[str, Any] = {"name": path.name, "generated_pages": pages}
        for side in SIDES:
            row[side] = bench.index(side, "standard", path, runs=0)
        _told(row)
        found.append(row)
    return found


def cached(bench: Bench, files: Sequence[tuple[str, Path]]) -> list[dict[str, Any]]:
    """Ingest every file at a provider that keeps the starts of prompts."""
    found = []
    for one in measured(files, bench.concurrency, bench.latency_s):
        found.append(asdict(one))
        sys.stderr.write(f"{one}\n")
    return found


def flash(bench: Bench, files: Sequence[tuple[str, Path]]) -> list[dict[str, Any]]:
    """Index long files by layout, each time in a process of its own."""
    found = []
    for name, path in files:
        row: dict[str, Any] = {"name": name}
        for side in SIDES:
            runs = [bench.index(side, "flash", path, runs=0)]
            while "refused" not in runs[-1] and len(runs) < bench.runs:
                runs.append(bench.index(side, "flash", path, runs=0))
            row[side] = runs[-1]
            if "refused" not in runs[-1]:
                row[side] |= {
                    "walls_s": [run["wall_s"] for run in runs],
                    "peaks_mb": [run["peak_mb"] for run in runs],
                }
        _told(row)
        found.append(row)
    return found


def start(bench: Bench) -> dict[str, list[float]]:
    """Time how long children take to start, and a document that is built already."""
    done = subprocess.run(
        [sys.executable, str(START), str(bench.after), str(max(bench.runs, 1))],
        env={"PYTHONPATH": str(ROOT / "src"), "PATH": os.defpath},
        capture_output=True,
        check=True,
    )
    found: dict[str, list[float]] = json.loads(done.stdout)
    return found


def _told(row: dict[str, Any]) -> None:
    def cell(side: str) -> str:
        one = row[side]
        if "refused" in one:
            return str(one["refused"])
        walls = one.get("walls_s") or [one["wall_s"]]
        return (
            f"{statistics.median(walls):.2f} s, {one['calls']} calls, "
            f"{one['prompt_tokens']} tokens, {one['peak_mb']} MB, "
            f"p {one.get('precision', '-')} r {one.get('recall', '-')}"
        )

    same = "" if row.get("same_tree", True) else " ANOTHER TREE"
    told = f"{row['name']}: {cell('released')} → {cell('patched')}{same}"
    sys.stderr.write(f"{told}\n")


def main() -> int:
    """Measure, print the report and write JSON."""
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    asked.add_argument("--runs", type=int, default=5, help="timed runs of each side")
    asked.add_argument("--latency", type=float, default=0.5, help="seconds a call")
    asked.add_argument(
        "--concurrency",
        type=int,
        default=Settings.model_fields["concurrency"].default,
        help="our calls in flight; the released side has no bound",
    )
    asked.add_argument(
        "--limit", type=float, default=600, help="seconds a side has for a document"
    )
    asked.add_argument("--only", choices=_PARTS, action="append", help="a part alone")
    asked.add_argument("--pages", type=int, nargs="*", default=GROWTH)
    asked.add_argument("--json", type=Path, help="where the figures go")
    asked.add_argument("--write", type=Path, help="document that ends in the tables")
    asked.add_argument("files", nargs="*", type=Path)
    options = asked.parse_args()
    parts = options.only or _PARTS
    files = pdf_files(options.files)
    with tempfile.TemporaryDirectory(prefix="speed-") as name:
        folder = Path(name)
        before, after = trees(folder)
        bench = Bench(
            before=before, after=after, runs=options.runs,
            latency_s=options.latency, concurrency=options.concurrency,
            limit_s=options.limit,
        )  # fmt: skip
        found: dict[str, Any] = {
            "runs": bench.runs,
            "latency_s": bench.latency_s,
            "concurrency": bench.concurrency,
        }
        if "standard" in parts:
            found["standard"] = standard(bench, files)
        if "decided" in parts:
            found["decided"] = decided(bench, files)
        if "growth" in parts:
            found["growth"] = growth(bench, folder, options.pages)
        if "cached" in parts:
            found["cached"] = cached(bench, files)
        if "flash" in parts:
            found["flash"] = flash(bench, files)
        if "start" in parts:
            found["start"] = start(bench)
    if options.json is not None:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    report(found, options.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
