"""
Which changed lines of a patch no proof needs.

Each run of changed lines is put back to the old ones, alone, in the tree just
after the patch. If the patch's proofs still pass, nothing tests the run.
"""

import ast
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from queue import SimpleQueue

from vectorless_rag.upstream.diff import ABSENT, FileChange, Run
from vectorless_rag.upstream.mailbox import Patch
from vectorless_rag.upstream.proofs import Runner, Session, Verdict


class Weight(StrEnum):
    """What a run of changed lines is worth to the proofs."""

    LOAD_BEARING = "load-bearing"
    INERT = "inert"
    UNTESTED = "untested"


@dataclass(frozen=True, kw_only=True)
class Weighed:
    """One run of changed lines, and whether a proof needs it."""

    patch: Patch

    number: int
    """Position in the patch, from 1; what ``Proof-Exempt`` names."""

    path: str

    line_number: int
    """Where it begins in the new file."""

    weight: Weight
    exempt: bool

    @property
    def problem(self) -> str:
        """What is wrong; empty: nothing."""
        if self.weight is Weight.UNTESTED and not self.exempt:
            return "no proof needs it"
        if self.weight is Weight.LOAD_BEARING and self.exempt:
            return "its Proof-Exempt is stale"
        return ""

    def line(self) -> str:
        """Say it in one line."""
        told = f"; {self.problem}" if self.problem else ""
        return f"run {self.number} {self.path}:{self.line_number}: {self.weight}{told}"


def summary(patch: Patch, weighed: Sequence[Weighed]) -> str:
    """Say in one line what the changes of *patch* are worth."""
    kinds = Counter(str(each.weight) for each in weighed)
    told = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    mark = "FAIL" if any(each.problem for each in weighed) else "ok  "
    return f"{mark}  {patch.id} runs of changed lines: {told}"


def weigh(
    runner: Runner, tree: Path, patch: Patch, *, jobs: int = 2
) -> tuple[Weighed, ...]:
    """
    Weigh every run of one patch.

    Args:
        runner: Runs the proofs.
        tree: The tree just after the patch.
        patch: The patch.
        jobs: How many pytest processes run at once.

    Raises:
        VectorlessRagError: ``upstream_unavailable``: pytest does not run.
    """
    places = [(change, run) for change in patch.changes for run in change.runs]
    exempt = {
        int(number)
        for value in patch.values("Proof-Exempt")
        for number in re.findall(r"^run (\d+) ", value)
    }

    copies: SimpleQueue[Path] = SimpleQueue()

    def one(number: int) -> Weighed:
        change, run = places[number]
        copy = copies.get()
        try:
            weight = _weigh(runner, copy, patch, change, change.runs.index(run))
        finally:
            copies.put(copy)
        return Weighed(
            patch=patch,
            number=number + 1,
            path=change.path,
            line_number=run.new_start,
            weight=weight,
            exempt=number + 1 in exempt,
        )

    with (
        tempfile.TemporaryDirectory(dir=runner.scratch, prefix="changed-") as name,
        ThreadPoolExecutor(max_workers=jobs) as pool,
    ):
        # One for each process, and kept: what is not edited is compiled once.
        for number in range(jobs):
            copies.put(shutil.copytree(tree, Path(name, str(number)), symlinks=True))
        return tuple(pool.map(one, range(len(places))))


def put_back(data: bytes, runs: Sequence[Run]) -> bytes:
    """
    Give the new file *data* its old lines again where *runs* changed them.

    Args:
        data: Bytes of the file after the patch.
        runs: Some of the runs of that file.
    """
    lines = re.findall(rb"[^\n]*\n|[^\n]+", data)
    # From the bottom, so that the numbers above stay true.
    for run in sorted(runs, key=lambda r: r.new_start, reverse=True):
        first = run.new_start - 1
        if tuple(lines[first : first + len(run.new)]) != run.new:
            raise AssertionError("BUG: the tree is not the one after the patch")
        lines[first : first + len(run.new)] = run.old
    return b"".join(lines)


def _weigh(
    runner: Runner, tree: Path, patch: Patch, change: FileChange, index: int
) -> Weight:
    path = tree / change.path
    data = path.read_bytes() if path.is_file() else b""
    for group in _groups(change.runs, index):
        old = put_back(data, group)
        if change.path.endswith(".py"):
            if _same_program(data, old):
                return Weight.INERT
            if not _is_program(old):
                continue
        session = _run_changed(runner, tree, patch, change, old)
        if all(session.outcome(p).verdict is Verdict.PASS for p in patch.proofs):
            return Weight.UNTESTED
        if any(test.phases.get("call") == "failed" for test in session.tests):
            return Weight.LOAD_BEARING
    # Not even with the whole file put back do the proofs start: they need it.
    return Weight.LOAD_BEARING


def _groups(runs: Sequence[Run], index: int) -> Iterator[Sequence[Run]]:
    """A run alone, then with its neighbour, then every run of the file."""
    yield runs[index : index + 1]
    if len(runs) > 1:
        yield runs[index : index + 2] if index + 1 < len(runs) else runs[-2:]
    if len(runs) > 2:  # noqa: PLR2004  (else the neighbour was the rest)
        yield runs


def _run_changed(
    runner: Runner, tree: Path, patch: Patch, change: FileChange, old: bytes
) -> Session:
    """Run a patch's proofs while one file of *tree* is the old one."""
    path = tree / change.path
    new = path.read_bytes() if path.is_file() else None
    try:
        if change.before == ABSENT and not old:
            path.unlink()
        else:
            path.write_bytes(old)
        nodes = [proof.node for proof in patch.proofs]
        return runner.run(tree, nodes, stop_early=True, edited=path)
    finally:
        if new is None:
            path.unlink()
        else:
            path.write_bytes(new)


def _same_program(new: bytes, old: bytes) -> bool:
    return _is_program(old) and ast.dump(ast.parse(new)) == ast.dump(ast.parse(old))


def _is_program(data: bytes) -> bool:
    try:
        ast.parse(data)
    except SyntaxError:
        return False
    return True
