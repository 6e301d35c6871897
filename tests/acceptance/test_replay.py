"""A run that was killed is run again, and pays only for what was not settled."""

import json
import os
import re
import signal
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

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


def settled(data: Path) -> list[tuple[int, int]]:
    """By attempt: settled requests that were paid for, and that were replayed."""
    connection = sqlite3.connect(data / "ledger.sqlite3")
    rows = connection.execute(
        "select coalesce(sum(replayed = 0), 0), coalesce(sum(replayed), 0)"
        " from attempts left join holds on holds.attempt_id = attempts.attempt_id"
        " and holds.state = 'settled'"
        " group by attempts.attempt_id order by attempts.started_us"
    ).fetchall()
    connection.close()
    return [(int(paid), int(replayed)) for paid, replayed in rows]


def stubborn(number: int, body: dict[str, Any]) -> Fault:
    """Answer some questions only when they are asked again."""
    *first, last = body["messages"]
    if "could not be used" in last["content"]:
        return sensible(number, {"messages": first[:-1]})
    if crc32(last["content"].encode()) % 3 == 0:
        return completion("I would rather not.")
    return sensible(number, body)


HEADING = re.compile(r"<physical_index_(\d+)>\s*(\d+) (Chapter \w+)")


def attentive(number: int, body: dict[str, Any]) -> Fault:
    """Answer with the headings that the pages in the prompt begin with."""
    prompt = body["messages"][-1]["content"]
    if "physical_index" not in prompt or "start_begin" in prompt:
        return stubborn(number, body)
    entries = [
        {"structure": n, "title": f"{n} {title}", "physical_index": int(page)}
        for page, n, title in HEADING.findall(prompt)
    ]
    return completion(json.dumps(entries)) if entries else stubborn(number, body)


Script = Callable[[int, dict[str, Any]], Fault]


def run_cut_and_run_again(paper: Path, script: Script, calls: int) -> int:
    """Build *paper* whole, and again killed after *calls*; return what it needs."""
    home = paper.parent
    with serving() as server:
        server.script = script
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
            return script(number, body)

        server.script = kill
        program.wait(timeout=120)
        server.script = script
        again = run(*arguments(paper, server, "cut"), home=home, OPENAI_API_KEY=KEY)
    (paid_before, _), (paid, replayed) = settled(home / "cut")

    assert (0, 0) == (whole.status, again.status), again.err
    assert whole.object["artifact_id"] == again.object["artifact_id"]
    # A reply is kept before its row is settled: the kill may come between the two.
    assert replayed >= paid_before
    assert needed == paid + replayed
    assert 0 == run("ledger", "verify", "--data-dir", "cut", home=home).status
    return needed


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
    run_cut_and_run_again(paper, stubborn, calls)


@pytest.mark.slow
@pytest.mark.parametrize("calls", [1, 15, 30, 45, 60, 75])
def test_a_long_document_is_taken_up_where_it_was(tmp_path: Path, calls: int) -> None:
    """The same for a document of many calls, wherever it is cut."""
    names = [f"Chapter {chr(65 + n)}" for n in range(24)]
    pages = [f"{n} {name}\n{BODY}" for n, name in enumerate(names, 1)]
    needed = run_cut_and_run_again(pdf(tmp_path / "a.pdf", pages), attentive, calls)

    assert needed > 75


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


@pytest.mark.slow
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
