"""
Name a tree of source files by one digest, the same way for every source of it.

Root is the folder that holds the package. Only listed paths count, so that a
wheel, a source archive and a git checkout of one release agree.
"""

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from vectorless_rag.canon import sha256
from vectorless_rag.units import Sha256
from vectorless_rag.upstream.faults import tampered

FILE = "100644"
EXECUTABLE = "100755"
LINK = "120000"

LICENSE = "LICENSE"
"""The one file of a build that is not of the tree."""

_IGNORED = frozenset({".git", "__pycache__"})


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One file of a tree."""

    path: str
    """Relative to the root, "/" between the parts."""

    mode: str
    """``100644``, ``100755`` (the owner may execute) or ``120000`` (symlink)."""

    sha256: Sha256
    """Digest of the file's bytes, or of the link's target."""

    def line(self) -> bytes:
        """Spell the entry as one line of the digest."""
        name = self.path.encode("utf-8")
        return b"%s %s %d:%s\n" % (
            self.mode.encode(),
            self.sha256.encode(),
            len(name),
            name,
        )


def scan(
    root: Path, *, include: Sequence[str], exclude: Sequence[str] = ()
) -> tuple[Entry, ...]:
    """
    List the files of a tree, sorted by the bytes of their paths.

    Args:
        root: Folder the paths are relative to.
        include: Files and folders that count. Each must exist.
        exclude: Files and folders below them that do not. ``.git``,
            ``__pycache__`` and ``*.pyc`` never count.

    Raises:
        VectorlessRagError: ``upstream_tampered``: a listed path is missing, or
            holds a socket, a device, or a name with a newline or not in UTF-8.
    """
    left_out = frozenset(exclude)
    found = [e for top in include for e in _walk(root, top, left_out)]
    return tuple(sorted(found, key=lambda entry: entry.path.encode("utf-8")))


def digest(entries: Sequence[Entry]) -> Sha256:
    """Digest sorted *entries* into the ``tree_sha256`` of the design."""
    return sha256(b"tree/1\0" + b"".join(entry.line() for entry in entries))


def blob_id(data: bytes) -> str:
    """Return the id git gives a file of these bytes."""
    head = b"blob %d\0" % len(data)
    return hashlib.sha1(head + data, usedforsecurity=False).hexdigest()


def read_entry(root: Path, path: str) -> Entry | None:
    """Read one file of a tree; None where there is none."""
    try:
        status = (root / path).lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISLNK(status.st_mode):
        target = os.fsencode((root / path).readlink())
        return Entry(path=path, mode=LINK, sha256=sha256(target))
    if not stat.S_ISREG(status.st_mode):
        raise tampered(f"{path!r} is neither file, folder nor symlink")
    mode = EXECUTABLE if status.st_mode & stat.S_IXUSR else FILE
    return Entry(path=path, mode=mode, sha256=sha256((root / path).read_bytes()))


def _walk(root: Path, path: str, left_out: frozenset[str]) -> Iterator[Entry]:
    place = root / path
    if path in left_out or place.name in _IGNORED or path.endswith(".pyc"):
        return
    _check_name(path)
    if place.is_dir() and not place.is_symlink():
        for inner in place.iterdir():
            yield from _walk(root, f"{path}/{inner.name}", left_out)
        return
    entry = read_entry(root, path)
    if entry is None:
        raise tampered(f"{path!r} is missing")
    yield entry


def _check_name(path: str) -> None:
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        raise tampered(f"name {path!r} is not UTF-8") from None
    if "\n" in path:
        raise tampered(f"name {path!r} holds a line break")
