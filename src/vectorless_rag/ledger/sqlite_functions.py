"""
What an old SQLite lacks and the engine's tables take for granted.

The engine's library thinks that Python 3.12 and newer come with SQLite 3.42. Where a
Python was built on a system with an older one, ``unixepoch('subsec')`` is null there.
"""

import sqlite3
import time
from typing import Any

from sqlalchemy import Engine, event

_KNOWS_SUBSEC = (3, 42)


def teach_subsec() -> None:
    """Let every SQLite connection from now on know ``unixepoch('subsec')``."""
    if sqlite3.sqlite_version_info >= _KNOWS_SUBSEC:
        return
    if not event.contains(Engine, "connect", define_subsec):
        event.listen(Engine, "connect", define_subsec)


def define_subsec(connection: Any, _record: object) -> None:  # noqa: ANN401
    """Define the function for *connection*, if it is one of SQLite's."""
    if isinstance(connection, sqlite3.Connection):
        connection.create_function("unixepoch", 1, _unixepoch)


def _unixepoch(what: str) -> float:
    """
    Tell the seconds since 1970, to the millisecond.

    Raises:
        ValueError: Another thing than the present is asked for.
    """
    if what != "subsec":
        raise ValueError(what)
    return round(time.time(), 3)
