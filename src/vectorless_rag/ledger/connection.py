"""
One connection to the ledger's database, and transactions on it.

Statements are SQLAlchemy Core, compiled once and then run on the driver itself:
a model call pays for its commits, not for a second layer.
"""

import contextlib
import os
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import ClauseElement

from vectorless_rag.ledger.drivers import Backend, Cursor, Driver, Insert, Row
from vectorless_rag.ledger.faults import fault, unavailable
from vectorless_rag.ledger.migrations import NEWEST, VERSION, ddl_after
from vectorless_rag.ledger.sqlite import flush, queued

T = TypeVar("T")


Statement = ClauseElement | Callable[[Insert], ClauseElement]
"""SQL, or what makes it from the dialect's own ``insert``."""


class Compiled:
    """Statements as text of one dialect, each compiled once."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._known: dict[Statement, tuple[str, dict[str, Any]]] = {}

    def __call__(self, statement: Statement) -> tuple[str, dict[str, Any]]:
        """Return the text of *statement* and the constants bound in it."""
        known = self._known.get(statement)
        if known is None:
            known = self._known[statement] = self._compile(statement)
        return known

    def _compile(self, statement: Statement) -> tuple[str, dict[str, Any]]:
        if not isinstance(statement, ClauseElement):
            statement = statement(self._backend.insert)
        compiled = statement.compile(dialect=self._backend.dialect)
        return str(compiled), dict(compiled.params)


ALTERED = "it holds what no version of this package writes"
"""Somebody altered the database, or it belongs to another program."""


class Transaction:
    """Runs statements inside one transaction."""

    def __init__(self, driver: Driver, compiled: Compiled, backend: Backend) -> None:
        self._driver = driver
        self._compiled = compiled
        self._backend = backend

    @property
    def row_locks(self) -> bool:
        """Whether writers lock rows; otherwise they queue for the whole database."""
        return self._backend.row_locks

    def damage(self) -> list[str]:
        """Ask the database itself what is wrong with its file."""
        return [row[0] for sql in self._backend.damage for row in self.script(sql)]

    def rows(self, statement: Statement, **params: object) -> list[Row]:
        """
        Run *statement* and return its rows.

        Raises:
            VectorlessRagError: ``ledger_unavailable``: bytes stand where no
                version of this package writes any.
        """
        rows = self._run(statement, params).fetchall()
        if any(isinstance(value, bytes) for row in rows for value in row):
            raise unavailable(ALTERED)
        return rows

    def row(self, statement: Statement, **params: object) -> Row | None:
        """Run *statement* and return its first row, if there is one."""
        return next(iter(self.rows(statement, **params)), None)

    def count(self, statement: Statement, **params: object) -> int:
        """Run *statement* and return how many rows it changed."""
        return self._run(statement, params).rowcount

    def script(self, sql: str) -> list[Row]:
        """Run *sql* as it stands and return its rows, if it has any."""
        cursor = self._driver.execute(sql)
        return cursor.fetchall() if cursor.description else []

    def _run(self, statement: Statement, params: dict[str, object]) -> Cursor:
        sql, constants = self._compiled(statement)
        return self._driver.execute(sql, constants | params)


@dataclass(frozen=True)
class Opened:
    """A connection, the file that its writers queue on, and its log."""

    driver: Driver
    queue: int | None
    log: int | None

    def close_files(self) -> None:
        """Close what is open beside the connection."""
        _close_file(self.queue)
        _close_file(self.log)


def _close_file(file: int | None) -> None:
    if file is not None:
        os.close(file)


class Database:
    """
    One connection, opened when it is first needed and used by one thread at a time.

    A process that was forked opens its own: neither driver survives a fork.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._compiled = Compiled(backend)
        self._pid = os.getpid()
        self._guard = threading.Lock()
        self._opened: Opened | None = None
        self._closed = False
        self._inherited: list[Opened | None] = []

    @property
    def name(self) -> str:
        """``sqlite`` or ``postgresql``."""
        return self._backend.dialect.name

    def write(self, step: Callable[[Transaction], T]) -> T:
        """
        Run *step* in a transaction of its own, whole or not at all.

        Args:
            step: Runs again, once, if the server hung up: after a lost commit
                nobody knows whether it counted, so every step must be one that
                can be taken twice.

        Raises:
            VectorlessRagError: What *step* raised, with nothing changed;
                ``ledger_unavailable``; ``ledger_conflict``, if the change breaks
                a rule of the tables.
        """
        return self._run(self._backend.begin, step, queue=True)

    def read(self, step: Callable[[Transaction], T]) -> T:
        """
        Run *step* on one unchanging state of the whole database.

        Raises:
            VectorlessRagError: As `write`; ``ledger_unavailable`` too, if what is
                read makes no sense: somebody else has written there.
        """
        try:
            return self._run(self._backend.snapshot, step, queue=False)
        except (TypeError, ValueError):
            # What was read may be quoted in it.
            raise unavailable(ALTERED) from None

    def prepare(self, statements: Iterable[Statement]) -> None:
        """Compile *statements* now, so that no other writer waits for it."""
        for statement in statements:
            self._compiled(statement)

    def migrate(self, finish: Callable[[Transaction], None]) -> None:
        """
        Bring the tables up to date, while no other process does.

        Args:
            finish: Fills in, in the same transaction, what DDL cannot say.

        Raises:
            VectorlessRagError: ``ledger_unavailable``, also if the tables are
                newer than this code.
        """
        if self.read(self._version) == NEWEST:
            return
        self.write(lambda t: self._upgrade(t, finish))

    def _version(self, transaction: Transaction) -> int:
        ((tables,),) = transaction.script(self._backend.has_tables)
        if not tables:
            return 0
        ((version,),) = transaction.script(VERSION)
        if version > NEWEST:
            raise unavailable(f"it is of version {version}, newer than {NEWEST}")
        return int(version)

    def _upgrade(
        self, transaction: Transaction, finish: Callable[[Transaction], None]
    ) -> None:
        transaction.script(self._backend.migrating)
        # Another process may have done it while this one waited.
        version = self._version(transaction)
        for statement in ddl_after(version, self.name):
            transaction.script(statement)
        if version != NEWEST:
            finish(transaction)

    def close(self) -> None:
        """Close the connection; a closed database stays closed."""
        self._disown()
        with self._guard:
            self._closed = True
            self._drop()

    def _run(self, begin: str, step: Callable[[Transaction], T], *, queue: bool) -> T:
        self._disown()
        with self._guard:
            try:
                return self._transact(begin, step, queue=queue)
            except self._backend.errors as error:
                if not self._lost():
                    raise fault(error) from None
            self._drop()
            try:
                return self._transact(begin, step, queue=queue)
            except self._backend.errors as error:
                raise fault(error) from None

    def _transact(
        self, begin: str, step: Callable[[Transaction], T], *, queue: bool
    ) -> T:
        opened = self._connected()
        driver = opened.driver
        with queued(opened.queue if queue else None):
            try:
                driver.execute(begin)
                result = step(Transaction(driver, self._compiled, self._backend))
                driver.execute("commit")
            except BaseException:
                # After a full disk SQLite has rolled back already.
                with contextlib.suppress(self._backend.errors):
                    driver.execute("rollback")
                raise
        if queue:
            flush(opened.log)
        return result

    def _connected(self) -> Opened:
        if self._closed:
            raise unavailable("it was closed")
        if self._opened is None:
            self._opened = self._connect()
        return self._opened

    def _connect(self) -> Opened:
        with contextlib.ExitStack() as undo:
            queue = self._backend.queue_file()
            undo.callback(_close_file, queue)
            with queued(queue):
                driver = self._backend.connect()
            undo.callback(driver.close)
            opened = Opened(driver, queue, self._backend.log_file())
            undo.pop_all()
        return opened

    def _lost(self) -> bool:
        return self._opened is not None and self._backend.is_lost(self._opened.driver)

    def _drop(self) -> None:
        if self._opened is not None:
            with contextlib.suppress(self._backend.errors):
                self._opened.driver.close()
            self._opened.close_files()
            self._opened = None

    def _disown(self) -> None:
        """Leave a parent's connection alone, if this process is its fork."""
        if self._pid == os.getpid():
            return
        self._pid = os.getpid()
        self._guard = threading.Lock()
        # Collecting it would close it under the parent.
        self._inherited.append(self._opened)
        # Its duplicate would keep the parent's turn when the parent has died.
        if self._opened is not None:
            self._opened.close_files()
        self._opened = None
