"""Unpack an archive without trusting it."""

import stat
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from vectorless_rag.upstream.faults import reason, tampered, unavailable

# Far above any release; a bomb stops here instead of at a full disk.
_MOST_BYTES = 256 * 1024**2
_MOST_FILES = 20_000

_Member = tuple[str, int, bool, IO[bytes]]
"""Name, size, whether the owner may execute it, and its bytes."""


def unpack(archive: Path, into: Path) -> None:
    """
    Unpack a zip or tar archive into an empty folder.

    Args:
        archive: A wheel, a source distribution, or any zip or tar file.
        into: Folder that takes the files. Regular files and folders only; the
            owner's right to execute is kept, nothing else of the modes.

    Raises:
        VectorlessRagError: ``upstream_tampered``: a member has an absolute
            path, a ``..`` or a backslash in it, is a link or a device, comes
            twice, or the whole is over 256 MiB or 20 000 files.
            ``upstream_unavailable``: it is no archive.
    """
    used = 0
    try:
        for count, (name, size, executable, body) in enumerate(_members(archive), 1):
            used += size
            if count > _MOST_FILES or used > _MOST_BYTES:
                raise tampered(f"{archive.name} unpacks to too much")
            _write(into / _safe(archive, name), body, size, executable=executable)
    except FileExistsError as error:
        raise tampered(f"{archive.name}: {_name(error)} comes twice") from None
    except NotADirectoryError as error:
        raise tampered(f"{archive.name}: {_name(error)} is in a file") from None
    except (tarfile.TarError, zipfile.BadZipFile, EOFError) as error:
        raise tampered(f"{archive.name}: {error}") from None
    except OSError as error:
        raise unavailable(f"{archive.name}: {reason(error)}") from None


def _members(archive: Path) -> Iterator[_Member]:
    if zipfile.is_zipfile(archive):
        return _zip_members(archive)
    if tarfile.is_tarfile(archive):
        return _tar_members(archive)
    raise unavailable(f"{archive.name} is neither a zip nor a tar archive")


def _zip_members(archive: Path) -> Iterator[_Member]:
    with zipfile.ZipFile(archive) as opened:
        for info in opened.infolist():
            # The upper half holds what the packing system calls a mode.
            mode = info.external_attr >> 16
            if stat.S_IFMT(mode) not in {0, stat.S_IFREG, stat.S_IFDIR}:
                raise tampered(f"{archive.name}: {info.filename!r} is no regular file")
            if info.is_dir():
                _safe(archive, info.filename)
                continue
            with opened.open(info) as body:
                executable = bool(mode & stat.S_IXUSR)
                yield info.filename, info.file_size, executable, body


def _tar_members(archive: Path) -> Iterator[_Member]:
    with tarfile.open(archive) as opened:
        for info in opened:
            if info.isdir():
                _safe(archive, info.name)
                continue
            body = opened.extractfile(info) if info.isreg() else None
            if body is None:
                raise tampered(f"{archive.name}: {info.name!r} is no regular file")
            with body:
                yield info.name, info.size, bool(info.mode & stat.S_IXUSR), body


def _safe(archive: Path, name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or set(name) & set("\\\0\n"):
        raise tampered(f"{archive.name}: member {name!r} leaves the folder")
    return path


def _write(path: Path, body: IO[bytes], size: int, *, executable: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = body.read(size + 1)
    if len(data) != size:
        raise tampered(f"{path.name!r} is not as long as the archive says")
    with path.open("xb") as file:
        file.write(data)
    path.chmod(0o755 if executable else 0o644)


def _name(error: OSError) -> str:
    return repr(Path(str(error.filename)).name)
