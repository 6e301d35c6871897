"""
Which batches are out, and what is charged for them: kept until all is known.

One file a batch, written before the batch is created and locked by the process that
waits for it. The kernel lets go of the lock when that process dies, however it dies:
a file that nobody holds is of a batch that the next run takes up.
"""

import contextlib
import fcntl
import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from vectorless_rag.canon import digest
from vectorless_rag.units import Sha256

FOLDER = "batches"


@dataclass(frozen=True, kw_only=True)
class Line:
    """One request of a batch; its text is not kept."""

    hold_id: str
    """What it is charged to, and its name in the batch."""

    key: Sha256
    """Its name in the journal."""


@dataclass(kw_only=True)
class Record:
    """One batch that may be out."""

    name: str
    """Chosen before the batch is created, so that it can be found by it."""

    model: str
    deadline: float
    """When it is cancelled, in seconds since 1970."""

    lines: tuple[Line, ...]

    batch_id: str | None = None
    """The provider's name for it; None: not known, or never created."""

    fd: int = field(repr=False)

    def creating(self) -> None:
        """Take note that a batch is asked for, whose id is not known yet."""
        if self.batch_id is not None:
            self.batch_id = None
            _append(self.fd, b"\n")

    def created(self, batch_id: str) -> None:
        """Take note of the batch's id; it is on disk when this returns."""
        self.batch_id = batch_id
        with contextlib.suppress(OSError):
            # Lost with the disk, it is found by its name.
            _append(self.fd, batch_id.encode() + b"\n")

    def leave(self) -> None:
        """Let the next run take it up."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


class Records:
    """
    The batches of one document's questions to one model of one server.

    Args:
        journal: Folder of the journal; only its owner may read what is in it.
        scope: Document, model and server.
    """

    def __init__(self, journal: Path, scope: tuple[str | None, ...]) -> None:
        self._folder = journal / FOLDER
        self._scope = digest("batches/1", list(scope))[:32]

    def add(self, model: str, deadline: float, lines: tuple[Line, ...]) -> Record:
        """
        Record a batch that will be sent; it is on disk when this returns.

        Raises:
            OSError: It could not be written: nothing may be sent.
        """
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = f"{self._scope}-{uuid.uuid4().hex}"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        fd = os.open(self._folder / name, flags, 0o600)
        record = Record(name=name, model=model, deadline=deadline, lines=lines, fd=fd)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            written = {
                "model": model,
                "deadline": deadline,
                "lines": [asdict(each) for each in lines],
            }
            _append(fd, json.dumps(written).encode() + b"\n")
            self._sync()
        except BaseException:
            self.remove(record)
            raise
        return record

    def left(self) -> list[Record]:
        """Lock and read the batches that no process waits for, oldest first."""
        found = [record for path in self._paths() if (record := _taken(path))]
        return sorted(found, key=lambda record: (record.deadline, record.name))

    def remove(self, record: Record) -> None:
        """Forget a batch of which all is known."""
        with contextlib.suppress(OSError):
            (self._folder / record.name).unlink()
        record.leave()

    def _paths(self) -> Iterator[Path]:
        return self._folder.glob(f"{self._scope}-*")

    def _sync(self) -> None:
        fd = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _taken(path: Path) -> Record | None:
    """Lock and read one; None if another process has it, or nothing was sent."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(fd).st_nlink:
            return _read(path.name, fd)
    except OSError:
        pass
    except (ValueError, KeyError, TypeError):
        # Cut off while it was written: nothing has been sent.
        path.unlink(missing_ok=True)
    os.close(fd)
    return None


def _read(name: str, fd: int) -> Record:
    head, *more = os.pread(fd, os.fstat(fd).st_size, 0).split(b"\n")
    raw: dict[str, Any] = json.loads(head)
    # The last piece ends with no newline: an id in it was cut off.
    known = [text.decode("ascii") for text in more[:-1]]
    return Record(
        name=name,
        model=str(raw["model"]),
        deadline=float(raw["deadline"]),
        lines=tuple(Line(**each) for each in raw["lines"]),
        batch_id=known[-1] or None if known else None,
        fd=fd,
    )


def _append(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.fsync(fd)
