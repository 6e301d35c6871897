"""A ledger that somebody has written into ends no command with a traceback."""

import random
import sqlite3
from pathlib import Path

import pytest

from strategies_report import hostile_folder
from vectorless_rag import cli

COMMANDS = [
    ["audit", "verify"],
    ["ledger", "verify"],
    ["ledger", "report"],
    ["budget", "show"],
    ["doctor"],
    ["audit", "report", "--html"],
]
FLIPS = 12


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """The database of a data folder with some spend, in one file."""
    settings = hostile_folder(tmp_path / "data")
    path = settings.data_dir / "ledger.sqlite3"
    connection = sqlite3.connect(path)
    connection.execute("pragma wal_checkpoint(truncate)")
    connection.execute("pragma journal_mode=delete")
    connection.close()
    return path


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_flipped_bit_is_an_answer_of_the_command(
    ledger: Path, command: list[str]
) -> None:
    """Sound, not sound or not readable: each has its exit status."""
    whole, dice = ledger.read_bytes(), random.Random(" ".join(command))  # noqa: S311
    for _ in range(FLIPS):
        altered = bytearray(whole)
        altered[dice.randrange(len(whole))] ^= 1 << dice.randrange(8)
        ledger.write_bytes(altered)

        assert cli.main(command) in {0, 1, 10, 20, 21}


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_ledger_without_its_version_is_refused(
    ledger: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """One line says that it is not of this package."""
    connection = sqlite3.connect(ledger)
    connection.execute("delete from schema_version")
    connection.commit()
    connection.close()

    assert cli.main(command) in {10, 20, 21}
    said = "".join(capsys.readouterr())
    page = ledger.with_name("report.html")
    said += page.read_text(encoding="utf-8") if page.exists() else ""
    assert "no version of this package writes" in said


def test_a_folder_that_is_not_there_is_no_clean_ledger(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A typing error is named, and makes no folder."""
    for command in (
        ["ledger", "verify"],
        ["ledger", "report"],
        ["ledger", "reconcile"],
        ["audit", "verify"],
        ["audit", "stale"],
        ["audit", "report", "--html"],
        ["store", "gc", "--dry-run"],
        ["failures", "ls"],
    ):
        given = [*command, "--data-dir", str(tmp_path / "typo")]

        assert 10 == cli.main(given)
        assert "typo" in capsys.readouterr().err
    assert not (tmp_path / "typo").exists()


@pytest.mark.parametrize("limit", ["1e18", "1e400", "-1", "much"])
def test_a_limit_beyond_all_money_is_a_usage_error(limit: str) -> None:
    """Exit 2, as for the budget of a run."""
    assert 2 == cli.main(["budget", "set", "owner:local", limit])
