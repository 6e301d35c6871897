"""
The audit: do balances, holds and entries tell one story?

Every function reads inside one transaction; a problem is one line that names the
row and the numbers that differ.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    and_,
    bindparam,
    case,
    cast,
    func,
    literal,
    not_,
    or_,
    select,
)

from vectorless_rag.ledger import sealing
from vectorless_rag.ledger.budgets import set_id
from vectorless_rag.ledger.connection import Transaction
from vectorless_rag.ledger.sealing import RUNNING
from vectorless_rag.ledger.tables import (
    attempts,
    budget_sets,
    budgets,
    entries,
    holds,
)
from vectorless_rag.ledger.types import State, Step


@dataclass(frozen=True)
class Problems:
    """What is wrong with a ledger, one line each."""

    wrong: list[str]

    overdue: list[str]
    """Holds that a crash or a full disk left open; reconciling closes them."""


_MOST_SHOWN: Final = 100
"""Problems of one kind listed before the audit only counts the rest."""

# A hold has at most one entry of each kind, so a sum of these names the set.
_BIT: Final = {step: 1 << number for number, step in enumerate(Step)}


def _mask(*steps: Step) -> int:
    return sum(_BIT[step] for step in steps)


_CORRECTED: Final = (
    _mask(Step.RESERVE, Step.UNKNOWN, Step.CORRECT),
    _mask(Step.RESERVE, Step.EXPIRE, Step.CORRECT),
)

_STORIES: Final = {
    State.RESERVED: (_mask(Step.RESERVE),),
    State.SETTLED: (
        _mask(Step.RESERVE, Step.SETTLE),
        *_CORRECTED,
        _mask(Step.REPLAY),
    ),
    State.VOIDED: (
        _mask(Step.RESERVE, Step.VOID),
        _mask(Step.RESERVE, Step.EXPIRE, Step.CORRECT),
    ),
    State.UNKNOWN: (_mask(Step.RESERVE, Step.UNKNOWN),),
    State.EXPIRED: (_mask(Step.RESERVE, Step.EXPIRE),),
}
"""Which entries a hold in each state may have."""


def _sum(value: ColumnElement[int]) -> ColumnElement[int]:
    return cast(func.coalesce(func.sum(value), 0), BigInteger)


_HELD: Final = case(
    (holds.c.state == State.RESERVED.value, holds.c.reserved_nano), else_=0
)
_CHARGED: Final = func.coalesce(holds.c.amount_nano, 0)

# Summed by set before the join: a set has few budgets and many holds.
_OF_ENTRIES: Final = (
    select(
        holds.c.set_id,
        _sum(entries.c.reserved_delta).label("reserved"),
        _sum(entries.c.spent_delta).label("spent"),
    )
    .select_from(entries.join(holds, entries.c.hold_id == holds.c.hold_id))
    .group_by(holds.c.set_id)
    .subquery()
)
_OF_HOLDS: Final = (
    select(holds.c.set_id, _sum(_HELD).label("reserved"), _sum(_CHARGED).label("spent"))
    .group_by(holds.c.set_id)
    .subquery()
)

_BALANCES: Final = (
    select(
        budgets.c.budget_id,
        budgets.c.reserved_nano,
        budgets.c.spent_nano,
        _sum(_OF_ENTRIES.c.reserved),
        _sum(_OF_ENTRIES.c.spent),
        _sum(_OF_HOLDS.c.reserved),
        _sum(_OF_HOLDS.c.spent),
    )
    .select_from(
        budgets.outerjoin(budget_sets, budget_sets.c.budget_id == budgets.c.budget_id)
        .outerjoin(_OF_ENTRIES, _OF_ENTRIES.c.set_id == budget_sets.c.set_id)
        .outerjoin(_OF_HOLDS, _OF_HOLDS.c.set_id == budget_sets.c.set_id)
    )
    .group_by(budgets.c.budget_id, budgets.c.reserved_nano, budgets.c.spent_nano)
    .order_by(budgets.c.budget_id)
)

_BY_KIND: Final = case(
    *((entries.c.kind == step.value, bit) for step, bit in _BIT.items()), else_=0
)
_RESERVED_FIRST: Final = case(
    (entries.c.kind == Step.RESERVE.value, entries.c.reserved_delta), else_=0
)


def _when(*steps: Step) -> ColumnElement[int]:
    """Time of the one entry of these kinds; 0 without any."""
    of_these = or_(*(entries.c.kind == step.value for step in steps))
    return _sum(case((of_these, entries.c.at_us), else_=0))


_OF_HOLD: Final = (
    select(
        entries.c.hold_id,
        _sum(_BY_KIND).label("mask"),
        _sum(entries.c.reserved_delta).label("reserved"),
        _sum(entries.c.spent_delta).label("spent"),
        _sum(_RESERVED_FIRST).label("first"),
        _when(Step.RESERVE, Step.REPLAY).label("opened"),
        _when(Step.SETTLE, Step.VOID, Step.UNKNOWN, Step.EXPIRE, Step.REPLAY).label(
            "closed"
        ),
        _when(Step.CORRECT).label("corrected"),
    )
    .group_by(entries.c.hold_id)
    .subquery()
)
_HAS_STORY: Final = or_(
    *(
        and_(holds.c.state == state.value, func.coalesce(_OF_HOLD.c.mask, 0) == mask)
        for state, masks in _STORIES.items()
        for mask in masks
    )
)
_CLOSED: Final = case(
    (_OF_HOLD.c.corrected > 0, _OF_HOLD.c.corrected), else_=_OF_HOLD.c.closed
)
_SOUND: Final = and_(
    _HAS_STORY,
    (holds.c.replayed == 1) == (_OF_HOLD.c.mask == _mask(Step.REPLAY)),
    _OF_HOLD.c.reserved == _HELD,
    _OF_HOLD.c.spent == _CHARGED,
    _OF_HOLD.c.first == holds.c.reserved_nano,
    _OF_HOLD.c.opened == holds.c.opened_us,
    func.coalesce(holds.c.closed_us, 0) == _CLOSED,
    (holds.c.overrun == 1) == (holds.c.reserved_nano < _CHARGED),
)
_UNSOUND: Final = (
    select(holds.c.hold_id, holds.c.state)
    .select_from(holds.outerjoin(_OF_HOLD, _OF_HOLD.c.hold_id == holds.c.hold_id))
    .where(not_(func.coalesce(_SOUND, literal(value=False))))
    .order_by(holds.c.hold_id)
)

_now = bindparam("now", type_=BigInteger)
_OVERDUE: Final = (
    select(holds.c.hold_id)
    .where(holds.c.state == State.RESERVED.value, holds.c.lease_until_us < _now)
    .order_by(holds.c.hold_id)
)
_LEFT_OPEN: Final = (
    select(holds.c.hold_id, holds.c.attempt_id)
    .select_from(holds.join(attempts, holds.c.attempt_id == attempts.c.attempt_id))
    .where(holds.c.state == State.RESERVED.value, attempts.c.state != RUNNING)
    .order_by(holds.c.hold_id)
)
_UNBUDGETED: Final = (
    select(holds.c.hold_id)
    .select_from(holds.outerjoin(budget_sets, budget_sets.c.set_id == holds.c.set_id))
    .where(budget_sets.c.set_id.is_(None))
    .order_by(holds.c.hold_id)
)
_MEMBERS: Final = select(budget_sets.c.set_id, budget_sets.c.budget_id).order_by(
    budget_sets.c.set_id, budget_sets.c.budget_id
)
_OF_RUN: Final = literal("run:") + attempts.c.run_id
_STRAY: Final = (
    select(holds.c.hold_id, attempts.c.attempt_id)
    .select_from(
        holds.join(attempts, holds.c.attempt_id == attempts.c.attempt_id).outerjoin(
            budget_sets,
            and_(
                budget_sets.c.set_id == holds.c.set_id,
                budget_sets.c.budget_id == _OF_RUN,
            ),
        )
    )
    .where(budget_sets.c.set_id.is_(None))
    .order_by(holds.c.hold_id)
)


def problems(transaction: Transaction, now: int) -> Problems:
    """
    List what is wrong; nothing means sound.

    Args:
        transaction: Sees one state of the whole database.
        now: Leases that ended before this time, in microseconds, are overdue.
    """
    kinds = (
        _balances(transaction),
        (
            f"hold {name} is {state}, and its entries say otherwise"
            for name, state in transaction.rows(_UNSOUND)
        ),
        (
            f"hold {name} counts towards no budget"
            for (name,) in transaction.rows(_UNBUDGETED)
        ),
        (
            f"budget set {name} has not the budgets of its name"
            for name in _altered_sets(transaction)
        ),
        sealing.broken(transaction),
        (f"the file: {found}" for found in transaction.damage()),
    )
    overdue = (
        f"hold {name} is open past its lease; reconcile the ledger"
        for (name,) in transaction.rows(_OVERDUE, now=now)
    )
    left = (
        f"hold {name} is open, and attempt {attempt} has ended; reconcile the ledger"
        for name, attempt in transaction.rows(_LEFT_OPEN)
    )
    return Problems(
        wrong=[line for kind in kinds for line in _shortened(kind)],
        overdue=_shortened(overdue) + _shortened(left),
    )


def strays(transaction: Transaction) -> list[str]:
    """
    List holds that do not count towards the budget of their attempt's run.

    The ledger takes holds on any budgets; it is the runs that all have their own.
    """
    lines = (
        f"hold {name} counts towards no budget of the run of attempt {attempt}"
        for name, attempt in transaction.rows(_STRAY)
    )
    return _shortened(lines)


def _altered_sets(transaction: Transaction) -> Iterator[str]:
    rows = transaction.rows(_MEMBERS)
    for name, members in groupby(rows, key=lambda row: row[0]):
        if set_id(budget for _, budget in members) != name:
            yield name


def _balances(transaction: Transaction) -> Iterator[str]:
    for name, *numbers in transaction.rows(_BALANCES):
        stored, of_entries, of_holds = numbers[:2], numbers[2:4], numbers[4:]
        for source, told in (("entries", of_entries), ("holds", of_holds)):
            if stored != told:
                yield (
                    f"budget {name}: reserved {stored[0]}, spent {stored[1]};"
                    f" its {source} say {told[0]}, {told[1]}"
                )


def _shortened(lines: Iterable[str]) -> list[str]:
    shown = list(lines)
    rest = len(shown) - _MOST_SHOWN
    return shown[:_MOST_SHOWN] + ([f"and {rest} more like it"] if rest > 0 else [])
