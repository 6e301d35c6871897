"""What a maintainer does with the series: open it, write it back, lock it."""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from vectorless_rag.upstream import git
from vectorless_rag.upstream.apply import apply_series
from vectorless_rag.upstream.export import (
    BASE,
    export_patches,
    import_patches,
    version_of,
)
from vectorless_rag.upstream.faults import drift, some
from vectorless_rag.upstream.fetch import VENDOR, Source, keep_wheel, obtain
from vectorless_rag.upstream.listing import SERIES, read_lines, retired
from vectorless_rag.upstream.lock import LOCK_FILE, Lock, LockedUpstream
from vectorless_rag.upstream.pin import PATCHES, Pin, read_pin
from vectorless_rag.upstream.releases import look_up, write_pin
from vectorless_rag.upstream.series import Series, read_series


@contextmanager
def unpatched(root: Path, pin: Pin, *, source: Source | None = None) -> Iterator[Path]:
    """
    Put the verified, unpatched tree into a folder for a while.

    Raises:
        VectorlessRagError: ``upstream_unavailable`` or ``upstream_tampered``.
    """
    with tempfile.TemporaryDirectory(prefix="upstream-") as name:
        obtain(pin, Path(name), source=source, vendor=root / VENDOR)
        if source is None:
            keep_wheel(pin, Path(name), root / VENDOR)
        yield Path(name) / "tree"


def derive_lock(
    root: Path,
    pin: Pin,
    series: Series,
    *,
    git_version: str,
    source: Source | None = None,
) -> Lock:
    """
    Apply the series and write down what each patch found and left.

    Args:
        root: Folder that holds the vendor folder.
        pin: The release.
        series: The patches.
        git_version: The git that exported them.
        source: Where to get the release.

    Raises:
        VectorlessRagError: ``upstream_drift``, naming the patch and the file.
    """
    with unpatched(root, pin, source=source) as tree:
        locked = apply_series(tree, pin, series.patches)
    return Lock(
        git=git_version,
        upstream=LockedUpstream.of(pin),
        patches=locked,
        patch_sha256=series.patch_sha256,
        tree_sha256=locked[-1].tree_after if locked else pin.tree_sha256,
    )


def write_lock(root: Path, *, source: Source | None = None) -> Lock:
    """
    Derive the lock of an installation and write it beside the series.

    Raises:
        VectorlessRagError: see `derive_lock`.
    """
    pin, series = read_pin(root), read_series(root)
    lock = derive_lock(root, pin, series, git_version=git.version(), source=source)
    (root / PATCHES / LOCK_FILE).write_bytes(lock.encode())
    return lock


def open_shell(root: Path, dest: Path, *, source: Source | None = None) -> None:
    """
    Make a scratch repository with one commit for each patch.

    Args:
        root: Folder that holds ``upstream.toml`` and ``patches/``.
        dest: Folder that does not exist yet.
        source: Where to get the release.

    Raises:
        VectorlessRagError: ``upstream_drift``: *dest* exists, or git could not
            apply a patch.
    """
    pin, series = read_pin(root), read_series(root)
    if dest.exists():
        raise drift(f"{dest.name} exists; a shell starts in a new folder")
    with unpatched(root, pin, source=source) as tree:
        import_patches(tree, pin.version, series.patches)
        dest.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(tree, dest, symlinks=True)


def write_series(
    root: Path, repository: Path, *, base: str = BASE, source: Source | None = None
) -> Lock:
    """
    Export a scratch repository into ``patches/``: files, series and lock.

    Nothing is written unless the exported series applies to the release that the
    repository stands on. Where that is another one than the pin, the pin moves.

    Args:
        root: Folder that holds ``upstream.toml`` and ``patches/``.
        repository: The scratch repository.
        base: The commit of the unpatched tree in it.
        source: Where to get the release.

    Raises:
        VectorlessRagError: ``upstream_drift``: a commit names no file, numbers
            do not ascend, a patch is gone and not in ``RETIRED.md``, or the
            series does not apply.
    """
    pin = read_pin(root)
    stands_on = version_of(repository, base) or pin.version
    moved = look_up(root, stands_on) if stands_on != pin.version else None
    if moved is not None:
        pin = moved.pin(pin)
    patches = export_patches(repository, base)
    names = [patch.file for patch in patches]
    _check_names(root, names)
    series = Series(patches=patches)
    lock = derive_lock(root, pin, series, git_version=git.version(), source=source)
    if moved is not None:
        write_pin(root, moved)
    folder = root / PATCHES
    for old in folder.glob("*.patch"):
        if old.name not in names:
            old.unlink()
    for patch in patches:
        (folder / patch.file).write_bytes(patch.raw)
    lines = _series_lines(read_lines(root), names)
    (folder / SERIES).write_text("".join(f"{line}\n" for line in lines))
    (folder / LOCK_FILE).write_bytes(lock.encode())
    return lock


def round_trip(root: Path, *, source: Source | None = None) -> tuple[str, ...]:
    """
    Import the series, export it again, and name the patches whose bytes differ.

    Raises:
        VectorlessRagError: ``upstream_drift``: git could not apply a patch.
    """
    pin, series = read_pin(root), read_series(root)
    with unpatched(root, pin, source=source) as tree:
        import_patches(tree, pin.version, series.patches)
        again = export_patches(tree)
    pairs = zip(series.patches, again, strict=True)
    return tuple(old.file for old, new in pairs if old != new)


def _check_names(root: Path, names: Sequence[str]) -> None:
    numbers = [name[:4] for name in names]
    if numbers != sorted(set(numbers)):
        raise drift(f"numbers do not ascend: {some(numbers)}")
    gone_for_good = retired(root)
    if back := sorted(set(numbers) & gone_for_good):
        raise drift(f"{some(back)} was retired; numbers are never reused")
    there = {path.name[:4] for path in (root / PATCHES).glob("[0-9]*.patch")}
    if lost := sorted(there - set(numbers) - gone_for_good):
        raise drift(f"no commit for {some(lost)}; list it in RETIRED.md to drop it")


def _series_lines(old: Sequence[str], names: Sequence[str]) -> list[str]:
    """Keep every comment in front of the name it stood in front of."""
    comments: dict[str, list[str]] = {}
    waiting: list[str] = []
    for line in old:
        name = line.partition("#")[0].strip()
        waiting.append(line)
        if name:
            comments[name], waiting = waiting, []
    kept = [line for name in names for line in comments.get(name, [name])]
    first = next(iter(comments), None)
    if first is not None and first not in names:
        # The head of the file outlives the patch it stood in front of.
        kept = comments[first][:-1] + kept
    return kept + waiting if comments else waiting + kept
