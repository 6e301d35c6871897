"""
Files that are whole or absent, and stay after a power loss.

Every failure of the operating system leaves here as ``store_unwritable`` with the
name of the error and of the file, relative to the store.
"""

import contextlib
import errno
import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path

from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.store.medium import numbered

STALE_S = 24 * 60 * 60
"""Age at which a leftover of a crash may be removed: no write takes a day."""

_TEMPORARY = "tmp"
_READ_ONLY = 0o444
_FIRST_WAIT_S = 0.01
_LONGEST_WAIT_S = 0.25


class Disk:
    """
    A folder on one file system that has hard links.

    Args:
        root: The folder. Made when something is first written.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._durable: set[Path] = set()

    def path(self, name: str) -> Path:
        """Return where *name* is."""
        return self.root / name

    def read(self, name: str) -> bytes | None:
        """Return the bytes of *name*; None if there is no such file."""
        with faults(name):
            try:
                return self.path(name).read_bytes()
            except (FileNotFoundError, NotADirectoryError):
                return None

    def exists(self, name: str) -> bool:
        """Whether there is a file *name*."""
        with faults(name):
            try:
                return stat.S_ISREG(self.path(name).lstat().st_mode)
            except (FileNotFoundError, NotADirectoryError):
                return False

    def names(self, folder: str) -> list[str]:
        """Return what is in *folder*, sorted; nothing if there is no such folder."""
        with faults(folder):
            try:
                return sorted(path.name for path in self.path(folder).iterdir())
            except (FileNotFoundError, NotADirectoryError):
                return []

    def numbers(self, folder: str, form: str) -> list[int]:
        """
        Return every number whose file is in *folder*, ascending.

        Args:
            folder: Where numbered files are.
            form: The name of one with ``{}`` for the number.
        """
        found = numbered(self.names(folder), form.partition("/")[0])
        if "/" not in form:
            return found
        return [n for n in found if self.exists(f"{folder}/{form.format(n)}")]

    def size(self, name: str) -> int:
        """Return the length of the file *name* in bytes; 0 if there is none."""
        with faults(name):
            try:
                return self.path(name).lstat().st_size
            except (FileNotFoundError, NotADirectoryError):
                return 0

    def create(self, name: str, data: bytes) -> bool:
        """
        Make the file *name*, unless it is there.

        When this returns, the file is on disk. At no moment can anyone see a part
        of it.

        Returns:
            Whether this call made it.
        """
        with faults(name):
            self._folder(self.path(name).parent)
            temporary = self._write(data)
            try:
                return self._take_name(temporary, self.path(name))
            finally:
                _discard(temporary)

    def link(self, source: str, name: str) -> bool:
        """
        Give the file *source* a second name, unless that is taken.

        Returns:
            Whether this call gave it.
        """
        with faults(name):
            self._folder(self.path(name).parent)
            return self._take_name(self.path(source), self.path(name))

    def sync(self, folder: str) -> None:
        """Have the names in *folder* on disk."""
        with faults(folder):
            self._sync(self.path(folder))

    def move(self, name: str, target: str) -> None:
        """Move the file *name* to *target*, if it is still there."""
        with faults(name):
            self._folder(self.path(target).parent)
            with contextlib.suppress(FileNotFoundError):
                self.path(name).rename(self.path(target))

    def sweep(self, *, older_than_s: float = STALE_S) -> int:
        """
        Remove what crashed writers left behind.

        Args:
            older_than_s: Younger files may belong to a writer at work.

        Returns:
            How many files were removed.
        """
        removed = 0
        for name in self.names(_TEMPORARY):
            path = self.path(f"{_TEMPORARY}/{name}")
            with faults(f"{_TEMPORARY}/{name}"), contextlib.suppress(FileNotFoundError):
                if time.time() - path.stat().st_mtime >= older_than_s:
                    path.unlink()
                    removed += 1
        return removed

    @contextlib.contextmanager
    def lock(
        self,
        name: str,
        *,
        timeout_s: float | None = None,
        on_wait: Callable[[], None] | None = None,
        check: Callable[[], None] | None = None,
    ) -> Iterator[None]:
        """
        Hold the lock *name*; no other process or thread holds it meanwhile.

        The lock goes with the process: nothing stays locked after a crash. Waiting
        can be interrupted.

        Args:
            name: A file that is made for the purpose and stays.
            timeout_s: Longest wait, in seconds; None waits for ever.
            on_wait: Called once, if someone else holds the lock.
            check: Called again and again while waiting; what it raises ends that.

        Raises:
            VectorlessRagError: ``store_unwritable``, also when *timeout_s* passed.
        """
        with faults(name):
            self._folder(self.path(name).parent)
            handle = os.open(self.path(name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
        try:
            if not _locked(handle, name):
                if on_wait is not None:
                    on_wait()
                _wait(handle, name, timeout_s, check)
            yield
        finally:
            # Closing gives the lock back.
            os.close(handle)

    def _write(self, data: bytes) -> Path:
        folder = self.root / _TEMPORARY
        self._folder(folder)
        handle, name = tempfile.mkstemp(dir=folder)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(handle, view) :]
            os.fchmod(handle, _READ_ONLY)
            os.fsync(handle)
        except BaseException:
            _discard(Path(name))
            raise
        finally:
            os.close(handle)
        return Path(name)

    def _take_name(self, source: Path, target: Path) -> bool:
        try:
            # A link, not a rename: it refuses to replace what is there.
            target.hardlink_to(source)
        except FileExistsError:
            made = False
        else:
            made = True
        # Also when another made it: it may not have come this far yet.
        self._sync(target.parent)
        return made

    def _folder(self, folder: Path) -> None:
        """Have *folder*, and its names up to the root of the store, on disk."""
        if folder in self._durable and folder.is_dir():
            return
        upwards = (folder, *folder.parents)
        missing = list(takewhile(lambda path: not path.is_dir(), upwards))
        for path in reversed(missing):
            path.mkdir(exist_ok=True)
        # Also those that were there: whoever made them may not have come this far.
        for path in takewhile(lambda p: p in missing or self._is_new(p), upwards):
            self._sync(path.parent)
            self._durable.add(path)

    def _is_new(self, folder: Path) -> bool:
        return folder not in self._durable and self.root in folder.parents

    def _sync(self, folder: Path) -> None:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextlib.contextmanager
def faults(name: str) -> Iterator[None]:
    """
    Turn any `OSError` into a failure of the store.

    Args:
        name: The file at work, relative to the store.
    """
    try:
        yield
    except OSError as error:
        why = errno.errorcode.get(error.errno or 0, "error")
        raise VectorlessRagError(Code.STORE_UNWRITABLE, f"{name}: {why}") from None


def _discard(path: Path) -> None:
    # Not worth a failure of its own: `Disk.sweep` finds it later.
    with contextlib.suppress(OSError):
        path.unlink()


def _locked(handle: int, name: str) -> bool:
    with faults(name):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def _wait(
    handle: int, name: str, timeout_s: float | None, check: Callable[[], None] | None
) -> None:
    # Asking again and again, since a blocking call could not be interrupted in
    # every thread, and has no deadline.
    end = None if timeout_s is None else time.monotonic() + timeout_s
    pause_s = _FIRST_WAIT_S
    while not _locked(handle, name):
        if check is not None:
            check()
        if end is not None and time.monotonic() >= end:
            raise VectorlessRagError(
                Code.STORE_UNWRITABLE, f"{name}: held by another process"
            )
        time.sleep(pause_s)
        pause_s = min(pause_s * 2, _LONGEST_WAIT_S)
