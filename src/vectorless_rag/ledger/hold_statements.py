"""The SQL that opens, closes and expires holds."""

from typing import Final, cast

from sqlalchemy import (
    BigInteger,
    ClauseElement,
    Text,
    Update,
    bindparam,
    case,
    exists,
    func,
    insert,
    literal,
    select,
    update,
)

from vectorless_rag.ledger.drivers import Insert
from vectorless_rag.ledger.sealing import RUNNING
from vectorless_rag.ledger.tables import attempts, entries, holds
from vectorless_rag.ledger.types import State

_MOST_EXPIRED = 100
"""Holds expired in one transaction, so that other writers get their turn."""

_hold = bindparam("hold", type_=Text)
_set = bindparam("of_set", type_=Text)
_attempt = bindparam("attempt", type_=Text)
_now = bindparam("now", type_=BigInteger)
_lease = bindparam("lease", type_=BigInteger)
_amount = bindparam("amount", type_=BigInteger)
_response = bindparam("response", type_=Text)
_finish = bindparam("finish", type_=Text)
_why = bindparam("why", type_=Text)
_failure = bindparam("failure", type_=Text)

ENTRY: Final = insert(entries)

STANDING: Final = (
    select(
        holds.c.state,
        holds.c.amount_nano,
        holds.c.reserved_nano,
        holds.c.set_id,
    )
    .where(holds.c.hold_id == _hold)
    .with_for_update()
)

SAME: Final = select(
    holds.c.attempt_id,
    holds.c.operation,
    holds.c.model,
    holds.c.reserved_nano,
    holds.c.set_id,
    holds.c.replayed,
    holds.c.state,
).where(holds.c.hold_id == _hold)


def open_hold(insert: Insert) -> ClauseElement:
    """Insert a hold of a running attempt; no row if it ended or the hold exists."""
    given = {
        "hold_id": _hold,
        "attempt_id": attempts.c.attempt_id,
        "set_id": _set,
        "call_id": bindparam("call", type_=Text),
        "try_no": bindparam("try_number", type_=BigInteger),
        "operation": bindparam("for_operation", type_=Text),
        "model": bindparam("of_model", type_=Text),
        "state": bindparam("new_state", type_=Text),
        "replayed": bindparam("is_replayed", type_=BigInteger),
        "overrun": literal(0, BigInteger),
        "reserved_nano": bindparam("held", type_=BigInteger),
        "amount_nano": _amount,
        "held_prompt_tokens": bindparam("tokens", type_=BigInteger),
        "opened_us": _now,
        "lease_until_us": _lease,
        "closed_us": bindparam("closed", type_=BigInteger),
    }
    running = (
        select(*given.values())
        .where(attempts.c.attempt_id == _attempt, attempts.c.state == RUNNING)
        # An attempt cannot end between this look and the commit.
        .with_for_update(read=True)
    )
    new = insert(holds).from_select(list(given), running).on_conflict_do_nothing()
    return cast("ClauseElement", new)


def _closing() -> Update:
    charged = func.coalesce(_amount, holds.c.reserved_nano)
    return update(holds).values(
        state=bindparam("new_state", type_=Text),
        amount_nano=charged,
        overrun=case((charged > holds.c.reserved_nano, 1), else_=0),
        prompt_tokens=bindparam("prompt", type_=BigInteger),
        completion_tokens=bindparam("completion", type_=BigInteger),
        cached_tokens=bindparam("cached", type_=BigInteger),
        reasoning_tokens=bindparam("reasoning", type_=BigInteger),
        # A correction knows the price, and not what happened before.
        response_id=func.coalesce(_response, holds.c.response_id),
        finish_reason=func.coalesce(_finish, holds.c.finish_reason),
        reason=func.coalesce(_why, holds.c.reason),
        code=func.coalesce(_failure, holds.c.code),
        closed_us=_now,
    )


_OPEN: Final = holds.c.state == State.RESERVED.value
_RUNS: Final = exists(
    select(attempts.c.attempt_id)
    .where(attempts.c.attempt_id == holds.c.attempt_id, attempts.c.state == RUNNING)
    # An attempt is not sealed between this look and the commit.
    .with_for_update(read=True)
)

CLOSE_LATE: Final = (
    _closing()
    .where(holds.c.hold_id == _hold, _OPEN)
    .returning(holds.c.reserved_nano, holds.c.amount_nano, holds.c.set_id)
)
"""Closes a hold that is open."""

CLOSE: Final = CLOSE_LATE.where(_RUNS)
"""Closes a hold that is open, while its attempt runs."""

AMEND: Final = _closing().where(holds.c.hold_id == _hold)

_OVERDUE: Final = (_OPEN, holds.c.lease_until_us < _now)
_ABANDONED: Final = (_OPEN, holds.c.attempt_id == _attempt)

RENEW: Final = update(holds).values(lease_until_us=_lease).where(*_ABANDONED, _RUNS)
"""Puts off when the leases of a running attempt's open holds run out."""

_GROUP: Final = select(holds.c.attempt_id, holds.c.set_id).distinct()

OVERDUE: Final = _GROUP.where(*_OVERDUE)
ABANDONED: Final = _GROUP.where(*_ABANDONED)


def _expiring(*, abandoned: bool) -> ClauseElement:
    which = _ABANDONED if abandoned else (*_ABANDONED, *_OVERDUE)
    chosen = (
        select(holds.c.hold_id)
        .where(*which, holds.c.set_id == _set)
        .order_by(holds.c.hold_id)
        .limit(_MOST_EXPIRED)
        # A locked hold is being closed. Whoever looks for overdue ones leaves it
        # alone; whoever clears up after an attempt waits and sees.
        .with_for_update(skip_locked=not abandoned)
    )
    return (
        update(holds)
        .where(holds.c.hold_id.in_(chosen))
        .values(
            state=State.EXPIRED.value,
            amount_nano=holds.c.reserved_nano,
            reason="its attempt ended" if abandoned else "its lease ran out",
            closed_us=_now,
        )
        .returning(holds.c.hold_id, holds.c.reserved_nano)
    )


EXPIRE_OVERDUE: Final = _expiring(abandoned=False)
EXPIRE_ABANDONED: Final = _expiring(abandoned=True)
