"""
How attempts ended, and which requests failed.

Every function reads inside one transaction.
"""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import func, select

from vectorless_rag.errors import Code
from vectorless_rag.ledger.connection import Transaction
from vectorless_rag.ledger.sealing import RUNNING
from vectorless_rag.ledger.tables import attempts, holds
from vectorless_rag.ledger.types import Outcome

_ENDS: Final = (
    select(
        attempts.c.state,
        attempts.c.code,
        func.count(),
        func.max(func.coalesce(attempts.c.ended_us, attempts.c.started_us)),
    )
    .group_by(attempts.c.state, attempts.c.code)
    .order_by(attempts.c.state, attempts.c.code)
)

_FAILED: Final = (
    select(holds.c.code, func.count(), func.max(holds.c.opened_us))
    .where(holds.c.code.is_not(None))
    .group_by(holds.c.code)
    .order_by(holds.c.code)
)


@dataclass(frozen=True, kw_only=True)
class EndRow:
    """Attempts that ended alike."""

    outcome: Outcome | None
    """None: they have not ended."""

    code: Code | None
    """Why they were not built."""

    attempts: int

    last_us: int
    """When the last of them ended, or started."""


@dataclass(frozen=True, kw_only=True)
class FailedRequests:
    """Provider requests that failed alike."""

    code: Code
    requests: int

    last_us: int
    """When the last of them was opened."""


def ends(transaction: Transaction) -> list[EndRow]:
    """Count all attempts by how they ended."""
    return [
        EndRow(
            outcome=None if state == RUNNING else Outcome(state),
            code=Code(code) if code else None,
            attempts=count,
            last_us=last,
        )
        for state, code, count, last in transaction.rows(_ENDS)
    ]


def failed_requests(transaction: Transaction) -> list[FailedRequests]:
    """Count all failed requests by their code."""
    return [
        FailedRequests(code=Code(code), requests=count, last_us=last)
        for code, count, last in transaction.rows(_FAILED)
    ]
