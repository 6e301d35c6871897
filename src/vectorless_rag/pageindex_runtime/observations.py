"""What is told of each closed ledger row, and who may listen."""

from dataclasses import dataclass
from typing import Protocol

from vectorless_rag.errors import Code
from vectorless_rag.ledger.types import TokenUsage
from vectorless_rag.pageindex_runtime.providers import Message
from vectorless_rag.units import NanoUsd


@dataclass(frozen=True, kw_only=True, repr=False)
class Observation:
    """One provider request, as its ledger row closed."""

    attempt_id: str
    call_id: str
    hold_id: str
    try_no: int
    operation: str

    model: str
    """``provider/name``."""

    state: str
    """``settled``, ``voided``, ``unknown`` or ``replayed``."""

    code: Code | None
    """Why, if it failed."""

    usage: TokenUsage | None

    amount: NanoUsd
    """What it counts as."""

    finish_reason: str | None
    max_tokens: int

    started_us: int
    """Microseconds since 1970, UTC."""

    ended_us: int

    prompt: tuple[Message, ...] | None = None
    """Only where the operator switched content on."""

    reply: str | None = None
    """Only where the operator switched content on."""


class Observer(Protocol):
    """Somebody who is told. Telling never fails and never waits."""

    def observe(self, observation: Observation) -> None:
        """Take note of a closed row."""
        ...

    def close(self) -> None:
        """Deliver what is left, within a bounded time."""
        ...

    @property
    def notes(self) -> dict[str, int]:
        """Counters for the run record."""
        ...


class NoObserver:
    """Takes no note."""

    notes: dict[str, int] = {}  # noqa: RUF012  (never changed)

    def observe(self, _observation: Observation) -> None:
        """Take no note."""

    def close(self) -> None:
        """Deliver nothing."""
