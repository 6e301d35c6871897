#!/usr/bin/env python3
"""
Index real PDF files with the released PageIndex and with the patched one.

    scripts/compare_upstream.py [--write docs/comparison.md] [PDF|FOLDER...]

Both sides ask the same scripted model, whose answers are drawn from the text that
it is shown. The released side has the parser that it declares. Without files, those
of the folder that VECTORLESS_RAG_CORPUS names are indexed. Exit status 0: no row is
worse on the patched side.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from vectorless_rag.upstream.apply import apply_series  # noqa: E402
from vectorless_rag.upstream.pin import read_pin  # noqa: E402
from vectorless_rag.upstream.proofs import old_parser  # noqa: E402
from vectorless_rag.upstream.series import read_series  # noqa: E402
from vectorless_rag.upstream.workflow import unpatched  # noqa: E402

TIMEOUT_S = 3600
MODES = ("standard", "flash")
CHILD = Path(__file__).with_name("compare_child.py")
MARK = "<!-- The rest is written by make compare. -->"


@dataclass(frozen=True, kw_only=True)
class Result:
    """What one side made of one document."""

    refused: str = ""
    """Why there is no tree; empty: there is one."""

    pages: int = 0
    nodes: int = 0
    covered: int = 0
    """Pages that some node reaches."""

    calls: int = 0
    prompt_tokens: int = 0
    per_question: dict[str, int] = field(default_factory=dict)
    """Calls by what they ask."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One document in one mode."""

    name: str
    mode: str
    old: Result
    new: Result

    @property
    def worse(self) -> str:
        """What the patched side does worse; empty: nothing."""
        if self.new.refused:
            return "" if self.old.refused else "not indexed"
        if self.new.covered < self.old.covered:
            return "fewer pages covered"
        return ""

    def cells(self) -> list[str]:
        """Spell the row of the table."""
        both = [
            (str(getattr(self.old, name)), str(getattr(self.new, name)))
            for name in ("nodes", "covered", "calls", "prompt_tokens")
        ]
        ends = (self.old.refused or "yes", self.new.refused or "yes")
        pages = str(self.new.pages or self.old.pages or "-")
        return [self.name, self.mode, pages, _arrow(ends), *map(_arrow, both)]


def _arrow(pair: tuple[str, str]) -> str:
    return pair[0] if pair[0] == pair[1] else f"{pair[0]} → {pair[1]}"


def main() -> int:
    """Print the table, or write it into a document."""
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    asked.add_argument("--write", type=Path, help="document that ends in the table")
    asked.add_argument("--jobs", type=int, default=2, help="processes at once")
    asked.add_argument("files", nargs="*", type=Path)
    options = asked.parse_args()
    with tempfile.TemporaryDirectory(prefix="compare-") as name:
        before, after = trees(Path(name))
        rows = list(compare(pdf_files(options.files), before, after, options.jobs))
    told = "\n".join(report(rows))
    if options.write is None:
        print(told)
    else:
        head = options.write.read_text().partition(MARK)[0]
        options.write.write_text(f"{head}{MARK}\n\n{told}\n")
    return 1 if any(row.worse for row in rows) or not rows else 0


def pdf_files(given: list[Path]) -> list[tuple[str, Path]]:
    """List the files with the names they have in the table."""
    corpus = os.environ.get("VECTORLESS_RAG_CORPUS")
    if not given and corpus is None:
        sys.exit("name files, or a folder by VECTORLESS_RAG_CORPUS")
    found: list[tuple[str, Path]] = []
    for path in given or [Path(str(corpus))]:
        inside = sorted(path.rglob("*.pdf")) if path.is_dir() else [path]
        base = path if path.is_dir() else path.parent
        found += [
            (each.relative_to(base).as_posix(), each.resolve()) for each in inside
        ]
    return found


def trees(folder: Path) -> tuple[Path, Path]:
    """Make the released and the patched tree in *folder*."""
    pin, series = read_pin(ROOT), read_series(ROOT)
    for name, patches in (("released", ()), ("patched", series.patches)):
        with unpatched(ROOT, pin) as tree:
            apply_series(tree, pin, patches)
            tree.rename(folder / name)
    return folder / "released", folder / "patched"


def compare(
    files: list[tuple[str, Path]], before: Path, after: Path, jobs: int
) -> Iterator[Row]:
    """Index every file in both modes on both sides."""

    def one(task: tuple[str, Path, str]) -> Row:
        name, path, mode = task
        old = index("released", before, mode, path)
        new = index("patched", after, mode, path)
        return Row(name=name, mode=mode, old=old, new=new)

    tasks = [(name, path, mode) for mode in MODES for name, path in files]
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        for row in pool.map(one, tasks):
            sys.stderr.write(f"{' | '.join(row.cells())} {row.worse}\n")
            yield row


def index(side: str, tree: Path, mode: str, path: Path) -> Result:
    """Index one file with the package in *tree*, in a process of its own."""
    folders = [tree, *old_parser(ROOT, tree), ROOT / "src", ROOT / "tests"]
    try:
        done = subprocess.run(
            [
                sys.executable,
                "-W",
                "ignore",
                str(CHILD),
                side,
                str(tree),
                mode,
                str(path),
            ],
            env={
                "PYTHONPATH": os.pathsep.join(map(str, folders)),
                "PYTHONHASHSEED": "0",
                "PYTHON_DOTENV_DISABLED": "1",
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",
                "PATH": os.defpath,
            },
            cwd=tree,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Result(refused="no end")
    # The limit is one of processor time, so that a busy machine changes no result.
    if done.returncode in {-signal.SIGXCPU, -signal.SIGKILL}:
        return Result(refused="no end")
    lines = done.stdout.decode().splitlines()
    if done.returncode or not lines:
        return Result(refused=f"exit {done.returncode}")
    found: dict[str, Any] = json.loads(lines[-1])
    return Result(**found)


def report(rows: list[Row]) -> Iterator[str]:
    """Spell the totals, the questions asked, then one line a document and mode."""
    counted = ("nodes", "pages covered", "calls", "prompt tokens")
    yield from _head("mode", "documents", "indexed", *counted)
    for mode in MODES:
        mine = [row for row in rows if row.mode == mode]
        yield _line(mode, len(mine), *_totals(mine))
    yield "\nThe documents that both sides index:\n"
    both = [row for row in rows if not row.old.refused and not row.new.refused]
    yield from _head("mode", "documents", *counted)
    for mode in MODES:
        mine = [row for row in both if row.mode == mode]
        yield _line(mode, len(mine), *_totals(mine)[1:])
    yield "\nWhat those calls ask:\n"
    yield from _head("question", *MODES)
    names = {
        name for row in both for r in (row.old, row.new) for name in r.per_question
    }
    for name in sorted(names):
        yield _line(f"`{name}`", *(_asked(name, mode, both) for mode in MODES))
    yield "\nOne by one:\n"
    yield from _head("document", "mode", "pages", "indexed", *counted)
    for row in rows:
        yield _line(*row.cells())


def _line(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _head(*names: str) -> Iterator[str]:
    yield _line(*names)
    yield _line(*["---"] * len(names))


def _asked(name: str, mode: str, rows: list[Row]) -> str:
    mine = [row for row in rows if row.mode == mode]
    old = sum(row.old.per_question.get(name, 0) for row in mine)
    new = sum(row.new.per_question.get(name, 0) for row in mine)
    return _arrow((str(old), str(new)))


def _totals(rows: list[Row]) -> list[str]:
    def total(name: str) -> str:
        old = sum(getattr(row.old, name) for row in rows)
        new = sum(getattr(row.new, name) for row in rows)
        return _arrow((str(old), str(new)))

    indexed = (
        str(sum(not row.old.refused for row in rows)),
        str(sum(not row.new.refused for row in rows)),
    )
    names = ("nodes", "covered", "calls", "prompt_tokens")
    return [_arrow(indexed), *map(total, names)]


if __name__ == "__main__":
    sys.exit(main())
