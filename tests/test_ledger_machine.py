"""The ledger against a model of it: random steps in random order."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from enum import Enum, auto
from functools import partial
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from strategies_ledger import (
    BUDGETS,
    Clock,
    Model,
    ModelHold,
    NewUrl,
    amounts,
    attempt,
    budget_sets,
    hold,
    labels,
    leases_s,
    limits,
    outcomes,
    pauses_s,
    prices,
    token_usages,
)
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.ledger.book import Ledger
from vectorless_rag.ledger.types import Budget, Hold, State, TokenUsage
from vectorless_rag.units import NanoUsd

pytest_plugins = ["ledger_databases"]

UNUSED = dict.fromkeys(
    BUDGETS, Budget(limit=None, reserved=NanoUsd(0), spent=NanoUsd(0))
)

choices = st.integers(0, 10**6)
"""Which one of those there are, counted round."""


class Late(Enum):
    """Steps on a hold other than settling it for the first time."""

    SETTLE_AGAIN = auto()
    CORRECT = auto()
    VOID = auto()
    UNKNOWN = auto()
    RESERVE_AGAIN = auto()
    RESERVE_OTHERWISE = auto()


def answer(step: Callable[[], Any]) -> Any:
    """What a step returns, or the code it is refused with."""
    try:
        return step()
    except VectorlessRagError as error:
        return error.code


def has_holds(machine: "LedgerMachine") -> bool:
    return bool(machine.model.holds)


class LedgerMachine(RuleBasedStateMachine):
    """Every rule takes a step on the ledger and on the model; few rules, many steps."""

    new_url: NewUrl

    @initialize(limit=limits)
    def start(self, limit: int | None) -> None:
        self.url = type(self).new_url()
        self.clock = Clock()
        self.model = Model()
        self.numbers = itertools.count(1)
        self.ledger = Ledger.open(self.url, clock=self.clock)
        self.set_limit(BUDGETS[0], limit)
        self.start_attempt()

    def start_attempt(self) -> str:
        name = f"attempt-{next(self.numbers)}"
        self.model.running[name] = True
        self.ledger.start_attempt(attempt(name))
        return name

    def owner(self, choice: int) -> str:
        # Nine in ten are of the last attempt, which is running.
        names = list(self.model.running)
        return names[choice % len(names)] if choice % 10 == 0 else names[-1]

    def name(self, choice: int) -> str:
        return list(self.model.holds)[choice % len(self.model.holds)]

    @rule(budget=st.sampled_from(BUDGETS), limit=limits)
    def set_limit(self, budget: str, limit: int | None) -> None:
        self.model.limits[budget] = limit
        self.ledger.set_budget(budget, None if limit is None else NanoUsd(limit))

    @rule(
        choice=choices,
        held=st.lists(amounts, min_size=1, max_size=4),
        budgets=budget_sets,
        lease_s=leases_s,
    )
    def reserve(
        self, choice: int, held: list[int], budgets: tuple[str, ...], lease_s: float
    ) -> None:
        for amount in held:
            new = hold(
                f"call-{next(self.numbers)}:1",
                amount,
                attempt_id=self.owner(choice),
                budgets=budgets,
                lease_s=lease_s,
            )
            refused = self.model.refusal(new)

            assert refused == answer(partial(self.ledger.reserve, new))
            if not refused:
                self.remember(new, State.RESERVED)

    @rule(choice=choices, budgets=budget_sets)
    def replay(self, choice: int, budgets: tuple[str, ...]) -> None:
        owner = self.owner(choice)
        new = hold(f"call-{next(self.numbers)}:1", 0, attempt_id=owner, budgets=budgets)
        refused = None if self.model.running[owner] else Code.LEDGER_CONFLICT

        assert refused == answer(lambda: self.ledger.replay(new))
        if not refused:
            self.remember(new, State.SETTLED, replayed=True)

    def remember(self, new: Hold, state: State, *, replayed: bool = False) -> None:
        until = self.clock.now + int(new.lease_s * 1_000_000)
        self.model.holds[new.hold_id] = ModelHold(new, state, until, replayed=replayed)

    @precondition(has_holds)
    @rule(choice=choices, price=prices, usage=token_usages, response=labels)
    def settle(self, choice: int, price: int, usage: TokenUsage, response: str) -> None:
        name = self.name(choice)
        expected = self.model.settle(name, price, usage)

        assert expected == answer(
            lambda: self.ledger.settle(name, NanoUsd(price), usage, response, "stop")
        )

    @precondition(has_holds)
    @rule(
        choice=choices,
        steps=st.lists(st.sampled_from(Late), min_size=1, max_size=3),
        price=prices,
        usage=token_usages,
    )
    def close(
        self, choice: int, steps: list[Late], price: int, usage: TokenUsage
    ) -> None:
        for step in steps:
            name = self.name(choice)
            expected, take = self.late(step, name, NanoUsd(price), usage)

            assert expected == answer(take)

    def late(
        self, step: Late, name: str, price: NanoUsd, usage: TokenUsage
    ) -> tuple[object, Callable[[], object]]:
        """What the model says, and how to ask the ledger."""
        known = self.model.holds[name]
        same = NanoUsd(known.charged)
        other = replace(known.hold, operation="another")
        is_open = known.state is State.RESERVED
        match step:
            case Late.SETTLE_AGAIN:
                return (
                    self.model.settle(name, same, usage),
                    lambda: self.ledger.settle(name, same, usage),
                )
            case Late.CORRECT:
                return (
                    self.model.correct(name, price, usage),
                    lambda: self.ledger.correct(name, price, usage),
                )
            case Late.VOID:
                return self.model.void(name), lambda: self.ledger.void(name, "not sent")
            case Late.UNKNOWN:
                return (
                    self.model.unknown(name),
                    lambda: self.ledger.unknown(name, "cut off", Code.TIMEOUT),
                )
            case Late.RESERVE_AGAIN:
                return (
                    None if is_open else Code.LEDGER_CONFLICT,
                    lambda: self.ledger.reserve(known.hold),
                )
            case Late.RESERVE_OTHERWISE:
                return Code.LEDGER_CONFLICT, lambda: self.ledger.reserve(other)

    @rule(pause_s=pauses_s)
    def expire(self, pause_s: float) -> None:
        self.clock.advance(pause_s)
        overdue = self.model.overdue(self.clock.now)

        assert [f"hold {n} is open past its lease" for n in overdue] == [
            line.partition(";")[0] for line in self.ledger.check()
        ]
        assert self.model.expire(overdue) == self.ledger.expire()

    @rule(outcome=outcomes, early=st.booleans())
    def end_attempt(self, outcome: str, *, early: bool) -> None:
        owner = list(self.model.running)[-1]
        left = self.model.open_of(owner)
        self.model.expire(left)
        if early:
            assert len(left) == self.ledger.expire(owner)
            left = []
        self.model.running[owner] = False

        assert len(left) == self.ledger.end_attempt(owner, outcome)
        assert 0 == self.ledger.end_attempt(owner, outcome)
        self.start_attempt()

    @rule()
    def reopen(self) -> None:
        self.ledger.close()
        self.ledger = Ledger.open(self.url, clock=self.clock)

    @invariant()
    def budgets_are_the_models(self) -> None:
        expected = {
            name: Budget(
                limit=self.model.limit(name),
                reserved=NanoUsd(self.model.reserved(name)),
                spent=NanoUsd(self.model.spent(name)),
            )
            for name in BUDGETS
        }

        assert expected == UNUSED | self.ledger.budgets()

    def teardown(self) -> None:
        if not hasattr(self, "ledger"):
            return
        self.clock.advance(1000)
        self.ledger.reconcile()
        self.model.expire(self.model.overdue(self.clock.now))
        assert [] == self.ledger.check()
        for owner in self.model.running:
            expected = {
                h.hold.hold_id: (h.state, h.charged, h.usage, h.replayed)
                for h in self.model.holds.values()
                if h.hold.attempt_id == owner
            }
            rows = self.ledger.holds(owner)
            assert expected == {
                r.hold_id: (r.state, r.amount_nano, r.usage, r.replayed) for r in rows
            }
            usage = self.ledger.usage(owner)
            assert sum(charged for _, charged, _, _ in expected.values()) == (
                usage.cost_nano
            )
        self.ledger.close()


def run(new: NewUrl, examples: int, steps: int) -> None:
    machine = type("Machine", (LedgerMachine,), {"new_url": staticmethod(new)})
    run_state_machine_as_test(
        machine,
        settings=hypothesis.settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            database=None,
        ),
    )


def test_random_steps_do_what_the_model_does(new_url: NewUrl) -> None:
    """Whatever the steps and their order, balances and answers are the model's."""
    run(new_url, examples=12, steps=30)


@pytest.mark.slow
def test_many_random_steps_do_what_the_model_does(new_url: NewUrl) -> None:
    """The same, for longer."""
    run(new_url, examples=300, steps=60)
