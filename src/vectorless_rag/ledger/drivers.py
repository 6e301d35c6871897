"""What the ledger uses of a database, whichever kind it is."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Protocol, cast

from sqlalchemy import Table
from sqlalchemy.engine import URL, Dialect

from vectorless_rag.ledger.faults import unavailable

Row = tuple[Any, ...]

Insert = Callable[[Table], Any]
"""A dialect's own ``insert``, which knows ``on_conflict_do_nothing``."""


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


def dialect(url: URL, extra: str, **options: Any) -> Dialect:  # noqa: ANN401
    """
    Load the dialect that *url* names.

    Args:
        url: Its name and driver.
        extra: What to install where the driver is missing.
        options: The dialect's own.

    Raises:
        VectorlessRagError: ``ledger_unavailable``: the driver is missing.
    """
    kind: Any = url.get_dialect()
    try:
        driver = kind.import_dbapi()
    except ImportError:
        raise unavailable(f"its driver is missing: the extra {extra!r}") from None
    return cast("Dialect", kind(dbapi=driver, **options))
