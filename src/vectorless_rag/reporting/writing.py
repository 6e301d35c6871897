"""Put a report into its file: whole, or not at all."""

import contextlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.records import one_line
from vectorless_rag.reporting.page import HEAD


def write(path: Path, pieces: Iterable[str]) -> int:
    """
    Write a report, readable by its owner only.

    Args:
        path: The file. One that is there is replaced only if it is a report.
        pieces: The report.

    Returns:
        Its length, in bytes.

    Raises:
        VectorlessRagError: ``settings_invalid``: something else stands there;
            ``store_unwritable``: the operating system refused. The file is then
            as it was before.
    """
    shown = one_line(path.name)
    try:
        _check_replaceable(path, shown)
        # Beside the file: a rename within a file system is one step.
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".report-")
        temporary = Path(name)
        try:
            with open(handle, "wb") as file:  # noqa: PTH123  (of a handle)
                file.writelines(piece.encode() for piece in pieces)
                file.flush()
                os.fsync(file.fileno())
                length = file.tell()
            temporary.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise VectorlessRagError(Code.STORE_UNWRITABLE, f"{shown}: {why}") from None
    return length


def _check_replaceable(path: Path, shown: str) -> None:
    try:
        with path.open("rb") as file:
            start = file.read(len(HEAD))
    except FileNotFoundError:
        return
    except IsADirectoryError:
        start = b""
    if start != HEAD.encode():
        raise VectorlessRagError(
            Code.SETTINGS_INVALID, f"{shown} is there and is no report"
        )
