"""What one call is, and what the calls of a run share."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from vectorless_rag.batching import Batching
from vectorless_rag.errors import Code
from vectorless_rag.ledger.types import Hold, TokenUsage
from vectorless_rag.pageindex_runtime.gate import Gate
from vectorless_rag.pageindex_runtime.journal import Journal
from vectorless_rag.pageindex_runtime.observations import Observer
from vectorless_rag.pageindex_runtime.operations import Operation
from vectorless_rag.pageindex_runtime.providers import Message, Provider
from vectorless_rag.pageindex_runtime.retry import Allowance, Backoff
from vectorless_rag.pageindex_runtime.slots import Slots
from vectorless_rag.prices import Price
from vectorless_rag.units import NanoUsd
from vectorless_rag.wire import Limits

_NOTHING = NanoUsd(0)

DECIDED = frozenset({
    "toc_detector_single_page", "detect_page_index",
    "check_if_toc_transformation_is_complete", "toc_index_extractor",
    "check_title_appearance", "single_toc_item_index_fixer",
    "check_title_appearance_in_start",
})  # fmt: skip
"""Questions that the text itself may answer, each for itself."""


class Account(Protocol):
    """What requests are charged to; `vectorless_rag.ledger` keeps the real one."""

    def reserve(self, hold: Hold) -> object:
        """
        Set *hold* aside.

        Raises:
            VectorlessRagError: ``pageindex_budget_exceeded``, or
                ``pageindex_budget_contended`` if it may fit later.
        """
        ...

    def settle(
        self,
        hold_id: str,
        amount: NanoUsd,
        usage: TokenUsage,
        response_id: str | None,
        finish_reason: str | None,
    ) -> object:
        """Close a hold at its real price."""
        ...

    def replay(self, hold: Hold) -> object:
        """Record a request that was not sent: its reply was paid for before."""
        ...

    def void(self, hold_id: str, reason: str, code: Code | None) -> object:
        """Close a hold that cost nothing."""
        ...

    def unknown(
        self,
        hold_id: str,
        reason: str,
        code: Code | None,
        response_id: str | None = None,
    ) -> object:
        """Close a hold that may have cost all of it."""
        ...


@dataclass(kw_only=True)
class Counts:
    """What a run has done so far."""

    calls: int = 0
    """Model calls finished, failed ones included."""

    in_flight: int = 0
    """Model calls begun and not finished."""

    answered: int = 0
    """Model calls with a usable answer."""

    requests: int = 0
    """Provider requests sent."""

    retries: int = 0
    reasks: int = 0
    """Requests that asked again for a usable reply."""

    replayed: int = 0
    """Answers taken from the journal, at no cost."""

    unpriced: int = 0
    """Requests to a model with no known price, counted as free."""

    usage_unknown: int = 0
    """Requests that count at the most they could have cost."""

    cost_nano_usd: NanoUsd = _NOTHING


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What the calls of one run may do."""

    attempt_id: str
    """Owner of every ledger row; unique, since the rows' names start with it."""

    restarts: int = 0
    """Runs of the attempt that were lost before this one: it names its rows anew."""

    model: str
    """``provider/name``, asked where a call names no other."""

    budgets: tuple[str, ...]
    limits: Limits
    mode: str = "auto"
    """``auto``, ``flash`` or ``standard``."""

    allow_unpriced: bool = False
    """Call a model with no known price, counted as free."""

    decides: frozenset[str] = DECIDED
    """Questions that are not asked where the text itself answers them beyond doubt."""

    backoff: Backoff = field(default_factory=Backoff)

    batching: Batching | None = None
    """None: each call is a request of its own."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One call, checked and priced."""

    call_id: str
    attempt_id: str
    operation: Operation
    model: str
    messages: tuple[Message, ...]
    params: dict[str, str]
    continues: bool
    """The conversation has earlier replies."""

    provider: Provider
    price: Price | None
    """None: no price is known, and the operator allows that."""

    max_tokens: int
    budgets: tuple[str, ...]
    timeout_s: float
    attempts: int
    backoff: Backoff

    batched: bool = False
    """It goes through a batch, which keeps its own time."""


@dataclass(frozen=True, kw_only=True)
class Shared:
    """What all calls of a run share."""

    account: Account
    allowance: Allowance
    slots: Slots
    gate: Gate
    counts: Counts
    rng: random.Random

    check: Callable[[], None]
    """Raises once the run has ended."""

    journal: Journal
    observer: Observer

    content: bool
    """Whether the observer is told prompts and replies."""

    ended: asyncio.Event
    """Set once the run has ended: nobody needs to wait any longer."""
