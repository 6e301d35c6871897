"""What the bench makes of a side that does not end, and of what it did not measure."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from conftest import REPOSITORY

SLEEPS = "import time; time.sleep(600)"
STUCK = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SLEEPS!r}])"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module; it puts folders of its own into the path."""
    monkeypatch.syspath_prepend(REPOSITORY)
    from scripts.bench import speed  # noqa: PLC0415

    return speed


def test_a_side_that_does_not_end_is_stopped_and_named(
    bench: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The report goes on without the document, and says which side it was."""
    monkeypatch.setattr(
        bench.Bench, "command", lambda *_, **__: [sys.executable, "-c", STUCK]
    )
    monkeypatch.setattr(bench.Bench, "environment", lambda *_: {})
    sides = bench.Bench(
        before=tmp_path, after=tmp_path, runs=1, latency_s=0, concurrency=1, limit_s=0.2
    )
    (row,) = bench.standard(sides, [("a.pdf", tmp_path / "a.pdf")])
    bench.report({**SETTINGS, "standard": [{**row, "patched": {}}]}, None)
    lines = capsys.readouterr().out.splitlines()

    assert {"refused": "stopped after 0.2 s"} == row["released"]
    assert "Not compared: a.pdf: released stopped after 0.2 s; ours a tree." in lines


SETTINGS = {"runs": 1, "latency_s": 0.5, "concurrency": 1}


def test_what_was_not_measured_stays_in_the_document(
    bench: ModuleType, tmp_path: Path
) -> None:
    """One part alone replaces its own section; they keep their order."""
    page = tmp_path / "page.md"
    page.write_text(
        "# Speed\n\n<!-- The rest is written by make bench. -->\n\n![a](b.svg)\n"
        "\n## Growth\n\nold growth\n\n## Flash\n\nold flash\n"
    )
    starts = {"import": [1.0, 3.0]}
    bench.report({**SETTINGS, "start": starts, "flash": []}, page)
    text = page.read_text()
    titles = [line for line in text.splitlines() if line.startswith("## ")]

    assert ["## Growth", "## Flash", "## Start and reuse"] == titles
    assert "\nold growth\n" in text
    assert "old flash" not in text
    assert "| import | 2.00 (1.00-3.00) |" in text.splitlines()


def test_the_cached_share_is_told_by_document_and_of_all_tokens(
    bench: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    """One column for each rule of a provider and number of calls in flight."""
    row = {"least": 1024, "step": 128, "concurrency": 1}
    rows = [
        {**row, "name": "a.pdf", "prompt_tokens": 300, "cached_tokens": 30},
        {**row, "name": "b.pdf", "prompt_tokens": 100, "cached_tokens": 50},
    ]
    bench.report({**SETTINGS, "cached": rows}, None)
    table = [line for line in capsys.readouterr().out.splitlines() if "|" in line]
    rule = "cached, from 1,024 tokens in steps of 128, 1 in flight"

    assert f"| document | prompt tokens | {rule} |" == table[0]
    assert ["| a.pdf | 300 | 10% |", "| b.pdf | 100 | 50% |"] == table[2:4]
    assert ["| **median** |  | 30% |", "| **all** | 400 | 20.0% |"] == table[4:]
