"""
What becomes of each patch on another release, told from behaviour and from text.

The proofs of a patch run on the new release just before the patch and just after it.
A patch that does not land is left out, and the next one is tried.
"""

import dataclasses
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from vectorless_rag.upstream.checkout import read_locked
from vectorless_rag.upstream.dropwhen import drop_when, source_of, stands_in
from vectorless_rag.upstream.faults import unavailable
from vectorless_rag.upstream.landing import Ground
from vectorless_rag.upstream.mailbox import Patch
from vectorless_rag.upstream.proofs import (
    PROOFS,
    Outcome,
    Runner,
    Session,
    Verdict,
    old_parser,
)
from vectorless_rag.upstream.releases import Release
from vectorless_rag.upstream.series import Series
from vectorless_rag.upstream.verdicts import Change, Fate, Report, Row, sum_up
from vectorless_rag.upstream.verdicts import Verdict as Judged
from vectorless_rag.upstream.workflow import unpatched

# Where a scratch folder or an interpreter lies is no one's business.
_FOLDERS = re.compile(r"(?<![\w:/.])/(?:[^\s/'\"()]+/)+")


def quiet(_: Row) -> None:
    """Say nothing of a row until its report is whole."""


def reports(
    root: Path,
    releases: Sequence[Release],
    *,
    jobs: int = 1,
    tell: Callable[[Row], None] = quiet,
) -> Iterator[Report]:
    """
    Try the series of an installation on other releases.

    Args:
        root: Folder that holds the series and ``tests/patches``.
        releases: Where to move it; from the vendor folder or else the index.
        jobs: Releases at once.
        tell: Is handed each row as soon as it is known.

    Yields:
        One report a release, in the order of *releases*.

    Raises:
        VectorlessRagError: ``upstream_unavailable``: a release cannot be had, this
            installation holds no proofs, or pytest does not run;
            ``upstream_drift`` or ``upstream_tampered``: as `upstream.build`.
    """
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        yield from pool.map(lambda release: report(root, release, tell=tell), releases)


def require_proofs(root: Path) -> None:
    """
    Refuse an installation that has no proofs to run.

    Raises:
        VectorlessRagError: ``upstream_unavailable``.
    """
    if not (root / PROOFS).is_dir():
        raise unavailable(f"drift runs proofs, and {PROOFS} is in source trees only")


def report(
    root: Path,
    release: Release,
    *,
    tell: Callable[[Row], None] = quiet,
    keep: Path | None = None,
) -> Report:
    """
    Try the series of an installation on one release; see `reports`.

    Args:
        root: Folder that holds the series and ``tests/patches``.
        release: Where to move it.
        tell: Is handed each row as soon as it is known.
        keep: Folder, not there yet, that takes the scratch repository as it stands
            in the end: what landed is committed on the release.
    """
    require_proofs(root)
    pin, series, _ = read_locked(root)
    with (
        tempfile.TemporaryDirectory(prefix="drift-") as name,
        unpatched(root, pin) as old,
        unpatched(root, release.pin(pin)) as bare,
    ):
        runner = Runner(root=root.resolve(), scratch=Path(name))
        old_parser(runner.root, bare)
        tree = Path(name) / "tree"
        shutil.copytree(old, tree, symlinks=True)
        ground = Ground.open(tree, pin.version, series)
        ground.start(release.version, bare)
        walk = _Walk(runner=runner, ground=ground, series=series, old=old, bare=bare)
        rows = []
        for row in walk.rows(release.version):
            tell(row)
            rows.append(row)
        if keep is not None:
            ground.keep(keep)
        return Report(release=release, rows=tuple(rows))


@dataclass(frozen=True, kw_only=True)
class _Walk:
    """One series on its way up one release."""

    runner: Runner
    ground: Ground
    series: Series

    old: Path
    """Bare tree of the pin."""

    bare: Path
    """Bare tree of the release."""

    def rows(self, version: str) -> Iterator[Row]:
        patches = self.series.patches
        asking = [p for p in patches if (w := drop_when(p)) and w.asks_proofs]
        first = session = self._run(*asking, *patches[:1])
        waiting: set[str] = set()
        for k, patch in enumerate(patches):
            without = _outcomes(session, patch)
            fates = self._fates(patch)
            landing = self.ground.land(patch)
            stays = landing.applied
            if stays and sum_up(without) is Verdict.PASS:
                self.ground.leave_out()
                stays = False
            following = patches[k + 1 : k + 2]
            session = self._run(*([patch] if stays else []), *following)
            gone, nothing_left = self._gone(patch)
            row = Row(
                patch=patch,
                landing=landing,
                without=without,
                with_it=_outcomes(session, patch) if stays else (),
                replaced=fates,
                gone=gone,
                nothing_left=nothing_left,
                lacks=self._lacks(patch, waiting),
                due=self._due(patch, version, first),
            )
            if not stays and row.verdict not in {Judged.RETIRE, Judged.OBSOLETE}:
                waiting.add(patch.id)
            yield row

    def _run(self, *patches: Patch) -> Session:
        nodes = dict.fromkeys(q.node for patch in patches for q in patch.proofs)
        if not nodes:
            return Session(tests=(), broken={}, status=0, output="")
        return self.runner.run(self.ground.folder, list(nodes))

    def _due(self, patch: Patch, version: str, bare: Session) -> bool | None:
        when = drop_when(patch)
        if when is None:
            return None
        seen = (
            {o.verdict for o in _outcomes(bare, patch)} if when.asks_proofs else set()
        )
        passes = seen == {Verdict.PASS}
        undecided = Verdict.INCONCLUSIVE in seen and Verdict.FAIL not in seen
        return when.met(version, self.bare, passes=None if undecided else passes)

    def _fates(self, patch: Patch) -> tuple[Fate, ...]:
        return tuple(
            Fate(
                path=each.path,
                qualname=each.qualname,
                change=self._change(each.path, each.qualname),
                now=source_of(self.ground.folder, each.path, each.qualname),
            )
            for each in patch.replaces
        )

    def _change(self, path: str, qualname: str) -> Change:
        before = source_of(self.old, path, qualname)
        after = source_of(self.bare, path, qualname)
        if before is None:
            return Change.OURS
        if not stands_in(self.bare, path, qualname):
            return Change.GONE
        return Change.SAME if before == after else Change.CHANGED

    def _gone(self, patch: Patch) -> tuple[tuple[str, ...], bool]:
        """Name what the patch touches that this release lacks; whether it is all."""
        touched = self.ground.touched(patch)
        known = [t for t in touched if stands_in(self.old, *t)]
        lost = [t for t in known if not stands_in(self.bare, *t)]
        names = (
            f"{path}::{name}" if name and (self.bare / path).is_file() else path
            for path, name in lost
        )
        return tuple(dict.fromkeys(names)), bool(known) and len(lost) == len(known)

    def _lacks(self, patch: Patch, waiting: set[str]) -> tuple[str, ...]:
        numbers = {p.id: p for p in self.series.patches}
        asked, open_ends = set[str](), list(patch.values("Depends-On"))
        while open_ends:
            number = open_ends.pop()
            if number not in asked and number in numbers:
                asked.add(number)
                open_ends += numbers[number].values("Depends-On")
        return tuple(sorted(asked & waiting))


def _outcomes(session: Session, patch: Patch) -> tuple[Outcome, ...]:
    seen = (session.outcome(proof) for proof in patch.proofs)
    return tuple(
        dataclasses.replace(outcome, reason=_FOLDERS.sub("", outcome.reason))
        for outcome in seen
    )
