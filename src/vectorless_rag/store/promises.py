"""
What the store needs of a file system, tried out in a scratch folder.

A power loss cannot be tried out: that a sync call returns without an error is all
that a program can see of it.
"""

import contextlib
import errno
import fcntl
import os
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from vectorless_rag.environment import python_executable
from vectorless_rag.process import run_tool
from vectorless_rag.store.disk import faults

_SWAPS = 50
"""Renames during which another thread reads."""

_PATIENCE_S = 30.0
"""Longest wait for another process or thread, in seconds."""

# Exit status 0: it got the lock; 1: another process holds it.
_TRY_LOCK = """
import fcntl, sys
with open(sys.argv[1], "rb") as file:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(1)
"""


@dataclass(frozen=True, kw_only=True)
class Promise:
    """One thing the store relies on, and whether the file system keeps it."""

    name: str
    words: str

    broken: str = ""
    """How it is broken; empty: it is kept."""

    @property
    def kept(self) -> bool:
        """Whether the file system keeps it."""
        return not self.broken


class BrokenError(Exception):
    """A promise that is not kept; the message says how."""


def try_promises(folder: Path) -> list[Promise]:
    """
    Try every promise below *folder*, and leave nothing behind.

    Args:
        folder: An existing folder on the file system in question.

    Raises:
        VectorlessRagError: ``store_unwritable``: no scratch folder can be made
            there.
    """
    with (
        faults(folder.name),
        tempfile.TemporaryDirectory(
            dir=folder, prefix=".store-doctor-", ignore_cleanup_errors=True
        ) as name,
    ):
        return [_tried(Path(name), *promise) for promise in _PROMISES]


def _tried(
    scratch: Path, name: str, words: str, attempt: Callable[[Path], None]
) -> Promise:
    place = scratch / name
    broken = ""
    try:
        place.mkdir()
        attempt(place)
    except BrokenError as error:
        broken = str(error)
    except TimeoutError:
        broken = "no answer"
    except OSError as error:
        broken = errno.errorcode.get(error.errno or 0, "error")
    return Promise(name=name, words=words, broken=broken)


def need(kept: object, broken: str) -> None:
    """
    Go on if it is *kept*.

    Raises:
        BrokenError: It is *broken*, in these words.
    """
    if not kept:
        raise BrokenError(broken)


def _link(place: Path) -> None:
    first, second, taken = place / "first", place / "second", place / "taken"
    first.write_bytes(b"first")
    first.chmod(0o444)
    taken.write_bytes(b"taken")
    second.hardlink_to(first)
    need(second.samefile(first), "a second name is a copy")
    with contextlib.suppress(FileExistsError):
        taken.hardlink_to(first)
        raise BrokenError("a link took a name that was taken")
    need(taken.read_bytes() == b"taken", "a refused link changed the file")


def _rename(place: Path) -> None:
    target = place / "target"
    target.write_bytes(b"0" * 4096)
    seen: set[bytes] = set()
    looked, done = threading.Event(), threading.Event()

    def look() -> None:
        while not done.is_set():
            try:
                seen.add(target.read_bytes())
            except OSError:
                seen.add(b"")
            looked.set()

    reader = threading.Thread(target=look, daemon=True)
    reader.start()
    try:
        for number in range(_SWAPS):
            fresh = place / "fresh"
            fresh.write_bytes(b"%d" % (number % 10) * 4096)
            fresh.rename(target)
            # However busy the machine is, the reader gets its turn.
            looked.clear()
            looked.wait(_PATIENCE_S)
    finally:
        done.set()
        reader.join()
    whole = {b"%d" % digit * 4096 for digit in range(10)}
    need(seen <= whole, "a reader saw no file, or half of one")


def _sync_file(place: Path) -> None:
    with (place / "file").open("wb") as file:
        file.write(b"data")
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(place: Path) -> None:
    (place / "file").touch()
    handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _lock(place: Path) -> None:
    path = place / "lock"
    path.touch()
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        need(_locks(path) == 1, "two processes hold one lock")
    need(_locks(path) == 0, "a lock outlives its holder")


def _locks(path: Path) -> int:
    argv = (python_executable(), "-I", "-S", "-c", _TRY_LOCK, str(path))
    return run_tool(argv, cwd=path.parent, env={}, timeout_s=_PATIENCE_S).status


def _case(place: Path) -> None:
    (place / "ab").write_bytes(b"lower")
    (place / "AB").write_bytes(b"upper")
    need((place / "ab").read_bytes() == b"lower", "names lose their case")


def _names(place: Path) -> None:
    # The longest the store makes: a digest, and what sets it apart.
    names = {"0" * 64 + "-12345678", "artifact.json", "0"}
    for name in names:
        (place / name).touch()
    need({path.name for path in place.iterdir()} == names, "names come back changed")


def _mode(place: Path) -> None:
    path = place / "file"
    path.touch()
    path.chmod(0o444)
    need(path.stat().st_mode & 0o777 == 0o444, "a file cannot be made read-only")  # noqa: PLR2004


_PROMISES: tuple[tuple[str, str, Callable[[Path], None]], ...] = (
    ("link", "a second name is refused where the name is taken", _link),
    ("rename", "a file is replaced whole, under the eyes of a reader", _rename),
    ("sync-file", "bytes can be forced to disk", _sync_file),
    ("sync-folder", "names can be forced to disk", _sync_folder),
    ("lock", "one process at a time holds a lock, and it goes with it", _lock),
    ("case", "names that differ in case are two files", _case),
    ("names", "long names come back as they were given", _names),
    ("mode", "a file can be made read-only", _mode),
)
