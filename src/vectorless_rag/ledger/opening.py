"""The one way to open the database that the ledger and the board share."""

from vectorless_rag.ledger import sealing
from vectorless_rag.ledger.backends import backend
from vectorless_rag.ledger.connection import Database


def open_database(url: str) -> Database:
    """
    Open a database; make its file, its folder and its tables if need be.

    Args:
        url: As of `vectorless_rag.ledger.book.Ledger.open`.

    Raises:
        VectorlessRagError: ``ledger_unavailable``.
    """
    database = Database(backend(url))
    try:
        database.migrate(sealing.seal_older)
    except BaseException:
        database.close()
        raise
    return database
