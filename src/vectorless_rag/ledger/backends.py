"""
The two kinds of database, and the few ways in which they differ.

How to connect, how a transaction begins, and who waits for whom: everything
else is one code path.
"""

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Protocol, cast

from sqlalchemy import Table, make_url
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.engine import URL, Dialect
from sqlalchemy.exc import ArgumentError

from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.ledger.faults import unavailable

Row = tuple[Any, ...]

Insert = Callable[[Table], Any]
"""A dialect's own ``insert``, which knows ``on_conflict_do_nothing``."""

_BUSY_S = 30.0
_QUEUE = ".lock"
_LOG = "-wal"

_BROKEN_PAGES = (
    "select integrity_check from pragma_integrity_check where integrity_check <> 'ok'"
)
_BROKEN_KEYS = (
    "select 'a row of ' || \"table\" || ' points nowhere' from pragma_foreign_key_check"
)


class Cursor(Protocol):
    """What this package uses of a driver's cursor."""

    @property
    def rowcount(self) -> int:
        """How many rows the statement changed."""

    @property
    def description(self) -> object:
        """None, if the statement returns no rows."""

    def fetchall(self) -> list[Row]:
        """Return the rows that are left."""


class Driver(Protocol):
    """What this package uses of a driver's connection."""

    def execute(self, sql: str, params: dict[str, Any] = ..., /) -> Cursor:
        """Run one statement."""

    def close(self) -> None:
        """Close the connection."""


class Backend(Protocol):
    """One kind of database at one address."""

    dialect: Dialect

    insert: Insert

    errors: type[Exception]
    """Base class of what its driver raises."""

    begin: ClassVar[str]
    """Begins a transaction that writes."""

    snapshot: ClassVar[str]
    """Begins a transaction that sees one state of everything."""

    row_locks: ClassVar[bool]
    """Whether writers lock rows; otherwise they queue for the whole database."""

    migrating: ClassVar[str]
    """Keeps other migrations out until the transaction ends."""

    has_tables: ClassVar[str]
    """Counts our tables: 0 in an empty database."""

    damage: ClassVar[tuple[str, ...]]
    """Queries that return one row for each thing wrong with the file."""

    @property
    def files(self) -> tuple[Path, ...]:
        """Every file that holds the database on this machine."""

    def queue_file(self) -> int | None:
        """Open the file that this connection's writers queue on."""

    def connect(self) -> Driver:
        """Open a connection; the caller holds the queue."""

    def log_file(self) -> int | None:
        """Open the file whose flush makes commits of a connection last."""

    def is_lost(self, driver: Driver) -> bool:
        """Whether *driver* has lost its server."""


def backend(url: str) -> Backend:
    """
    Choose the database that *url* names.

    Raises:
        VectorlessRagError: ``ledger_unavailable``, if it names none we know.
    """
    try:
        parsed = make_url(url)
    except ArgumentError:
        # The message would quote the address, password and all.
        raise unavailable("the address is no database URL") from None
    match parsed.get_backend_name():
        case "sqlite":
            return Sqlite(parsed)
        case "postgresql" | "postgres":
            return Postgresql(parsed)
        case _:
            raise unavailable("neither sqlite:///... nor postgresql://...")


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
        self.dialect = _dialect(url, "sqlite", paramstyle="named")
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

    def queue_file(self) -> int:
        """
        Open the file beside the database that its writers queue on.

        A duplicated descriptor would share the lock: it is opened after a fork
        and once a connection.
        """
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
        _, given = self.dialect.create_connect_args(self._url)
        options = {"timeout": _BUSY_S, **given}
        driver = sqlite3.connect(self._path, isolation_level=None, **options)
        try:
            for pragma in ("journal_mode=wal", "synchronous=normal", "foreign_keys=on"):
                driver.execute(f"pragma {pragma}")
            # The log is made by the first look at the tables.
            driver.execute(self.has_tables)
        except sqlite3.Error:
            driver.close()
            raise
        return cast("Driver", driver)

    def log_file(self) -> int:
        """
        Open the write-ahead log.

        SQLite keeps this very file as long as any connection is open. It locks
        other ones, so that closing a descriptor of it lets go of nothing.
        """
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


class Postgresql:
    """A PostgreSQL database, reached through psycopg 3."""

    # Whatever the server's defaults are.
    begin: ClassVar = "begin isolation level read committed read write"
    snapshot: ClassVar = "begin isolation level repeatable read read only"
    row_locks: ClassVar = True
    migrating: ClassVar = "select pg_advisory_xact_lock(7146531904216)"
    has_tables: ClassVar = (
        "select count(*) from pg_class where oid = to_regclass('schema_version')"
    )
    # The server checks its pages and keeps its own foreign keys.
    damage: ClassVar[tuple[str, ...]] = ()

    def __init__(self, url: URL) -> None:
        url = url.set(drivername="postgresql+psycopg")
        self.dialect = _dialect(url, "postgresql")
        # Half as slow to import as the rest of the package: not for SQLite.
        from sqlalchemy.dialects.postgresql import insert  # noqa: PLC0415

        self.insert: Insert = insert
        driver: Any = self.dialect.dbapi
        self.errors: type[Exception] = driver.Error
        self._url = url

    @property
    def files(self) -> tuple[Path, ...]:
        """Nothing: the server keeps them."""
        return ()

    def queue_file(self) -> None:
        """Open nothing: the server queues its writers."""

    def log_file(self) -> None:
        """Open nothing: the server flushes before it answers."""

    def connect(self) -> Driver:
        """Connect; a server that does not answer in time is unavailable."""
        args, given = self.dialect.create_connect_args(self._url)
        options = {"connect_timeout": 10, "application_name": "ledger", **given}
        opened = self.dialect.connect(*args, autocommit=True, **options)
        driver = cast("Driver", opened)
        driver.execute(
            "select set_config('lock_timeout', '30s', false),"
            " set_config('synchronous_commit', 'on', false)"
        )
        return driver

    def is_lost(self, driver: Driver) -> bool:
        """Whether the server has hung up."""
        return bool(getattr(driver, "closed", False))


def _dialect(url: URL, extra: str, **options: Any) -> Dialect:  # noqa: ANN401
    kind: Any = url.get_dialect()
    try:
        driver = kind.import_dbapi()
    except ImportError:
        raise unavailable(f"its driver is missing: the extra {extra!r}") from None
    return cast("Dialect", kind(dbapi=driver, **options))
