"""Sums over the record, and what turns up late."""

from collections.abc import Iterator

import pytest

from strategies_ledger import BUDGETS, Clock, attempt, hold, used
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.ledger.book import Ledger
from vectorless_rag.ledger.types import (
    By,
    LateUsage,
    Reconciled,
    ReportRow,
    Usage,
)
from vectorless_rag.units import NanoUsd

pytest_plugins = ["ledger_databases"]

FIRST_DAY = "2027-01-15"
SECOND_DAY = "2027-01-16"


@pytest.fixture
def busy(ledger: Ledger, clock: Clock) -> Ledger:
    """Two owners, two models, two days, and a request in every state."""
    ledger.start_attempt(attempt())
    ledger.start_attempt(attempt("attempt-2", owner="bob"))
    ledger.reserve(hold("call-1:1", 1000))
    tokens = used(100, 20, cached_tokens=40, reasoning_tokens=5)
    ledger.settle("call-1:1", NanoUsd(700), tokens)
    ledger.reserve(hold("call-2:1", 1000))
    ledger.void("call-2:1", "rate limit", Code.LLM_RETRY_EXHAUSTED)
    ledger.reserve(hold("call-2:2", 1000))
    ledger.settle("call-2:2", NanoUsd(1100), used())
    ledger.replay(hold("call-3:1", 0))
    clock.advance(86_400)
    other = {"attempt_id": "attempt-2", "operation": "expand", "model": "offline/x"}
    ledger.reserve(hold("call-4:1", 300, **other))
    ledger.unknown("call-4:1", "cut off", Code.TIMEOUT, "response-4")
    ledger.reserve(hold("call-5:1", 200, lease_s=1, **other))
    clock.advance(2)
    ledger.expire()
    ledger.reserve(hold("call-6:1", 50, **other))
    return ledger


def first(key: str) -> ReportRow:
    return ReportRow(
        key=key,
        calls=3,
        replayed=1,
        prompt_tokens=200,
        completion_tokens=40,
        cached_tokens=40,
        reasoning_tokens=5,
        cost_nano=NanoUsd(1800),
        open_nano=NanoUsd(0),
        guessed_nano=NanoUsd(0),
        overruns=1,
    )


def second(key: str) -> ReportRow:
    return ReportRow(
        key=key,
        calls=3,
        replayed=0,
        prompt_tokens=0,
        completion_tokens=0,
        cached_tokens=0,
        reasoning_tokens=0,
        cost_nano=NanoUsd(500),
        open_nano=NanoUsd(50),
        guessed_nano=NanoUsd(500),
        overruns=0,
    )


@pytest.mark.parametrize(
    ("by", "rows"),
    [
        pytest.param(
            By.OPERATION, [second("expand"), first("summary_leaf")], id="operation"
        ),
        pytest.param(
            By.MODEL, [second("offline/x"), first("openai/gpt-4o-mini")], id="model"
        ),
        pytest.param(By.OWNER, [first("ann"), second("bob")], id="owner"),
        pytest.param(By.DAY, [first(FIRST_DAY), second(SECOND_DAY)], id="day"),
        pytest.param(
            By.ATTEMPT, [first("attempt-1"), second("attempt-2")], id="attempt"
        ),
    ],
)
def test_report_groups_every_request(
    busy: Ledger, by: By, rows: list[ReportRow]
) -> None:
    """Calls, tokens and money, by whatever is asked for."""
    assert rows == busy.report(by)


def test_reports_agree_on_the_sum(busy: Ledger) -> None:
    """However it is grouped, the whole is what the owner's budget has spent."""
    spent = busy.budget(BUDGETS[1]).spent

    assert {spent} == {sum(r.cost_nano for r in busy.report(by)) for by in By}
    assert 2300 == spent


def test_report_by_something_else_is_refused(ledger: Ledger) -> None:
    """There are five ways to group."""
    assert [] == ledger.report()
    with pytest.raises(ValueError, match="'colour' is not a valid By"):
        ledger.report("colour")


def test_usage_sums_up_an_attempt(busy: Ledger) -> None:
    """A replayed row is no call, and an open one costs nothing yet."""
    assert Usage(
        calls=3,
        prompt_tokens=200,
        completion_tokens=40,
        cost_nano=NanoUsd(1800),
        by_state={"settled": 3, "voided": 1},
        replayed=1,
        cached_tokens=40,
        reasoning_tokens=5,
    ) == busy.usage("attempt-1")
    assert {"expired": 1, "reserved": 1, "unknown": 1} == (
        busy.usage("attempt-2").by_state
    )


def test_usage_of_nobody_is_nothing(ledger: Ledger) -> None:
    """An attempt without requests cost nothing."""
    assert (0, 0, {}) == (
        ledger.usage("attempt-9").calls,
        ledger.usage("attempt-9").cost_nano,
        ledger.usage("attempt-9").by_state,
    )


def test_rows_come_in_the_order_they_were_opened(busy: Ledger) -> None:
    """Tries of one call follow each other."""
    assert ["call-1:1", "call-2:1", "call-2:2", "call-3:1"] == [
        row.hold_id for row in busy.holds("attempt-1")
    ]


def late(key: str, amount: int) -> LateUsage:
    return LateUsage(key=key, amount=NanoUsd(amount), usage=used())


def test_reconcile_posts_what_turned_up_late(busy: Ledger, clock: Clock) -> None:
    """By hold or by response; what fits no hold, or contradicts one, is handed back."""
    clock.advance(61)
    arrived = [
        late("response-4", 250),
        late("call-5:1", 100),
        late("call-6:1", 40),
        late("call-1:1", 700),
        late("call-2:1", 5),
        late("nothing", 5),
    ]

    assert Reconciled(
        expired=1,
        corrected=3,
        unmatched=("call-2:1", "nothing"),
        running=("attempt-1", "attempt-2"),
    ) == busy.reconcile(arrived)
    assert 1800 + 390 == busy.budget(BUDGETS[1]).spent
    assert [] == busy.check()


def test_reconcile_names_attempts_that_never_ended(busy: Ledger) -> None:
    """One that holds something is at work; one that holds nothing may be dead."""
    assert ("attempt-1",) == busy.reconcile().running
    busy.end_attempt("attempt-1", "built")
    assert () == busy.reconcile().running


def test_ambiguous_late_usage_is_handed_back(busy: Ledger) -> None:
    """Two requests cannot share the usage of one response."""
    busy.reserve(hold("call-7:1", 10))
    busy.unknown("call-7:1", "cut off", None, "response-4")

    assert ("response-4",) == busy.reconcile([late("response-4", 5)]).unmatched


def test_reconcile_passes_other_failures_on(ledger: Ledger) -> None:
    """A ledger that is lost on the way is not a ledger without the hold."""

    def arriving() -> Iterator[LateUsage]:
        ledger.close()
        yield late("call-1:1", 5)

    with pytest.raises(VectorlessRagError, match="it was closed"):
        ledger.reconcile(arriving())
