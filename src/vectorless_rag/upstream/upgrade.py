"""Walk a maintainer through a move to another release, in a scratch repository."""

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.upstream import git
from vectorless_rag.upstream.drift import quiet, report
from vectorless_rag.upstream.drift_text import row_lines, summary
from vectorless_rag.upstream.environment import bare_environment
from vectorless_rag.upstream.export import BASE, IDENTITY, OLD_BASE, PINNED
from vectorless_rag.upstream.faults import drift
from vectorless_rag.upstream.releases import Release
from vectorless_rag.upstream.tool import last_line
from vectorless_rag.upstream.verdicts import Report, Row, Verdict

STEPS = "STEPS.md"
"""In a scratch repository, seen by people and not by git."""

_STEP = {
    Verdict.REFRESH: "`make patch-edit PATCH={id}` and merge it by hand",
    Verdict.RETIRE: "list {id} in patches/RETIRED.md: its proofs pass without it",
    Verdict.OBSOLETE: "list {id} in patches/RETIRED.md: what it touches is gone",
    Verdict.MISPLACED: "`make patch-edit PATCH={id}` and put it where it belongs",
    Verdict.BLOCKED: "`make patch-edit PATCH={id}` once {blockers} stands",
    Verdict.UNDECIDED: "{id}: find out why its proofs do not run, and try again",
}
_LOOK = (
    "`make patch-edit PATCH={id}`: read what upstream changed, renew the code or the "
    "proof, and say so in the message (`git commit --amend`)"
)
_READ = f"git diff {OLD_BASE} {BASE} --"


@dataclass(frozen=True, kw_only=True)
class Stopped:
    """Where an edit waits for its maintainer."""

    number: str

    conflicts: tuple[str, ...]
    """Files to resolve; none: the patch stands as the last commit."""


def upgrade(
    root: Path, release: Release, dest: Path, *, tell: Callable[[Row], None] = quiet
) -> Report:
    """
    Try the series on a release, and leave the outcome as a repository to go on in.

    Args:
        root: Folder that holds the pin, the series and ``tests/patches``; nothing in
            it changes.
        release: Where to move.
        dest: Folder that does not exist yet: what landed is committed, what did not
            stands in its ``STEPS.md``.
        tell: Is handed each row as soon as it is known.

    Raises:
        VectorlessRagError: ``upstream_drift``: *dest* exists; otherwise as
            `vectorless_rag.upstream.drift.reports`.
    """
    if dest.exists():
        raise drift(f"{dest.name} exists; export it or remove it first")
    found = report(root, release, tell=tell, keep=dest)
    # Unseen by git, so that no commit takes it along.
    exclude = dest / ".git" / "info" / "exclude"
    exclude.parent.mkdir(exist_ok=True)
    exclude.write_text(f"/{STEPS}\n", encoding="utf-8")
    lines = [f"# To {summary(found)}", "", *steps(found)]
    (dest / STEPS).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return found


def steps(found: Report) -> Iterator[str]:
    """Say what is left to do, a step a line, in the order to do it."""
    for row in found.rows:
        if step := _step(row):
            yield f"- [ ] {step}"
            yield from (f"  {line.strip()}" for line in row_lines(row))
            yield from (f"  {line}" for line in _renewals(row))
    yield "- [ ] `make patch-export`: the pin moves along; then `make patches-check`"
    yield "- [ ] `make revision`, and read docs/upgrading.md on what follows"


def edit(repository: Path, number: str) -> Stopped:
    """
    Stop at one patch of a scratch repository, with the later ones waiting.

    A patch that is not on the branch is merged at its place from the commit it had
    when the repository was opened.

    Args:
        repository: Made by `workflow.open_shell` or `upgrade`.
        number: Of the patch.

    Raises:
        VectorlessRagError: ``upstream_drift``: another edit is going on, or something
            is not committed; ``settings_invalid``: there is no such patch;
            ``upstream_unavailable``: no such repository.
    """
    directory = git.run(repository, "rev-parse", "--absolute-git-dir").decode().strip()
    if (Path(directory) / "rebase-merge").exists():
        raise drift("an edit is going on: git rebase --continue, or --abort")
    if git.run(repository, "status", "--porcelain", "--untracked-files=no"):
        raise drift("something is not committed: git commit, or git stash")
    standing = _standing(repository)
    commit = standing.get(number) or _pinned(repository, number)
    earlier = [sha for other, sha in standing.items() if other < number]
    later = [sha for other, sha in standing.items() if other > number]
    plan = Path(directory) / "patch-edit-plan"
    picks = "".join(f"pick {sha}\n" for sha in later)
    plan.write_text(f"edit {commit}\n{picks}", encoding="utf-8")
    env = {
        **bare_environment(),
        **IDENTITY,
        "GIT_SEQUENCE_EDITOR": f"cp {shlex.quote(str(plan))}",
        "GIT_EDITOR": "true",
    }
    base = earlier[-1] if earlier else BASE
    done = git.attempt(repository, "rebase", "--interactive", base, env=env)
    plan.unlink()
    if not (Path(directory) / "rebase-merge").exists():
        raise drift(f"{number}: git rebase: {last_line(done.stderr)}")
    listed = git.run(repository, "diff", "--name-only", "--diff-filter=U", "-z")
    names = tuple(name.decode() for name in listed.split(b"\0")[:-1])
    return Stopped(number=number, conflicts=names)


def _step(row: Row) -> str:
    if row.verdict is Verdict.SEMANTIC_DRIFT:
        return _LOOK.format(id=row.patch.id)
    if row.verdict is Verdict.KEEP or (
        row.verdict is Verdict.REFRESH and row.landing.applied and not row.overtaken
    ):
        # It stands already; the export renews its text.
        return ""
    blockers = ", ".join(row.blocked_by)
    return _STEP[row.verdict].format(id=row.patch.id, blockers=blockers)


def _renewals(row: Row) -> Iterator[str]:
    """Say what the header has to say of changed functions, and where to read them."""
    for fate in row.changed:
        if fate.now is not None:
            yield f"Replaces: {fate} sha256:{fate.now}"
    for path in dict.fromkeys(fate.path for fate in row.changed):
        yield f"{_READ} {path}"


def _standing(repository: Path) -> dict[str, str]:
    """Map the numbers on the branch to their commits, the oldest first."""
    form = "--format=%H %(trailers:key=Patch-Filename,valueonly,separator=)"
    listed = git.run(repository, "log", "--reverse", form, f"{BASE}..HEAD").decode()
    found = re.findall(r"^([0-9a-f]{40}) (\d{4})-", listed, re.MULTILINE)
    return {number: commit for commit, number in found}


def _pinned(repository: Path, number: str) -> str:
    done = git.attempt(repository, "rev-parse", "--verify", "-q", f"{PINNED}{number}")
    if done.status != 0:
        words = f"no patch {number[:20]} in {repository.name}"
        raise VectorlessRagError(Code.SETTINGS_INVALID, words)
    return done.stdout.decode().strip()
