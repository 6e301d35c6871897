"""
Apply a series to a tree, with proof that every hunk lands where it was written.

A context match is no proof: where upstream swapped two sibling functions, a
clean patch lands in the wrong one with no message. So the blob ids of every
touched file are compared before and after, and the last binding of a replaced
name must be a line this patch added.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from vectorless_rag.upstream import git
from vectorless_rag.upstream.diff import ABSENT, FileChange
from vectorless_rag.upstream.faults import drift, some
from vectorless_rag.upstream.lock import LockedFile, LockedPatch
from vectorless_rag.upstream.mailbox import Patch
from vectorless_rag.upstream.pin import Pin
from vectorless_rag.upstream.places import last_binding, places, source_sha256
from vectorless_rag.upstream.tool import last_line
from vectorless_rag.upstream.tree import Entry, blob_id, digest, scan

# git says these when it placed a hunk elsewhere, or nowhere, and exits 0.
_BAD_WORDS = (b"Skipped", b"offset", b"Context reduced", b"Falling back")


def apply_series(
    tree: Path,
    pin: Pin,
    patches: Sequence[Patch],
    locked: Sequence[LockedPatch] | None = None,
) -> tuple[LockedPatch, ...]:
    """
    Apply *patches* in order to the unpatched tree in *tree*.

    Args:
        tree: Folder that holds the unpatched tree. It becomes a git repository
            of its own: inside another one git may skip every hunk and exit 0.
        pin: Which paths make up the tree.
        patches: The series, or a first part of it.
        locked: What each patch must find and leave; None derives it.

    Returns:
        What each patch found and left.

    Raises:
        VectorlessRagError: ``upstream_drift``, naming the patch and the file.
    """
    git.run(tree, "init", "--quiet", "--template=")
    return tuple(
        apply_patch(tree, pin, patch, locked[k] if locked is not None else None)
        for k, patch in enumerate(patches)
    )


def apply_patch(
    tree: Path, pin: Pin, patch: Patch, locked: LockedPatch | None = None
) -> LockedPatch:
    """
    Apply one patch to the tree just before it; see `apply_series`.

    Raises:
        VectorlessRagError: ``upstream_drift``, naming the patch and the file.
    """
    before = _scan(tree, pin)
    old = {change.path: _read(tree / change.path) for change in patch.changes}
    _check_before(patch, old)
    _git_apply(tree, patch)
    after = _scan(tree, pin)
    new = {change.path: _read(tree / change.path) for change in patch.changes}
    _check_after(patch, new)
    _check_extent(patch, before, after)
    _check_bindings(patch, new)
    found = LockedPatch(
        id=patch.id,
        file=patch.file,
        sha256=patch.sha256,
        files=tuple(_locked_file(patch, c, old, new) for c in patch.changes),
        replaces=patch.replaces,
        tree_after=digest(after),
    )
    if locked is not None and found != locked:
        raise drift(f"{patch.file}: {_difference(found, locked)} is not as locked")
    return found


def _scan(tree: Path, pin: Pin) -> tuple[Entry, ...]:
    return scan(tree, include=pin.include, exclude=pin.exclude)


def _read(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() and not path.is_symlink() else None


def _id(data: bytes | None) -> str:
    return ABSENT if data is None else blob_id(data)


def _check_before(patch: Patch, old: dict[str, bytes | None]) -> None:
    for change in patch.changes:
        if (found := _id(old[change.path])) != change.before:
            raise drift(
                f"{patch.file}: {change.path} is {found[:12]} before the patch, "
                f"not {change.before[:12]}"
            )
    for replaced in patch.replaces:
        data = old.get(replaced.path)
        if data is None:
            raise drift(f"{patch.file}: replaces in {replaced.path}, not changed by it")
        try:
            found = source_sha256(data, replaced.qualname)
        except (ValueError, SyntaxError) as error:
            raise drift(f"{patch.file}: {replaced.path}: {error}") from None
        if found != replaced.sha256:
            raise drift(
                f"{patch.file}: the source of {replaced.path}::{replaced.qualname} "
                f"has digest {found}"
            )


def _git_apply(tree: Path, patch: Patch) -> None:
    for check in (("--check",), ()):
        args = ("apply", *check, "-v", "--whitespace=error-all", "-")
        done = git.attempt(tree, *args, stdin=patch.diff)
        said = done.stdout + done.stderr
        if done.status != 0:
            raise drift(f"{patch.file}: git apply: {last_line(said)}")
        for word in _BAD_WORDS:
            if word in said:
                raise drift(f"{patch.file}: git apply says {word.decode()!r}")


def _check_after(patch: Patch, new: dict[str, bytes | None]) -> None:
    for change in patch.changes:
        if (found := _id(new[change.path])) != change.after:
            raise drift(
                f"{patch.file}: {change.path} is {found[:12]} after the patch, "
                f"not {change.after[:12]}"
            )


def _check_extent(
    patch: Patch, before: Sequence[Entry], after: Sequence[Entry]
) -> None:
    touched = {entry.path for entry in set(before) ^ set(after)}
    if strange := sorted(touched ^ {change.path for change in patch.changes}):
        raise drift(f"{patch.file}: changed other files than it names: {some(strange)}")
    modes = {entry.path: entry.mode for entry in after}
    for change in patch.changes:
        if modes.get(change.path, change.mode) != change.mode:
            raise drift(f"{patch.file}: {change.path} has another mode")


def _check_bindings(patch: Patch, new: dict[str, bytes | None]) -> None:
    changes = {change.path: change for change in patch.changes}
    for replaced in patch.replaces:
        name = f"{replaced.path}::{replaced.qualname}"
        try:
            line = last_binding(new[replaced.path] or b"", replaced.qualname)
        except (ValueError, SyntaxError) as error:
            raise drift(f"{patch.file}: {replaced.path}: {error}") from None
        if line not in changes[replaced.path].added_lines:
            raise drift(f"{patch.file}: the last binding of {name} is upstream's")


def _locked_file(
    patch: Patch,
    change: FileChange,
    old: dict[str, bytes | None],
    new: dict[str, bytes | None],
) -> LockedFile:
    try:
        where = places(change, old[change.path] or b"", new[change.path] or b"")
    except SyntaxError as error:
        raise drift(f"{patch.file}: {change.path} is no Python: {error.msg}") from None
    return LockedFile(
        path=change.path,
        mode=change.mode,
        before=change.before,
        after=change.after,
        places=where,
    )


def _difference(found: LockedPatch, locked: LockedPatch) -> str:
    return ", ".join(_differences(found, locked))


def _differences(found: LockedPatch, locked: LockedPatch) -> Iterator[str]:
    for field in ("file", "sha256", "files", "replaces", "tree_after"):
        if getattr(found, field) != getattr(locked, field):
            yield field
