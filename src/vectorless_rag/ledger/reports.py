"""What was used, summed up; every function reads inside one transaction."""

from datetime import date
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    ClauseElement,
    ColumnElement,
    Text,
    and_,
    bindparam,
    case,
    cast,
    func,
    or_,
    select,
)

from vectorless_rag.errors import Code
from vectorless_rag.ledger.connection import Transaction
from vectorless_rag.ledger.drivers import Row
from vectorless_rag.ledger.tables import attempts, entries, holds
from vectorless_rag.ledger.types import (
    By,
    Correction,
    HoldRow,
    ReportRow,
    State,
    Step,
    TokenUsage,
    Usage,
)
from vectorless_rag.units import NanoUsd

_US_PER_DAY: Final = 86_400_000_000

_EPOCH: Final = date(1970, 1, 1)

_attempt = bindparam("attempt", type_=Text)
_key = bindparam("id", type_=Text)


def _sum(value: ColumnElement[int]) -> ColumnElement[int]:
    # PostgreSQL sums 64-bit integers to a decimal.
    return cast(func.coalesce(func.sum(value), 0), BigInteger)


def _sum_if(condition: ColumnElement[bool], value: object) -> ColumnElement[int]:
    return _sum(case((condition, value), else_=0))


_GUESSED: Final = or_(
    holds.c.state == State.UNKNOWN.value, holds.c.state == State.EXPIRED.value
)

_SUMS: Final = (
    _sum_if(holds.c.replayed == 0, 1),
    _sum(holds.c.replayed),
    _sum(holds.c.prompt_tokens),
    _sum(holds.c.completion_tokens),
    _sum(holds.c.cached_tokens),
    _sum(holds.c.reasoning_tokens),
    _sum(holds.c.amount_nano),
    _sum_if(holds.c.state == State.RESERVED.value, holds.c.reserved_nano),
    _sum_if(_GUESSED, holds.c.amount_nano),
    _sum(holds.c.overrun),
)


def _grouped(key: ColumnElement[Any]) -> ClauseElement:
    of_attempt = holds.c.attempt_id == attempts.c.attempt_id
    columns: tuple[ColumnElement[Any], ...] = (key, *_SUMS)
    joined = select(*columns).select_from(holds.join(attempts, of_attempt))
    return joined.group_by(key).order_by(key)


_REPORTS: Final = {
    By.OPERATION: _grouped(holds.c.operation),
    By.MODEL: _grouped(holds.c.model),
    By.OWNER: _grouped(attempts.c.owner),
    By.DAY: _grouped(holds.c.opened_us // _US_PER_DAY),
    By.ATTEMPT: _grouped(holds.c.attempt_id),
}

_USAGE: Final = (
    select(holds.c.state, *_SUMS, func.count())
    .where(holds.c.attempt_id == _attempt)
    .group_by(holds.c.state)
)

_COLUMNS: Final = (
    holds.c.hold_id,
    holds.c.attempt_id,
    holds.c.call_id,
    holds.c.try_no,
    holds.c.operation,
    holds.c.model,
    holds.c.state,
    holds.c.replayed,
    holds.c.overrun,
    holds.c.reserved_nano,
    holds.c.amount_nano,
    holds.c.held_prompt_tokens,
    holds.c.prompt_tokens,
    holds.c.completion_tokens,
    holds.c.cached_tokens,
    holds.c.reasoning_tokens,
    holds.c.response_id,
    holds.c.finish_reason,
    holds.c.reason,
    holds.c.code,
    holds.c.opened_us,
    holds.c.lease_until_us,
    holds.c.closed_us,
)

_NAMES: Final = tuple(column.name for column in _COLUMNS)
_TOKENS: Final = (
    "prompt_tokens",
    "completion_tokens",
    "cached_tokens",
    "reasoning_tokens",
)

_HOLDS: Final = (
    select(*_COLUMNS)
    .where(holds.c.attempt_id == _attempt)
    .order_by(holds.c.opened_us, holds.c.call_id, holds.c.try_no)
)

_BY_RESPONSE: Final = select(holds.c.hold_id).where(
    or_(holds.c.hold_id == _key, holds.c.response_id == _key)
)

_EXPIRED = entries.alias("expired")

_CORRECTIONS: Final = (
    select(
        entries.c.hold_id, _EXPIRED.c.hold_id, entries.c.spent_delta, entries.c.at_us
    )
    .select_from(
        entries.join(holds, holds.c.hold_id == entries.c.hold_id).outerjoin(
            _EXPIRED,
            and_(
                _EXPIRED.c.hold_id == entries.c.hold_id,
                _EXPIRED.c.kind == Step.EXPIRE.value,
            ),
        )
    )
    .where(holds.c.attempt_id == _attempt, entries.c.kind == Step.CORRECT.value)
    .order_by(entries.c.at_us, entries.c.hold_id)
)


def report(transaction: Transaction, by: By) -> list[ReportRow]:
    """Sum up every hold, in groups, in the order of their keys."""
    return [_report_row(by, row) for row in transaction.rows(_REPORTS[by])]


def usage(transaction: Transaction, attempt_id: str) -> Usage:
    """Sum up one attempt's holds."""
    rows = transaction.rows(_USAGE, attempt=attempt_id)
    numbers = [row[1:] for row in rows]
    calls, replayed, prompt, completion, cached, reasoning, cost = (
        sum(column[i] for column in numbers) for i in range(7)
    )
    return Usage(
        calls=calls,
        replayed=replayed,
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=cached,
        reasoning_tokens=reasoning,
        cost_nano=NanoUsd(cost),
        by_state={row[0]: row[-1] for row in sorted(rows)},
    )


def of_attempt(transaction: Transaction, attempt_id: str) -> list[HoldRow]:
    """List an attempt's holds in the order they were opened."""
    return [_hold_row(row) for row in transaction.rows(_HOLDS, attempt=attempt_id)]


def corrections(transaction: Transaction, attempt_id: str) -> list[Correction]:
    """List what was corrected among an attempt's holds, oldest first."""
    return [
        Correction(
            hold_id=hold_id,
            before=State.UNKNOWN if expired is None else State.EXPIRED,
            change_nano=change,
            at_us=at_us,
        )
        for hold_id, expired, change, at_us in transaction.rows(
            _CORRECTIONS, attempt=attempt_id
        )
    ]


def found(transaction: Transaction, key: str) -> list[str]:
    """Name the holds whose id, or whose response's id, is *key*."""
    return [hold_id for (hold_id,) in transaction.rows(_BY_RESPONSE, id=key)]


def _report_row(by: By, row: Row) -> ReportRow:
    key, calls, replayed, prompt, completion, cached, reasoning, *money = row
    cost, held, guessed, overruns = money
    if by is By.DAY:
        key = date.fromordinal(_EPOCH.toordinal() + key).isoformat()
    return ReportRow(
        key=key,
        calls=calls,
        replayed=replayed,
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=cached,
        reasoning_tokens=reasoning,
        cost_nano=NanoUsd(cost),
        open_nano=NanoUsd(held),
        guessed_nano=NanoUsd(guessed),
        overruns=overruns,
    )


def _hold_row(row: Row) -> HoldRow:
    values = dict(zip(_NAMES, row, strict=True))
    tokens = {name: values.pop(name) for name in _TOKENS}
    for name, kind in (("state", State), ("code", Code)):
        values[name] = values[name] and kind(values[name])
    values["replayed"] = bool(values["replayed"])
    values["overrun"] = bool(values["overrun"])
    known = tokens["prompt_tokens"] is not None
    return HoldRow(usage=TokenUsage(**tokens) if known else None, **values)
