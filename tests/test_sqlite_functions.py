"""The engine's tables get the time from any SQLite that a Python comes with."""

import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, event, text

from vectorless_rag.ledger import sqlite_functions
from vectorless_rag.ledger.sqlite_functions import define_subsec, teach_subsec


def test_the_time_is_told_to_the_millisecond() -> None:
    """Also where a table takes it for its default."""
    with closing(sqlite3.connect(":memory:")) as connection:
        define_subsec(connection, None)
        connection.execute(
            "create table t (n, at not null default (unixepoch('subsec')))"
        )
        before = time.time()
        connection.execute("insert into t (n) values (1)")
        ((at,),) = connection.execute("select at from t").fetchall()

    assert before - 0.001 <= at <= time.time() + 0.001


def test_nothing_else_is_told() -> None:
    """A wrong time would be worse than none."""
    with closing(sqlite3.connect(":memory:")) as connection:
        define_subsec(connection, None)
        with pytest.raises(sqlite3.OperationalError, match="user-defined function"):
            connection.execute("select unixepoch('2026-01-01')")


@pytest.mark.parametrize(
    ("version", "taught"), [((3, 40, 1), True), ((3, 42, 0), False)]
)
def test_only_an_old_sqlite_is_taught(
    version: tuple[int, int, int],
    taught: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Once, and for connections of SQLite that are opened afterwards."""
    monkeypatch.setattr(sqlite3, "sqlite_version_info", version)
    defined = []

    def define(connection: object, _record: object) -> None:
        defined.append(connection)

    monkeypatch.setattr(sqlite_functions, "define_subsec", define)
    try:
        teach_subsec()
        teach_subsec()
        engine = create_engine(f"sqlite:///{tmp_path}/some.sqlite3")
        with engine.connect() as connection:
            connection.execute(text("select 1"))
        engine.dispose()
    finally:
        if event.contains(Engine, "connect", define):
            event.remove(Engine, "connect", define)

    assert int(taught) == len(defined)


def test_other_databases_are_left_alone() -> None:
    """What is no connection of SQLite has no such function to define."""
    define_subsec(sys, None)
