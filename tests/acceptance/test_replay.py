"""A run that was killed is run again, and pays only for what was not settled."""

import os
import signal
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest

from acceptance.program import command, environment, run
from acceptance.test_provider import KEY, TITLES, sensible
from fault_server import Fault, FaultServer, completion, serving
from pdfs import pdf

pytestmark = pytest.mark.loopback

BODY = "\n".join(f"Line {n} of this page says a little about fruit." for n in range(40))


@pytest.fixture
def paper(tmp_path: Path) -> Path:
    return pdf(
        tmp_path / "a.pdf", [f"{i} {t}\n{BODY}" for i, t in enumerate(TITLES, 1)]
    )


def arguments(paper: Path, server: FaultServer, data: str, *more: str) -> list[Any]:
    return [
        "ingest", paper, "--json", "--quiet", "--model", "openai/gpt-4o-mini",
        "--api-base", server.base, "--mode", "standard", "--data-dir", data, *more,
    ]  # fmt: skip


def settled(data: Path) -> tuple[int, int]:
    """Settled requests that were paid for, and those that were replayed."""
    connection = sqlite3.connect(data / "ledger.sqlite3")
    (row,) = connection.execute(
        "select coalesce(sum(replayed = 0), 0), coalesce(sum(replayed), 0)"
        " from holds where state = 'settled'"
    )
    connection.close()
    return int(row[0]), int(row[1])


@pytest.mark.parametrize(
    "calls",
    [
        pytest.param(5, id="after-5"),
        *(
            pytest.param(n, id=f"after-{n}", marks=pytest.mark.slow)
            for n in (1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12)
        ),
    ],
)
def test_the_rerun_pays_for_the_rest_alone(paper: Path, calls: int) -> None:
    """Killed at any call: nothing is paid twice, and the artifact is the same."""
    home = paper.parent
    with serving() as server:
        server.script = sensible
        whole = run(*arguments(paper, server, "whole"), home=home, OPENAI_API_KEY=KEY)
        needed = len(server.requests)
        program = subprocess.Popen(
            command(*arguments(paper, server, "cut")),
            cwd=home,
            env=environment(home, OPENAI_API_KEY=KEY),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

        def kill(number: int, body: dict[str, Any]) -> Fault:
            if number - needed == min(calls, needed - 1):
                os.kill(program.pid, signal.SIGKILL)
                return Fault(stall_s=1)
            return sensible(number, body)

        server.script = kill
        program.wait(timeout=120)
        paid_before, _ = settled(home / "cut")
        server.script = sensible
        asked = len(server.requests)
        again = run(*arguments(paper, server, "cut"), home=home, OPENAI_API_KEY=KEY)
        asked = len(server.requests) - asked
    paid, replayed = settled(home / "cut")

    assert (0, 0) == (whole.status, again.status), again.err
    assert whole.object["artifact_id"] == again.object["artifact_id"]
    assert (needed - paid_before, needed, paid_before) == (asked, paid, replayed)
    assert 0 == run("ledger", "verify", "--data-dir", "cut", home=home).status


@pytest.mark.slow
def test_a_rebuild_and_no_replay_ask_anew(paper: Path) -> None:
    """The operator can always have it done again; other answers make conflicts."""
    home = paper.parent
    with serving() as server:
        server.script = sensible
        run(*arguments(paper, server, "data"), home=home, OPENAI_API_KEY=KEY)
        needed = len(server.requests)
        rebuilt = run(
            *arguments(paper, server, "data", "--rebuild"),
            home=home,
            OPENAI_API_KEY=KEY,
        )
        after_rebuild = len(server.requests)
        unused = run(
            *arguments(paper, server, "data", "--no-replay", "--rebuild"),
            home=home,
            OPENAI_API_KEY=KEY,
        )

    assert (0, 0) == (rebuilt.status, unused.status)
    assert [2 * needed, 3 * needed] == [after_rebuild, len(server.requests)]


def test_nothing_is_kept_where_the_journal_is_off(paper: Path) -> None:
    """The off switch leaves no reply on disk."""
    with serving([completion("no use")]) as server:
        run(
            *arguments(paper, server, "data"),
            home=paper.parent,
            OPENAI_API_KEY=KEY,
            VECTORLESS_RAG_JOURNAL="false",
        )

    assert not (paper.parent / "data" / "journal").exists()
