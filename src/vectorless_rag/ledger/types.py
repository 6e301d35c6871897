"""
The words of the ledger: what is held, what is charged, what is reported.

Amounts are integer nano-dollars; times are integer microseconds since 1970, UTC.
"""

from dataclasses import astuple, dataclass
from datetime import date
from enum import StrEnum

from vectorless_rag.errors import Code
from vectorless_rag.units import NanoUsd, Sha256

MOST_NANO = 10**18
"""Largest amount or limit taken: a billion dollars."""

_MOST_TOKENS = 2**40


class State(StrEnum):
    """Where a hold stands."""

    RESERVED = "reserved"
    SETTLED = "settled"
    VOIDED = "voided"
    UNKNOWN = "unknown"
    EXPIRED = "expired"


class Step(StrEnum):
    """The kinds of ledger entries; a hold has at most one of each."""

    RESERVE = "reserve"
    SETTLE = "settle"
    VOID = "void"
    UNKNOWN = "unknown"
    EXPIRE = "expire"
    CORRECT = "correct"
    REPLAY = "replay"


class Closed(StrEnum):
    """What closing a hold did."""

    DONE = "done"
    """The hold is closed as asked, within what was held."""

    OVERRUN = "overrun"
    """The real price is above the hold; it was recorded all the same."""

    CORRECTED = "corrected"
    """The hold had been spent at its amount; a correction was posted."""

    UNCHANGED = "unchanged"
    """The same step had been taken before."""


class Outcome(StrEnum):
    """How an attempt ended."""

    BUILT = "built"
    FAILED = "failed"
    CANCELLED = "cancelled"


class By(StrEnum):
    """What a report groups its rows by."""

    OPERATION = "operation"
    MODEL = "model"
    OWNER = "owner"
    DAY = "day"
    ATTEMPT = "attempt"


def run_budget(run_id: str) -> str:
    """Name the budget of one run."""
    return f"run:{run_id}"


def owner_budget(owner: str) -> str:
    """Name the budget of everything an owner ever runs."""
    return f"owner:{owner}"


def day_budget(owner: str, day: date) -> str:
    """Name the budget of an owner's runs on one day, UTC."""
    return f"day:{owner}:{day.isoformat()}"


@dataclass(frozen=True, kw_only=True)
class TokenUsage:
    """
    Tokens of one reply, as the provider counted them.

    Raises:
        ValueError: A count is negative or absurd: the usage is not known.
    """

    prompt_tokens: int
    """Cached ones included."""

    completion_tokens: int
    """Reasoning ones included."""

    cached_tokens: int = 0
    reasoning_tokens: int = 0

    def __post_init__(self) -> None:
        if not all(0 <= count <= _MOST_TOKENS for count in astuple(self)):
            raise ValueError("a token count is negative or too large")


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One try to build one document's tree; the owner of its holds."""

    attempt_id: str
    run_id: str
    owner: str
    document_sha256: Sha256
    recipe_hash: Sha256
    model: str

    price_table: str | None = None
    """Version and digest of the prices its requests are charged by."""


@dataclass(frozen=True, kw_only=True)
class AttemptRow(Attempt):
    """An attempt as recorded."""

    outcome: Outcome | None
    """None: it has not ended."""

    code: Code | None
    """Why it failed."""

    started_us: int
    ended_us: int | None


@dataclass(frozen=True, kw_only=True)
class Hold:
    """
    What one provider request may cost at most, set aside before it is sent.

    Raises:
        ValueError: A number is out of range, or no budget is named.
    """

    hold_id: str
    """Chosen before the first write, so that taking the step again is safe."""

    attempt_id: str
    operation: str
    model: str

    amount: NanoUsd
    """The worst case; 0 for a request that costs nothing."""

    prompt_tokens: int
    """Upper bound, counted before the request."""

    budgets: tuple[str, ...]
    """Every budget it counts towards, in any order."""

    lease_s: float
    """Seconds until others may take it for dead: the call's deadline and a margin."""

    call_id: str
    """The model call this request is a try of."""

    try_no: int
    """Which try, from 1."""

    def __post_init__(self) -> None:
        if not 0 <= self.amount <= MOST_NANO:
            raise ValueError("the amount of a hold is out of range")
        if not 0 <= self.prompt_tokens <= _MOST_TOKENS:
            raise ValueError("the prompt tokens of a hold are out of range")
        if not self.budgets:
            raise ValueError("a hold counts towards at least one budget")


@dataclass(frozen=True, kw_only=True)
class HoldRow:
    """A hold as recorded, with what became of it."""

    hold_id: str
    attempt_id: str
    call_id: str
    try_no: int
    operation: str
    model: str
    state: State

    replayed: bool
    """Answered from a journal of replies: no request was sent, nothing was paid."""

    overrun: bool
    """It cost more than was held."""

    reserved_nano: NanoUsd
    """What was held."""

    amount_nano: NanoUsd | None
    """What it counts as; None while it is open."""

    held_prompt_tokens: int
    usage: TokenUsage | None
    response_id: str | None
    finish_reason: str | None
    reason: str | None
    code: Code | None
    opened_us: int
    lease_until_us: int
    closed_us: int | None


@dataclass(frozen=True, kw_only=True)
class Correction:
    """A price that a closed hold got later."""

    hold_id: str

    before: State
    """``unknown`` or ``expired``: it counted at its amount until then."""

    change_nano: int
    """What it costs more; negative: less."""

    at_us: int


@dataclass(frozen=True, kw_only=True)
class Budget:
    """A budget's balance."""

    limit: NanoUsd | None
    """None: it counts, and limits nothing."""

    reserved: NanoUsd
    """Sum of the open holds."""

    spent: NanoUsd
    """Sum of what closed holds count as."""


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What an attempt used, over all its requests."""

    calls: int
    """Provider requests, failed ones included, replayed ones not."""

    prompt_tokens: int
    completion_tokens: int
    cost_nano: NanoUsd
    by_state: dict[str, int]
    """Rows in each state that occurs, replayed ones included."""

    replayed: int
    """Rows answered from the journal."""

    cached_tokens: int
    reasoning_tokens: int


@dataclass(frozen=True, kw_only=True)
class ReportRow:
    """One line of a report."""

    key: str
    """The operation, model, owner, day (YYYY-MM-DD, UTC) or attempt."""

    calls: int
    replayed: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    cost_nano: NanoUsd

    open_nano: NanoUsd
    """Held by requests still in flight."""

    guessed_nano: NanoUsd
    """The part of the cost that stands at the hold, since no usage is known."""

    overruns: int


@dataclass(frozen=True, kw_only=True)
class LateUsage:
    """Usage that turned up after its hold was closed, for example in an export."""

    key: str
    """A hold's id, or the provider's id of the response."""

    amount: NanoUsd
    usage: TokenUsage


@dataclass(frozen=True, kw_only=True)
class Reconciled:
    """What `Ledger.reconcile` did, and what is left for a person to look at."""

    expired: int
    """Holds whose lease had run out."""

    corrected: int
    """Holds that got their real price."""

    unmatched: tuple[str, ...] = ()
    """Keys of late usage that fit no hold, or contradict one."""

    running: tuple[str, ...] = ()
    """Attempts not ended that hold nothing: alive between calls, or dead."""
