"""
Open a file that someone else named.

Only a regular file is opened, and nothing waits: opening a named pipe would wait
for its writer for ever, and opening a device can have effects.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from vectorless_rag.errors import Code, VectorlessRagError

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_LOOK = os.R_OK | os.X_OK
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "no file but a pipe"),
    (stat.S_ISSOCK, "no file but a socket"),
    (stat.S_ISCHR, "no file but a device"),
    (stat.S_ISBLK, "no file but a device"),
)


@contextlib.contextmanager
def opened(path: Path, name: str, roots: Sequence[Path] = ()) -> Iterator[int]:
    """
    Open a regular file for reading.

    Args:
        path: As it was named. Without *roots* links are followed.
        name: How messages call it.
        roots: Folders that it must be in. Then no part of the path below the
            root may be a link, whatever it leads to; the root itself may be one.

    Yields:
        A descriptor, closed at the end.

    Raises:
        VectorlessRagError: ``source_unreadable``: missing, not to be read, or a
            folder, a pipe, a socket or a device. ``source_forbidden``: in none of
            *roots*, or a part of the path is a link.
    """
    with contextlib.ExitStack() as stack:
        try:
            file = _opened(path, roots, stack)
        except _RefusedError as refused:
            raise VectorlessRagError(refused.code, f"{name}: {refused}") from None
        except (OSError, ValueError) as error:
            raise unreadable(name, error) from None
        yield file


def unreadable(name: str, error: OSError | ValueError) -> VectorlessRagError:
    """Say why the file that messages call *name* cannot be read."""
    number = getattr(error, "errno", None)
    why = os.strerror(number).lower() if number else "not a file name"
    return VectorlessRagError(Code.SOURCE_UNREADABLE, f"{name}: {why}")


class _RefusedError(Exception):
    def __init__(self, code: Code, why: str) -> None:
        super().__init__(why)
        self.code = code


def _opened(path: Path, roots: Sequence[Path], stack: contextlib.ExitStack) -> int:
    folder, name = _place(path, roots, stack) if roots else (None, str(path))
    # Looked at before it is opened, and once more in case it was exchanged.
    status = os.stat(name, dir_fd=folder, follow_symlinks=not roots)
    if stat.S_ISDIR(status.st_mode) and not os.access(name, _LOOK, dir_fd=folder):
        raise _RefusedError(Code.SOURCE_UNREADABLE, "a folder that may not be read")
    _check(status.st_mode)
    flags = _READ | os.O_NOFOLLOW if roots else _READ
    file = _open(name, flags, folder)
    stack.callback(os.close, file)
    _check(os.fstat(file).st_mode)
    return file


def _place(
    path: Path, roots: Sequence[Path], stack: contextlib.ExitStack
) -> tuple[int, str]:
    """Walk from the root to the folder of *path*; return it and the last name."""
    # Without links below the root, ".." means what it seems to mean.
    whole = Path(os.path.normpath(path.absolute()))
    for root in roots:
        for place in (root, root.resolve()):
            if place in whole.parents:
                *folders, name = whole.relative_to(place).parts
                folder = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                stack.callback(os.close, folder)
                for part in folders:
                    folder = _open(part, _FOLDER, folder)
                    stack.callback(os.close, folder)
                return folder, name
    raise _RefusedError(Code.SOURCE_FORBIDDEN, "outside the allowed folders")


def _open(name: str, flags: int, folder: int | None) -> int:
    try:
        return os.open(name, flags, dir_fd=folder)
    except OSError as error:
        link = flags & os.O_NOFOLLOW and error.errno in {errno.ELOOP, errno.ENOTDIR}
        if link and _is_link(name, folder):
            raise _RefusedError(Code.SOURCE_FORBIDDEN, "reached by a link") from None
        raise


def _is_link(name: str, folder: int | None) -> bool:
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    return stat.S_ISLNK(status.st_mode)


def _check(mode: int) -> None:
    if stat.S_ISLNK(mode):
        raise _RefusedError(Code.SOURCE_FORBIDDEN, "reached by a link")
    for is_it, kind in _KINDS:
        if is_it(mode):
            raise _RefusedError(Code.SOURCE_UNREADABLE, kind)
