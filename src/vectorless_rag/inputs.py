"""Which documents a command line means: files, folders, patterns and lists."""

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.source import printable

LIST_MARK = "@"
"""Before the name of a file that lists paths, one a line."""

STANDARD_INPUT = "-"

_SUFFIX = ".pdf"


def expand(arguments: Sequence[str], stdin: BinaryIO) -> list[Path]:
    """
    Return the documents that *arguments* name, each once, in their order.

    Args:
        arguments: A file; a folder, for every ``.pdf`` below it by name, links to
            folders and hidden ones left out, and a folder that cannot be looked into
            as itself; a pattern with ``*``, ``?`` or ``[``,
            where no file has that very name, with ``**`` for any folders; ``@FILE``
            for the paths in *FILE*, one a line; ``-`` for those on *stdin*.
        stdin: Read for ``-``.

    Raises:
        VectorlessRagError: ``settings_invalid``: a list cannot be read, or an
            argument names no document at all.
    """
    found: dict[Path, None] = {}
    for argument in arguments:
        paths = list(_of(argument, stdin))
        if not paths:
            raise _refused(argument, "no PDF is there")
        found |= dict.fromkeys(paths)
    return list(found)


def _of(argument: str, stdin: BinaryIO) -> Iterator[Path]:
    if argument == STANDARD_INPUT:
        yield from _listed("standard input", stdin.read())
    elif os.path.lexists(argument):
        path = Path(argument)
        yield from _below(path) if path.is_dir() else (path,)
    elif argument.startswith(LIST_MARK):
        yield from _listed(argument, _read(argument))
    elif glob.has_magic(argument):
        matches = sorted(glob.glob(argument, recursive=True))  # noqa: PTH207  (text in)
        yield from (Path(match) for match in matches if not Path(match).is_dir())
    else:
        # A name that is not there is a document that fails, and says so.
        yield Path(argument)


def _below(folder: Path) -> Iterator[Path]:
    # One that cannot be looked into may hold documents that nobody would miss: it
    # stands for them, and fails as a document does.
    closed: list[OSError] = []
    for place, folders, files in os.walk(folder, onerror=closed.append):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if name.lower().endswith(_SUFFIX) and not name.startswith("."):
                yield Path(place, name)
    yield from (Path(error.filename) for error in closed)


def _read(argument: str) -> bytes:
    try:
        return Path(argument.removeprefix(LIST_MARK)).read_bytes()
    except OSError as error:
        raise _refused(argument, error.strerror or "unreadable") from None


def _listed(name: str, data: bytes) -> Iterator[Path]:
    if b"\0" in data or data.startswith(b"%PDF-"):
        raise _refused(name, "no list of paths, one a line")
    for line in data.splitlines():
        if line.strip():
            yield Path(os.fsdecode(line))


def _refused(argument: str, why: str) -> VectorlessRagError:
    return VectorlessRagError(Code.SETTINGS_INVALID, f"{printable(argument)}: {why}")
