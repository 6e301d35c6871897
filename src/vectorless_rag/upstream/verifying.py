"""Tell whether a build is still what it was, and of the pin and the series here."""

import os
from collections.abc import Iterator
from pathlib import Path

from vectorless_rag.upstream.faults import drift, some, tampered
from vectorless_rag.upstream.lock import Lock, read_lock
from vectorless_rag.upstream.pin import Pin, read_pin
from vectorless_rag.upstream.record import RECORD_FILE, BuildRecord, read_record
from vectorless_rag.upstream.tree import LICENSE, digest, read_entry


def verify(expected: Path | BuildRecord | None, dest: Path) -> BuildRecord:
    """
    Check that every file of a build is the one that was built.

    Args:
        expected: Root folder whose pin and series it must be of, or the record
            it must share its identity with; None asks only that the folder
            agrees with its own record.
        dest: Build folder.

    Returns:
        Its record.

    Raises:
        VectorlessRagError: ``upstream_unavailable``: there is no build;
            ``upstream_drift``: it is of another pin or series;
            ``upstream_tampered``: the message names the first files that were
            changed, added or removed; `differences` names each.
    """
    record = read_record(dest)
    if wrong := differences(dest):
        raise tampered(some(wrong))
    tree = [e for e in record.files if e.path != LICENSE]
    if digest(tree) != record.tree_sha256:
        raise tampered(f"{RECORD_FILE}: tree_sha256 is not that of its files")
    if isinstance(expected, BuildRecord):
        _check_identity(record, expected.identity())
    elif expected is not None:
        pin, lock = agreeing(expected)
        _check_identity(record, identity_of(pin, lock))
    return record


def differences(dest: Path) -> tuple[str, ...]:
    """
    Name every file of a build that was changed, added or removed since.

    Args:
        dest: Build folder.

    Raises:
        VectorlessRagError: ``upstream_unavailable`` or ``upstream_tampered``:
            it holds no record, or none of ours.
    """
    return tuple(sorted(_wrong(dest, read_record(dest))))


def agreeing(root: Path) -> tuple[Pin, Lock]:
    """
    Read pin and lock of an installation, and see that its series is theirs.

    Raises:
        VectorlessRagError: As `read_locked`.
    """
    pin, lock = read_pin(root), read_lock(root)
    if not lock.is_of(pin, root):
        # What differs is told by the readers of patches, which are slow to load.
        from vectorless_rag.upstream.series import read_series  # noqa: PLC0415

        lock.check(pin, read_series(root))
    return pin, lock


def identity_of(pin: Pin, lock: Lock) -> tuple[str, ...]:
    """Return what a build of this pin and series has for its identity."""
    return (
        pin.pageindex_version,
        pin.sha256,
        lock.patch_sha256,
        lock.tree_sha256,
    )


def _check_identity(record: BuildRecord, wanted: tuple[str, ...]) -> None:
    names = ("pageindex_version", "upstream_sha256", "patch_sha256", "tree_sha256")
    pairs = zip(names, record.identity(), wanted, strict=True)
    if other := [name for name, found, want in pairs if found != want]:
        raise drift(f"the build is of another {', '.join(other)}")


def _wrong(dest: Path, record: BuildRecord) -> Iterator[str]:
    for entry in record.files:
        found = read_entry(dest, entry.path)
        if found is None:
            yield f"{entry.path} is missing"
        elif found != entry:
            yield f"{entry.path} was changed"
    known = {entry.path for entry in record.files} | {RECORD_FILE}
    for path in sorted(_files(dest)):
        if path not in known:
            # It may stand in front of a module that a run imports.
            yield f"{path} was added"


def _files(dest: Path) -> Iterator[str]:
    for folder, folders, names in os.walk(dest):
        # Bytecode caches are Python's own; runs use a prefix elsewhere.
        folders[:] = [name for name in folders if name != "__pycache__"]
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        for name in [*names, *links]:
            yield (Path(folder) / name).relative_to(dest).as_posix()
