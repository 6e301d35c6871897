"""
The two kinds of database, and the few ways in which they differ.

How to connect, how a transaction begins, and who waits for whom: everything
else is one code path.
"""

from pathlib import Path
from typing import Any, ClassVar, cast

from sqlalchemy import make_url
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError

from vectorless_rag.ledger.drivers import Backend, Driver, Insert, dialect
from vectorless_rag.ledger.faults import unavailable
from vectorless_rag.ledger.sqlite import Sqlite


def backend(url: str) -> Backend:
    """
    Choose the database that *url* names.

    Raises:
        VectorlessRagError: ``ledger_unavailable``, if it names none we know.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        # The message would quote the address, password and all.
        raise unavailable(
            "the address is no database URL; in a password, write %40 for @ and %3A"
            " for :"
        ) from None
    match parsed.get_backend_name():
        case "sqlite":
            return Sqlite(parsed)
        case "postgresql" | "postgres":
            return Postgresql(parsed)
        case _:
            raise unavailable("neither sqlite:///... nor postgresql://...")


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
        self.dialect = dialect(url, "postgresql")
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
