"""
What a database's error means, in words that hold no SQL, path or password.

The drivers' own messages quote statements, values and addresses: none of them
is passed on, only the driver's code.
"""

from typing import Final

from vectorless_rag.errors import Code, VectorlessRagError

# By the start of SQLite's error name.
_SQLITE: Final = {
    "SQLITE_FULL": "no space left",
    "SQLITE_READONLY": "the file or its folder is read-only",
    "SQLITE_BUSY": "locked by another program",
    "SQLITE_LOCKED": "locked by another program",
    "SQLITE_CORRUPT": "the file is damaged",
    "SQLITE_NOTADB": "the file is no SQLite database",
    "SQLITE_CANTOPEN": "the file cannot be opened",
    "SQLITE_IOERR": "reading or writing failed",
    "SQLITE_PERM": "permission denied",
    "SQLITE_AUTH": "permission denied",
    "SQLITE_CONSTRAINT": "a rule of the tables refused the change",
}

# By the start of PostgreSQL's SQLSTATE.
_POSTGRESQL: Final = {
    "08": "the connection failed",
    "23": "a rule of the tables refused the change",
    "25006": "the database is read-only",
    "28": "the server refused the credentials",
    "3D": "no such database",
    "40": "the server gave up on a conflict",
    "42501": "permission denied",
    "53100": "no space left",
    "53": "the server is out of resources",
    "55P03": "locked by another program",
    "57P": "the server is shutting down",
    "XX": "the database is damaged",
}


def fault(error: Exception) -> VectorlessRagError:
    """
    Turn a driver's *error* into ``ledger_unavailable`` or ``ledger_conflict``.

    Raise what is returned ``from None``: the driver's message stays behind.
    """
    name = _name(error)
    known = _POSTGRESQL if getattr(error, "sqlstate", None) else _SQLITE
    # The longest prefix is the most particular one.
    fits = sorted((p for p in known if name.startswith(p)), key=len)
    detail = f"{known[fits[-1]]}: {name}" if fits else name
    refused = name.startswith(("23", "SQLITE_CONSTRAINT"))
    code = Code.LEDGER_CONFLICT if refused else Code.LEDGER_UNAVAILABLE
    return VectorlessRagError(code, detail)


def unavailable(detail: str) -> VectorlessRagError:
    """Say that the ledger cannot be opened or written."""
    return VectorlessRagError(Code.LEDGER_UNAVAILABLE, detail)


def conflict(detail: str) -> VectorlessRagError:
    """Say that a step contradicts what the ledger holds."""
    return VectorlessRagError(Code.LEDGER_CONFLICT, detail)


def _name(error: Exception) -> str:
    """Name *error* by the driver's code, or by its class."""
    code = getattr(error, "sqlite_errorname", None) or getattr(error, "sqlstate", None)
    return str(code or type(error).__name__)
