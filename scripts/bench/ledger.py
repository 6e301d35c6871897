"""
How fast the ledger is: reserve and settle, as a pair, by several processes at once.

    PYTHONPATH=src python scripts/bench/ledger.py [--seconds 5] [--processes 8]

SQLite in full-sync mode in a temporary folder; PostgreSQL, with ``fsync`` on, in a
server of its own. Each hold counts towards three budgets that all processes share.
A wait is the time of one reserve or one settle, in milliseconds. The disk bounds
the figures: two flushes a pair, so its own speed is printed beside them.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from postgres_server import running  # noqa: E402
from strategies_ledger import attempt, hold, used  # noqa: E402
from vectorless_rag.ledger.book import Ledger  # noqa: E402
from vectorless_rag.units import NanoUsd  # noqa: E402

PAGE_BYTES = 4096


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """What one process did."""

    count: int
    waits_ms: list[float]


def flush_ms(folder: Path, times: int = 200) -> float:
    """Measure one flush of an overwritten page, in milliseconds."""
    file = os.open(folder / "flush", os.O_CREAT | os.O_RDWR)
    os.pwrite(file, bytes(PAGE_BYTES * 16), 0)
    os.fsync(file)
    start = time.perf_counter()
    for number in range(times):
        os.pwrite(file, bytes(PAGE_BYTES), PAGE_BYTES * (number % 16))
        os.fdatasync(file)
    os.close(file)
    return (time.perf_counter() - start) / times * 1e3


def work(url: str, process: int, start: float, seconds: float) -> Pairs:
    """Reserve and settle until the time is up."""
    waits, count, owner = [], 0, f"attempt-{process}"
    with Ledger.open(url) as ledger:
        ledger.start_attempt(attempt(owner))
        time.sleep(max(0.0, start - time.time()))
        while time.time() < start + seconds:
            name = f"call-{process}-{count}:1"
            began = time.perf_counter()
            ledger.reserve(hold(name, 1000, attempt_id=owner))
            between = time.perf_counter()
            ledger.settle(name, NanoUsd(700), used(), "chatcmpl-0123456789", "stop")
            waits += [between - began, time.perf_counter() - between]
            count += 1
    return Pairs(count=count, waits_ms=[wait * 1e3 for wait in waits])


def measure(name: str, url: str, processes: int, seconds: float) -> None:
    """Run the processes and print one line."""
    Ledger.open(url).close()
    start = time.time() + 0.5
    with tempfile.TemporaryDirectory() as folder:
        children = []
        for number in range(processes):
            child = os.fork()
            if not child:
                told = json.dumps(asdict(work(url, number, start, seconds)))
                Path(folder, str(number)).write_text(told, encoding="ascii")
                os._exit(0)
            children.append(child)
        for child in children:
            os.waitpid(child, 0)
        done = [
            Pairs(**json.loads(path.read_text("ascii")))
            for path in Path(folder).iterdir()
        ]
    counts = sorted(one.count for one in done)
    waits = sorted(wait for one in done for wait in one.waits_ms)
    with Ledger.open(url) as ledger:
        problems = ledger.check()
    print(
        f"{name:10} {processes:2} processes: {sum(counts) / seconds:6.0f} pairs/s,"
        f" wait p50 {waits[len(waits) // 2]:.2f}"
        f" p99 {waits[len(waits) * 99 // 100]:.1f} worst {waits[-1]:.0f} ms,"
        f" slowest/fastest process {counts[0]}/{counts[-1]},"
        f" {len(problems)} problems"
    )


def main() -> None:
    """Measure both databases, alone and with company."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--folder", type=Path, help="where SQLite's file goes")
    given = parser.parse_args()
    for processes in sorted({1, given.processes}):
        with tempfile.TemporaryDirectory(dir=given.folder) as folder:
            print(f"one flush: {flush_ms(Path(folder)):.2f} ms")
            url = f"sqlite:///{folder}/ledger.sqlite3"
            measure("sqlite", url, processes, given.seconds)
    for processes in sorted({1, given.processes}):
        with running(fsync=True) as url:
            measure("postgresql", url, processes, given.seconds)


if __name__ == "__main__":
    main()
