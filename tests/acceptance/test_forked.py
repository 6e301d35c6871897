"""What becomes of documents whose children's server is killed."""

import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from acceptance.program import command, environment, run
from acceptance.test_provider import KEY, TITLES, sensible
from fault_server import Fault, serving
from killing import children_of, command_of
from pdfs import pdf
from vectorless_rag import landlock

pytestmark = pytest.mark.skipif(
    landlock.version() == 0, reason="without a sandbox no child is forked"
)

PROVIDER = ("--model", "openai/gpt-4o-mini", "--mode", "standard")


class Keeping:
    """A provider that answers a document's first question, and keeps the others."""

    def __init__(self, word: str) -> None:
        self.word = word
        self.asked = 0
        self.kept = threading.Event()
        self.answers = False

    def __call__(self, number: int, body: dict[str, Any]) -> Fault:
        if self.answers or self.word not in json.dumps(body):
            return sensible(number, body)
        self.asked += 1
        if self.asked == 1:
            return sensible(number, body)
        self.kept.set()
        return Fault(stall_s=3600)


def server_of(program: subprocess.Popen[bytes]) -> int:
    """The process that its children are forked from."""
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        for child in children_of(program.pid):
            if "fork_server" in command_of(child):
                return child
        time.sleep(0.05)
    raise AssertionError("no fork server")


@pytest.mark.loopback
def test_a_run_outlives_the_server_of_its_children(tmp_path: Path) -> None:
    """A document in work is begun anew; what it had asked is accounted for once."""
    papers = tmp_path / "in"
    papers.mkdir()
    for name in ("apple", "birch", "cedar"):
        pages = [f"{n} {t}\nAll about the {name}." for n, t in enumerate(TITLES)]
        pdf(papers / f"{name}.pdf", pages)
    with serving() as server:
        server.script = script = Keeping("the apple")
        about = ("--jobs", "2", "--json", "--api-base", server.base)
        program = subprocess.Popen(
            command("ingest", "in", *PROVIDER, *about),
            cwd=tmp_path,
            env=environment(tmp_path, OPENAI_API_KEY=KEY),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            assert script.kept.wait(120)
            os.kill(server_of(program), signal.SIGKILL)
            script.answers = True
            out, err = program.communicate(timeout=120)
        finally:
            program.kill()
            program.wait()
    ended = [json.loads(line) for line in out.splitlines()]
    verified = run("ledger", "verify", home=tmp_path)

    assert 0 == program.returncode, err.decode()
    assert {"built"} == {one["status"] for one in ended}
    assert 3 == len(ended)
    assert 0 == verified.status, verified.err
