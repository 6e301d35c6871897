"""A real paper becomes a tree with no key, no provider and no network."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from acceptance.program import Done, run
from published import faults
from vectorless_rag.canon import sha256
from vectorless_rag.pageindex_adapter import PageIndexAdapter
from vectorless_rag.results import IngestResult
from vectorless_rag.settings import Settings


def ingest(sample: Path, data_dir: Path, mode: str) -> IngestResult:
    return PageIndexAdapter(Settings.load(data_dir=data_dir, mode=mode)).ingest(sample)


@pytest.fixture(scope="module", params=["flash", "standard"])
def built(
    request: pytest.FixtureRequest,
    sample: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[IngestResult, Path]:
    """The sample, built once in each mode."""
    data_dir = tmp_path_factory.mktemp(request.param)
    return ingest(sample, data_dir, request.param), data_dir


def artifact_of(result: IngestResult) -> dict[str, Any]:
    assert result.failure is None
    assert result.artifact_path is not None
    raw: dict[str, Any] = json.loads(
        (result.artifact_path / "artifact.json").read_text()
    )
    return raw


def flat(nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [n for node in nodes for n in (node, *flat(node["nodes"]))]


def squeezed(text: str) -> str:
    """Letters and digits only: line breaks and ligatures differ between parsers."""
    text = text.replace("\N{LATIN SMALL LIGATURE FI}", "fi")
    text = text.replace("\N{LATIN SMALL LIGATURE FL}", "fl")
    return "".join(c for c in text.casefold() if c.isalnum())


def test_every_title_stands_on_the_page_it_claims(
    built: tuple[IngestResult, Path],
) -> None:
    """A section begins where the tree says, in the document's own words."""
    artifact = artifact_of(built[0])
    pages = [squeezed(page["text"]) for page in artifact["pages"]]
    nodes = flat(artifact["tree"])
    lost = [
        node["title"]
        for node in nodes
        # PageIndex says so in the title of the opening that it makes of a section.
        if squeezed(node["title"].removesuffix(" (intro)"))
        not in pages[node["start_index"] - 1]
    ]

    assert [] == lost
    assert len(nodes) >= 15


def test_every_summary_is_made_of_sentences_of_the_text(
    built: tuple[IngestResult, Path],
) -> None:
    """The offline provider invents nothing."""
    artifact = artifact_of(built[0])
    whole = squeezed(" ".join(page["text"] for page in artifact["pages"]))
    nodes = flat(artifact["tree"])
    foreign = [
        sentence
        for node in nodes
        for sentence in node["summary"].split(". ")
        if squeezed(sentence) not in whole
    ]

    # Flash reads the pages with another parser, which orders some words otherwise.
    assert len(foreign) <= len(nodes) // 4
    assert [] == [n["title"] for n in nodes if not n["summary"]]


def test_the_ledger_adds_up_to_the_run_record(
    built: tuple[IngestResult, Path],
) -> None:
    """One row a provider request, and every row is closed."""
    result, data_dir = built
    assert result.artifact_path is not None
    run_record = json.loads((result.artifact_path / "run.json").read_text())
    with sqlite3.connect(data_dir / "ledger.sqlite3") as ledger:
        rows = ledger.execute(
            "select count(*), sum(prompt_tokens), sum(completion_tokens),"
            " sum(amount_nano), count(distinct state) from holds where attempt_id = ?",
            (run_record["attempt_id"],),
        ).fetchone()
    ledger.close()
    usage = run_record["usage"]

    assert (
        usage["calls"],
        usage["prompt_tokens"],
        usage["completion_tokens"],
        usage["cost_nano_usd"],
        1,
    ) == rows
    assert usage["calls"] > 0
    assert {"settled": usage["calls"]} == usage["by_state"]


def test_the_artifact_is_named_by_its_bytes_and_its_inputs(
    built: tuple[IngestResult, Path],
) -> None:
    """Id and manifest fit the bytes on disk; the provider is named."""
    result, _ = built
    assert result.artifact_path is not None
    data = (result.artifact_path / "artifact.json").read_bytes()
    manifest = json.loads((result.artifact_path / "manifest.json").read_text())
    subject = {s["name"]: s["digest"]["sha256"] for s in manifest["subject"]}

    assert result.artifact_id == sha256(data) == subject["artifact.json"]
    assert ("offline/extractive", 2) == (
        json.loads(data)["provider"],
        json.loads(data)["schema_version"],
    )


def test_the_same_inputs_give_the_same_bytes(
    built: tuple[IngestResult, Path], sample: Path, tmp_path: Path
) -> None:
    """A second store gets an artifact of the same id."""
    mode = artifact_of(built[0])["recipe"]["inputs"]["configuration"]["mode"]

    assert built[0].artifact_id == ingest(sample, tmp_path, mode).artifact_id


def test_a_second_ingest_reads_no_pdf(
    built: tuple[IngestResult, Path], sample: Path
) -> None:
    """The stored artifact answers, for free, and no child is started."""
    result, data_dir = built
    mode = artifact_of(result)["recipe"]["inputs"]["configuration"]["mode"]
    settings = Settings.load(data_dir=data_dir, mode=mode, child_timeout_s=1)
    again = PageIndexAdapter(settings).ingest(
        sample, on_progress=lambda _: pytest.fail("a child was started")
    )

    assert ("reused", result.artifact_id, 0) == (
        again.status,
        again.artifact_id,
        again.spend.calls,
    )


def test_a_rebuild_keeps_both_and_makes_the_new_one_current(
    built: tuple[IngestResult, Path], sample: Path
) -> None:
    """Nothing is overwritten; the activation says which one counts."""
    result, data_dir = built
    mode = artifact_of(result)["recipe"]["inputs"]["configuration"]["mode"]
    adapter = PageIndexAdapter(Settings.load(data_dir=data_dir, mode=mode))
    rebuilt = adapter.ingest(sample, rebuild=True)
    reused = adapter.ingest(sample)

    assert result.artifact_path is not None
    assert result.artifact_path != rebuilt.artifact_path == reused.artifact_path
    assert (result.artifact_path / "artifact.json").exists()


def test_the_command_line_tells_people_on_standard_error(
    sample: Path, tmp_path: Path
) -> None:
    """Standard output stays empty without --json; the artifact's path is shown."""
    done = run("ingest", sample, home=tmp_path)

    assert (0, "") == (done.status, done.out)
    assert "built   sp-intro.pdf  21 pages" in done.err


def test_json_is_one_object_a_document(sample: Path, tmp_path: Path) -> None:
    """Every field of the contract, for what was built and for what failed."""
    done = run("ingest", sample, "missing.pdf", "--json", home=tmp_path)
    fields = {
        "source", "status", "recipe_hash", "artifact_id", "artifact_path", "pages",
        "nodes", "degraded", "usage", "failure", "skipped",
    }  # fmt: skip
    good, bad = done.objects

    assert (3, fields, fields) == (done.status, set(good), set(bad))
    assert [[], []] == [faults("ingest-1", found) for found in (good, bad)]
    assert ("built", None, "source_unreadable") == (
        good["status"],
        good["failure"],
        bad["failure"]["code"],
    )
    assert {"calls", "prompt_tokens", "completion_tokens", "cost_usd"} == set(
        good["usage"]
    )
    shown = show_everything(good, sample, tmp_path)
    assert [0] * 5 == [done.status for done in shown]
    assert "Classes and Methods" in shown[0].out or "Introduction" in shown[0].out
    assert json.loads(shown[1].out)["document"]["sha256"] == sha256(sample.read_bytes())
    assert "--- page 3 ---" in shown[2].out
    assert good["recipe_hash"] in shown[3].out
    assert "offline/extractive" in shown[4].out


def show_everything(good: dict[str, Any], sample: Path, home: Path) -> list[Done]:
    return [
        run("show", sample, home=home),
        run("show", good["artifact_path"], "--json", home=home),
        run("show", good["artifact_id"][:12], "--pages", "3-4", home=home),
        run("recipe", "show", sample, home=home),
        run("recipe", "show", good["recipe_hash"], "--json", home=home),
    ]


@pytest.mark.parametrize("pages", ["0", "22", "5-3", "x", "3-"])
def test_pages_that_are_not_there_are_refused(
    built: tuple[IngestResult, Path], pages: str, tmp_path: Path
) -> None:
    """The message says which ones there are."""
    done = run("show", str(built[0].artifact_path), "--pages", pages, home=tmp_path)

    assert (2, "") == (done.status, done.out)
    assert "1 to 21" in done.err
