"""
Get the pinned release: from the vendor folder, an index, git, or a path.

Whatever the way, it ends in the same check: the digest of the tree.
"""

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from vectorless_rag.canon import sha256
from vectorless_rag.upstream.archive import unpack
from vectorless_rag.upstream.faults import reason, tampered, unavailable
from vectorless_rag.upstream.gitsource import take_commit
from vectorless_rag.upstream.pin import GitSource, Pin, read_pin
from vectorless_rag.upstream.pip import complaint, pip
from vectorless_rag.upstream.record import Origin
from vectorless_rag.upstream.unpacked import pack, take

VENDOR = "vendor"


@dataclass(frozen=True, kw_only=True)
class IndexSource:
    """The wheel, through pip: the user's own index, mirror and proxy apply."""


@dataclass(frozen=True, kw_only=True)
class FileSource:
    """A wheel, another archive, or a folder."""

    path: Path


Source = IndexSource | GitSource | FileSource


def fetch(
    root: Path, *, source: Source | None = None, vendor: Path | None = None
) -> Path:
    """
    Leave a verified archive where every later build takes it, with no network.

    Args:
        root: Folder that holds ``upstream.toml``.
        source: Where to look; by default the vendor folder, then the index.
        vendor: The vendor folder; by default ``vendor`` in *root*.

    Returns:
        The archive: the pinned wheel, or a tar file of the verified tree where
        the source held no wheel.

    Raises:
        VectorlessRagError: ``upstream_unavailable`` or ``upstream_tampered``.
    """
    pin = read_pin(root)
    place = root / VENDOR if vendor is None else vendor
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place, prefix=".fetch-") as name:
            obtain(pin, Path(name), source=source, vendor=place)
            kept = vendored(pin, place) if source is None else None
            return kept or _keep(pin, Path(name), place)
    except OSError as error:
        raise unavailable(f"{place.name}: {reason(error)}") from None


def obtain(pin: Pin, scratch: Path, *, source: Source | None, vendor: Path) -> Origin:
    """
    Put the verified, unpatched tree and its licence into ``scratch/tree``.

    Args:
        pin: What to get.
        scratch: An empty folder. A wheel that was downloaded or copied stays in
            it under its own name.
        source: Where to look; by default the vendor folder, then the index.
        vendor: The vendor folder.

    Raises:
        VectorlessRagError: ``upstream_unavailable`` or ``upstream_tampered``.
    """
    match source:
        case None:
            if (archive := vendored(pin, vendor)) is not None:
                return _from_file(pin, scratch, archive)
            return _from_index(pin, scratch)
        case IndexSource():
            return _from_index(pin, scratch)
        case FileSource(path=path):
            return _from_file(pin, scratch, path)
        case GitSource():
            return _from_git(pin, scratch, source)


def vendored(pin: Pin, vendor: Path) -> Path | None:
    """Return the archive an earlier fetch left, if there is one."""
    places = (vendor / pin.file, vendor / _tar_name(pin))
    return next((path for path in places if path.is_file()), None)


def keep_wheel(pin: Pin, scratch: Path, vendor: Path) -> None:
    """Keep a wheel that `obtain` downloaded, where the vendor folder takes it."""
    if (scratch / pin.file).is_file() and vendored(pin, vendor) is None:
        try:
            vendor.mkdir(parents=True, exist_ok=True)
            _keep(pin, scratch, vendor)
        except OSError:
            # A read-only installation builds all the same.
            return


def _keep(pin: Pin, scratch: Path, vendor: Path) -> Path:
    wheel = scratch / pin.file
    if wheel.is_file():
        return _place(vendor / pin.file, lambda new: shutil.copyfile(wheel, new))
    tree = scratch / "tree"
    return _place(vendor / _tar_name(pin), lambda new: pack(tree, pin, new))


def _place(target: Path, write: Callable[[Path], object]) -> Path:
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".keep-")
    os.close(handle)
    new = Path(name)
    try:
        write(new)
        new.chmod(0o644)
        new.replace(target)
    finally:
        new.unlink(missing_ok=True)
    return target


def _tar_name(pin: Pin) -> str:
    return f"{pin.name}-{pin.version}-{pin.tree_sha256[:16]}.tar"


def _from_index(pin: Pin, scratch: Path) -> Origin:
    # pip runs in that folder, so a relative path would lead elsewhere.
    scratch = scratch.absolute()
    wanted = scratch / "requirements.txt"
    wanted.write_text(f"{pin.name}=={pin.version} --hash=sha256:{pin.sha256}\n")
    done = pip(scratch, "download", "--dest", str(scratch), "-r", str(wanted))
    wheel = scratch / pin.file
    if done.status != 0 or not wheel.is_file():
        raise unavailable(f"pip could not download it: {complaint(done)}")
    return _from_file(pin, scratch, wheel)


def _from_file(pin: Pin, scratch: Path, path: Path) -> Origin:
    tree = scratch / "tree"
    if path.is_dir():
        take(path, pin, tree)
        return _tree_origin(pin, path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise unavailable(f"{path.name}: {reason(error)}") from None
    if path.suffix == ".whl":
        _check_wheel(pin, path.name, data)
    # What was checked is what is unpacked, whoever writes to the path meanwhile.
    copy = scratch / path.name
    copy.write_bytes(data)
    with tempfile.TemporaryDirectory(dir=scratch, prefix="unpacked-") as name:
        unpack(copy, Path(name))
        take(Path(name), pin, tree)
    if path.suffix != ".whl":
        return _tree_origin(pin, path)
    uri = f"pkg:pypi/{pin.name}@{pin.version}"
    return Origin(uri=uri, algorithm="sha256", digest=pin.sha256)


def _check_wheel(pin: Pin, name: str, data: bytes) -> None:
    if name != pin.file:
        raise tampered(f"{name} is not {pin.file}")
    if len(data) != pin.size or sha256(data) != pin.sha256:
        raise tampered(f"{name} has {len(data)} bytes of digest {sha256(data)}")


def _tree_origin(pin: Pin, path: Path) -> Origin:
    return Origin(
        uri=f"file:{path.name}", algorithm="tree_sha256", digest=pin.tree_sha256
    )


def _from_git(pin: Pin, scratch: Path, source: GitSource) -> Origin:
    with tempfile.TemporaryDirectory(dir=scratch, prefix="commit-") as name:
        take_commit(source, Path(name), pin)
        take(Path(name) / "files", pin, scratch / "tree")
    return Origin(
        uri=f"git+{source.commit}", algorithm="gitCommit", digest=source.commit
    )
