"""A report says what the data folder holds, and escapes all of it."""

import json
import os
import re
import stat
import zlib
from base64 import b64decode
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from conftest import REPOSITORY
from strategies_report import (
    HOSTILE,
    artifact,
    hostile_folder,
    large_folder,
    publish,
    spend,
)
from vectorless_rag import cli
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.reporting import Trees, Written, documents, make_report
from vectorless_rag.settings import Settings
from vectorless_rag.source import displayable
from vectorless_rag.store import Store, Stored
from vectorless_rag.upstream.listing import read_names


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return hostile_folder(tmp_path / "data")


def text_of(written: Written) -> str:
    return written.path.read_text(encoding="utf-8")


def blob(settings: Settings, digest: str) -> Path:
    return settings.store_dir / "blobs/sha256" / digest[:2] / digest


def alter(path: Path) -> None:
    path.chmod(0o644)
    path.write_bytes(b"altered")


def current(settings: Settings, name: str) -> Stored:
    store = Store(settings.store_dir)
    named = [s for s in store.all() if store.read(s).document.name == name]
    found = store.current(named[0].document_sha256)
    assert found is not None
    return found


def printed(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    spelled: dict[str, Any] = json.loads(capsys.readouterr().out)
    return spelled


def test_the_object_says_what_the_report_counts(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line of JSON; the file is there, for its owner only."""
    status = cli.main(["audit", "report", "--html", "--json"])
    spelled = printed(capsys)
    path = settings.data_dir / "report.html"

    assert 0 == status
    assert {
        "path": "data/report.html",
        "bytes": path.stat().st_size,
        "trees": "inline",
        "documents": 3,
        "unreadable": 0,
        "sections": 19,
        "degraded": 3,
        "without_artifact": 1,
        "stale": 3,
        "recipes": 2,
        "patches": len(read_names(REPOSITORY)),
        "failures": {"pageindex_timeout": 1},
        "requests": 4,
        "cost_usd": "0.21",
        "ledger_problems": 0,
        "findings": {"mismatch": 0, "undecided": 0, "note": 0},
    } == spelled
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    assert [] == list(settings.data_dir.glob(".report-*"))


def test_nothing_of_a_document_is_markup(settings: Settings) -> None:
    """Titles, summaries and names are in the page, and only as text."""
    page = text_of(make_report(settings))

    assert [] == [trap for trap in HOSTILE if set('<"') & set(trap) and trap in page]
    shown = unescape(page)
    assert [] == [trap for trap in HOSTILE if displayable(trap) not in shown]
    # No direction control, no NUL, no half a pair.
    assert not re.search("[\u202a-\u202e\u2066-\u2069\0\ud800-\udfff]", page)
    assert ["script"] == re.findall("<(script|img|iframe|object|embed|link)", page)
    assert not re.search(r"<[^>]*\s(on\w+|style|src)=", page)


def test_the_policy_admits_only_what_is_in_the_file(settings: Settings) -> None:
    """One style sheet and one script, by their digests, and no address at all."""
    page = text_of(make_report(settings))
    (policy,) = re.findall('Content-Security-Policy" content="([^"]*)"', page)

    assert "default-src &#x27;none&#x27;" in policy
    assert 2 == policy.count("sha256-")
    assert "unsafe" not in policy
    assert ["#"] == sorted({link[0] for link in re.findall('href="([^"]*)"', page)})


def test_every_part_says_its_facts(settings: Settings) -> None:
    """Failures with advice, reasons of patches, changes, amounts and verdicts."""
    page = unescape(text_of(make_report(settings)))
    expected = [
        "3 documents.",
        "1 document without an artifact",
        "<i>scan & \ufffdx.pdf",
        "Run OCR on it first.",
        "Run again, or raise VECTORLESS_RAG_CALL_TIMEOUT_S (",
        "send every model call through the call boundary",
        "tests/patches/test_0020_strict_json.py::",
        "model changed: openai/a-model → offline/extractive",
        "$0.21",
        "$0.09",
        "owner:ann",
        "Every hold is closed or leased, and all sums agree.",
        "1 attempt not ended",
        "every file is the one that was built",
        "Asking again helped: no attempt ended with it",
        "A mark of the tree builder",
        "2 artifacts so far",
        "Without text",
    ]

    assert [] == [words for words in expected if words not in page]


def test_an_empty_folder_has_a_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing was ingested, nothing spent, and no ledger is made by looking."""
    (tmp_path / "data").mkdir()

    assert 0 == cli.main(["audit", "report", "--html", str(tmp_path / "out.html")])
    assert "0 documents" in capsys.readouterr().out
    page = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert [] == list((tmp_path / "data").iterdir())
    assert [True] * 4 == [
        words in page
        for words in (
            "Nothing has been ingested here yet.",
            "No request was ever made.",
            "No attempt, no request and no section failed.",
            "There is no ledger yet.",
        )
    ]


def test_free_runs_are_plotted_by_requests(tmp_path: Path) -> None:
    """Where nothing was charged, an empty plot of dollars would say nothing."""
    settings = Settings.load(data_dir=tmp_path / "data")
    spend(settings, price=0)
    page = text_of(make_report(settings))

    assert [True, True] == [
        words in page for words in ("Requests by operation", "Nothing was charged")
    ]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--html"], "store_unwritable"),
        ([], "takes --html"),
    ],
)
def test_what_cannot_be_reported_is_said(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """No data folder, or no form named: one line, and no file."""
    assert 0 != cli.main(["audit", "report", *argv])
    assert said in capsys.readouterr().err


def test_an_altered_artifact_is_damage(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page is written all the same, and says so; exit status 20."""
    stored = current(settings, "apples.pdf")
    alter(blob(settings, stored.artifact_id))

    assert 20 == cli.main(["audit", "report", "--html"])
    assert "the audit found damage" in capsys.readouterr().out
    page = (settings.data_dir / "report.html").read_text(encoding="utf-8")
    assert [True] * 4 == [
        words in page
        for words in (
            "The audit found damage.",
            "1 document cannot be read",
            stored.document_sha256[:12],
            "Not what was written",
        )
    ]


def test_a_document_without_activations_is_damage(settings: Settings) -> None:
    """An emptied chain is no reason to leave its document out."""
    document = current(settings, "apples.pdf").document_sha256
    for record in (settings.store_dir / "activations" / document).iterdir():
        record.unlink()
    written = make_report(settings)

    assert (20, 1) == (written.exit_status, len(written.facts.unreadable))


def test_a_ledger_that_does_not_add_up_is_damage(settings: Settings) -> None:
    """The problems stand in the page."""
    import sqlite3  # noqa: PLC0415

    connection = sqlite3.connect(settings.data_dir / "ledger.sqlite3")
    connection.execute("update budgets set spent_nano = spent_nano + 5")
    connection.commit()
    connection.close()
    written = make_report(settings)

    assert 20 == written.exit_status
    assert "It does not add up." in text_of(written)


def test_an_unreadable_ledger_leaves_the_audit_undecided(settings: Settings) -> None:
    """What could not be seen is no success: exit status 21."""
    alter(settings.data_dir / "ledger.sqlite3")
    written = make_report(settings)

    assert 21 == written.exit_status
    assert [True, True] == [
        words in text_of(written)
        for words in ("could not look at everything", "The ledger cannot be opened")
    ]


def test_without_a_build_staleness_is_unknown(settings: Settings) -> None:
    """Neither stale nor fresh: it says that there is nothing to compare with."""
    blind = settings.model_copy(update={"build_dir": settings.data_dir / "nowhere"})
    written = make_report(blind)

    assert written.to_json()["stale"] is None
    assert "Unknown: there is no sound build to ask." in text_of(written)
    assert len(read_names(REPOSITORY)) == written.to_json()["patches"]


def test_without_the_series_there_are_no_patches(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An installation without its patches says why."""
    monkeypatch.setattr("vectorless_rag.upstream.resources_root", lambda: tmp_path)
    written = make_report(settings)

    assert 0 == written.to_json()["patches"]
    assert "patches/series" in text_of(written)


def test_what_would_be_made_again_is_not_stale(tmp_path: Path) -> None:
    """An artifact of this very build and these settings is fresh."""
    from vectorless_rag.running import running_code  # noqa: PLC0415

    settings = Settings.load(data_dir=tmp_path / "data")
    options = dict(running_code(settings).configuration.to_json())
    publish(settings, artifact("apples", ["Red"], **options))
    written = make_report(settings)
    page = text_of(written)

    assert 0 == written.to_json()["stale"]
    assert [True] * 2 == [
        words in page for words in ("is the one they would make", "would run now")
    ]


def test_a_report_replaces_only_a_report(
    settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Any other file stays as it is, and so does a folder."""
    paper = tmp_path / "paper.pdf"
    paper.write_bytes(b"%PDF-")
    for name in (str(paper), str(tmp_path)):
        assert 2 == cli.main(["audit", "report", "--html", name])
        assert "is there and is no report" in capsys.readouterr().err
    assert b"%PDF-" == paper.read_bytes()
    first = make_report(settings)

    assert first.path == make_report(settings).path


def test_a_failed_write_leaves_the_old_report(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk costs nothing that was there, and leaves nothing half."""
    before = text_of(make_report(settings))

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(VectorlessRagError, match=r"report\.html: No space") as caught:
        make_report(settings)

    assert Code.STORE_UNWRITABLE == caught.value.code
    assert before == (settings.data_dir / "report.html").read_text(encoding="utf-8")
    assert [] == list(settings.data_dir.glob(".report-*"))


def test_making_a_report_changes_nothing_else(settings: Settings) -> None:
    """An audit that repaired the store would hide what it is to find."""
    current(settings, "apples.pdf").path.unlink()

    def state() -> dict[Path, int]:
        return {p: p.stat().st_mtime_ns for p in settings.store_dir.rglob("*")}

    before = state()
    written = make_report(settings)

    assert before == state()
    assert [1] == [len(written.facts.findings)]


def unpacked(page: str, kind: str) -> list[str]:
    found = re.findall(f'<script type="text/plain" class="{kind}">([^<]*)<', page)
    return [zlib.decompress(b64decode(data)).decode() for data in found]


def test_large_trees_are_packed_with_their_titles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same markup, as data; titles of all documents in the page's order."""
    settings = large_folder(tmp_path / "data", documents=2, sections=3)
    whole = text_of(make_report(settings))
    monkeypatch.setattr(documents, "INLINE_NODES", 27)
    written = make_report(settings)
    page = text_of(written)

    assert Trees.PACKED is written.trees
    (titles,) = (json.loads(text) for text in unpacked(page, "titles"))
    trees = unpacked(page, "packed")
    assert [14, 14] == [len(of_one) for of_one in titles]
    assert [True, True] == [tree in whole for tree in trees]
    assert titles == [
        [unescape(t) for t in re.findall('<bdi class="t">(.*?)</bdi>', tree)]
        for tree in trees
    ]
    assert [True, True] == [word in page for word in ("<noscript>", "scripts enabled")]


def test_an_artifact_that_goes_meanwhile_is_said_in_its_place(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trees are read a second time; what fails then costs one tree."""
    stored = current(settings, "apples.pdf")
    original = documents.Shelf.for_facts

    def gone(*args: Any) -> documents.Shelf:
        alter(blob(settings, stored.artifact_id))
        return original(*args)

    monkeypatch.setattr(documents.Shelf, "for_facts", gone)
    page = text_of(make_report(settings))

    assert "Stored bytes no longer match their digest" in page
    assert "Soft ones" in page
