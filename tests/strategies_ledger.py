"""Values for tests of the ledger, and the model it is compared with."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from vectorless_rag.errors import Code
from vectorless_rag.ledger.types import Attempt, Closed, Hold, State, TokenUsage
from vectorless_rag.units import NanoUsd, Sha256

NewUrl = Callable[[], str]
"""Makes the address of an empty database."""

BUDGETS = ("run:1", "owner:ann", "day:ann:2026-01-31")

limits = st.sampled_from([None, 0, 40, 100, 100, 200])
amounts = st.sampled_from([0, 1, 20, 40, 60])
prices = st.sampled_from([0, 1, 20, 40, 60, 70])
"""Now and then above what was held."""

budget_sets = st.lists(st.sampled_from(BUDGETS), min_size=1, max_size=4).map(tuple)
"""In any order, and a name may come twice."""

leases_s = st.sampled_from([1.0, 5.0, 60.0])
pauses_s = st.sampled_from([0.5, 2.0, 10.0])
outcomes = st.sampled_from(["built", "failed", "cancelled"])
token_usages = st.builds(
    TokenUsage,
    prompt_tokens=st.integers(0, 1000),
    completion_tokens=st.integers(0, 1000),
    cached_tokens=st.integers(0, 100),
    reasoning_tokens=st.integers(0, 100),
)
labels = st.text(max_size=300) | st.just("half a pair: \ud800, a zero: \0")
"""What a provider may call a reply."""


def attempt(name: str = "attempt-1", **changes: Any) -> Attempt:
    usual: dict[str, Any] = {
        "attempt_id": name,
        "run_id": "1",
        "owner": "ann",
        "document_sha256": Sha256("d" * 64),
        "recipe_hash": Sha256("e" * 64),
        "model": "openai/gpt-4o-mini",
        "price_table": "1.105.7:aaaa",
    }
    return Attempt(**(usual | changes))


def hold(name: str = "call-1:1", amount: int = 1000, **changes: Any) -> Hold:
    call, _, number = name.rpartition(":")
    usual: dict[str, Any] = {
        "hold_id": name,
        "attempt_id": "attempt-1",
        "operation": "summary_leaf",
        "model": "openai/gpt-4o-mini",
        "amount": NanoUsd(amount),
        "prompt_tokens": 120,
        "budgets": BUDGETS,
        "lease_s": 60.0,
        "call_id": call,
        "try_no": int(number),
    }
    return Hold(**(usual | changes))


def used(prompt: int = 100, completion: int = 20, **rest: int) -> TokenUsage:
    return TokenUsage(prompt_tokens=prompt, completion_tokens=completion, **rest)


@dataclass
class Clock:
    """A clock that only moves when told to."""

    now: int = 1_800_000_000_000_000

    def __call__(self) -> int:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += int(seconds * 1_000_000)


@dataclass
class ModelHold:
    """What the model knows of one hold."""

    hold: Hold
    state: State
    lease_until: int
    charged: int = 0
    replayed: bool = False
    usage: TokenUsage | None = None


@dataclass
class Model:
    """The ledger as a few dictionaries, with every rule spelled once."""

    limits: dict[str, int | None] = field(default_factory=dict)
    holds: dict[str, ModelHold] = field(default_factory=dict)
    running: dict[str, bool] = field(default_factory=dict)

    def limit(self, budget: str) -> NanoUsd | None:
        limit = self.limits.get(budget)
        return None if limit is None else NanoUsd(limit)

    def reserved(self, budget: str) -> int:
        return sum(
            h.hold.amount
            for h in self.holds.values()
            if h.state is State.RESERVED and budget in h.hold.budgets
        )

    def spent(self, budget: str) -> int:
        return sum(h.charged for h in self.holds.values() if budget in h.hold.budgets)

    def refusal(self, hold: Hold) -> Code | None:
        """Why a new hold is refused, if it is."""
        if not self.running[hold.attempt_id]:
            return Code.LEDGER_CONFLICT
        rooms = [
            (limit - self.spent(name), self.reserved(name))
            for name in hold.budgets
            if (limit := self.limits.get(name)) is not None
        ]
        if hold.amount == 0:
            return None
        if any(hold.amount > room for room, _ in rooms):
            return Code.BUDGET_EXCEEDED
        if any(hold.amount > room - reserved for room, reserved in rooms):
            return Code.BUDGET_CONTENDED
        return None

    def settle(self, name: str, price: int, usage: TokenUsage) -> Closed | Code:
        known = self.holds[name]
        if known.state is State.VOIDED:
            return Code.LEDGER_CONFLICT
        if known.state is State.SETTLED:
            same = price == known.charged
            return Closed.UNCHANGED if same else Code.LEDGER_CONFLICT
        late = known.state is not State.RESERVED
        known.state, known.charged, known.usage = State.SETTLED, price, usage
        if late:
            return Closed.CORRECTED
        return Closed.OVERRUN if price > known.hold.amount else Closed.DONE

    def correct(self, name: str, price: int, usage: TokenUsage) -> Closed | Code:
        if self.holds[name].state is State.RESERVED:
            return Code.LEDGER_CONFLICT
        return self.settle(name, price, usage)

    def void(self, name: str) -> Closed | Code:
        known = self.holds[name]
        if known.state is State.VOIDED:
            return Closed.UNCHANGED
        if known.state not in {State.RESERVED, State.EXPIRED}:
            return Code.LEDGER_CONFLICT
        late = known.state is State.EXPIRED
        known.state, known.charged = State.VOIDED, 0
        return Closed.CORRECTED if late else Closed.DONE

    def unknown(self, name: str) -> Closed | Code:
        known = self.holds[name]
        if known.state in {State.UNKNOWN, State.EXPIRED}:
            return Closed.UNCHANGED
        if known.state is not State.RESERVED:
            return Code.LEDGER_CONFLICT
        known.state, known.charged = State.UNKNOWN, known.hold.amount
        return Closed.DONE

    def overdue(self, now: int) -> list[str]:
        return sorted(
            name
            for name, h in self.holds.items()
            if h.state is State.RESERVED and h.lease_until < now
        )

    def expire(self, names: list[str]) -> int:
        for name in names:
            known = self.holds[name]
            known.state, known.charged = State.EXPIRED, known.hold.amount
        return len(names)

    def open_of(self, attempt_id: str) -> list[str]:
        return [
            name
            for name, h in self.holds.items()
            if h.state is State.RESERVED and h.hold.attempt_id == attempt_id
        ]
