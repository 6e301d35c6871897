"""Holding, spending and refusing money, step by step, on both databases."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date

import pytest
from hypothesis import HealthCheck, given, settings

from strategies_ledger import (
    BUDGETS,
    Clock,
    attempt,
    hold,
    labels,
    used,
)
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.ledger.book import Ledger, now_us
from vectorless_rag.ledger.budgets import set_id
from vectorless_rag.ledger.reservations import label
from vectorless_rag.ledger.types import (
    MOST_NANO,
    AttemptRow,
    Budget,
    Closed,
    Hold,
    Outcome,
    State,
    TokenUsage,
    day_budget,
    owner_budget,
    run_budget,
)
from vectorless_rag.units import NanoUsd

pytest_plugins = ["ledger_databases"]

RUN, OWNER, DAY = BUDGETS


def nano(amount: int) -> NanoUsd:
    return NanoUsd(amount)


def balance(reserved: int, spent: int, limit: int | None = None) -> Budget:
    return Budget(
        limit=None if limit is None else nano(limit),
        reserved=nano(reserved),
        spent=nano(spent),
    )


@pytest.fixture
def running(ledger: Ledger) -> Ledger:
    """A ledger with one attempt, and 1500 nano-dollars for its run."""
    ledger.start_attempt(attempt())
    ledger.set_budget(RUN, nano(1500))
    return ledger


def test_budget_names() -> None:
    """Budgets of a run, of an owner and of an owner's day are spelled one way."""
    assert BUDGETS == (
        run_budget("1"),
        owner_budget("ann"),
        day_budget("ann", date(2026, 1, 31)),
    )


def test_hold_counts_towards_every_budget(running: Ledger) -> None:
    """Run, owner and day each hold the amount, and spend the price."""
    running.reserve(hold(amount=1000))
    held = running.budgets()
    done = running.settle("call-1:1", nano(700), used(), "response-1", "stop")

    assert {RUN: balance(1000, 0, 1500), OWNER: balance(1000, 0)} == {
        name: held[name] for name in (RUN, OWNER)
    }
    assert Closed.DONE is done
    assert dict.fromkeys((OWNER, DAY), balance(0, 700)) == {
        name: running.budget(name) for name in (OWNER, DAY)
    }


def test_unnamed_budget_is_empty_and_unlimited(ledger: Ledger) -> None:
    """A budget that nothing has named yet limits nothing."""
    assert balance(0, 0) == ledger.budget("run:never")
    assert {} == ledger.budgets()


def test_budget_named_by_a_hold_is_created_unlimited(running: Ledger) -> None:
    """It counts what is spent from then on, and can be limited later."""
    running.reserve(hold(amount=1000, budgets=("owner:bob",)))
    running.set_budget("owner:bob", nano(1000))

    assert balance(1000, 0, 1000) == running.budget("owner:bob")
    running.set_budget("owner:bob", None)
    assert balance(1000, 0) == running.budget("owner:bob")


def test_limit_may_be_met_exactly(running: Ledger) -> None:
    """The last nano-dollar may be spent."""
    running.reserve(hold("call-1:1", 1500))

    assert balance(1500, 0, 1500) == running.budget(RUN)


@pytest.mark.parametrize(
    ("amount", "code", "why"),
    [
        pytest.param(
            501,
            Code.BUDGET_CONTENDED,
            "run:1: needs 0.000000501 USD",
            id="others-hold-it",
        ),
        pytest.param(
            1500,
            Code.BUDGET_CONTENDED,
            r"run:1: needs 0\.0000015 USD",
            id="fits-exactly-later",
        ),
        pytest.param(
            1501,
            Code.BUDGET_EXCEEDED,
            "run:1: needs 0.000001501 USD, 0.0000015 of 0.0000015 USD left",
            id="more-than-is-left",
        ),
    ],
)
def test_refusal_says_which_kind_it_is(
    running: Ledger, amount: int, code: Code, why: str
) -> None:
    """Waiting may help against the first, and never against the second."""
    running.reserve(hold("call-1:1", 1000))

    with pytest.raises(VectorlessRagError, match=why) as caught:
        running.reserve(hold("call-2:1", amount))
    assert code is caught.value.code


def test_what_is_spent_is_not_left(running: Ledger) -> None:
    """A limit counts what was spent before as well as what is held."""
    running.reserve(hold("call-1:1", 1000))
    running.settle("call-1:1", nano(1000), used())

    with pytest.raises(VectorlessRagError, match=r"0\.0000005 of 0\.0000015 USD left"):
        running.reserve(hold("call-2:1", 501))
    running.reserve(hold("call-3:1", 500))
    assert balance(500, 1000, 1500) == running.budget(RUN)


def test_refused_hold_leaves_nothing(running: Ledger) -> None:
    """A refusal by one budget holds nothing against the others."""
    with pytest.raises(VectorlessRagError, match="run:1: needs"):
        running.reserve(hold(amount=2000))

    assert {OWNER: balance(0, 0), DAY: balance(0, 0)} == {
        name: running.budget(name) for name in (OWNER, DAY)
    }
    assert [] == running.holds("attempt-1")
    assert [] == running.check()


def test_limit_of_0_allows_what_is_free(running: Ledger) -> None:
    """Offline models run on no budget at all, even on an overdrawn one."""
    running.reserve(hold("call-1:1", 1000, budgets=(DAY,)))
    running.settle("call-1:1", nano(1200), used())
    running.set_budget(DAY, nano(0))

    running.reserve(hold("call-2:1", 0))
    assert Closed.DONE is running.settle("call-2:1", nano(0), used())
    with pytest.raises(VectorlessRagError, match=r"0\.000000001 USD, 0 of 0 USD left"):
        running.reserve(hold("call-3:1", 1, budgets=(DAY,)))


def test_lowered_limit_refuses_what_comes_after(running: Ledger) -> None:
    """What is held already stays held."""
    running.reserve(hold("call-1:1", 1000))
    running.set_budget(RUN, nano(10))

    assert balance(1000, 0, 10) == running.budget(RUN)
    with pytest.raises(VectorlessRagError, match=r"0\.00000001 USD left"):
        running.reserve(hold("call-2:1", 11))


def test_price_above_the_hold_is_recorded(running: Ledger) -> None:
    """The money is gone: the row is flagged, the limit is passed, nothing is lost."""
    running.reserve(hold(amount=1000))

    assert Closed.OVERRUN is running.settle("call-1:1", nano(1800), used())
    assert balance(0, 1800, 1500) == running.budget(RUN)
    assert [True] == [row.overrun for row in running.holds("attempt-1")]
    assert [] == running.check()


def void(ledger: Ledger) -> Closed:
    return ledger.void("call-1:1", "refused by the provider", Code.AUTH)


def unknown(ledger: Ledger) -> Closed:
    return ledger.unknown("call-1:1", "cut off", Code.TIMEOUT, "response-1")


def settle(ledger: Ledger) -> Closed:
    return ledger.settle("call-1:1", nano(700), used())


def correct(ledger: Ledger) -> Closed:
    return ledger.correct("call-1:1", nano(700), used())


def expire(ledger: Ledger) -> int:
    return ledger.expire("attempt-1")


Take = Callable[[Ledger], object]


@pytest.mark.parametrize(
    ("steps", "answers", "state", "spent"),
    [
        pytest.param([settle], [Closed.DONE], State.SETTLED, 700, id="settled"),
        pytest.param([void], [Closed.DONE], State.VOIDED, 0, id="voided"),
        pytest.param([unknown], [Closed.DONE], State.UNKNOWN, 1000, id="unknown"),
        pytest.param([expire], [1], State.EXPIRED, 1000, id="expired"),
        pytest.param(
            [settle, settle, correct],
            [Closed.DONE, Closed.UNCHANGED, Closed.UNCHANGED],
            State.SETTLED,
            700,
            id="settled-again",
        ),
        pytest.param(
            [void, void],
            [Closed.DONE, Closed.UNCHANGED],
            State.VOIDED,
            0,
            id="voided-again",
        ),
        pytest.param(
            [unknown, unknown],
            [Closed.DONE, Closed.UNCHANGED],
            State.UNKNOWN,
            1000,
            id="unknown-again",
        ),
        pytest.param([expire, expire], [1, 0], State.EXPIRED, 1000, id="expired-again"),
        pytest.param(
            [expire, unknown],
            [1, Closed.UNCHANGED],
            State.EXPIRED,
            1000,
            id="unknown-after-the-lease",
        ),
        pytest.param(
            [expire, settle, correct],
            [1, Closed.CORRECTED, Closed.UNCHANGED],
            State.SETTLED,
            700,
            id="settled-after-the-lease",
        ),
        pytest.param(
            [expire, void, void],
            [1, Closed.CORRECTED, Closed.UNCHANGED],
            State.VOIDED,
            0,
            id="voided-after-the-lease",
        ),
        pytest.param(
            [unknown, correct],
            [Closed.DONE, Closed.CORRECTED],
            State.SETTLED,
            700,
            id="corrected",
        ),
    ],
)
def test_hold_closes_once(
    running: Ledger, steps: list[Take], answers: list[object], state: State, spent: int
) -> None:
    """Every way of closing a hold moves the money once, however often it is taken."""
    running.reserve(hold(amount=1000))

    assert answers == [step(running) for step in steps]
    (row,) = running.holds("attempt-1")
    assert (state, spent) == (row.state, row.amount_nano)
    assert balance(0, spent, 1500) == running.budget(RUN)
    assert [] == running.check()


@pytest.mark.parametrize(
    ("before", "step", "why"),
    [
        pytest.param([], settle, "there is no hold call-1:1", id="no-hold"),
        pytest.param([void], settle, "is voided, not to be settled", id="voided"),
        pytest.param([settle], void, "is settled, not to be voided", id="settled"),
        pytest.param([settle], unknown, "settled, not to be unknown", id="known"),
        pytest.param([void], unknown, "voided, not to be unknown", id="voided-unknown"),
        pytest.param([unknown], void, "is unknown, not to be voided", id="unknown"),
        pytest.param([void], correct, "is voided, not to be settled", id="free"),
    ],
)
def test_contradictory_close_is_a_conflict(
    running: Ledger, before: list[Take], step: Take, why: str
) -> None:
    """The first word stands; an operator has to look."""
    if before:
        running.reserve(hold(amount=1000))
    for earlier in before:
        earlier(running)
    balances = running.budgets()

    with pytest.raises(VectorlessRagError, match=why) as caught:
        step(running)
    assert Code.LEDGER_CONFLICT is caught.value.code
    assert balances == running.budgets()
    assert [] == running.check()


def test_open_hold_is_settled_not_corrected(running: Ledger) -> None:
    """A correction is for what counts as spent already."""
    running.reserve(hold())

    with pytest.raises(VectorlessRagError, match="is reserved, not to be settled"):
        correct(running)


def test_second_price_is_a_conflict(running: Ledger) -> None:
    """Settling twice changes nothing; settling otherwise is refused."""
    running.reserve(hold())
    settle(running)

    with pytest.raises(VectorlessRagError, match="is settled, not to be settled"):
        running.settle("call-1:1", nano(701), used())


def test_reserving_again_changes_nothing(running: Ledger) -> None:
    """A caller that lost the answer may ask again, in any order of budgets."""
    running.reserve(hold(amount=1000))
    running.reserve(replace(hold(amount=1000), budgets=(DAY, RUN, OWNER, RUN)))

    assert balance(1000, 0, 1500) == running.budget(RUN)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(hold(amount=999), id="amount"),
        pytest.param(hold(operation="expand"), id="operation"),
        pytest.param(hold(model="openai/o3"), id="model"),
        pytest.param(hold(budgets=(RUN,)), id="budgets"),
        pytest.param(hold(attempt_id="attempt-2"), id="attempt"),
    ],
)
def test_used_hold_id_is_a_conflict(running: Ledger, other: Hold) -> None:
    """One id is one request."""
    running.start_attempt(attempt("attempt-2"))
    running.reserve(hold(amount=1000))

    with pytest.raises(VectorlessRagError, match="call-1:1 was used before, otherwise"):
        running.reserve(other)


def test_closed_hold_cannot_be_reserved_again(running: Ledger) -> None:
    """Its request would leave with nothing set aside for it."""
    running.reserve(hold())
    void(running)

    with pytest.raises(VectorlessRagError, match="was used before, otherwise"):
        running.reserve(hold())


def test_lease_runs_out(running: Ledger, clock: Clock) -> None:
    """A hold nobody closes counts as spent once its lease is over, not before."""
    running.reserve(hold("call-1:1", 400, lease_s=10))
    running.reserve(hold("call-2:1", 500, lease_s=20))
    clock.advance(10)

    assert 0 == running.expire()
    clock.advance(0.000001)
    assert ["hold call-1:1 is open past its lease; reconcile the ledger"] == (
        running.check()
    )
    assert 1 == running.expire()
    assert balance(500, 400, 1500) == running.budget(RUN)
    assert ["its lease ran out", None] == [
        row.reason for row in running.holds("attempt-1")
    ]


def test_leases_of_what_is_waited_for_are_put_off(
    running: Ledger, clock: Clock
) -> None:
    """Of the open holds of that attempt, and of no other."""
    running.start_attempt(attempt("attempt-2"))
    running.reserve(hold("call-1:1", 400, lease_s=10))
    running.reserve(hold("call-2:1", 500, lease_s=10))
    running.reserve(hold("call-3:1", 300, lease_s=10, attempt_id="attempt-2"))
    running.void("call-2:1", "not sent")
    clock.advance(9)
    running.renew("attempt-1", 20)
    clock.advance(20)

    assert 1 == running.expire()
    assert ["reserved", "voided"] == [r.state for r in running.holds("attempt-1")]
    clock.advance(0.000001)
    assert 1 == running.expire()
    assert [] == running.check()


def test_many_holds_expire(running: Ledger, clock: Clock) -> None:
    """More than one transaction takes at once, in several sets of budgets."""
    for number in range(101):
        running.reserve(hold(f"call-{number}:1", 1, budgets=(OWNER,)))
    running.reserve(hold("call-x:1", 1))
    clock.advance(61)

    assert 102 == running.expire()
    assert balance(0, 102) == running.budget(OWNER)
    assert [] == running.check()


def test_end_of_an_attempt_expires_its_holds(running: Ledger) -> None:
    """Nothing stays held for a child that is gone, and it can hold no more."""
    running.start_attempt(attempt("attempt-2"))
    running.reserve(hold("call-1:1", 400))
    running.reserve(hold("call-2:1", 300, attempt_id="attempt-2"))

    assert 1 == running.end_attempt("attempt-1", "failed", Code.CHILD_KILLED)
    assert balance(300, 400, 1500) == running.budget(RUN)
    with pytest.raises(VectorlessRagError, match="attempt attempt-1 is not running"):
        running.reserve(hold("call-3:1", 1))
    with pytest.raises(VectorlessRagError, match="attempt attempt-1 is not running"):
        running.replay(hold("call-3:1", 0))
    assert 0 == running.end_attempt("attempt-1", "failed", Code.CHILD_KILLED)


def test_attempt_is_recorded(running: Ledger, clock: Clock) -> None:
    """Who ran what, when, and how it ended."""
    before = running.attempt("attempt-1")
    clock.advance(5)
    running.end_attempt("attempt-1", "failed", Code.TIMEOUT)
    row = running.attempt("attempt-1")
    assert before is not None
    assert row is not None

    assert isinstance(row, AttemptRow)
    assert ("1", "ann", "d" * 64, "e" * 64, "openai/gpt-4o-mini", "1.105.7:aaaa") == (
        row.run_id,
        row.owner,
        row.document_sha256,
        row.recipe_hash,
        row.model,
        row.price_table,
    )
    assert (None, None, None) == (before.outcome, before.code, before.ended_us)
    assert (Outcome.FAILED, Code.TIMEOUT, row.started_us + 5_000_000) == (
        row.outcome,
        row.code,
        row.ended_us,
    )
    assert [row] == running.attempts("1")
    assert [] == running.attempts("2")
    assert None is running.attempt("attempt-2")


def test_starting_again_changes_nothing(running: Ledger, clock: Clock) -> None:
    """The first start counts."""
    first = running.attempt("attempt-1")
    clock.advance(1)
    running.start_attempt(attempt())

    assert first == running.attempt("attempt-1")


def test_contradictory_attempts_are_conflicts(running: Ledger) -> None:
    """An attempt's owner cannot change, nor its end, and it ends once."""
    with pytest.raises(VectorlessRagError, match="was started before, otherwise"):
        running.start_attempt(attempt(owner="bob"))
    running.end_attempt("attempt-1", "built")
    with pytest.raises(VectorlessRagError, match="attempt-1 ended before, otherwise"):
        running.end_attempt("attempt-1", "cancelled", Code.CANCELLED)
    with pytest.raises(VectorlessRagError, match="was started before, otherwise"):
        running.start_attempt(attempt())
    with pytest.raises(VectorlessRagError, match="there is no attempt attempt-9"):
        running.end_attempt("attempt-9", "built")


def test_row_tells_everything(running: Ledger, clock: Clock) -> None:
    """A hold's row names its request, its tokens, its reply and its times."""
    opened = clock.now
    running.reserve(hold("call-7:2", 1000))
    clock.advance(2)
    tokens = used(cached_tokens=40, reasoning_tokens=5)
    running.settle("call-7:2", nano(700), tokens, "response-1", "stop")
    (row,) = running.holds("attempt-1")

    assert ("call-7", 2, "summary_leaf", "openai/gpt-4o-mini", 120) == (
        row.call_id,
        row.try_no,
        row.operation,
        row.model,
        row.held_prompt_tokens,
    )
    assert (tokens, "response-1", "stop") == (
        row.usage,
        row.response_id,
        row.finish_reason,
    )
    assert (opened, opened + 60_000_000, opened + 2_000_000) == (
        row.opened_us,
        row.lease_until_us,
        row.closed_us,
    )
    assert (1000, False, False) == (row.reserved_nano, row.overrun, row.replayed)


def test_failed_request_keeps_its_reason(running: Ledger) -> None:
    """Also after its real price has turned up."""
    running.reserve(hold())
    unknown(running)
    (before,) = running.holds("attempt-1")
    correct(running)
    (after,) = running.holds("attempt-1")

    assert None is before.usage
    assert used() == after.usage
    assert ("cut off", Code.TIMEOUT, "response-1") == (
        after.reason,
        after.code,
        after.response_id,
    )


def test_replayed_request_costs_nothing(running: Ledger) -> None:
    """It is one row, marked; no budget needs to have room for it."""
    running.set_budget(RUN, nano(0))
    running.replay(hold(amount=0))
    running.replay(hold(amount=0))
    (row,) = running.holds("attempt-1")

    assert (State.SETTLED, True, 0) == (row.state, row.replayed, row.amount_nano)
    assert [] == running.check()
    with pytest.raises(VectorlessRagError, match="was used before, otherwise"):
        running.reserve(hold(amount=0))


def test_replayed_request_has_no_amount(running: Ledger) -> None:
    """Whoever replays a reply has paid for it before."""
    with pytest.raises(ValueError, match="a replayed request costs nothing"):
        running.replay(hold(amount=1))


@given(labels)
@settings(
    max_examples=15,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_no_reply_can_keep_its_hold_open(running: Ledger, text: str) -> None:
    """Whatever a provider calls its reply, the price is recorded."""
    name = f"call-{len(running.holds('attempt-1'))}:1"
    running.reserve(hold(name, 1))
    running.settle(name, nano(1), used(), text, text)
    rows = {row.hold_id: row for row in running.holds("attempt-1")}

    assert (State.SETTLED, label(text), label(text)) == (
        rows[name].state,
        rows[name].response_id,
        rows[name].finish_reason,
    )


@given(labels)
def test_labels_are_short_and_printable(text: str) -> None:
    """No reply fits into one, and no control character."""
    short = label(text)

    assert short is not None
    assert len(short) <= 200
    assert short.isascii()
    assert short.isprintable()


def test_label_keeps_what_is_ordinary() -> None:
    """Ids and words come back as they are."""
    assert "chatcmpl-9aZ_:/+= x" == label("chatcmpl-9aZ_:/+= x")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        pytest.param(lambda: hold(amount=-1), "amount of a hold", id="negative"),
        pytest.param(lambda: hold(amount=MOST_NANO + 1), "amount", id="absurd"),
        pytest.param(lambda: hold(prompt_tokens=-1), "prompt tokens", id="prompt"),
        pytest.param(lambda: hold(budgets=()), "at least one budget", id="budgets"),
        pytest.param(lambda: used(-1), "negative or too large", id="tokens"),
        pytest.param(lambda: used(1, 2**41), "negative or too large", id="many"),
        pytest.param(lambda: used(cached_tokens=-1), "negative", id="cached"),
    ],
)
def test_absurd_numbers_are_refused(make: Callable[[], Hold], why: str) -> None:
    """They are refused before they reach a table, where sums could overflow."""
    with pytest.raises(ValueError, match=why):
        make()


def test_absurd_prices_are_refused(running: Ledger) -> None:
    """A price and a limit are nano-dollars from 0 to a billion dollars."""
    running.reserve(hold())

    with pytest.raises(ValueError, match="price is out of range"):
        running.settle("call-1:1", nano(-1), used())
    with pytest.raises(ValueError, match="price is out of range"):
        running.correct("call-1:1", nano(MOST_NANO + 1), used())
    with pytest.raises(ValueError, match="limit is out of range"):
        running.set_budget(RUN, nano(-1))


def test_set_of_budgets_has_one_name() -> None:
    """Neither order nor repetition make another set; another budget does."""
    assert set_id(["a", "b"]) == set_id(["b", "a", "b"])
    assert set_id(["a", "b"]) != set_id(["a"])
    assert set_id(["ab"]) != set_id(["a", "b"])


def test_clock_is_the_systems(url: str) -> None:
    """Without another clock, times are microseconds since 1970."""
    before = now_us()
    with Ledger.open(url) as ledger:
        ledger.start_attempt(attempt())
        row = ledger.attempt("attempt-1")
    assert row is not None

    assert before <= row.started_us <= now_us()


def test_usage_is_a_value() -> None:
    """Cached and reasoning tokens are 0 where a provider does not tell."""
    assert TokenUsage(
        prompt_tokens=1, completion_tokens=2, cached_tokens=0, reasoning_tokens=0
    ) == TokenUsage(prompt_tokens=1, completion_tokens=2)


def test_a_limit_that_is_there_is_kept_where_asked_for(ledger: Ledger) -> None:
    """A run that is taken up again goes on with its budget, unless another is given."""
    ledger.set_budget("run:1", NanoUsd(4000), keep=True)
    ledger.set_budget("run:1", NanoUsd(9000), keep=True)
    assert 4000 == ledger.budget("run:1").limit

    ledger.set_budget("run:1", NanoUsd(9000))
    assert 9000 == ledger.budget("run:1").limit
