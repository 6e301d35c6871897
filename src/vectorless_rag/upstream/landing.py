"""
Put the patches of a series onto another release, and tell where each one lands.

A patch moves by merge. That a text fits is no proof: where two siblings look alike,
`git apply` takes the wrong one without a word. So the innermost function around each
changed line is compared with the one it stands in on the pin.
"""

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from vectorless_rag.process import Finished
from vectorless_rag.upstream import git
from vectorless_rag.upstream.diff import FileChange
from vectorless_rag.upstream.environment import bare_environment
from vectorless_rag.upstream.export import (
    BASE,
    BRANCH,
    IDENTITY,
    OLD_BASE,
    changes_of,
    commits_of,
    import_patches,
)
from vectorless_rag.upstream.faults import unavailable
from vectorless_rag.upstream.mailbox import Patch
from vectorless_rag.upstream.places import MODULE, enclosing, last_binding
from vectorless_rag.upstream.series import Series
from vectorless_rag.upstream.tool import last_line

# git says one of these when it placed a hunk on other lines, and exits 0.
_MOVED = (b"offset", b"Context reduced", b"Falling back")
_STANDING = "refs/patches/standing"
_FILE = "<file>"
_BROKEN = "<no Python>"
_HEADING = re.compile(r"\s*(?:async def|def|class) (\w+)")


class Text(StrEnum):
    """What became of the text of a patch."""

    CLEAN = "clean"
    """It fits on the very lines it names."""

    OFFSET = "offset"
    """It fits on other lines, or with less around it."""

    MERGED = "merged"
    """Only a merge with upstream's changes places it."""

    TAKEN = "taken"
    """Nothing is left to change: upstream has the same text."""

    CONFLICT = "conflict"
    """Upstream changed the same lines."""


@dataclass(frozen=True, kw_only=True)
class Landing:
    """Where one patch landed on another release."""

    text: Text

    conflicts: tuple[str, ...] = ()
    """Files, and the functions in them, where a merge needs a person."""

    elsewhere: tuple[str, ...] = ()
    """What stands in another function than on the pin, or does not bind last."""

    @property
    def applied(self) -> bool:
        """Whether the patch stands in the tree now."""
        fits = self.text in {Text.CLEAN, Text.OFFSET, Text.MERGED}
        return fits and not self.elsewhere


@dataclass(frozen=True, kw_only=True)
class Ground:
    """A scratch repository with the pinned series, and another release beside it."""

    folder: Path

    commits: Mapping[str, str]
    """The commit of each patch on the pin, by the patch's number."""

    @classmethod
    def open(cls, bare: Path, version: str, series: Series) -> "Ground":
        """
        Make the repository of a bare tree of the pin.

        Raises:
            VectorlessRagError: ``upstream_drift``: the series does not apply.
        """
        import_patches(bare, version, series.patches)
        numbers = (patch.id for patch in series.patches)
        return cls(
            folder=bare, commits=dict(zip(numbers, commits_of(bare), strict=True))
        )

    def start(self, version: str, tree: Path) -> None:
        """Stand on another release, with no patch on it."""
        self._git("checkout", "--quiet", "--detach", BASE)
        for path in self.folder.iterdir():
            if path.name != ".git":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(tree, self.folder, symlinks=True, dirs_exist_ok=True)
        self._git("add", "--all", "--force", ".")
        if self._git("status", "--porcelain"):
            self._git("commit", "--quiet", "-m", f"upstream {version}")

        self._git("update-ref", _STANDING, "HEAD")

    def keep(self, dest: Path) -> None:
        """
        Copy the repository, as it stands, for a maintainer to go on in.

        Args:
            dest: Folder that does not exist yet. Its branch ``patches`` holds what
                landed; `BASE` names the release, `OLD_BASE` the pin and `PINNED` each
                patch on it.
        """
        self._git("checkout", "--quiet", "-B", BRANCH)
        self._git("update-ref", OLD_BASE, BASE)
        self._git("update-ref", BASE, _STANDING)
        dest.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(self.folder, dest, symlinks=True)

    def land(self, patch: Patch) -> Landing:
        """
        Put one patch of the series onto what stands there now.

        Returns:
            How it went. Unless it is `Landing.applied`, the tree is as before.

        Raises:
            VectorlessRagError: ``upstream_unavailable``: git does not run.
        """
        text, as_text = self._fit(patch)
        merging = self._attempt("cherry-pick", self.commits[patch.id])
        if merging.status == 0:
            if text is None or not self._same_tree(as_text, "HEAD"):
                text = Text.MERGED
            return self._checked(patch, text)
        conflicts = tuple(self._conflicts())
        undone = self._attempt("cherry-pick", "--abort")
        if undone.status != 0:
            raise unavailable(f"{patch.file}: git: {last_line(merging.stderr)}")
        if not conflicts:
            return Landing(text=Text.TAKEN)
        if text is None:
            return Landing(text=Text.CONFLICT, conflicts=conflicts)
        # A merge is stricter about neighbouring lines than a patch is; whether the
        # text found its function is looked at all the same.
        self._git("reset", "--quiet", "--hard", as_text)
        return self._checked(patch, text, conflicts)

    def touched(self, patch: Patch) -> tuple[tuple[str, str | None], ...]:
        """Name the functions a patch works on; a file alone where there are none."""
        found: dict[tuple[str, str | None], None] = {
            (replaced.path, replaced.qualname): None for replaced in patch.replaces
        }
        bound = {path for path, _ in found}
        for places in self._homes(patch.changes, self.commits[patch.id]).values():
            for path, home in places:
                if home not in {MODULE, _FILE, _BROKEN}:
                    found[path, home] = None
                elif path not in bound:
                    found[path, None] = None
        return tuple(found)

    def leave_out(self) -> None:
        """Take the last patch off again."""
        self._git("reset", "--quiet", "--hard", "HEAD^")

    def _checked(
        self, patch: Patch, text: Text, conflicts: tuple[str, ...] = ()
    ) -> Landing:
        if strayed := tuple(self._strayed(patch)):
            self.leave_out()
            return Landing(text=text, elsewhere=strayed, conflicts=conflicts)
        return Landing(text=text)

    def _fit(self, patch: Patch) -> tuple[Text | None, str]:
        """Apply the bare text, keep the outcome as a commit, and take it off."""
        args = ("apply", "--index", "-v", "--whitespace=nowarn", "-")
        done = self._attempt(*args, stdin=patch.diff)
        if done.status != 0 or not self._git("diff", "--cached", "--name-only"):
            return None, ""
        said = done.stdout + done.stderr
        self._git("commit", "--quiet", "--reuse-message", self.commits[patch.id])
        commit = self._git("rev-parse", "HEAD").decode().strip()
        self.leave_out()
        moved = any(word in said for word in _MOVED)
        return (Text.OFFSET if moved else Text.CLEAN), commit

    def _strayed(self, patch: Patch) -> Iterator[str]:
        changes = changes_of(self.folder, "HEAD")
        was = self._homes(patch.changes, self.commits[patch.id])
        now = self._homes(changes, "HEAD")
        for text in was.keys() & now.keys():
            for old, new in zip(sorted(was[text]), sorted(now[text]), strict=False):
                if old != new:
                    yield f"{_spell(old)} -> {_spell(new)}"
        known = {place for places in was.values() for place in places}
        for text in now.keys() - was.keys():
            # Two blocks of changes may have grown together.
            yield from (_spell(place) for place in set(now[text]) - known)
        yield from self._overruled(patch, changes)

    def _overruled(self, patch: Patch, changes: Sequence[FileChange]) -> Iterator[str]:
        added = {change.path: change.added_lines for change in changes}
        for replaced in patch.replaces:
            try:
                data = self._blob("HEAD", replaced.path)
                line = last_binding(data, replaced.qualname)
            except (ValueError, SyntaxError):
                continue
            if line not in added.get(replaced.path, ()):
                yield f"{replaced.path}::{replaced.qualname}: upstream binds it last"

    def _homes(
        self, changes: Sequence[FileChange], commit: str
    ) -> dict[tuple[bytes, ...], list[tuple[str, str]]]:
        """Say, for each block of changed lines, which functions it stands in."""
        found: dict[tuple[bytes, ...], list[tuple[str, str]]] = {}
        for change in changes:
            after = self._blob(commit, change.path)
            before = self._blob(f"{commit}^", change.path)
            for run in change.runs:
                data, start, lines = (
                    (after, run.new_start, run.new)
                    if run.new
                    else (before, run.old_start, run.old)
                )
                home = _home(change.path, data, start, start + len(lines) - 1)
                found.setdefault((*run.old, b"", *run.new), []).append(
                    (change.path, home)
                )
        return found

    def _blob(self, commit: str, path: str) -> bytes:
        done = self._attempt("show", f"{commit}:{path}")
        return done.stdout if done.status == 0 else b""

    def _same_tree(self, one: str, other: str) -> bool:
        return self._attempt("diff", "--quiet", one, other).status == 0

    def _conflicts(self) -> Iterator[str]:
        listed = self._git("ls-files", "--unmerged", "-z").split(b"\0")[:-1]
        for path in sorted({line.partition(b"\t")[2].decode() for line in listed}):
            place = self.folder / path
            text = place.read_text("utf-8", "replace") if place.is_file() else ""
            near = list(dict.fromkeys(_marked(text)))
            yield f"{path} ({', '.join(near)})" if near else path

    def _attempt(self, *args: str, stdin: bytes = b"") -> Finished:
        env = {**bare_environment(), **IDENTITY}
        return git.attempt(self.folder, *args, stdin=stdin, env=env)

    def _git(self, *args: str) -> bytes:
        return git.run(self.folder, *args, env={**bare_environment(), **IDENTITY})


def _home(path: str, data: bytes, first: int, last: int) -> str:
    if not path.endswith(".py"):
        return _FILE
    try:
        return enclosing(data, first, last)
    except SyntaxError:
        return _BROKEN


def _spell(place: tuple[str, str]) -> str:
    return "::".join(place)


def _marked(text: str) -> Iterator[str]:
    """Name the definition above each conflict."""
    above = ""
    for line in text.splitlines():
        if heading := _HEADING.match(line):
            above = heading[1]
        elif line.startswith("<<<<<<< ") and above:
            yield above
