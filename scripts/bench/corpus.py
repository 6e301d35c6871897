#!/usr/bin/env python3
"""
How a corpus run scales: with jobs, and with the number of documents.

    python scripts/bench/corpus.py [--documents 16] [--jobs 1 2 4] [--workers 1 2]
                                   [--latency 1.0] [--first 250] [--most 2000]
                                   [--skip jobs|growth]

**Jobs.** Documents of a few pages are ingested by the program with real children,
which ask a simulated provider on this machine with that median latency. Printed:
documents a minute for each number of jobs of one command, and for each number of
workers with one job each, which share a queue (extra ``worker``).

**Growth.** Tiny documents are ingested into one data folder, until there are as many
as that. The child is played in this process, by its own call boundary, ledger,
journal and gate, so that what is measured is what a corpus adds and not what a
document takes. At each size everything is also run again, and the reports are asked
for. Printed: seconds, bytes and dollars at each size, and with which power of the
number of documents each grows. The exit status is 1 if one grows faster than linearly.
"""

import argparse
import contextlib
import io
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT), str(ROOT / "tests")]

from scripts.bench.program import command, environment  # noqa: E402

from pdfs import pdf  # noqa: E402
from simulated_provider import Manner, simulating  # noqa: E402
from vectorless_rag import cli, pipeline, run_pageindex  # noqa: E402
from vectorless_rag.ledger.book import Ledger  # noqa: E402
from vectorless_rag.ledger.types import TokenUsage  # noqa: E402
from vectorless_rag.pageindex_runtime.calls import Caller  # noqa: E402
from vectorless_rag.pageindex_runtime.offline import OfflineProvider  # noqa: E402
from vectorless_rag.pageindex_runtime.providers import (  # noqa: E402
    ProviderReply,
    ProviderRequest,
)
from vectorless_rag.pageindex_runtime.shortcut import one_page_tree  # noqa: E402
from vectorless_rag.pageindex_runtime.wiring import use  # noqa: E402
from vectorless_rag.prices import Prices  # noqa: E402
from vectorless_rag.settings import Settings  # noqa: E402
from vectorless_rag.source import pdfium_identity, read_pages  # noqa: E402
from vectorless_rag.wire import Found, Request  # noqa: E402

MODEL = "openai/gpt-4o-mini"

LINEAR = 1.15
"""Highest power that counts as linear: times on a shared machine are not exact."""

PAGE = "\n".join(["a page of words that is long"] * 33)
SECTIONS = ("Introduction", "Method", "Results", "Discussion", "Conclusion")


def jobs(args: argparse.Namespace, home: Path) -> None:
    """Print documents a minute for each number of jobs, and of workers."""
    folder = home / "papers"
    folder.mkdir()
    for number in range(args.documents):
        pages = [
            f"{n} {title}\n{PAGE}\n{number}" for n, title in enumerate(SECTIONS, 1)
        ]
        pdf(folder / f"{number}.pdf", pages)
    with simulating(Manner(latency_s=args.latency)) as server:
        asked = ["--model", MODEL, "--api-base", server.base, "--mode", "standard"]
        asked += ["--budget-usd", "100"]
        for count in args.jobs:
            data = ["--data-dir", str(home / f"jobs-{count}"), "--jobs", str(count)]
            start = time.monotonic()
            _wait(_start(["ingest", str(folder), "--quiet", *data, *asked], home))
            _rate(f"{count} jobs", args.documents, start, server.requests)
        for count in args.workers:
            data = ["--data-dir", str(home / f"workers-{count}")]
            start = time.monotonic()
            _wait(_start(["submit", str(folder), *data, *asked], home))
            work = ["worker", "--jobs", "1", "--until-idle", *data]
            started = [_start(work, home, server.base) for _ in range(count)]
            _wait(*started)
            _rate(f"{count} workers", args.documents, start, server.requests)


def _start(argv: list[str], home: Path, base: str = "") -> "subprocess.Popen[bytes]":
    # Where a worker may send keys is its own to say.
    more = {"VECTORLESS_RAG_API_BASE": base} if base else {}
    return subprocess.Popen(
        command(argv),
        env=environment(home, more),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def _wait(*programs: "subprocess.Popen[bytes]") -> None:
    for program in programs:
        _, said = program.communicate()
        if program.returncode:
            raise SystemExit(said.decode()[-2000:])


def _rate(what: str, documents: int, start: float, requests: int) -> None:
    seconds = time.monotonic() - start
    told = f"{what:<10} {documents} documents in {seconds:6.1f} s"
    told += f"  {documents * 60 / seconds:7.1f} a minute  ({requests} requests so far)"
    print(told, flush=True)


class _Quick:
    """A provider that answers at once."""

    async def open(self) -> None:
        """Load nothing."""

    async def close(self) -> None:
        """Leave nothing."""

    async def send(self, request: ProviderRequest) -> ProviderReply:
        """Answer with a summary."""
        del request
        usage = TokenUsage(prompt_tokens=300, completion_tokens=60)
        text = '{"summary": "Words that stand on the page."}'
        return ProviderReply(text=text, finish_reason="stop", usage=usage)


def _played(request: Request, *_: object, **__: object) -> tuple[Found, dict[str, int]]:
    """Stand where the child is started: one page, one call, all its records."""
    pages = read_pages(Path(request.document_path), max_pages=1)
    with Ledger.open(request.ledger_url) as ledger:
        caller = Caller(
            policy=run_pageindex._policy(request),  # noqa: SLF001  (the child's own)
            account=ledger,
            prices=Prices(),
            offline=OfflineProvider(),
            remote=_Quick,
            journal=run_pageindex._journal(request),  # noqa: SLF001
            gate=run_pageindex._gate(request),  # noqa: SLF001
        )
        with caller, use(caller):
            tree = one_page_tree(caller, pages.texts[0])
    found = Found(
        route="shortcut", tree=tuple(tree), pages=pages.texts, parser=pdfium_identity()
    )
    return found, {}


Figures = dict[str, float]


def growth(args: argparse.Namespace, home: Path) -> bool:
    """Print how everything grows; return whether all of it is at most linear."""
    folder, data = home / "many", home / "grown"
    folder.mkdir()
    os.environ["VECTORLESS_RAG_DATA_DIR"] = str(data)
    os.environ["VECTORLESS_RAG_MODEL"] = MODEL
    os.environ["VECTORLESS_RAG_JOBS"] = "2"
    # The one thing that is not as in a run; see `_played`.
    vars(pipeline)["run_document"] = _played
    table: list[tuple[int, Figures]] = []
    made, spent = 0, 0.0
    for size in _sizes(args.first, args.most):
        for number in range(made, size):
            pdf(folder / f"{number:06}.pdf", [f"{number}\n{PAGE}"])
        fresh = "\n".join(str(folder / f"{n:06}.pdf") for n in range(made, size))
        spent += _command(["ingest", "-", "--quiet"], fresh)
        table.append((size, _figures(folder, data, spent)))
        made = size
        print(_spelled(size, table[-1][1]), flush=True)
    powers = {name: _power(table, name) for name in table[0][1]}
    print("grows as n to the power of:")
    for name, power in powers.items():
        mark = "" if power <= LINEAR else "  MORE THAN LINEAR"
        print(f"  {name:<22} {power:5.2f}{mark}")
    return all(power <= LINEAR for power in powers.values())


def _sizes(first: int, most: int) -> Iterator[int]:
    size = first
    while size < most:
        yield size
        size *= 2
    yield most


def _figures(folder: Path, data: Path, spent: float) -> Figures:
    settings = Settings.load()
    with Ledger.open(settings.effective_ledger_url) as ledger:
        dollars = sum(row.cost_nano for row in ledger.report()) / 1e9
    return {
        "s ingest": spent,
        "s ingest again": _command(["ingest", str(folder), "--quiet"]),
        "s plan": _command(["plan", str(folder)]),
        "s failures ls": _command(["failures", "ls"]),
        "s ledger report": _command(["ledger", "report"]),
        "s ledger verify": _command(["ledger", "verify"]),
        "s audit verify": _command(["audit", "verify", "--no-read-data"]),
        "s audit stale": _command(["audit", "stale"]),
        "MB of memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "MB of ledger": _bytes(data.glob("ledger*")) / 1e6,
        "MB of store": _bytes((data / "store").rglob("*")) / 1e6,
        "MB of journal": _bytes((data / "journal").rglob("*")) / 1e6,
        "$": dollars,
    }


def _bytes(paths: Iterator[Path]) -> int:
    # A name that is a link to a blob takes no room of its own.
    seen = {(s.st_dev, s.st_ino): s.st_size for s in map(Path.lstat, paths)}
    return sum(seen.values())


def _command(argv: list[str], stdin: str = "") -> float:
    """Carry out *argv* in this process; seconds of its processor time."""
    # What others do on a shared machine is no cost of the corpus.
    start = time.process_time()
    given = io.TextIOWrapper(io.BytesIO(stdin.encode()))
    old, sys.stdin = sys.stdin, given
    try:
        with contextlib.redirect_stdout(io.StringIO()), _quiet():
            status = cli.main(argv)
    finally:
        sys.stdin = old
    if status:
        raise SystemExit(f"{argv[0]}: exit status {status}")
    return time.process_time() - start


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """What people are told goes to standard error, a line a document."""
    with contextlib.redirect_stderr(io.StringIO()) as said:
        try:
            yield
        except BaseException:
            sys.__stderr__.write(said.getvalue()[-2000:])  # type: ignore[union-attr]
            raise


def _power(table: list[tuple[int, Figures]], name: str) -> float:
    """Slope of the straight line through the logarithms; 0 for what is too small."""
    points = [(math.log(n), math.log(max(f[name], 1e-9))) for n, f in table]
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    below = sum((x - mean_x) ** 2 for x, _ in points)
    above = sum((x - mean_x) * (y - mean_y) for x, y in points)
    return above / below if below else 0.0


def _spelled(size: int, figures: Figures) -> str:
    cells = "  ".join(f"{name} {value:.4g}" for name, value in figures.items())
    return f"{size:>6} documents  {cells}"


def main() -> int:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=16)
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--latency", type=float, default=1.0)
    parser.add_argument("--first", type=int, default=250)
    parser.add_argument("--most", type=int, default=2000)
    parser.add_argument("--skip", choices=("jobs", "growth"))
    args = parser.parse_args()
    linear = True
    parts: dict[str, Callable[[argparse.Namespace, Path], bool | None]] = {
        "jobs": jobs, "growth": growth,
    }  # fmt: skip
    for name, part in parts.items():
        if name != args.skip:
            with tempfile.TemporaryDirectory() as home:
                linear = part(args, Path(home)) is not False and linear
    return 0 if linear else 1


if __name__ == "__main__":
    sys.exit(main())
