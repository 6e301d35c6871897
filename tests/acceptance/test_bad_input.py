"""Bad input gets a clear answer, and nothing is lost."""

import json
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from acceptance.program import Done, command, environment, run
from pdfs import encrypted, pdf, pdf_bytes, without_pages

PAGES = [
    f"{number} {title}\nSome words to read about it.\nAnd some more of them."
    for number, title in enumerate(["Introduction", "Methods", "Results"], start=1)
]


def missing(folder: Path) -> Path:
    return folder / "missing.pdf"


def not_a_pdf(folder: Path) -> Path:
    (folder / "a.pdf").write_text("plain text", encoding="ascii")
    return folder / "a.pdf"


def empty(folder: Path) -> Path:
    (folder / "a.pdf").touch()
    return folder / "a.pdf"


def truncated(folder: Path) -> Path:
    (folder / "a.pdf").write_bytes(pdf_bytes(PAGES)[:400])
    return folder / "a.pdf"


def locked(folder: Path) -> Path:
    return encrypted(folder / "a.pdf", user="secret")


def scanned(folder: Path) -> Path:
    return pdf(folder / "a.pdf", ["", "", ""])


def scanned_page(folder: Path) -> Path:
    return pdf(folder / "a.pdf", [""])


def no_pages(folder: Path) -> Path:
    return without_pages(folder / "a.pdf")


def good(folder: Path) -> Path:
    return pdf(folder / "a.pdf", PAGES)


def closed(data: Path) -> None:
    """Every hold is in an end state, and every attempt has ended."""
    ledger = data / "ledger.sqlite3"
    if not ledger.exists():
        return
    connection = sqlite3.connect(ledger)
    open_holds, open_attempts = (
        connection.execute(f"select count(*) from {table} where {where}").fetchone()[0]  # noqa: S608
        for table, where in (
            ("holds", "state = 'reserved'"),
            ("attempts", "ended_us is null"),
        )
    )
    connection.close()

    assert (0, 0) == (open_holds, open_attempts)


def published(data: Path) -> list[Path]:
    return list((data / "store").glob("artifacts/*/*/manifest.json"))


def one_line(done: Done) -> str:
    """What a person reads about the failure: one line, and no traceback."""
    lines = [line for line in done.err.splitlines() if line.strip()]

    assert 1 == len(lines), done.err
    assert "Traceback" not in done.err
    return lines[0]


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (missing, "source_unreadable"),
        (not_a_pdf, "source_unreadable"),
        (empty, "source_unreadable"),
        (truncated, "source_unreadable"),
        (locked, "source_encrypted"),
        (scanned, "source_no_text"),
        (scanned_page, "source_no_text"),
        (no_pages, "source_unreadable"),
    ],
)
def test_each_bad_document_has_its_code(
    tmp_path: Path, make: Callable[[Path], Path], code: str
) -> None:
    """One line, exit 3, no artifact, and a closed ledger."""
    done = run("ingest", make(tmp_path), home=tmp_path)

    assert (3, "") == (done.status, done.out)
    assert code in one_line(done)
    assert [] == published(tmp_path / "data")
    closed(tmp_path / "data")


def test_pages_without_text_are_counted(tmp_path: Path) -> None:
    """A scan of which only the cover has text is told from a document of text."""
    scan = pdf(tmp_path / "a.pdf", [PAGES[0], "", " ", PAGES[1]])
    assert 0 == run("ingest", scan, home=tmp_path).status
    (manifest,) = published(tmp_path / "data")

    notes = json.loads((manifest.parent / "run.json").read_text())["notes"]
    assert 2 == notes["pages_without_text"]


def test_an_empty_password_is_no_obstacle(tmp_path: Path) -> None:
    """A PDF that only restricts printing is built."""
    path = encrypted(tmp_path / "a.pdf", user="")
    done = run("ingest", path, "--json", home=tmp_path)

    assert (0, "built", 1) == (done.status, done.object["status"], done.object["nodes"])


NAMES = [
    b"with space.pdf",
    b"line\nbreak.pdf",
    b"\xff\xfe.pdf",
    b"\xe2\x80\xae.pdf",
    b"a.PDF",
]


def test_any_file_name_will_do(tmp_path: Path) -> None:
    """Names are bytes; what is shown of them stays on one line."""
    paths = [os.fsencode(tmp_path) + b"/" + name for name in NAMES]
    for number, path in enumerate(paths):
        words = f"Hello world, one page, number {number}."
        Path(os.fsdecode(path)).write_bytes(pdf_bytes([words]))
    done = run("ingest", *paths, "--jobs", "2", "--json", home=tmp_path)
    heads = [line for line in done.err.splitlines() if not line.startswith(" ")]
    shown = [run("show", path, home=tmp_path).status for path in paths]

    assert (0, ["built"] * 5) == (done.status, [o["status"] for o in done.objects])
    assert ["built"] * 5 == [line.split()[0] for line in heads[:5]]
    assert [0] * 5 == shown


def test_a_budget_of_nothing_allows_what_costs_nothing(tmp_path: Path) -> None:
    """The offline provider is free."""
    done = run("ingest", good(tmp_path), "--budget-usd", "0", home=tmp_path)

    assert 0 == done.status


@pytest.mark.slow
def test_a_budget_of_nothing_stops_a_paid_model(tmp_path: Path) -> None:
    """No request leaves: the answer is the budget's, and its exit status is 4."""
    done = run(
        "ingest", good(tmp_path), "--budget-usd", "0", "--model", "openai/gpt-4o-mini",
        "--mode", "standard", "--json", home=tmp_path, OPENAI_API_KEY="none",
    )  # fmt: skip

    assert (4, "pageindex_budget_exceeded") == (
        done.status,
        done.object["failure"]["code"],
    )
    assert 0 == done.object["usage"]["calls"]
    closed(tmp_path / "data")


@pytest.mark.parametrize(
    ("model", "code"),
    [
        ("offline/other", "pageindex_bad_request"),
        pytest.param(
            "openai/no-such-model-here",
            "pageindex_unpriced_model",
            marks=pytest.mark.slow,
        ),
        ("nowhere/model", "pageindex_unpriced_model"),
    ],
)
def test_an_unknown_model_is_refused(tmp_path: Path, model: str, code: str) -> None:
    """Nobody is called, and nothing is counted as free in silence."""
    done = run("ingest", good(tmp_path), "--model", model, home=tmp_path)

    assert 3 == done.status
    assert code in one_line(done)
    closed(tmp_path / "data")


def test_a_model_without_a_provider_is_a_usage_error(tmp_path: Path) -> None:
    """A bare name could mean several providers."""
    done = run("ingest", good(tmp_path), "--model", "gpt-4o-mini", home=tmp_path)

    assert (2, True) == (done.status, "VECTORLESS_RAG_MODEL" in one_line(done))


def test_no_key_says_which_variable_to_set(tmp_path: Path) -> None:
    """Without a key there is no request and no bill."""
    done = run(
        "ingest", good(tmp_path), "--model", "openai/gpt-4o-mini", "--mode", "standard",
        home=tmp_path,
    )  # fmt: skip

    assert 3 == done.status
    assert "pageindex_auth" in one_line(done)
    assert "OPENAI_API_KEY" in done.err
    closed(tmp_path / "data")


@pytest.mark.parametrize(
    "folder", ["/proc/nowhere", "/dev/null/data", "/sys/nowhere", "read-only"]
)
def test_a_data_folder_that_takes_nothing_is_named(tmp_path: Path, folder: str) -> None:
    """Exit 10: the store, not the document, is the trouble."""
    (tmp_path / "read-only").mkdir(mode=0o555)
    if folder == "read-only" and os.geteuid() == 0:
        pytest.skip("permissions do not bind root")
    done = run("ingest", good(tmp_path), "--data-dir", folder, home=tmp_path)

    assert (10, "") == (done.status, done.out)
    assert "store_unwritable" in one_line(done)


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    """A file-size limit stands for a full disk: classified, and a retry succeeds."""
    line = shlex.join(map(os.fsdecode, command("ingest", good(tmp_path))))
    shell = f"ulimit -f 8; exec {line}"
    given = environment(tmp_path).items()
    # A measuring tool writes files too, and complains in its own words.
    env = {k: v for k, v in given if not k.startswith("COVERAGE_")}
    done = subprocess.run(
        ["/bin/bash", "-c", shell], cwd=tmp_path, env=env,
        capture_output=True, timeout=120, check=False,
    )  # fmt: skip

    assert 10 == done.returncode, done.stderr
    assert b"Traceback" not in done.stderr
    assert [] == published(tmp_path / "data")
    assert 0 == run("ingest", good(tmp_path), home=tmp_path).status


def test_an_interrupt_leaves_nothing_half_done(tmp_path: Path, sample: Path) -> None:
    """Ctrl-C in the middle: exit 130, no artifact, a closed ledger, no child."""
    with subprocess.Popen(
        command("ingest", sample, "--json"),
        cwd=tmp_path,
        env=environment(tmp_path),
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as program:
        wait_for_a_child(program.pid)
        program.send_signal(signal.SIGINT)
        out, err = program.communicate(timeout=60)

    assert 130 == program.returncode
    assert err.startswith(b"failed  sp-intro.pdf  cancelled: ")
    assert err.endswith(b"\nvectorless-rag: interrupted\n")
    assert "cancelled" == json.loads(out)["failure"]["code"]
    assert [] == published(tmp_path / "data")
    closed(tmp_path / "data")


def test_a_request_to_end_is_a_cancellation(tmp_path: Path, sample: Path) -> None:
    """SIGTERM: exit 5, and the ledger says cancelled."""
    with subprocess.Popen(
        command("ingest", sample),
        cwd=tmp_path,
        env=environment(tmp_path),
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    ) as program:
        wait_for_a_child(program.pid)
        program.send_signal(signal.SIGTERM)
        _, err = program.communicate(timeout=60)
    connection = sqlite3.connect(tmp_path / "data" / "ledger.sqlite3")
    (state,) = connection.execute("select state from attempts").fetchone()
    connection.close()

    assert (5, True, "cancelled") == (program.returncode, b"cancelled" in err, state)
    closed(tmp_path / "data")


def wait_for_a_child(pid: int) -> int:
    """Wait until the program has started a child, on whichever thread."""
    end = time.monotonic() + 60
    while True:
        for path in Path(f"/proc/{pid}/task").glob("*/children"):
            if found := path.read_text(encoding="ascii").split():
                time.sleep(0.3)
                return int(found[0])
        assert time.monotonic() < end, "no child was started"
        time.sleep(0.02)


def test_a_killed_program_takes_its_child_along(tmp_path: Path, sample: Path) -> None:
    """SIGKILL cannot be caught: the child notices and ends."""
    # Long enough that nobody is done with it when the signal comes.
    words = "Words of a page that go on and on. " * 40
    paper = pdf(tmp_path / "long.pdf", [f"{n} Title\n{words}" for n in range(2000)])
    with subprocess.Popen(
        command("ingest", paper),
        cwd=tmp_path,
        env=environment(tmp_path),
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    ) as program:
        child = wait_for_a_child(program.pid)
        # It asks for the signal in its first lines; give it the time to start.
        time.sleep(2)
        program.kill()
    end = time.monotonic() + 20
    while Path(f"/proc/{child}").exists() and state(child) not in {"Z", "X"}:
        assert time.monotonic() < end, "the child lives on"
        time.sleep(0.05)

    assert [] == published(tmp_path / "data")
    assert 0 == run("ingest", sample, home=tmp_path).status


def state(pid: int) -> str:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return "X"
    return stat.rpartition(")")[2].split()[0]


def test_usage_errors_are_usage_errors(tmp_path: Path) -> None:
    """An unknown option, no path at all and an empty folder exit with 2."""
    (tmp_path / "empty").mkdir()

    assert (2, 2, 2, 2) == (
        run("ingest", home=tmp_path).status,
        run("ingest", "empty", home=tmp_path).status,
        run("ingest", "a.pdf", "--no-such-option", home=tmp_path).status,
        run("ingest", "a.pdf", "--budget-usd", "much", home=tmp_path).status,
    )


def test_an_artifact_that_is_not_there_is_named(tmp_path: Path) -> None:
    """Showing what was never ingested says so."""
    done = run("show", good(tmp_path), home=tmp_path)

    assert (3, True) == (done.status, "not_found" in one_line(done))


def test_a_page_that_pdfium_refuses_loses_no_document(tmp_path: Path) -> None:
    """Its text is there: the standard algorithm reads it; flash alone can't."""
    path = pdf(tmp_path / "a.pdf", [*PAGES, "3 End\n" + "The last words of it.\n" * 20])
    whole = path.read_bytes()
    second = [found.start() for found in re.finditer(rb"/Type\s*/Page\b", whole)][1]
    head, tail = whole[:second], whole[second:]
    path.write_bytes(head + tail.replace(b"/Page", b"/Pagx", 1))
    built = run("ingest", path, "--json", home=tmp_path)
    refused = run("ingest", path, "--json", "--mode", "flash", home=tmp_path)

    assert (0, "built") == (built.status, built.object["status"]), built.err
    assert (3, "source_unreadable") == (
        refused.status,
        refused.object["failure"]["code"],
    )
