"""What to do with a patch on another release, judged from what was seen there."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from vectorless_rag.canon import Json
from vectorless_rag.upstream.dropwhen import drop_when
from vectorless_rag.upstream.landing import Landing, Text
from vectorless_rag.upstream.mailbox import Patch
from vectorless_rag.upstream.proofs import Outcome
from vectorless_rag.upstream.proofs import Verdict as Proved
from vectorless_rag.upstream.releases import Release

# One cause mostly fails many proofs.
_TOLD = 3


class Verdict(StrEnum):
    """What a maintainer has to do with a patch."""

    KEEP = "KEEP"
    """Lands as it is; its proofs fail before it and pass after it."""

    REFRESH = "REFRESH"
    """Still needed, but its text, or a proof of it, has to be renewed."""

    RETIRE = "RETIRE"
    """Its proofs pass without it."""

    OBSOLETE = "OBSOLETE"
    """What it touches is gone, and its proofs have nothing to call."""

    MISPLACED = "MISPLACED"
    """Its text fits, in the wrong function."""

    SEMANTIC_DRIFT = "SEMANTIC DRIFT"
    """Lands, but its proofs do not pass, or a function it replaces was changed."""

    BLOCKED = "BLOCKED"
    """It waits for a patch that it depends on and that was left out."""

    UNDECIDED = "UNDECIDED"
    """Its proofs ended in something that is neither a pass nor a failure."""


class Change(StrEnum):
    """What upstream did to a function that a patch replaces."""

    SAME = "same"
    CHANGED = "changed"
    GONE = "gone"
    OURS = "ours"
    """An earlier patch wrote it; upstream has none."""


@dataclass(frozen=True, kw_only=True)
class Fate:
    """One function that a patch replaces."""

    path: str
    qualname: str
    change: Change

    now: str | None = None
    """Digest of its source just before the patch; None: it is not there."""

    def __str__(self) -> str:
        """Name it as the trailer does."""
        return f"{self.path}::{self.qualname}"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One patch on one release."""

    patch: Patch
    landing: Landing

    without: tuple[Outcome, ...]
    """Its proofs with the earlier patches, but not with it."""

    with_it: tuple[Outcome, ...]
    """Its proofs just after it; empty: it was left out."""

    replaced: tuple[Fate, ...]

    gone: tuple[str, ...]
    """What it touches on the pin and this release lacks."""

    nothing_left: bool
    """Whether all of what it touches is gone."""

    lacks: tuple[str, ...]
    """Patches that it depends on, directly or not, and that were left out."""

    due: bool | None
    """Whether its Drop-When is met; None: could not be told."""

    @property
    def verdict(self) -> Verdict:
        """Judge it."""
        return judge(self)

    @property
    def blocked_by(self) -> tuple[str, ...]:
        """The patches that it waits for."""
        return self.lacks if self.verdict is Verdict.BLOCKED else ()

    @property
    def changed(self) -> tuple[Fate, ...]:
        """The functions it replaces that upstream changed or removed."""
        altered = {Change.CHANGED, Change.GONE}
        return tuple(fate for fate in self.replaced if fate.change in altered)

    @property
    def overtaken(self) -> tuple[str, ...]:
        """Those of its proofs that pass without it, though others do not."""
        nodes = (proof.node.partition("::")[2] for proof in self.patch.proofs)
        pairs = zip(nodes, self.without, strict=True)
        return tuple(node for node, seen in pairs if seen.verdict is Proved.PASS)

    def to_json(self) -> dict[str, Json]:
        """Spell the row."""
        when = drop_when(self.patch)
        return {
            "id": self.patch.id,
            "file": self.patch.file,
            "title": self.patch.title,
            "verdict": self.verdict.value,
            "text": self.landing.text.value,
            "without": _counted(self.without),
            "with": _counted(self.with_it),
            "conflicts": list(self.landing.conflicts),
            "elsewhere": list(self.landing.elsewhere),
            "gone": list(self.gone),
            "blocked_by": list(self.blocked_by),
            "replaces": [
                {
                    "path": f.path,
                    "qualname": f.qualname,
                    "upstream": f.change.value,
                    "sha256": f.now,
                }
                for f in self.replaced
            ],
            "drop_when": {"condition": when.text if when else "", "met": self.due},
            "reasons": list(self.reasons()),
        }

    def reasons(self) -> Iterator[str]:
        """Say what there is to know beyond the verdict, a line each."""
        yield from (f"conflict in {place}" for place in self.landing.conflicts)
        yield from (f"in another place: {p}" for p in self.landing.elsewhere)
        if self.landing.text is Text.TAKEN:
            yield "upstream has this text already"
        yield from (f"gone: {name}" for name in self.gone)
        yield from (f"{fate}: upstream {fate.change} it" for fate in self._noted())
        yield from (f"waits for {number}" for number in self.blocked_by)
        if self.verdict is not Verdict.RETIRE and self.overtaken:
            yield f"passes without it: {', '.join(self.overtaken)}"
        if self.verdict is not Verdict.BLOCKED:
            failures = list(self._failures())
            yield from failures[:_TOLD]
            if (more := len(failures) - _TOLD) > 0:
                yield f"and {more} more"
        if self.due:
            when = drop_when(self.patch)
            yield f"Drop-When is met: {when.text if when else ''}"

    def _noted(self) -> Iterator[Fate]:
        yield from (f for f in self.changed if f.change is Change.CHANGED)

    def _failures(self) -> Iterator[str]:
        sides = (
            ("before it", self.without, (Proved.PASS, Proved.FAIL)),
            ("after it", self.with_it, (Proved.PASS,)),
        )
        for name, outcomes, fine in sides:
            for proof, seen in zip(self.patch.proofs, outcomes, strict=False):
                if seen.verdict not in fine:
                    test = proof.node.partition("::")[2]
                    yield f"{test} {name} is {seen.verdict}: {seen.reason}"


@dataclass(frozen=True, kw_only=True)
class Report:
    """Every patch of the series on one release."""

    release: Release
    rows: tuple[Row, ...]

    @property
    def good(self) -> bool:
        """Whether the series could move there as it is."""
        return all(row.verdict is Verdict.KEEP for row in self.rows)

    def holding(self) -> Iterator[str]:
        """Say of each patch that others wait for which ones these are."""
        for row in self.rows:
            number = row.patch.id
            waiting = [
                other.patch.id for other in self.rows if number in other.blocked_by
            ]
            if waiting:
                yield f"{number} holds up {', '.join(waiting)}"

    def to_json(self) -> dict[str, Json]:
        """Spell the report."""
        return {
            "version": self.release.version,
            "sha256": self.release.sha256,
            "tree_sha256": self.release.tree_sha256,
            "patches": [row.to_json() for row in self.rows],
        }


def judge(row: Row) -> Verdict:
    """Turn what was seen of one patch into what is to be done."""
    before = sum_up(row.without)
    if before is Proved.PASS:
        return Verdict.RETIRE
    if row.landing.elsewhere:
        return Verdict.MISPLACED
    if not row.landing.applied:
        return _judge_left_out(row, before)
    if sum_up(row.with_it) is not Proved.PASS:
        return _judge_unproven(row, before)
    if row.changed:
        return Verdict.SEMANTIC_DRIFT
    return _judge_proven(row, before)


def sum_up(outcomes: Sequence[Outcome]) -> Proved:
    """PASS: all pass. FAIL: some fail. Otherwise, or with none, INCONCLUSIVE."""
    seen = {outcome.verdict for outcome in outcomes}
    if seen == {Proved.PASS}:
        return Proved.PASS
    return Proved.FAIL if Proved.FAIL in seen else Proved.INCONCLUSIVE


def _judge_left_out(row: Row, before: Proved) -> Verdict:
    if row.landing.text is Text.TAKEN:
        return Verdict.SEMANTIC_DRIFT
    if row.nothing_left and before is Proved.INCONCLUSIVE:
        return Verdict.OBSOLETE
    if row.lacks:
        return Verdict.BLOCKED
    return Verdict.REFRESH if before is Proved.FAIL else Verdict.UNDECIDED


def _judge_unproven(row: Row, before: Proved) -> Verdict:
    if row.lacks:
        return Verdict.BLOCKED
    nothing_told = {before, sum_up(row.with_it)} == {Proved.INCONCLUSIVE}
    return Verdict.UNDECIDED if nothing_told else Verdict.SEMANTIC_DRIFT


def _judge_proven(row: Row, before: Proved) -> Verdict:
    if before is Proved.INCONCLUSIVE:
        return Verdict.UNDECIDED
    needed = all(seen.verdict is Proved.FAIL for seen in row.without)
    clean = row.landing.text is Text.CLEAN
    return Verdict.KEEP if needed and clean else Verdict.REFRESH


def _counted(outcomes: Sequence[Outcome]) -> dict[str, Json]:
    kinds = Counter(outcome.verdict.value for outcome in outcomes)
    return {kind: kinds[kind] for kind in sorted(kinds)}
