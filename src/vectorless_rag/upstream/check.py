"""Everything the series claims, checked."""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from vectorless_rag.upstream.changes import summary, weigh
from vectorless_rag.upstream.checkout import read_locked
from vectorless_rag.upstream.dropping import drop_each
from vectorless_rag.upstream.dropwhen import drop_when
from vectorless_rag.upstream.export import import_patches
from vectorless_rag.upstream.fetch import Source
from vectorless_rag.upstream.lint import lint
from vectorless_rag.upstream.lock import LOCK_FILE, Lock
from vectorless_rag.upstream.pin import PATCHES, Pin
from vectorless_rag.upstream.proofs import Runner
from vectorless_rag.upstream.prove import Trees, prove
from vectorless_rag.upstream.series import Series
from vectorless_rag.upstream.workflow import derive_lock, round_trip, unpatched

# One broken import fails every proof of a patch three times.
_TOLD = 6


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """How deep the proofs are to be checked."""

    only: frozenset[str] = frozenset()
    """Numbers of the patches to report on; empty: all."""

    repeat: int = 3
    """Runs of the side that must fail: a flaky proof is no proof."""

    jobs: int = 2
    """Pytest processes at once."""

    changes: bool = True
    """Whether to put each run of changed lines back, and see a proof fail."""

    leave_one_out: bool = False
    """Whether to drop each patch."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of the report."""

    text: str
    good: bool


def check_series(root: Path, *, source: Source | None = None) -> tuple[str, ...]:
    """
    List what is wrong: headers, digests, the lock's bytes, the export's bytes.

    Args:
        root: Folder that holds ``upstream.toml`` and ``patches/``.
        source: Where to get the release.

    Raises:
        VectorlessRagError: ``upstream_drift``: the series does not apply, so
            nothing after it can be told.
    """
    pin, series, lock = read_locked(root)
    again = derive_lock(root, pin, series, git_version=lock.git, source=source)
    return (
        *lint(root, pin, series),
        *_lacking(root, pin, series, source),
        *_lock_findings(root, series, lock, again),
        *(
            f"{name}: export writes other bytes; run make patch-export"
            for name in round_trip(root, source=source)
        ),
    )


def check_proofs(
    root: Path, wanted: Wanted, *, source: Source | None = None
) -> Iterator[Line]:
    """
    Run the proofs, and say in one line a patch what they prove.

    Args:
        root: Folder that holds the series and ``tests/patches``.
        wanted: How deep.
        source: Where to get the release.

    Raises:
        VectorlessRagError: ``upstream_drift``: the series does not apply;
            ``upstream_unavailable``: pytest does not run.
    """
    pin, series, _ = read_locked(root)
    with tempfile.TemporaryDirectory(prefix="prove-") as name:
        scratch = Path(name)
        runner = Runner(root=root.resolve(), scratch=scratch)
        with unpatched(root, pin, source=source) as bare:
            trees = Trees.grow(bare, pin, series.patches, scratch)
        proven = prove(
            runner, trees, series, repeat=wanted.repeat, jobs=wanted.jobs,
            only=wanted.only,
        )  # fmt: skip
        for patch in proven:
            yield Line(text=patch.line(), good=not patch.problems)
            yield from _explain(patch.problems)
        if wanted.changes:
            yield from _weigh(runner, trees, series, wanted)
        if wanted.leave_one_out:
            yield from _drop(runner, pin, trees, series)


def _explain(problems: Sequence[str]) -> Iterator[Line]:
    for problem in problems[:_TOLD]:
        yield Line(text=f"      {problem}", good=False)
    if (more := len(problems) - _TOLD) > 0:
        yield Line(text=f"      and {more} more", good=False)


def _weigh(
    runner: Runner, trees: Trees, series: Series, wanted: Wanted
) -> Iterator[Line]:
    for k, patch in enumerate(series.patches, 1):
        if patch.proofs and (not wanted.only or patch.id in wanted.only):
            weighed = weigh(runner, trees.folders[k], patch, jobs=wanted.jobs)
            bad = [each for each in weighed if each.problem]
            yield Line(text=summary(patch, weighed), good=not bad)
            for each in bad:
                yield Line(text=f"      {each.line()}", good=False)


def _drop(runner: Runner, pin: Pin, trees: Trees, series: Series) -> Iterator[Line]:
    repository = trees.copy_bare(runner.scratch / "repository")
    import_patches(repository, pin.version, series.patches)
    for dropped in drop_each(runner, repository, series):
        yield Line(text=dropped.line(), good=not dropped.problems)


def _lacking(
    root: Path, pin: Pin, series: Series, source: Source | None
) -> Iterator[str]:
    asked = [(p, w) for p in series.patches if (w := drop_when(p)) and w.path]
    if not asked:
        return
    with unpatched(root, pin, source=source) as tree:
        for patch, when in asked:
            if when.met(pin.version, tree, passes=None):
                yield f"{patch.file}: retire it: the pin meets {when.text}"


def _lock_findings(
    root: Path, series: Series, lock: Lock, again: Lock
) -> Iterator[str]:
    for patch, old, new in zip(
        series.patches, lock.patches, again.patches, strict=True
    ):
        if old != new:
            yield f"{patch.file}: derived again, its part of {LOCK_FILE} differs"
            return
    if (root / PATCHES / LOCK_FILE).read_bytes() != again.encode():
        yield f"{LOCK_FILE} is not what it is when derived again"
