"""Build the patched upstream, and tell whether a build is still what it was."""

import contextlib
import fcntl
import glob
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.upstream import git
from vectorless_rag.upstream.apply import apply_series
from vectorless_rag.upstream.faults import drift, reason, tampered, unavailable
from vectorless_rag.upstream.fetch import VENDOR, Source, keep_wheel, obtain
from vectorless_rag.upstream.lock import Lock, read_lock
from vectorless_rag.upstream.pin import Pin, read_pin
from vectorless_rag.upstream.record import (
    RECORD_FILE,
    BuildRecord,
    BuiltPatch,
    Origin,
)
from vectorless_rag.upstream.series import Series, read_series
from vectorless_rag.upstream.tree import LICENSE, Entry, digest, read_entry, scan
from vectorless_rag.upstream.verifying import identity_of, verify


def build(
    root: Path,
    dest: Path,
    *,
    source: Source | None = None,
    vendor: Path | None = None,
) -> BuildRecord:
    """
    Make the patched upstream in *dest*, or return at once if it is there intact.

    Safe to run twice at the same time: one builds, the other waits and finds it.

    Args:
        root: Folder that holds ``upstream.toml`` and ``patches/``.
        dest: Build folder. An intact build of another pin or series is
            replaced; anything else that stands there is left alone.
        source: Where to get the release; by default the vendor folder, then
            the package index through pip.
        vendor: The vendor folder; by default ``vendor`` in *root*.

    Raises:
        VectorlessRagError: ``upstream_unavailable``, ``upstream_drift`` (names
            patch and file), ``upstream_tampered`` (names the files). Nothing is
            left behind.
    """
    pin, series, lock = read_locked(root)
    place = root / VENDOR if vendor is None else vendor
    # Tools that run in a folder of their own are handed these paths.
    dest, place = dest.absolute(), place.absolute()
    try:
        dest.parent.mkdir(parents=True, exist_ok=True)
        with _locked(dest):
            if (intact := _intact(dest, pin, lock)) is not None:
                return intact
            with _scratch(dest) as scratch:
                origin = obtain(pin, scratch, source=source, vendor=place)
                if source is None:
                    keep_wheel(pin, scratch, place)
                record = _make(scratch / "tree", pin, series, lock, origin)
                _move(scratch, dest)
                return record
    except OSError as error:
        raise unavailable(f"{dest.name}: {reason(error)}") from None


def read_locked(root: Path) -> tuple[Pin, Series, Lock]:
    """
    Read pin, series and lock of an installation, and see that they agree.

    Raises:
        VectorlessRagError: ``upstream_unavailable`` or ``upstream_drift``.
    """
    pin, series, lock = read_pin(root), read_series(root), read_lock(root)
    lock.check(pin, series)
    return pin, series, lock


def _intact(dest: Path, pin: Pin, lock: Lock) -> BuildRecord | None:
    """Return the record of a finished build of this very pin and series."""
    if not dest.is_symlink() and (not dest.exists() or not any(dest.iterdir())):
        return None
    try:
        record = verify(None, dest)
    except VectorlessRagError as error:
        if error.code is Code.UPSTREAM_UNAVAILABLE:
            raise tampered(f"{dest.name} is there and is no build") from None
        raise
    same = record.identity() == identity_of(pin, lock)
    return record if same else None


def _make(
    tree: Path, pin: Pin, series: Series, lock: Lock, origin: Origin
) -> BuildRecord:
    apply_series(tree, pin, series.patches, lock.patches)
    shutil.rmtree(tree / ".git")
    files = scan(tree, include=pin.include, exclude=pin.exclude)
    if digest(files) != lock.tree_sha256:
        raise drift("the patched tree has not the digest of the lock")
    record = BuildRecord(
        pageindex_version=pin.pageindex_version,
        upstream_sha256=pin.sha256,
        patch_sha256=lock.patch_sha256,
        tree_sha256=lock.tree_sha256,
        patches=_built(series, lock),
        files=_with_license(tree, files),
        origin=origin,
        git=git.version(),
        python=platform.python_version(),
    )
    (tree / RECORD_FILE).write_bytes(record.encode())
    return record


def _built(series: Series, lock: Lock) -> tuple[BuiltPatch, ...]:
    return tuple(
        BuiltPatch(
            id=patch.id,
            file=patch.file,
            sha256=patch.sha256,
            upstream_status=" ".join(patch.values("Upstream-Status")),
            proofs=tuple(proof.node for proof in patch.proofs),
            tree_after=locked.tree_after,
        )
        for patch, locked in zip(series.patches, lock.patches, strict=True)
    )


def _with_license(tree: Path, files: tuple[Entry, ...]) -> tuple[Entry, ...]:
    license_entry = read_entry(tree, LICENSE)
    if license_entry is None:
        raise AssertionError("no tree is taken without its licence")
    return (license_entry, *files)


def _move(scratch: Path, dest: Path) -> None:
    """Put the finished tree in place in one rename, once it is on the disk."""
    tree = scratch / "tree"
    for folder, _, names in os.walk(tree):
        for name in [*names, "."]:
            _sync(Path(folder) / name)
    # An earlier build steps aside first: a folder that is not empty cannot be
    # renamed over. The scratch folder takes it, and goes with it.
    if dest.exists() and any(dest.iterdir()):
        dest.rename(scratch / "earlier")
    try:
        tree.rename(dest)
    except OSError:
        if (scratch / "earlier").exists():
            (scratch / "earlier").rename(dest)
        raise
    _sync(dest.parent)


def _sync(path: Path) -> None:
    if path.is_symlink():
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def _scratch(dest: Path) -> Iterator[Path]:
    prefix = f".{dest.name}-build-"
    # Under the lock no one else is building: these were left by a killed one.
    for left in dest.parent.glob(f"{glob.escape(prefix)}*"):
        shutil.rmtree(left)
    with tempfile.TemporaryDirectory(dir=dest.parent, prefix=prefix) as name:
        yield Path(name)


@contextlib.contextmanager
def _locked(dest: Path) -> Iterator[None]:
    with (dest.parent / f".{dest.name}.lock").open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
