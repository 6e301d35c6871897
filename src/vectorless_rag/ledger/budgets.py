"""
Budgets and the sets of them that holds count towards.

Every function is a step inside a transaction. Rows are locked in the order of
their ids, so that overlapping sets cannot deadlock.
"""

from collections.abc import Callable, Iterable
from typing import Final, cast

from sqlalchemy import (
    BigInteger,
    ClauseElement,
    Table,
    Text,
    bindparam,
    literal,
    or_,
    select,
    update,
)

from vectorless_rag.canon import digest
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.ledger import sealing
from vectorless_rag.ledger.connection import Transaction
from vectorless_rag.ledger.drivers import Insert
from vectorless_rag.ledger.tables import budget_sets, budgets
from vectorless_rag.ledger.types import MOST_NANO, Budget
from vectorless_rag.units import NanoUsd, usd

_set = bindparam("set_id", type_=Text)
_id = bindparam("id", type_=Text)
_amount = bindparam("amount", type_=BigInteger)
_reserved = bindparam("reserved", type_=BigInteger)
_spent = bindparam("spent", type_=BigInteger)

_IN_SET: Final = budgets.c.budget_id.in_(
    select(budget_sets.c.budget_id).where(budget_sets.c.set_id == _set)
)

_LOCK: Final = (
    select(budgets.c.budget_id)
    .where(_IN_SET)
    .order_by(budgets.c.budget_id)
    .with_for_update()
)

# The guard stands on the updated row itself: a writer that waited judges that
# row's new version. One in a sub-select would be judged on the old one.
_TAKE: Final = (
    update(budgets)
    .where(
        _IN_SET,
        or_(
            budgets.c.limit_nano.is_(None),
            budgets.c.limit_nano - budgets.c.reserved_nano - budgets.c.spent_nano
            >= _amount,
            # What is free passes no limit, not even one an overrun has passed.
            literal(0) == _amount,
        ),
    )
    .values(reserved_nano=budgets.c.reserved_nano + _amount)
)

_MOVE: Final = (
    update(budgets)
    .where(_IN_SET)
    .values(
        reserved_nano=budgets.c.reserved_nano + _reserved,
        spent_nano=budgets.c.spent_nano + _spent,
    )
)

_ROOM: Final = (
    select(budgets.c.budget_id, budgets.c.limit_nano, budgets.c.spent_nano)
    .where(_IN_SET, budgets.c.limit_nano.is_not(None))
    .order_by(budgets.c.budget_id)
)

STATEMENTS: Final = (_LOCK, _TAKE, _MOVE)
"""What every request runs."""

_BALANCES: Final = select(
    budgets.c.budget_id,
    budgets.c.limit_nano,
    budgets.c.reserved_nano,
    budgets.c.spent_nano,
).order_by(budgets.c.budget_id)

_BALANCE: Final = _BALANCES.where(budgets.c.budget_id == _id)


def insert_new(table: Table) -> Callable[[Insert], ClauseElement]:
    """Build the statement that inserts a row, unless its key is there."""

    def build(insert: Insert) -> ClauseElement:
        return cast("ClauseElement", insert(table).on_conflict_do_nothing())

    return build


_NEW_BUDGET: Final = insert_new(budgets)
_NEW_MEMBER: Final = insert_new(budget_sets)


def set_id(names: Iterable[str]) -> str:
    """Name the set of these budgets, in whatever order they come."""
    return digest("budget-set/1", sorted(set(names)))


def create(transaction: Transaction, names: Iterable[str]) -> None:
    """Create the set of these budgets, and those that are missing, unlimited."""
    name_of_set = set_id(names)
    for name in sorted(set(names)):
        _create_one(transaction, name)
        transaction.count(_NEW_MEMBER, set_id=name_of_set, budget_id=name)


def take(transaction: Transaction, of_set: str, size: int, amount: int) -> None:
    """
    Hold *amount* against every budget of the set, in one statement.

    Args:
        transaction: Rolled back by what this raises, as some budgets may have
            been changed by then.
        of_set: Which set.
        size: How many budgets it has.
        amount: Nano-dollars.

    Raises:
        VectorlessRagError: ``budget_exceeded``: it is above what a limit leaves
            beside what is spent; ``budget_contended``: it would fit if open
            holds were released.
    """
    lock(transaction, of_set)
    if transaction.count(_TAKE, set_id=of_set, amount=amount) != size:
        raise _refusal(transaction, of_set, amount)


def lock(transaction: Transaction, of_set: str) -> None:
    """Lock the budgets of a set, where writers lock rows."""
    if transaction.row_locks:
        transaction.rows(_LOCK, set_id=of_set)


def move(transaction: Transaction, of_set: str, *, reserved: int, spent: int) -> None:
    """Change the balances of every budget of a set."""
    lock(transaction, of_set)
    transaction.count(_MOVE, set_id=of_set, reserved=reserved, spent=spent)


def set_limit(transaction: Transaction, name: str, limit: int | None) -> None:
    """Limit a budget to *limit* nano-dollars, or to nothing."""
    if limit is not None and not 0 <= limit <= MOST_NANO:
        raise ValueError("a budget's limit is out of range")
    _create_one(transaction, name)
    sealing.set_limit(transaction, name, limit)


def balance(transaction: Transaction, name: str) -> Budget:
    """Read a budget; one that nothing has named yet is empty and unlimited."""
    row = transaction.row(_BALANCE, id=name)
    return _budget(*row[1:]) if row else _budget(None, 0, 0)


def balances(transaction: Transaction) -> dict[str, Budget]:
    """Read every budget, by id."""
    return {name: _budget(*rest) for name, *rest in transaction.rows(_BALANCES)}


def _create_one(transaction: Transaction, name: str) -> None:
    transaction.count(
        _NEW_BUDGET,
        budget_id=name,
        limit_nano=None,
        reserved_nano=0,
        spent_nano=0,
        seal=sealing.of_limit(name, None),
    )


def _budget(limit: int | None, reserved: int, spent: int) -> Budget:
    return Budget(
        limit=None if limit is None else NanoUsd(limit),
        reserved=NanoUsd(reserved),
        spent=NanoUsd(spent),
    )


def _refusal(transaction: Transaction, of_set: str, amount: int) -> VectorlessRagError:
    # What the refused statement changed is reserved amounts, not these two.
    rows = transaction.rows(_ROOM, set_id=of_set)
    for name, limit, spent in rows:
        if amount > limit - spent:
            left = max(0, limit - spent)
            return VectorlessRagError(
                Code.BUDGET_EXCEEDED,
                f"{name}: needs {usd(amount):f} USD,"
                f" {usd(left):f} of {usd(limit):f} USD left",
            )
    names = ", ".join(name for name, _, _ in rows)
    needs = f"{names}: needs {usd(amount):f} USD"
    return VectorlessRagError(Code.BUDGET_CONTENDED, needs)
