"""The audit finds every row that was tampered with, by hand or by a defect."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import Connection, create_engine, text

from strategies_ledger import BUDGETS, Clock, attempt, hold, used
from vectorless_rag.errors import Code
from vectorless_rag.ledger import attempts
from vectorless_rag.ledger.book import Ledger
from vectorless_rag.ledger.budgets import set_id
from vectorless_rag.ledger.types import Outcome
from vectorless_rag.units import NanoUsd

pytest_plugins = ["ledger_databases"]


@contextmanager
def by_hand(url: str) -> Iterator[Connection]:
    """A connection of an operator who knows SQL."""
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


def end_without_closing(ledger: Ledger) -> None:
    """As if its parent were killed between the end and what follows it."""
    ledger._database.write(
        lambda t: attempts.end(t, "attempt-1", Outcome.FAILED, Code.CHILD_KILLED, 9)
    )


@pytest.fixture
def sound(ledger: Ledger) -> Ledger:
    """A settled, an open, a voided, a corrected and a replayed request."""
    ledger.start_attempt(attempt())
    ledger.reserve(hold("call-1:1", 1000))
    ledger.settle("call-1:1", NanoUsd(700), used())
    ledger.reserve(hold("call-2:1", 500))
    ledger.reserve(hold("call-3:1", 500))
    ledger.void("call-3:1", "not sent")
    ledger.reserve(hold("call-4:1", 500))
    ledger.unknown("call-4:1", "cut off")
    ledger.correct("call-4:1", NanoUsd(100), used())
    ledger.replay(hold("call-5:1", 0))
    return ledger


def test_sound_ledger_has_no_problems(sound: Ledger) -> None:
    """Nothing found is nothing said."""
    assert [] == sound.check()


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        pytest.param(
            "update budgets set spent_nano = spent_nano + 1 where budget_id = 'run:1'",
            "budget run:1: reserved 500, spent 801; its entries say 500, 800",
            id="balance",
        ),
        pytest.param(
            "update budgets set reserved_nano = 0 where budget_id = 'run:1'",
            "budget run:1: reserved 0, spent 800; its holds say 500, 800",
            id="reserved",
        ),
        pytest.param(
            "update holds set amount_nano = 701 where hold_id = 'call-1:1'",
            "hold call-1:1 is settled, and its entries say otherwise",
            id="price",
        ),
        pytest.param(
            "update holds set reserved_nano = 501 where hold_id = 'call-3:1'",
            "hold call-3:1 is voided, and its entries say otherwise",
            id="held",
        ),
        pytest.param(
            "update holds set state = 'expired' where hold_id = 'call-1:1'",
            "hold call-1:1 is expired, and its entries say otherwise",
            id="state",
        ),
        pytest.param(
            "update holds set replayed = 0 where hold_id = 'call-5:1'",
            "hold call-5:1 is settled, and its entries say otherwise",
            id="replayed",
        ),
        pytest.param(
            "update holds set overrun = 1 where hold_id = 'call-1:1'",
            "hold call-1:1 is settled, and its entries say otherwise",
            id="overrun",
        ),
        pytest.param(
            "update holds set opened_us = 1 where hold_id = 'call-5:1'",
            "hold call-5:1 is settled, and its entries say otherwise",
            id="opened",
        ),
        pytest.param(
            "update holds set closed_us = 1 where hold_id = 'call-4:1'",
            "hold call-4:1 is settled, and its entries say otherwise",
            id="closed",
        ),
        pytest.param(
            "delete from budget_sets where budget_id = 'owner:ann'",
            f"budget set {set_id(BUDGETS)} has not the budgets of its name",
            id="budget-set",
        ),
        pytest.param(
            "insert into entries values('call-2:1', 'settle', 0, 0, 0)",
            "hold call-2:1 is reserved, and its entries say otherwise",
            id="extra-entry",
        ),
        pytest.param(
            "update holds set set_id = 'none' where hold_id = 'call-3:1'",
            "hold call-3:1 counts towards no budget",
            id="no-budget",
        ),
        pytest.param(
            "update attempts set state = 'built', ended_us = 1",
            "hold call-2:1 is open, and attempt attempt-1 has ended;"
            " reconcile the ledger",
            id="left-open",
        ),
    ],
)
def test_tampering_is_found(sound: Ledger, url: str, sql: str, problem: str) -> None:
    """Each row that does not fit the others is named."""
    with by_hand(url) as connection:
        connection.execute(text(sql))

    assert problem in sound.check()


def test_a_hold_of_another_run_is_found(sound: Ledger, url: str) -> None:
    """A request that was pushed onto another run's bill still counts in its own."""
    assert [] == sound.strays()
    with by_hand(url) as connection:
        connection.execute(text("update attempts set run_id = '2'"))

    assert (
        "hold call-1:1 counts towards no budget of the run of attempt attempt-1"
        == sound.strays()[0]
    )


def test_what_an_ended_attempt_left_open_is_closed_by_reconciling(
    sound: Ledger,
) -> None:
    """A full disk or a kill left it: no contradiction, and no lease to wait for."""
    end_without_closing(sound)
    found = sound.problems()
    assert [] == found.wrong
    assert [
        "hold call-2:1 is open, and attempt attempt-1 has ended; reconcile the ledger"
    ] == found.overdue
    assert 1 == sound.reconcile().expired

    assert [] == sound.check()
    assert 0 == sound.reconcile().expired


def test_corrections_are_listed(sound: Ledger, clock: Clock) -> None:
    """With what the hold was before, and what it costs more or less."""
    sound.reserve(hold("call-6:1", 500, lease_s=1))
    clock.advance(10)
    sound.expire()
    clock.advance(1)
    sound.correct("call-6:1", NanoUsd(900), used())

    assert [("call-4:1", "unknown", -400), ("call-6:1", "expired", 400)] == [
        (c.hold_id, c.before.value, c.change_nano)
        for c in sound.corrections("attempt-1")
    ]
    assert [] == sound.corrections("attempt-2")


SEALED = [
    "update attempts set price_table = 'other'",
    "update attempts set started_us = started_us - 1",
    "update attempts set ended_us = ended_us + 1",
    "update attempts set code = 'child_killed'",
    "update attempts set seal = null",
]


@pytest.mark.parametrize("sql", SEALED)
def test_an_ended_attempt_is_sealed(sound: Ledger, url: str, sql: str) -> None:
    """What no other row repeats is in the sum that its end wrote."""
    sound.end_attempt("attempt-1", "failed", Code.CHILD_TIMEOUT)
    assert [] == sound.check()
    with by_hand(url) as connection:
        connection.execute(text(sql))

    assert ["attempt attempt-1: its rows were altered after it ended"] == sound.check()


def test_steps_after_the_end_keep_the_seal(ledger: Ledger, clock: Clock) -> None:
    """A late settlement, an overdue hold and corrections are no alteration."""
    ledger.start_attempt(attempt())
    for number in range(1, 5):
        ledger.reserve(hold(f"call-{number}:1", 500, lease_s=1))
    ledger.unknown("call-3:1", "cut off")
    clock.advance(1)
    end_without_closing(ledger)
    ledger.settle("call-1:1", NanoUsd(100), used())
    ledger.void("call-2:1", "not sent")
    clock.advance(10)
    assert 1 == ledger.reconcile().expired
    ledger.correct("call-3:1", NanoUsd(100), used())
    ledger.correct("call-4:1", NanoUsd(100), used())

    assert [] == ledger.check()


def test_an_honest_step_covers_nothing_up(sound: Ledger, url: str) -> None:
    """A correction of an altered hold leaves its attempt's seal broken."""
    sound.reserve(hold("call-6:1", 500))
    sound.unknown("call-6:1", "cut off")
    sound.end_attempt("attempt-1", "failed", Code.CHILD_TIMEOUT)
    with by_hand(url) as connection:
        connection.execute(text("update holds set lease_until_us = 1"))
    sound.correct("call-6:1", NanoUsd(100), used())

    assert ["attempt attempt-1: its rows were altered after it ended"] == sound.check()


def test_a_limit_is_sealed(sound: Ledger, url: str) -> None:
    """Whoever raises a limit in the file is found; whoever lifts it too."""
    sound.set_budget("owner:ann", NanoUsd(5000))
    assert [] == sound.check()
    for sql in (
        "update budgets set limit_nano = limit_nano + 1 where budget_id = 'owner:ann'",
        "update budgets set limit_nano = null where budget_id = 'owner:ann'",
        "update budgets set limit_nano = null, seal = null where limit_nano > 0",
    ):
        with by_hand(url) as connection:
            connection.execute(text(sql))

        assert "budget owner:ann: its limit was altered" in sound.check()
    sound.set_budget("owner:ann", None)
    assert [] == sound.check()


def test_older_tables_are_sealed_when_they_are_opened(url: str) -> None:
    """What was written before there were seals is sound, and sealed from then on."""
    with Ledger.open(url) as ledger:
        ledger.set_budget("owner:ann", NanoUsd(5000))
        ledger.start_attempt(attempt())
        ledger.end_attempt("attempt-1", "built")
    with by_hand(url) as connection:
        for table in ("attempts", "budgets"):
            connection.execute(text(f"alter table {table} drop column seal"))
        for table in ("jobs", "workers", "versions"):
            connection.execute(text(f"drop table {table}"))
        connection.execute(text("update schema_version set version = 1"))

    with Ledger.open(url) as ledger:
        assert [] == ledger.check()
    with by_hand(url) as connection:
        connection.execute(text("update attempts set price_table = 'other'"))
    with Ledger.open(url) as ledger:
        assert 1 == len(ledger.check())


SLIPPED_IN = """
insert into holds(
  hold_id, attempt_id, set_id, call_id, try_no, operation, model, state,
  replayed, overrun, reserved_nano, held_prompt_tokens, opened_us, lease_until_us)
select
  'slipped', attempt_id, set_id, call_id, try_no, operation, model, state,
  replayed, overrun, reserved_nano, held_prompt_tokens, opened_us, lease_until_us
from holds where hold_id = 'call-2:1'
"""


def test_hold_without_entries_is_found(sound: Ledger, url: str) -> None:
    """A row slipped in beside the record is no reservation."""
    with by_hand(url) as connection:
        connection.execute(text(SLIPPED_IN))

    assert "hold slipped is reserved, and its entries say otherwise" in sound.check()


def test_many_problems_are_counted(sound: Ledger, clock: Clock) -> None:
    """The first hundred of a kind are listed."""
    for number in range(101):
        sound.reserve(hold(f"late-{number:03}:1", 1, lease_s=1))
    clock.advance(10)
    problems = sound.check()

    assert 101 == len(problems)
    assert "and 1 more like it" == problems[-1]


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param("update entries set spent_delta = 0", id="update"),
        pytest.param("delete from entries", id="delete"),
    ],
)
def test_entries_are_final(sound: Ledger, url: str, sql: str) -> None:
    """No statement changes or removes what happened."""
    del sound
    with pytest.raises(Exception, match="entries are final"), by_hand(url) as server:
        server.execute(text(sql))


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param("update budgets set reserved_nano = -1", id="negative-balance"),
        pytest.param("update holds set reserved_nano = -1", id="negative-hold"),
        pytest.param("update holds set state = 'lost'", id="unknown-state"),
        pytest.param(
            "update holds set amount_nano = null where state = 'settled'",
            id="settled-without-price",
        ),
        pytest.param(
            "insert into entries values('call-1:1', 'settle', 0, 0, 0)",
            id="second-settlement",
        ),
        pytest.param(
            "insert into entries values('call-1:1', 'gift', 0, 0, 0)", id="other-kind"
        ),
        pytest.param("update attempts set state = 'built'", id="ended-without-time"),
    ],
)
def test_tables_refuse_nonsense(sound: Ledger, url: str, sql: str) -> None:
    """Some defects cannot even be written."""
    balances = sound.budgets()
    with pytest.raises(Exception, match=r"(?i)constraint"), by_hand(url) as server:
        server.execute(text(sql))

    assert balances == sound.budgets()
    assert BUDGETS[0] in balances
