"""The child's own folder: made for one run, and gone after it, however that ends."""

import contextlib
import errno
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from vectorless_rag.errors import Code, VectorlessRagError

PREFIX = "vectorless-rag-"

_YOUNG_S = 60
"""A folder may be this young and not locked yet."""


@contextlib.contextmanager
def working_folder() -> Iterator[Path]:
    """
    Make a folder, and remove it with all that is in it.

    What killed runs left behind goes first: it holds copies of documents.

    Raises:
        VectorlessRagError: ``store_unwritable``: there is no place for it.
    """
    try:
        sweep(Path(tempfile.gettempdir()))
        made = tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True)
    except OSError as error:
        why = errno.errorcode.get(error.errno or 0, "error")
        raise VectorlessRagError(
            Code.STORE_UNWRITABLE, f"temporary folder: {why}"
        ) from None
    with made as name, _locked(Path(name)):
        yield Path(name)


def sweep(folder: Path, *, older_than_s: float = _YOUNG_S) -> int:
    """
    Remove the working folders whose runs are over.

    Args:
        folder: Where working folders are made.
        older_than_s: Younger ones may belong to a run that is about to begin.

    Returns:
        How many there were.
    """
    removed = 0
    for path in folder.glob(f"{PREFIX}*"):
        # Another's, gone by now, or at work: each is left alone.
        with contextlib.suppress(OSError):
            if time.time() - path.lstat().st_mtime >= older_than_s:
                with _locked(path):
                    shutil.rmtree(path)
                    removed += 1
    return removed


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold *folder*; the kernel lets go when this process ends."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)
