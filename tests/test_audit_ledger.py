"""A run record that its ledger rows do not sum up to is found and explained."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any

import pytest
from sqlalchemy import Column, Text

from audited import MODEL
from strategies_ledger import hold, used
from vectorless_rag import cli
from vectorless_rag.audit import (
    Finding,
    Verdict,
    verify_bills,
    verify_built,
    verify_ledger,
)
from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.ledger.book import Ledger
from vectorless_rag.ledger.tables import metadata
from vectorless_rag.ledger.types import Attempt
from vectorless_rag.settings import Settings
from vectorless_rag.store import Store, Stored
from vectorless_rag.units import NanoUsd, Sha256

pytest_plugins = ["audited_folder"]


@pytest.fixture
def ledger(settings: Settings) -> Iterator[Ledger]:
    with Ledger.open(settings.effective_ledger_url) as opened:
        yield opened


def bills(settings: Settings, ledger: Ledger) -> list[Finding]:
    store = Store(settings.store_dir)
    return verify_bills(store, ledger, store.all())


def by_hand(settings: Settings, *statements: str) -> None:
    """Alter the database as an operator who knows SQL."""
    with closing(sqlite3.connect(settings.data_dir / "ledger.sqlite3")) as connection:
        for statement in statements:
            connection.execute(statement.replace("HOLD", HOLD))
        connection.commit()


def test_what_ingests_leave_agrees(settings: Settings, ledger: Ledger) -> None:
    """Neither the rows nor the run records have anything to say."""
    assert [] == verify_ledger(ledger)
    assert [] == bills(settings, ledger)


HOLD = """
hold_id like '%.1:1'
and attempt_id = (select attempt_id from holds where model = 'openai/gpt-4o-mini'
                  order by opened_us limit 1)
"""
"""One settled request of the first artifact."""

ALTERED = {
    "amount": "update holds set amount_nano = 701 where HOLD",
    "held": "update holds set reserved_nano = 1001 where HOLD",
    "prompt-tokens": "update holds set prompt_tokens = 101 where HOLD",
    "completion-tokens": "update holds set completion_tokens = 21 where HOLD",
    "state": "update holds set state = 'unknown' where HOLD",
    "operation": "update holds set operation = 'toc_detect' where HOLD",
    "model": "update holds set model = 'openai/o3' where HOLD",
    "attempt": "update holds set attempt_id = (select max(attempt_id) from attempts"
    " where run_id = 'run-2') where HOLD",
    "budget-set": "update holds set set_id = (select set_id from budget_sets"
    " where budget_id = 'run:run-2') where HOLD",
    "replayed": "update holds set replayed = 1, reserved_nano = 0, amount_nano = 0"
    " where HOLD",
    "overrun": "update holds set overrun = 1 where HOLD",
    "day": "update holds set opened_us = opened_us - 86400000000 where HOLD",
    "closed": "update holds set closed_us = closed_us + 1 where HOLD",
    "code": "update holds set code = 'nonsense' where HOLD",
    "balance": "update budgets set spent_nano = spent_nano - 1",
    "reserved": "update budgets set reserved_nano = 1",
    "set-member": "update budget_sets set budget_id = 'run:run-2'"
    " where budget_id = 'run:run-1'",
    "run": "update attempts set run_id = 'run-2' where run_id = 'run-1'",
    "owner": "update attempts set owner = 'other'",
    "recipe": "update attempts set recipe_hash = 'other'",
    "document": "update attempts set document_sha256 = 'other'",
    "attempt-model": "update attempts set model = 'openai/o3'",
    "entry-amount": "update entries set spent_delta = 1 where kind = 'settle'",
    "entry-held": "update entries set reserved_delta = 1 where kind = 'settle'",
    "entry-kind": "update entries set kind = 'void' where kind = 'settle'",
    "entry-time": "update entries set at_us = at_us + 1 where kind = 'reserve'",
}


def test_every_altered_row_is_found(settings: Settings, ledger: Ledger) -> None:
    """Each column that a report or a bill is read from."""
    unnoticed = []
    with closing(sqlite3.connect(":memory:")) as good:
        copy(settings, good, back=False)
        for name, statement in ALTERED.items():
            by_hand(settings, "drop trigger entries_no_update", statement)
            found = verify_ledger(ledger) + bills(settings, ledger)
            if Verdict.MISMATCH not in {finding.verdict for finding in found}:
                unnoticed.append(name)
            copy(settings, good, back=True)

    assert [] == unnoticed
    assert [] == verify_ledger(ledger)


def altered(column: Column[Any]) -> str:
    """SQL that changes the first value in a column, whatever is there."""
    table, key = column.table.name, next(iter(column.table.primary_key)).name
    new = f"coalesce({column.name}, 0) + 1"
    if isinstance(column.type, Text):
        new = f"coalesce({column.name}, '') || 'x'"
    first = f"select {key} from {table} order by {key} limit 1"  # noqa: S608
    return f"update {table} set {column.name} = {new} where {key} = ({first})"  # noqa: S608


# The version says which code may read the tables at all; jobs and workers are a
# queue, which changes and is no record.
NO_RECORD = {"schema_version", "jobs", "versions", "workers"}
COLUMNS = [c for t in metadata.sorted_tables if t.name not in NO_RECORD for c in t.c]


def test_no_column_can_be_altered_unnoticed(settings: Settings, ledger: Ledger) -> None:
    """Every column of every table, also those that no report is made from."""
    unnoticed, tried = [], 0
    with closing(sqlite3.connect(":memory:")) as good:
        copy(settings, good, back=False)
        for column in COLUMNS:
            # Some of it the tables refuse, and some no command would read.
            with suppress(sqlite3.IntegrityError, VectorlessRagError):
                by_hand(settings, "drop trigger entries_no_update", altered(column))
                tried += 1
                found = verify_ledger(ledger) + bills(settings, ledger)
                if Verdict.MISMATCH not in {finding.verdict for finding in found}:
                    unnoticed.append(str(column))
            copy(settings, good, back=True)

    assert [] == unnoticed
    assert tried > 40
    assert [] == verify_ledger(ledger)


def test_what_was_built_and_is_gone_is_found(
    settings: Settings, store: Store, stored: Stored, ledger: Ledger
) -> None:
    """An artifact that was removed with everything that names it, and another's."""
    for folder in ("artifacts", "activations"):
        name = stored.recipe_hash if folder == "artifacts" else stored.document_sha256
        shutil.rmtree(settings.store_dir / folder / name)
    (lost,) = verify_built(ledger, list(store.all()), own=True)
    (note,) = verify_built(ledger, list(store.all()), own=False)

    assert (Verdict.MISMATCH, Verdict.NOTE) == (lost.verdict, note.verdict)
    assert (
        f"attempt {stored.manifest.attempt_id} built recipe {stored.recipe_hash},"
        " and the store has no sound artifact of it"
    ) == lost.what
    assert 20 == cli.main(["audit", "verify", "--no-read-data"])
    assert 20 == cli.main(["ledger", "verify"])


def test_an_attempt_in_vain_is_a_note(settings: Settings, ledger: Ledger) -> None:
    """Two runs built one recipe at once; the store kept the other one's."""
    again = Attempt(
        **{
            name: getattr(ledger.built()[0], name)
            for name in Attempt.__dataclass_fields__
        }
        | {"attempt_id": "in-vain"}
    )
    ledger.start_attempt(again)
    ledger.end_attempt("in-vain", "built")
    (note,) = verify_built(ledger, list(Store(settings.store_dir).all()), own=True)

    assert (Verdict.NOTE, True) == (note.verdict, "in-vain" in note.what)


def copy(settings: Settings, good: sqlite3.Connection, *, back: bool) -> None:
    """Keep the database, or put it back, under the eyes of who has it open."""
    with closing(sqlite3.connect(settings.data_dir / "ledger.sqlite3")) as live:
        source, target = (good, live) if back else (live, good)
        source.backup(target)


def test_lost_rows_are_found(settings: Settings, ledger: Ledger) -> None:
    """A request that was struck out, and a whole attempt."""
    by_hand(
        settings,
        "drop trigger entries_no_delete",
        "delete from entries where hold_id in (select hold_id from holds where HOLD)",
        "delete from holds where HOLD",
        "update attempts set attempt_id = 'gone' where run_id = 'run-2'",
    )
    found = [f.what for f in bills(settings, ledger)]

    assert "calls is 3, and the ledger's rows say 2" in found
    assert 1 == sum(what.startswith("the ledger has no attempt") for what in found)


def test_a_later_correction_is_a_note(
    settings: Settings,
    stored: Stored,
    ledger: Ledger,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The run record is right about its time; the note names what came later."""
    attempt = stored.manifest.attempt_id
    ledger.correct(f"{attempt}.3:1", NanoUsd(300), used(10, 5))
    (note,) = bills(settings, ledger)

    assert (
        Verdict.NOTE,
        f"artifacts/{stored.recipe_hash}/0/run.json",
        f"corrected since: hold {attempt}.3:1 was unknown and costs -500 nano-dollars",
    ) == (note.verdict, note.file, note.what)
    assert 0 == cli.main(["audit", "verify"])
    assert 0 == cli.main(["ledger", "verify"])
    # A correction leaves nothing open.
    assert "every hold is closed or leased" in capsys.readouterr().err


def test_a_correction_hides_no_alteration(
    settings: Settings, stored: Stored, ledger: Ledger
) -> None:
    """With the correction taken back, the sums still have to agree."""
    ledger.correct(f"{stored.manifest.attempt_id}.3:1", NanoUsd(300), used(10, 5))
    by_hand(settings, "update holds set prompt_tokens = 9 where hold_id like '%.1:1'")

    assert {Verdict.MISMATCH} == {f.verdict for f in bills(settings, ledger)}


def test_what_a_crash_leaves_is_a_note(settings: Settings, ledger: Ledger) -> None:
    """Killed after the artifact was published: the attempt never ended."""
    by_hand(settings, "update attempts set state = 'running', ended_us = null")

    assert {"the ledger says that its attempt is not ended"} == {
        f.what for f in bills(settings, ledger)
    }
    assert [] == verify_ledger(ledger)


def test_an_overdue_hold_is_a_note(
    settings: Settings, ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    """A killed run leaves a hold open; reconciling closes it."""
    attempt = Attempt(
        attempt_id="killed",
        run_id="run-1",
        owner="local",
        document_sha256=Sha256("d" * 64),
        recipe_hash=Sha256("e" * 64),
        model=MODEL,
    )
    past = Ledger.open(settings.effective_ledger_url, clock=lambda: 1)
    with past:
        past.start_attempt(attempt)
        budgets = ("run:run-1",)
        past.reserve(hold("left:1", attempt_id="killed", budgets=budgets))
    (note,) = verify_ledger(ledger)

    assert (
        Verdict.NOTE,
        "hold left:1 is open past its lease; reconcile the ledger",
    ) == (
        note.verdict,
        note.what,
    )
    assert 0 == cli.main(["ledger", "verify"])
    err = capsys.readouterr().err
    assert "note  hold left:1 is open past its lease; reconcile the ledger" in err
    assert "every hold is closed" not in err


def test_an_unreadable_run_record_is_undecided(
    settings: Settings, stored: Stored, ledger: Ledger
) -> None:
    """What cannot be read cannot be compared; the store's audit says why."""
    digest = stored.manifest.run_sha256
    blob = settings.store_dir / "blobs" / "sha256" / digest[:2] / digest
    blob.chmod(0o644)
    blob.write_bytes(b"rot")
    (found,) = bills(settings, ledger)

    assert (Verdict.UNDECIDED, True) == (found.verdict, "not readable" in found.what)
