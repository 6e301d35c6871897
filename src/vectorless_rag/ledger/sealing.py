"""
Seals: what the rows of an ended attempt, and the limit of a budget, add up to.

A seal names columns that no other row repeats: token counts, response ids, times,
limits. It is the sum of the digests of an attempt's rows, so that a later step
takes the old rows out and puts the new ones in. What somebody altered in between
stays in the sum: no honest step ever covers it up.

Every function is a step inside a transaction.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

from sqlalchemy import BigInteger, Select, Text, bindparam, select, update

from vectorless_rag.ledger.connection import Transaction
from vectorless_rag.ledger.tables import attempts, budgets, entries, holds

RUNNING: Final = "running"
"""State of an attempt that has not ended."""

Rows: TypeAlias = Select[Any]
"""A query of whole rows."""

_SIZE: Final = 1 << 256
_SPELLING: Final = re.compile("[0-9a-f]{64}")

_id = bindparam("id", type_=Text)
_seal = bindparam("new_seal", type_=Text)

_COLUMNS: Final = tuple(c for c in attempts.columns if c.name != "seal")
_ATTEMPT: Final = select(*_COLUMNS).where(attempts.c.attempt_id == _id)
_OF_ATTEMPT: Final = (
    select(holds).where(holds.c.attempt_id == _id),
    select(entries)
    .select_from(entries.join(holds, entries.c.hold_id == holds.c.hold_id))
    .where(holds.c.attempt_id == _id),
)
_OF_HOLD: Final = (
    select(holds).where(holds.c.hold_id == _id),
    select(entries).where(entries.c.hold_id == _id),
)

# Whoever changes an attempt's rows after its end takes turns here.
_SEALED: Final = (
    select(attempts.c.seal).where(attempts.c.attempt_id == _id).with_for_update()
)
_ATTEMPT_OF: Final = select(holds.c.attempt_id).where(holds.c.hold_id == _id)
_ENDED: Final = (
    select(attempts.c.attempt_id, attempts.c.seal)
    .where(attempts.c.state != RUNNING)
    .order_by(attempts.c.attempt_id)
)
_PUT: Final = update(attempts).where(attempts.c.attempt_id == _id).values(seal=_seal)

_LIMITED: Final = select(
    budgets.c.budget_id, budgets.c.limit_nano, budgets.c.seal
).order_by(budgets.c.budget_id)
_LIMIT: Final = (
    update(budgets)
    .where(budgets.c.budget_id == _id)
    .values(limit_nano=bindparam("new_limit", type_=BigInteger), seal=_seal)
)


def seal(transaction: Transaction, attempt_id: str) -> None:
    """Seal the rows of an attempt that ends."""
    total = _of_attempt(transaction, attempt_id)
    transaction.count(_PUT, id=attempt_id, new_seal=_spelled(total))


def seal_older(transaction: Transaction) -> None:
    """Seal what was written before there were seals."""
    for attempt_id, _ in transaction.rows(_ENDED):
        seal(transaction, attempt_id)
    for budget_id, limit, _ in transaction.rows(_LIMITED):
        set_limit(transaction, budget_id, limit)


@contextmanager
def amending(transaction: Transaction, attempt_id: str) -> Iterator[None]:
    """Keep the seal of an attempt true, if it has one, while its rows change."""
    with _resealed(transaction, attempt_id, _OF_ATTEMPT, attempt_id):
        yield


@contextmanager
def amending_hold(transaction: Transaction, hold_id: str) -> Iterator[None]:
    """Keep the seal of a hold's attempt true, if it has one, while the hold changes."""
    row = transaction.row(_ATTEMPT_OF, id=hold_id)
    if row is None:
        yield
        return
    with _resealed(transaction, row[0], _OF_HOLD, hold_id):
        yield


def set_limit(transaction: Transaction, budget_id: str, limit: int | None) -> None:
    """Limit a budget to *limit* nano-dollars, or to nothing."""
    sealed = of_limit(budget_id, limit)
    transaction.count(_LIMIT, id=budget_id, new_limit=limit, new_seal=sealed)


def broken(transaction: Transaction) -> Iterator[str]:
    """Name the attempts and budgets whose rows are not the ones that were sealed."""
    for attempt_id, sealed in transaction.rows(_ENDED):
        if sealed != _spelled(_of_attempt(transaction, attempt_id)):
            yield f"attempt {attempt_id}: its rows were altered after it ended"
    for budget_id, limit, sealed in transaction.rows(_LIMITED):
        if sealed != of_limit(budget_id, limit):
            yield f"budget {budget_id}: its limit was altered"


@contextmanager
def _resealed(
    transaction: Transaction, attempt_id: str, of: Iterable[Rows], ident: str
) -> Iterator[None]:
    row = transaction.row(_SEALED, id=attempt_id)
    sealed: str = (row and row[0]) or ""
    if not _SPELLING.fullmatch(sealed):
        # It has not ended. Or somebody altered it, which stays for the audit to find.
        yield
        return
    before = _total(transaction, of, ident)
    yield
    after = _total(transaction, of, ident)
    total = (int(sealed, 16) - before + after) % _SIZE
    transaction.count(_PUT, id=attempt_id, new_seal=_spelled(total))


def _of_attempt(transaction: Transaction, attempt_id: str) -> int:
    return _total(transaction, (_ATTEMPT, *_OF_ATTEMPT), attempt_id)


def _total(transaction: Transaction, of: Iterable[Rows], ident: str) -> int:
    rows = (row for query in of for row in transaction.rows(query, id=ident))
    return sum(int.from_bytes(_digest(*row)) for row in rows) % _SIZE


def of_limit(budget_id: str, limit: int | None) -> str:
    """Seal the limit of a budget, also that it has none."""
    return _digest("limit", budget_id, limit).hex()


def _spelled(total: int) -> str:
    return f"{total:064x}"


def _digest(*values: str | int | None) -> bytes:
    # Rows of different tables have different numbers of values.
    return hashlib.sha256(json.dumps(values).encode("ascii")).digest()
