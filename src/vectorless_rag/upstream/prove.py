"""Does each patch prove itself: FAIL before it, PASS after it, PASS at the end."""

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from vectorless_rag.upstream import git
from vectorless_rag.upstream.apply import apply_patch
from vectorless_rag.upstream.dropwhen import drop_when
from vectorless_rag.upstream.mailbox import Patch, Proof
from vectorless_rag.upstream.pin import Pin
from vectorless_rag.upstream.proofs import Outcome, Runner, Session, Verdict, old_parser
from vectorless_rag.upstream.series import Series


@dataclass(frozen=True, kw_only=True)
class Proven:
    """What the proofs of one patch said."""

    patch: Patch

    before: tuple[Outcome, ...]
    """On the tree just before it, of every proof and every repetition."""

    after: tuple[Outcome, ...]
    """On the tree just after it."""

    full: tuple[Outcome, ...]
    """On the whole series."""

    upstream: tuple[Outcome, ...]
    """On the bare upstream, where Drop-When asks for it."""

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong; empty: the patch is proven."""
        return tuple(self._problems())

    def line(self) -> str:
        """Say it in one line."""
        words = ", ".join(
            f"{name} {_summary(outcomes)}" for name, outcomes, _ in self._sides()
        )
        mark = "FAIL" if self.problems else "ok  "
        return f"{mark}  {self.patch.file.removesuffix('.patch')}: {words}"

    def _sides(self) -> tuple[tuple[str, tuple[Outcome, ...], Verdict], ...]:
        return (
            ("before", self.before, Verdict.FAIL),
            ("after", self.after, Verdict.PASS),
            ("full", self.full, Verdict.PASS),
        )

    def _problems(self) -> Iterator[str]:
        if not self.before:
            yield "it has no proof"
        for name, outcomes, wanted in self._sides():
            for k, proof in enumerate(self.patch.proofs):
                # Of several repetitions the first that is wrong tells enough.
                for outcome in outcomes[k :: len(self.patch.proofs)]:
                    if outcome.verdict is not wanted:
                        test = proof.node.partition("::")[2]
                        why = f": {outcome.reason}" if outcome.reason else ""
                        yield f"{test} {name} is {outcome.verdict}{why}"
                        break
        if self.upstream and all(o.verdict is Verdict.PASS for o in self.upstream):
            yield "retire it: its proofs pass on the bare upstream"


@dataclass(frozen=True)
class Trees:
    """The trees of a series: T(0) is the bare upstream, T(k) holds k patches."""

    folders: tuple[Path, ...]

    @classmethod
    def grow(
        cls, bare: Path, pin: Pin, patches: Sequence[Patch], into: Path
    ) -> "Trees":
        """
        Apply the patches one by one to *bare* and keep a copy of each step.

        Raises:
            VectorlessRagError: ``upstream_drift``, naming the patch.
        """
        git.run(bare, "init", "--quiet", "--template=")
        folders = [_copy(bare, into / "tree-0000")]
        for patch in patches:
            apply_patch(bare, pin, patch)
            folders.append(_copy(bare, into / f"tree-{patch.id}"))
        return cls(tuple(folders))

    def copy_bare(self, into: Path) -> Path:
        """Copy the bare upstream to a folder that does not exist yet."""
        return _copy(self.folders[0], into)


def prove(
    runner: Runner,
    trees: Trees,
    series: Series,
    *,
    repeat: int = 3,
    jobs: int = 2,
    only: frozenset[str] = frozenset(),
) -> tuple[Proven, ...]:
    """
    Run every proof before its patch, after it, and on the whole series.

    Args:
        runner: Runs them.
        trees: The trees of *series*.
        series: The patches.
        repeat: How often the failing side runs: a flaky proof is no proof.
        jobs: How many pytest processes run at once.
        only: Numbers of the patches to prove; empty: all.

    Raises:
        VectorlessRagError: ``upstream_unavailable``: pytest does not run.
    """
    wanted = tuple(p for p in series.patches if not only or p.id in only)
    plans = _plans(series, wanted, repeat)
    # Once, before two processes want it at the same time.
    old_parser(runner.root, trees.folders[0])
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        sessions = list(
            pool.map(
                lambda plan: runner.run(trees.folders[plan[0]], _nodes(plan[1])), plans
            )
        )
    by_tree: dict[int, list[Session]] = {}
    for (number, _), session in zip(plans, sessions, strict=True):
        by_tree.setdefault(number, []).append(session)
    return tuple(
        _proven(patch, k, by_tree, len(series.patches))
        for k, patch in enumerate(series.patches)
        if patch in wanted
    )


def _plans(
    series: Series, wanted: Sequence[Patch], repeat: int
) -> list[tuple[int, tuple[Proof, ...]]]:
    """Pair each tree with the proofs one process runs on it."""

    def proofs(*patches: Patch) -> tuple[Proof, ...]:
        return tuple(q for patch in patches if patch in wanted for q in patch.proofs)

    patches = series.patches
    plans: list[tuple[int, tuple[Proof, ...]]] = []
    for k in range(len(patches) + 1):
        here = proofs(*patches[k - 1 : k]) if k else proofs(*filter(_asks, patches))
        if k == len(patches):
            here = proofs(*patches)
        following = proofs(*patches[k : k + 1])
        plans.append((k, (*here, *following)))
        plans += [(k, following)] * (repeat - 1)
    return [plan for plan in plans if plan[1]]


def _proven(
    patch: Patch, k: int, sessions: Mapping[int, Sequence[Session]], last: int
) -> Proven:
    def outcomes(found: Sequence[Session]) -> tuple[Outcome, ...]:
        return tuple(s.outcome(proof) for s in found for proof in patch.proofs)

    if not patch.proofs:
        return Proven(patch=patch, before=(), after=(), full=(), upstream=())
    return Proven(
        patch=patch,
        before=outcomes(sessions[k]),
        after=outcomes(sessions[k + 1][:1]),
        full=outcomes(sessions[last][:1]),
        upstream=outcomes(sessions[0][:1]) if _asks(patch) else (),
    )


def _asks(patch: Patch) -> bool:
    when = drop_when(patch)
    return when is not None and when.asks_proofs


def _nodes(proofs: Sequence[Proof]) -> list[str]:
    return list(dict.fromkeys(proof.node for proof in proofs))


def _summary(outcomes: Sequence[Outcome]) -> str:
    kinds = Counter(str(outcome.verdict) for outcome in outcomes)
    told = " ".join(f"{kind} x{count}" for kind, count in sorted(kinds.items()))
    return told or "nothing"


def _copy(tree: Path, into: Path) -> Path:
    shutil.copytree(tree, into, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    return into
