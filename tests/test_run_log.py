"""The upstream's log of one run."""

import json
from pathlib import Path

import pytest

from vectorless_rag.pageindex_runtime.run_log import JsonLogger


def test_each_message_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its kind; two logs are two files."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    log, other = JsonLogger("a/b.pdf"), JsonLogger("a/b.pdf")

    log.info("text")
    log.error({"count": 1})
    log.debug(object())

    lines = [json.loads(line) for line in log.path.read_text().splitlines()]
    assert ["INFO", "ERROR", "INFO"] == [line["level"] for line in lines]
    assert (1, "text") == (lines[1]["count"], lines[0]["message"])
    assert log.filename != other.filename
    assert "" == other.path.read_text()
