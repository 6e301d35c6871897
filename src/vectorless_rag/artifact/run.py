"""``run.json``: what the run that made an artifact did and cost."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Literal, Self

from msgspec import Meta

from vectorless_rag.errors import Failure
from vectorless_rag.records import Digest, decode, encode
from vectorless_rag.units import NanoUsd, usd

if TYPE_CHECKING:
    from vectorless_rag.ledger.types import HoldRow

Moment = Annotated[
    str, Meta(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{3}Z\Z")
]
"""A point in time in UTC: ``2026-11-30T09:00:00.000Z``."""

Count = Annotated[int, Meta(ge=0)]


def timestamp(moment: datetime) -> str:
    """
    Spell *moment* in UTC, to the millisecond.

    Args:
        moment: A time that knows its zone.
    """
    spelled = moment.astimezone(UTC).isoformat(timespec="milliseconds")
    return spelled.replace("+00:00", "Z")


@dataclass(frozen=True, kw_only=True)
class OperationUsage:
    """What one kind of model call cost in a run."""

    calls: Count
    prompt_tokens: Count
    completion_tokens: Count
    cost_nano_usd: Annotated[NanoUsd, Meta(ge=0)]

    @classmethod
    def of_rows(cls, rows: Sequence["HoldRow"]) -> Self:
        """Sum up ledger rows; a request whose usage is unknown counts no tokens."""
        known = [row.usage for row in rows if row.usage is not None]
        return cls(
            calls=len(rows),
            prompt_tokens=sum(usage.prompt_tokens for usage in known),
            completion_tokens=sum(usage.completion_tokens for usage in known),
            cost_nano_usd=NanoUsd(sum(row.amount_nano or 0 for row in rows)),
        )


@dataclass(frozen=True, kw_only=True)
class RunUsage:
    """What a run cost, as its ledger rows sum up."""

    calls: Count
    """Provider requests, each retry counted."""

    prompt_tokens: Count
    completion_tokens: Count
    cost_nano_usd: Annotated[NanoUsd, Meta(ge=0)]

    cost_usd: str
    """The same amount in dollars, an exact decimal."""

    by_state: dict[str, Count] = field(default_factory=dict)
    """Requests by how their hold ended: ``settled``, ``voided``, …"""

    by_operation: dict[str, OperationUsage] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.cost_usd != f"{usd(self.cost_nano_usd):f}":
            raise ValueError("cost_usd is another amount than cost_nano_usd")

    @classmethod
    def of(
        cls,
        *,
        calls: int,
        prompt_tokens: int,
        completion_tokens: int,
        cost_nano_usd: int,
        by_state: dict[str, int] | None = None,
        by_operation: dict[str, OperationUsage] | None = None,
    ) -> Self:
        """Make one from counts and an amount in nano-dollars."""
        return cls(
            calls=calls,
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
            cost_nano_usd=NanoUsd(cost_nano_usd),
            cost_usd=f"{usd(cost_nano_usd):f}",
            by_state=by_state or {},
            by_operation=by_operation or {},
        )

    @classmethod
    def of_rows(cls, rows: Sequence["HoldRow"]) -> Self:
        """Sum up an attempt's ledger rows; a replayed request is a row, no call."""
        sent: defaultdict[str, list[HoldRow]] = defaultdict(list)
        for row in rows:
            if not row.replayed:
                sent[row.operation].append(row)
        total = OperationUsage.of_rows([r for group in sent.values() for r in group])
        return cls.of(
            calls=total.calls,
            prompt_tokens=total.prompt_tokens,
            completion_tokens=total.completion_tokens,
            cost_nano_usd=total.cost_nano_usd,
            by_state=dict(Counter(row.state.value for row in rows)),
            by_operation={
                name: OperationUsage.of_rows(group)
                for name, group in sorted(sent.items())
            },
        )


@dataclass(frozen=True, kw_only=True)
class FailureRecord:
    """Something that went wrong on the way to the artifact."""

    code: str
    phase: str
    retryable: bool
    message: str

    @classmethod
    def of(cls, failure: Failure) -> Self:
        """Record *failure* in the words of this version."""
        return cls(
            code=failure.code.value,
            phase=failure.phase,
            retryable=failure.retryable,
            message=failure.message,
        )


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """
    What one run did and cost.

    Time, cost and owner stand here, so that they are in no key and not in the
    artifact.
    """

    attempt_id: str
    """Owner of the ledger rows that sum up to `usage`."""

    run_id: str
    """The command or job that this document was part of."""

    owner: str
    """Who pays."""

    recipe_hash: Digest
    started_at: Moment
    ended_at: Moment
    wall_ms: Count
    usage: RunUsage

    failures: tuple[FailureRecord, ...] = ()

    notes: dict[str, int] = field(default_factory=dict)
    """Counters of the child, for example of traces not delivered."""

    schema_version: Literal[1] = 1

    @property
    def encoded(self) -> bytes:
        """The record as bytes, in canonical form."""
        return encode(self)


def read_run(data: bytes) -> RunRecord:
    """
    Read a run record back.

    Raises:
        VectorlessRagError: ``store_corrupt``. The message names the field.
    """
    return decode(RunRecord, data, "run.json")
