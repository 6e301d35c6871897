"""What the series is without one of its patches: who depends on whom, in truth."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vectorless_rag.upstream import git
from vectorless_rag.upstream.environment import bare_environment
from vectorless_rag.upstream.export import IDENTITY, commits_of
from vectorless_rag.upstream.mailbox import Patch
from vectorless_rag.upstream.proofs import Runner, Verdict
from vectorless_rag.upstream.series import Series


@dataclass(frozen=True, kw_only=True)
class Dropped:
    """The series without one patch."""

    patch: Patch

    conflicts: tuple[Patch, ...]
    """Later patches that no longer merge."""

    failing: tuple[Patch, ...]
    """Other patches whose proofs no longer pass."""

    proven: bool
    """Whether its own proofs stop passing."""

    declared: tuple[Patch, ...]
    """Later patches that say, directly or through others, that they depend on it."""

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong; empty: nothing."""
        return tuple(self._problems())

    def line(self) -> str:
        """Say it in one line."""
        needed = {p.id for p in (*self.conflicts, *self.failing)}
        mark = "FAIL" if self.problems else "ok  "
        told = "".join(f"; {problem}" for problem in self.problems)
        return (
            f"{mark}  without {self.patch.id}: {', '.join(sorted(needed)) or 'no one'} "
            f"depends on it{told}"
        )

    def _problems(self) -> Iterator[str]:
        if not self.proven:
            yield "its own proofs pass without it"
        needs = {p.id: p for p in (*self.conflicts, *self.failing)}
        said = {p.id: p for p in self.declared}
        for number in sorted(set(needs) - set(said)):
            yield f"{number} needs Depends-On: {self.patch.id}"
        for number in sorted(set(said) - set(needs)):
            if self.patch.id in said[number].values("Depends-On"):
                yield f"Depends-On: {self.patch.id} of {number} is stale"


def drop_each(runner: Runner, repository: Path, series: Series) -> tuple[Dropped, ...]:
    """
    Leave out each patch in turn, merge the later ones, and run every proof.

    Args:
        runner: Runs the proofs.
        repository: A scratch repository with one commit for each patch.
        series: The same patches.

    Raises:
        VectorlessRagError: ``upstream_unavailable``: git or pytest does not run.
    """
    numbers = (p.id for p in series.patches)
    commits = dict(zip(numbers, commits_of(repository), strict=True))
    return tuple(
        _drop(runner, repository, series, commits, patch) for patch in series.patches
    )


def _drop(
    runner: Runner,
    repository: Path,
    series: Series,
    commits: Mapping[str, str],
    dropped: Patch,
) -> Dropped:
    conflicts = _merge_others(repository, series, commits, dropped)
    tree = runner.scratch / f"without-{dropped.id}"
    shutil.copytree(
        repository, tree, symlinks=True, ignore=shutil.ignore_patterns(".git")
    )
    standing = [p for p in series.patches if p not in conflicts]
    session = runner.run(tree, [q.node for p in standing for q in p.proofs])
    passing = {
        p.id
        for p in standing
        if all(session.outcome(q).verdict is Verdict.PASS for q in p.proofs)
    }
    return Dropped(
        patch=dropped,
        conflicts=conflicts,
        failing=tuple(
            p for p in standing if p.id not in passing and p.id != dropped.id
        ),
        proven=dropped.id not in passing,
        declared=_dependents(series, dropped),
    )


def _merge_others(
    repository: Path, series: Series, commits: Mapping[str, str], dropped: Patch
) -> tuple[Patch, ...]:
    env = {**bare_environment(), **IDENTITY}
    git.run(repository, "checkout", "--quiet", "--detach", f"{commits[dropped.id]}^")
    conflicts: list[Patch] = []
    later = [p for p in series.patches if p.id > dropped.id]
    for patch in later:
        done = git.attempt(repository, "cherry-pick", commits[patch.id], env=env)
        if done.status != 0:
            git.run(repository, "cherry-pick", "--abort", env=env)
            conflicts.append(patch)
    return tuple(conflicts)


def _dependents(series: Series, dropped: Patch) -> tuple[Patch, ...]:
    known = {dropped.id}
    found: Sequence[Patch] = ()
    for patch in series.patches:
        if known & set(patch.values("Depends-On")):
            known.add(patch.id)
            found = (*found, patch)
    return tuple(found)
