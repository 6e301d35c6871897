"""
Turn the series into commits to edit, and commits back into the series.

Export gives the same bytes under anyone's git configuration; with it, the
check can export again and compare.
"""

import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

from vectorless_rag.upstream import git
from vectorless_rag.upstream.diff import FileChange, parse_diff
from vectorless_rag.upstream.environment import bare_environment
from vectorless_rag.upstream.faults import drift
from vectorless_rag.upstream.mailbox import FIRST_LINE, Patch, parse_patch
from vectorless_rag.upstream.tool import last_line

BASE = "refs/patches/upstream-head"
"""Names the commit of the unpatched tree in a scratch repository."""

PINNED = "refs/patches/pinned/"
"""Before a number: the commit a patch had when a scratch repository was opened."""

OLD_BASE = f"{PINNED}upstream"
"""The commit of the release that the patches were written for."""

BRANCH = "patches"
"""The branch of a scratch repository that an export reads."""

_SUBJECT = "upstream "

FILENAME = "Patch-Filename: "
"""Trailer that carries a patch's file name while it is a commit."""

_DIFF = (
    "-U1", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv",
    "--diff-algorithm=myers", "--indent-heuristic", "--inter-hunk-context=0",
    "--src-prefix=a/", "--dst-prefix=b/",
)  # fmt: skip
_FORMAT = (
    "format-patch", *_DIFF, "-N", "--zero-commit", "--no-signature", "--no-stat",
    "--no-base", "--no-signoff", "--no-thread", "--no-attach",
    "--no-cover-letter", "--subject-prefix=PATCH", "--no-from", "--no-to",
    "--no-cc", "--no-add-header", "--stdout",
)  # fmt: skip
IDENTITY = {
    "GIT_AUTHOR_NAME": "Upstream",
    "GIT_AUTHOR_EMAIL": "upstream@example.invalid",
    "GIT_AUTHOR_DATE": "2000-01-01T00:00:00+0000",
    "GIT_COMMITTER_NAME": "Patches",
    "GIT_COMMITTER_EMAIL": "patches@example.invalid",
    "GIT_COMMITTER_DATE": "2000-01-01T00:00:00+0000",
}
"""Who commits in a scratch repository; patches keep their own authors."""


def import_patches(tree: Path, version: str, patches: tuple[Patch, ...]) -> None:
    """
    Make a scratch repository of an unpatched tree: one commit for each patch.

    Args:
        tree: Folder that holds the unpatched tree; it becomes the repository.
        version: Upstream's version, for the message of the first commit.
        patches: The series.

    Raises:
        VectorlessRagError: ``upstream_drift``: git could not apply a patch.
    """
    env = {**bare_environment(), **IDENTITY}
    git.run(tree, "init", "--quiet", "--template=", f"--initial-branch={BRANCH}")
    _write_attributes(tree)
    git.run(tree, "add", "--all", "--force", ".", env=env)
    git.run(tree, "commit", "--quiet", "-m", f"{_SUBJECT}{version}", env=env)
    git.run(tree, "update-ref", BASE, "HEAD")
    for patch in patches:
        _am(tree, patch, env)
        git.run(tree, "update-ref", f"{PINNED}{patch.id}", "HEAD")


def version_of(repository: Path, base: str = BASE) -> str | None:
    """Return the release that a scratch repository stands on, if it says so."""
    done = git.attempt(repository, "log", "-1", "--format=%s", base)
    subject = done.stdout.decode("utf-8", "replace").strip()
    found = subject.removeprefix(_SUBJECT)
    return found if done.status == 0 and found != subject else None


def commits_of(repository: Path, base: str = BASE) -> tuple[str, ...]:
    """List the commits after *base*, the oldest first."""
    listed = git.run(repository, "rev-list", "--reverse", f"{base}..HEAD")
    return tuple(listed.decode().split())


def changes_of(repository: Path, commit: str) -> tuple[FileChange, ...]:
    """Read what one commit changes, spelled as an export spells it."""
    args = ("diff-tree", "-p", *_DIFF, f"{commit}^", commit)
    return parse_diff(git.run(repository, *args))


def export_patches(repository: Path, base: str = BASE) -> tuple[Patch, ...]:
    """
    Write each commit after *base* as a patch; see section 5 of the reference.

    Args:
        repository: The scratch repository.
        base: The commit of the unpatched tree.

    Returns:
        The patches in the order of the commits, named by the commits'
        ``Patch-Filename`` trailers, which they no longer hold.

    Raises:
        VectorlessRagError: ``upstream_unavailable``: no such repository or
            base; ``upstream_drift``: a commit is a merge, is empty or names no
            file.
    """
    attributes = _write_attributes(repository)
    if git.run(repository, "rev-list", "--merges", f"{base}..HEAD"):
        raise drift("a merge commit has no patch")
    trees = git.run(repository, "log", "--format=%T", f"{base}..HEAD").split()
    trees.append(git.run(repository, "rev-parse", f"{base}^{{tree}}").strip())
    # Some versions of git leave such a commit out, others mail it without a diff.
    if any(after == before for after, before in pairwise(trees)):
        raise drift("a commit without a change has no patch")
    settings = (
        *("-c", "core.autocrlf=false"),
        *("-c", "diff.suppressBlankEmpty=false"),
        *("-c", f"core.attributesFile={attributes}"),
    )
    mails = git.run(repository, *settings, *_FORMAT, f"{base}..HEAD")
    pieces = re.split(rb"^(?=From 0{40} )", mails, flags=re.MULTILINE)
    return tuple(_exported(piece) for piece in pieces if piece)


def _am(tree: Path, patch: Patch, env: Mapping[str, str]) -> None:
    head, found, diff = patch.raw.partition(b"\ndiff --git ")
    # The trailers end with a line break, and an empty line stands before the diff.
    name = f"{FILENAME}{patch.file}\n".encode()
    mail = head + name + found + diff
    done = git.attempt(tree, "am", "--quiet", "--keep-cr", stdin=mail, env=env)
    if done.status != 0:
        said = last_line(done.stdout + done.stderr)
        raise drift(f"{patch.file}: git am: {said}")


def _exported(mail: bytes) -> Patch:
    name = re.search(rb"^Patch-Filename: (\S+)\n", mail, re.MULTILINE)
    if name is None or not mail.startswith(FIRST_LINE):
        subject = re.search(rb"^Subject: (.*)$", mail, re.MULTILINE)
        title = subject[1].decode("utf-8", "replace") if subject else "?"
        raise drift(f"commit {title!r} has no Patch-Filename trailer")
    raw = mail[: name.start()] + mail[name.end() :]
    # Two empty lines end what git prints for a patch without a signature.
    return parse_patch(name[1].decode(), raw.rstrip(b"\n") + b"\n")


def _write_attributes(repository: Path) -> Path:
    path = _git_dir(repository) / "vectorless-rag-attributes"
    path.write_bytes(b"*.py diff=python\n")
    return path


def _git_dir(repository: Path) -> Path:
    found = git.run(repository, "rev-parse", "--absolute-git-dir")
    return Path(found.decode().removesuffix("\n"))
