"""
A ledger in a SQLite file on a local disk.

Writers queue on a file of their own, and flush the log after their turn.
"""

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, cast

from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.engine import URL

from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.ledger.drivers import Driver, Insert, dialect
from vectorless_rag.ledger.faults import unavailable

_BUSY_S = 30.0
_QUEUE = ".lock"
_LOG = "-wal"

_BROKEN_PAGES = (
    "select integrity_check from pragma_integrity_check where integrity_check <> 'ok'"
)
_BROKEN_KEYS = (
    "select 'a row of ' || \"table\" || ' points nowhere' from pragma_foreign_key_check"
)


@contextlib.contextmanager
def queued(lock: int | None) -> Iterator[None]:
    """
    Hold the writers' turn.

    SQLite's own busy timeout sleeps and polls, and starves some writers for
    seconds. The kernel's queue is fair, and lets go when the holder is killed.
    """
    if lock is None:
        yield
        return
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(lock, fcntl.LOCK_UN)


def _no_file(what: str, error: OSError) -> VectorlessRagError:
    return unavailable(f"{what}: {os.strerror(error.errno or 0).lower()}")


def flush(log: int | None) -> None:
    """
    Return when what was committed would survive a loss of power.

    It is called after the writer's turn: the kernel answers many writers with one
    flush of the disk, where SQLite's own would let one wait for the other's.

    Raises:
        VectorlessRagError: ``ledger_unavailable``: the disk failed.
    """
    if log is None:
        return
    try:
        os.fdatasync(log)
    except OSError as error:
        raise _no_file("its disk", error) from None


class Sqlite:
    """A SQLite file on a local disk."""

    # A deferred transaction that reads first can fail when it comes to write.
    begin: ClassVar = "begin immediate"
    snapshot: ClassVar = "begin"
    row_locks: ClassVar = False
    # The queue has seen to it.
    migrating: ClassVar = "select 1"
    has_tables: ClassVar = (
        "select count(*) from sqlite_master where name = 'schema_version'"
    )
    damage: ClassVar[tuple[str, ...]] = (_BROKEN_PAGES, _BROKEN_KEYS)

    def __init__(self, url: URL) -> None:
        # Named parameters, as the other driver has them.
        self.dialect = dialect(url, "sqlite", paramstyle="named")
        self.insert: Insert = insert
        self.errors: type[Exception] = sqlite3.Error
        self._url = url
        if sqlite3.sqlite_version_info < (3, 37):
            raise unavailable("SQLite before 3.37 has no strict tables")
        if not url.database or url.database.startswith((":", "file:")):
            raise unavailable("SQLite needs the path of a file")
        self._path = Path(url.database).absolute()

    @property
    def files(self) -> tuple[Path, ...]:
        """The database, its log, and what its writers queue on."""
        ends = ("", _LOG, "-shm", _QUEUE)
        return tuple(self._path.with_name(self._path.name + end) for end in ends)

    @property
    def _frozen(self) -> bool:
        """Whether it lies where nothing can be written, such as a mounted copy."""
        folder = self._path.parent
        return folder.is_dir() and not os.access(folder, os.W_OK)

    def queue_file(self) -> int | None:
        """
        Open the file beside the database that its writers queue on.

        A duplicated descriptor would share the lock: it is opened after a fork
        and once a connection.
        """
        if self._frozen:
            return None
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            return self._beside(_QUEUE, os.O_CREAT)
        except OSError as error:
            raise _no_file("its folder", error) from None

    def connect(self) -> Driver:
        """
        Open the file.

        SQLite does not flush a commit here: `flush` does, after the writer's turn.
        """
        if self._frozen:
            return self._connect_frozen()
        driver = sqlite3.connect(self._path, **self._options)
        try:
            for pragma in ("journal_mode=wal", "synchronous=normal", "foreign_keys=on"):
                driver.execute(f"pragma {pragma}")
            # The log is made by the first look at the tables.
            driver.execute(self.has_tables)
        except sqlite3.Error:
            driver.close()
            raise
        return cast("Driver", driver)

    def _connect_frozen(self) -> Driver:
        """Open a file that nobody writes, and that needs no log beside it."""
        log = self._path.with_name(self._path.name + _LOG)
        if log.exists() and log.stat().st_size:
            raise unavailable("its folder is read-only, and its log is not empty")
        address = f"{self._path.as_uri()}?immutable=1"
        driver = sqlite3.connect(address, uri=True, **self._options)
        return cast("Driver", driver)

    @property
    def _options(self) -> dict[str, Any]:
        _, given = self.dialect.create_connect_args(self._url)
        return {"timeout": _BUSY_S, "isolation_level": None, **given}

    def log_file(self) -> int | None:
        """
        Open the write-ahead log.

        SQLite keeps this very file as long as any connection is open. It locks
        other ones, so that closing a descriptor of it lets go of nothing.
        """
        if self._frozen:
            return None
        try:
            return self._beside(_LOG)
        except OSError as error:
            raise _no_file("its log", error) from None

    def is_lost(self, driver: Driver) -> bool:
        """Say no: there is no server to lose."""
        del driver
        return False

    def _beside(self, end: str, flags: int = 0) -> int:
        path = self._path.with_name(self._path.name + end)
        return os.open(path, flags | os.O_RDONLY | os.O_CLOEXEC, 0o644)
