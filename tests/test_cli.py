"""Commands say what they found, on the right stream, with the right status."""

import errno
import json
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fault_server import serving
from strategies_ledger import attempt, hold, used
from strategies_tree import sample_artifact, sample_provenance, sample_run
from vectorless_rag import cli, landlock
from vectorless_rag.cli import Terminated
from vectorless_rag.cli.ingesting import exit_status, summary_lines
from vectorless_rag.errors import FAILURES, Code, Failure, VectorlessRagError
from vectorless_rag.ledger.book import Ledger
from vectorless_rag.results import IngestResult, Spend, Status
from vectorless_rag.store import Store, Stored
from vectorless_rag.units import NanoUsd


@pytest.fixture
def stored(tmp_path: Path) -> Stored:
    """An artifact in the default data folder."""
    artifact = sample_artifact()
    store = Store(tmp_path / "data" / "store")
    run = sample_run(artifact.recipe)
    return store.publish(artifact, run, sample_provenance()).stored


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """A ledger in the default data folder, with one settled request."""
    url = f"sqlite:///{tmp_path}/data/ledger.sqlite3"
    book = Ledger.open(url)
    book.start_attempt(attempt())
    book.reserve(hold(amount=1000, operation="summary_leaf"))
    book.settle("call-1:1", NanoUsd(900), used(100, 20), "response-1", "stop")
    return book


def read(capsys: pytest.CaptureFixture[str]) -> list[Any]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """One line, and nothing is run."""
    assert 0 == cli.main(["--version"])
    assert "vectorless-rag 0." in capsys.readouterr().out


@pytest.mark.parametrize("argv", [["ingest"], ["nonsense"], ["show", "x", "--nope"]])
def test_usage_errors_exit_with_2(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """One line on standard error."""
    assert 2 == cli.main(argv)
    assert 1 == len(capsys.readouterr().err.splitlines())


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (VectorlessRagError(Code.NOT_FOUND, "x"), 3, "not_found"),
        (VectorlessRagError(Code.STORE_CORRUPT, "x"), 20, "store_corrupt"),
        (Terminated(), 5, "cancelled"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_each_end_has_its_status_and_its_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    status: int,
    said: str,
) -> None:
    """Failures, signals and interrupts are told apart."""

    def end(*_: object, **__: object) -> int:
        raise error

    monkeypatch.setattr("vectorless_rag.cli.artifacts.show", end)

    assert status == cli.main(["show", "x"])
    assert said in capsys.readouterr().err


def test_a_reader_that_goes_away_is_no_defect(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Piping into `head` ends without a traceback."""

    def end(*_: object, **__: object) -> int:
        raise BrokenPipeError(errno.EPIPE, "pipe")

    monkeypatch.setattr("vectorless_rag.cli.artifacts.show", end)
    # Restored afterwards: Typer puts wrappers there.
    monkeypatch.setattr("sys.stdout", sys.stdout)
    monkeypatch.setattr("sys.stderr", sys.stderr)

    assert 141 == cli.main(["show", "x"])
    assert "" == capsys.readouterr().err


def test_show_prints_the_tree(
    stored: Stored, capsys: pytest.CaptureFixture[str]
) -> None:
    """Titles, pages, summaries, and where it all lies."""
    assert 0 == cli.main(["show", stored.recipe_hash[:12]])
    out = capsys.readouterr().out

    assert [True] * 3 == [
        text in out for text in (stored.recipe_hash, "provider", str(stored.folder))
    ]


def test_show_as_json_is_the_artifact_itself(
    stored: Stored, capsys: pytest.CaptureFixture[str]
) -> None:
    """The bytes on disk, one object."""
    assert 0 == cli.main(["show", str(stored.folder), "--json"])
    assert stored.path.read_text(encoding="utf-8") == capsys.readouterr().out[:-1]


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_show_pages_prints_the_evidence(
    stored: Stored, capsys: pytest.CaptureFixture[str], flags: list[str]
) -> None:
    """The stored text of the page asked for."""
    text = Store(stored.folder.parents[2]).read(stored).pages[0]

    assert 0 == cli.main(["show", stored.artifact_id, "--pages", "1", *flags])
    assert text.split()[0] in capsys.readouterr().out


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_recipe_show_prints_every_input(
    stored: Stored, capsys: pytest.CaptureFixture[str], flags: list[str]
) -> None:
    """The hashes and the options that decided the key."""
    assert 0 == cli.main(["recipe", "show", stored.artifact_id, *flags])
    out = capsys.readouterr().out

    assert [] == [
        name
        for name in stored.manifest.recipe.configuration.to_json()
        if name not in out
    ]


def test_a_document_that_was_never_ingested_is_not_found(
    sample: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The store is looked up by the document's bytes."""
    assert 3 == cli.main(["show", str(sample)])
    assert "not_found" in capsys.readouterr().err


@pytest.mark.parametrize("by", ["operation", "model", "owner", "day", "attempt"])
def test_the_report_sums_up(
    ledger: Ledger, capsys: pytest.CaptureFixture[str], by: str
) -> None:
    """One group, one request, its exact price."""
    ledger.close()

    assert 0 == cli.main(["ledger", "report", "--by", by, "--json"])
    (row,) = read(capsys)
    assert (by, 1, "0.0000009") == (row["by"], row["calls"], row["cost_usd"])
    assert 0 == cli.main(["ledger", "report", "--by", by])
    assert "total" in capsys.readouterr().out


def test_a_pipe_is_not_as_narrow_as_a_window(
    ledger: Ledger, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that goes on to another program is whole."""
    monkeypatch.delenv("COLUMNS", raising=False)
    name = "x" * 200
    ledger.start_attempt(attempt(name))
    ledger.reserve(hold("call-2:1", attempt_id=name, amount=1000))
    ledger.close()

    assert 0 == cli.main(["ledger", "report", "--by", "attempt"])
    assert name in capsys.readouterr().out


def test_an_empty_report_is_an_empty_table(capsys: pytest.CaptureFixture[str]) -> None:
    """A fresh folder has spent nothing."""
    Path("data").mkdir()

    assert 0 == cli.main(["ledger", "report"])
    assert "total" not in capsys.readouterr().out


def test_a_sound_ledger_verifies(
    ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing to say, exit 0."""
    ledger.end_attempt("attempt-1", "failed", Code.CHILD_TIMEOUT)
    ledger.close()

    assert 0 == cli.main(["ledger", "verify", "--json"])
    assert [{"problems": [], "notes": []}] == read(capsys)


def test_a_run_record_without_its_rows_is_a_mismatch(
    stored: Stored, capsys: pytest.CaptureFixture[str]
) -> None:
    """An artifact whose spend the ledger does not know is named, exit 20."""
    assert 20 == cli.main(["ledger", "verify"])
    assert f"{stored.recipe_hash}/0/run.json" in capsys.readouterr().err


def test_late_usage_is_posted(
    ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A request of unknown outcome gets its real price; the rest is listed."""
    ledger.reserve(hold("call-2:1", amount=1000, call_id="call-2"))
    ledger.unknown("call-2:1", "timeout", Code.TIMEOUT)
    late = tmp_path / "late.jsonl"
    line = {"cost_usd": "0.0000002", "prompt_tokens": 1, "completion_tokens": 1}
    late.write_text(
        "\n".join(json.dumps({"key": key, **line}) for key in ("call-2:1", "other")),
        encoding="utf-8",
    )

    assert 0 == cli.main(["ledger", "reconcile", str(late), "--json"])
    (done,) = read(capsys)
    assert (1, ["other"]) == (done["corrected"], done["unmatched"])
    assert 0 == cli.main(["ledger", "reconcile", str(late)])
    assert "no hold takes the usage of other" in capsys.readouterr().err
    with closing(ledger):
        assert 1100 == ledger.usage("attempt-1").cost_nano


@pytest.mark.parametrize(
    "text", ["nonsense", "{}", '{"key": 1, "cost_usd": "x"}', None]
)
def test_unusable_late_usage_names_the_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None
) -> None:
    """A file that is no list of usage is refused whole."""
    late = tmp_path / "late.jsonl"
    if text is not None:
        late.write_text(text, encoding="utf-8")

    assert 2 == cli.main(["ledger", "reconcile", str(late)])
    assert "late.jsonl" in capsys.readouterr().err


@pytest.mark.parametrize(("limit", "kept"), [("2.5", "2.5"), ("none", None)])
def test_a_budget_is_set_and_shown(
    capsys: pytest.CaptureFixture[str], limit: str, kept: str | None
) -> None:
    """The limit stands in the ledger afterwards."""
    assert 0 == cli.main(["budget", "set", "owner:me", limit])
    capsys.readouterr()

    assert 0 == cli.main(["budget", "show", "owner:me", "--json"])
    assert [
        {
            "budget": "owner:me",
            "limit_usd": kept,
            "reserved_usd": "0",
            "spent_usd": "0",
        }
    ] == read(capsys)
    assert 0 == cli.main(["budget", "show"])
    assert "owner:me" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("budget", "limit"),
    [("me", "1"), ("owner:me", "x"), ("owner:me", "nan")],
)
def test_a_budget_that_is_none_is_refused(
    budget: str, limit: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names and amounts are checked before anything is written."""
    assert 2 == cli.main(["budget", "set", budget, limit])
    assert "settings_invalid" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["ingets", "a.pdf"], "Did you mean 'ingest'? See --help."),
        (["ingest", "a.pdf", "--mdoe", "x"], "(Possible options: --mode, --model)"),
        (["show"], "Missing argument 'ARTIFACT_OR_PATH'. See --help."),
        (["ledger"], "Sum up every provider request"),
        (["budget", "set", "me", "1"], "owner:NAME, day:NAME:YYYY-MM-DD or run:ID"),
        (["ingest", "a.pdf", "--model", "gpt-4o"], "VECTORLESS_RAG_MODEL"),
    ],
)
def test_a_slip_is_answered_with_what_would_be_right(
    argv: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One who mistypes reads the next step, not only that it was wrong."""
    assert 2 == cli.main(argv)
    assert told in capsys.readouterr().err


def failed(code: Code) -> IngestResult:
    return IngestResult(
        source=Path("a.pdf"), status=Status.FAILED, failure=Failure(code=code)
    )


BUILT = IngestResult(source=Path("a.pdf"), status=Status.BUILT, pages=1, nodes=1)


@pytest.mark.parametrize(
    ("results", "status"),
    [
        ([BUILT], 0),
        ([BUILT, failed(Code.SOURCE_NO_TEXT)], 3),
        ([failed(Code.SOURCE_NO_TEXT), failed(Code.BUDGET_EXCEEDED)], 4),
        ([failed(Code.BUDGET_EXCEEDED), failed(Code.STORE_UNWRITABLE)], 10),
        ([failed(Code.UPSTREAM_TAMPERED), failed(Code.CANCELLED)], 20),
        ([failed(Code.UPSTREAM_TAMPERED), failed(Code.INTERNAL_ERROR)], 1),
    ],
)
def test_the_gravest_failure_decides(results: list[IngestResult], status: int) -> None:
    """0 only if every document has an artifact."""
    assert status == exit_status(results)


@pytest.mark.parametrize("code", Code)
def test_every_failure_decides_when_it_is_alone(code: Code) -> None:
    """No failure counts as success."""
    assert FAILURES[code].exit_status == exit_status([failed(code)])


def test_a_result_is_told_in_a_line_or_three() -> None:
    """What was built says what it cost; what failed says why and what it cost."""
    spend = Spend(calls=3, prompt_tokens=10, completion_tokens=5, cost=NanoUsd(1500))
    bad = IngestResult(
        source=Path("a\nb.pdf"),
        status=Status.FAILED,
        failure=Failure(code=Code.TIMEOUT),
        spend=spend,
    )
    (line,) = summary_lines(bad)

    assert "failed  a\ufffdb.pdf  pageindex_timeout: A model call" in line.plain
    assert "3 calls, 10 prompt and 5 completion tokens, $0.0000015" in line.plain


def test_doctor_says_that_all_is_well(capsys: pytest.CaptureFixture[str]) -> None:
    """Packages, build, data folder, ledger and model, one line each."""
    assert 0 == cli.main(["doctor"])
    out = capsys.readouterr().out

    assert [] == [
        word
        for word in ("python", "pypdf", "upstream", "data", "ledger", "offline")
        if word not in out
    ]
    assert "FAIL" not in out


def test_doctor_looks_at_an_existing_ledger(
    ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is opened, and its entries are added up."""
    ledger.end_attempt("attempt-1", "built")
    ledger.close()

    assert 0 == cli.main(["doctor", "--json"])
    (found,) = read(capsys)
    words = {f["what"]: f["words"] for f in found}
    assert "its entries add up" in words["ledger"]
    assert "is writable" in words["data"]


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"BUILD_DIR": "nowhere"}, "upstream"),
        ({"DATA_DIR": "/proc/nowhere"}, "data"),
        ({"LEDGER_URL": "sqlite:///:memory:"}, "ledger"),
        ({"MODEL": "openai/no-such-model"}, "price"),
        (
            {"MODEL": "openai/gpt-4o-mini", "API_BASE": "http://127.0.0.1:9"},
            "server",
        ),
    ],
)
@pytest.mark.loopback
def test_doctor_names_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    settings: dict[str, str],
    what: str,
) -> None:
    """Each thing that would stop a run fails by its own line."""
    for name, value in settings.items():
        monkeypatch.setenv(f"VECTORLESS_RAG_{name}", value)
    status = cli.main(["doctor", "--json"])
    (found,) = read(capsys)
    bad = [f["what"] for f in found if f["state"] == "fail"]

    assert (True, True) == (status != 0, what in bad), found


@pytest.mark.parametrize(
    ("setting", "version", "told"),
    [
        ("auto", 7, (0, "ok")),
        ("required", 7, (0, "ok")),
        ("auto", 0, (0, "note")),
        ("required", 0, (2, "fail")),
        ("off", 7, (0, "note")),
    ],
)
def test_doctor_says_whether_the_store_is_closed_to_the_child(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    setting: str,
    version: int,
    told: tuple[int, str],
) -> None:
    """Nothing is claimed that this kernel does not hold."""
    monkeypatch.setenv("VECTORLESS_RAG_SANDBOX", setting)
    monkeypatch.setattr(landlock, "version", lambda: version)

    status = cli.main(["doctor", "--json"])
    (found,) = read(capsys)
    states = {f["what"]: f["state"] for f in found}

    assert told == (status, states["sandbox"])


@pytest.mark.loopback
def test_doctor_reaches_a_server_and_notes_what_is_allowed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A server that answers, no key, and an unpriced model that was allowed."""
    with serving() as server:
        monkeypatch.setenv("VECTORLESS_RAG_API_BASE", server.base)
        monkeypatch.setenv("VECTORLESS_RAG_MODEL", "openai/mine")
        monkeypatch.setenv("VECTORLESS_RAG_ALLOW_UNPRICED", "true")

        assert 0 == cli.main(["doctor", "--json"])
    (found,) = read(capsys)
    states = {f["what"]: f["state"] for f in found}
    assert ("ok", "note", "note") == (states["server"], states["key"], states["price"])


@pytest.mark.parametrize(("key", "told"), [("sk-1", (0, "ok")), ("…", (3, "fail"))])
def test_doctor_looks_at_the_key(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    key: str,
    told: tuple[int, str],
) -> None:
    """A key is there, or it is one that no request can carry."""
    monkeypatch.setenv("OPENAI_API_KEY", key)
    monkeypatch.setenv("VECTORLESS_RAG_MODEL", "openai/gpt-4o-mini")

    status = cli.main(["doctor", "--json"])
    (found,) = read(capsys)
    states = {f["what"]: f["state"] for f in found}

    assert told == (status, states["key"])


def test_the_build_is_verified(capsys: pytest.CaptureFixture[str]) -> None:
    """Building again finds it intact, and every file is compared."""
    assert [0, 0] == [
        cli.main(["upstream", "build"]),
        cli.main(["upstream", "verify"]),
    ]
    assert 2 == capsys.readouterr().out.count("pageindex 0.4.7+vr")
