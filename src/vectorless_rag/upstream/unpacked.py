"""Check an unpacked release against the pin and take the files that count."""

import shutil
import tarfile
from collections.abc import Iterator
from email.parser import HeaderParser
from pathlib import Path

from vectorless_rag.upstream.faults import tampered, unavailable
from vectorless_rag.upstream.pin import Pin
from vectorless_rag.upstream.tree import EXECUTABLE, LICENSE, LINK, digest, scan


def take(folder: Path, pin: Pin, into: Path) -> None:
    """
    Copy the pinned tree and its licence out of an unpacked release.

    Args:
        folder: The release, or a folder that holds the release's one folder.
        pin: What must be in it.
        into: A folder that does not exist yet.

    Raises:
        VectorlessRagError: ``upstream_tampered``: the tree's digest or the
            version in the metadata is not the pinned one;
            ``upstream_unavailable``: no such tree, or no licence with it.
    """
    root = _root(folder, pin)
    _check_metadata(root, pin)
    entries = scan(root, include=pin.include, exclude=pin.exclude)
    if (found := digest(entries)) != pin.tree_sha256:
        raise tampered(f"the tree of {pin.name} has digest {found}")
    for entry in entries:
        _copy(root / entry.path, into / entry.path, entry.mode)
    shutil.copyfile(_license(root, pin), into / LICENSE)
    again = digest(scan(into, include=pin.include, exclude=pin.exclude))
    if again != pin.tree_sha256:
        raise tampered(f"the tree of {pin.name} changed while it was copied")


def pack(tree: Path, pin: Pin, archive: Path) -> None:
    """Write what `take` took as a tar file, the same bytes every time."""
    entries = scan(tree, include=[*pin.include, LICENSE], exclude=pin.exclude)
    with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as opened:
        for entry in entries:
            info = tarfile.TarInfo(entry.path)
            info.mode = int(entry.mode, 8) & 0o777
            body = tree / entry.path
            info.size = body.stat().st_size
            with body.open("rb") as file:
                opened.addfile(info, file)


def _copy(old: Path, new: Path, mode: str) -> None:
    new.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(old, new, follow_symlinks=False)
    if mode != LINK:
        new.chmod(0o755 if mode == EXECUTABLE else 0o644)


def _root(folder: Path, pin: Pin) -> Path:
    inside = sorted(folder.iterdir()) if folder.is_dir() else []
    # A source archive holds one folder, and the release in that.
    for place in [folder, *(inside if len(inside) == 1 else [])]:
        if all((place / path).exists() for path in pin.include):
            return place
    raise unavailable(f"{folder.name} does not hold {', '.join(pin.include)}")


def _check_metadata(root: Path, pin: Pin) -> None:
    for path in _metadata(root, pin):
        said = HeaderParser().parsestr(path.read_text(encoding="utf-8"))
        if (said["Name"], said["Version"]) != (pin.name, pin.version):
            raise tampered(
                f"{path.parent.name}/{path.name} is of {said['Name']} {said['Version']}"
            )


def _metadata(root: Path, pin: Pin) -> Iterator[Path]:
    yield from root.glob(f"{pin.name}-*.dist-info/METADATA")
    yield from root.glob("PKG-INFO")


def _license(root: Path, pin: Pin) -> Path:
    dist_info = f"{pin.name}-{pin.version}.dist-info"
    for place in ("", f"{dist_info}/licenses/", f"{dist_info}/"):
        if (path := root / f"{place}{LICENSE}").is_file():
            return path
    raise unavailable(f"{root.name} holds no {LICENSE}")
