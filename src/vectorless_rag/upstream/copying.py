"""A private copy of a build, checked while it is made."""

import errno
from pathlib import Path

from vectorless_rag.canon import sha256
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.upstream.faults import tampered
from vectorless_rag.upstream.record import BuildRecord
from vectorless_rag.upstream.tree import LINK


def copy(record: BuildRecord, build: Path, target: Path) -> None:
    """
    Copy the files of a build that its record names, and no other.

    Bytecode that lies beside them stays behind: Python would run it in their
    place, and no digest covers it.

    Args:
        record: Of the build.
        build: Its folder.
        target: Folder that is made for the purpose.

    Raises:
        VectorlessRagError: ``upstream_tampered``: a file is not the one that was
            built; ``store_unwritable``: *target* takes nothing.
    """
    for entry in record.files:
        data = _read(build, entry.path)
        if entry.mode == LINK or sha256(data) != entry.sha256:
            raise tampered(f"{entry.path} was changed")
        try:
            place = target / entry.path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        except OSError as error:
            why = errno.errorcode.get(error.errno or 0, "error")
            raise VectorlessRagError(
                Code.STORE_UNWRITABLE, f"copy of the upstream: {why}"
            ) from None


def _read(build: Path, name: str) -> bytes:
    try:
        return (build / name).read_bytes()
    except OSError:
        raise tampered(f"{name} is missing") from None
