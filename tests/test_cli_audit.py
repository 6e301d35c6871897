"""An operator asks whether a data folder is unaltered and current, and is told."""

import json
import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from audited import MODEL, ingested
from conftest import REPOSITORY
from published import faults, validator
from strategies_tree import sample_recipe
from vectorless_rag import cli
from vectorless_rag.canon import sha256
from vectorless_rag.recipe import Recipe
from vectorless_rag.running import running_code
from vectorless_rag.settings import Settings
from vectorless_rag.store import Store, Stored

pytest_plugins = ["audited_folder"]

KINDS = [
    *("audit-verify-1", "audit-stale-1", "recipe-explain-1", "artifact-diff-1"),
    *("upstream-why-1", "store-doctor-1", "store-gc-1"),
]


def printed(
    argv: list[str], kind: str, capsys: pytest.CaptureFixture[str], status: int = 0
) -> dict[str, Any]:
    """The one object that a command prints; it fits its schema."""
    capsys.readouterr()
    assert status == cli.main([*argv, "--json"])
    (line,) = capsys.readouterr().out.splitlines()
    found: dict[str, Any] = json.loads(line)
    assert [] == faults(kind, found)
    return found


def said(
    argv: list[str], capsys: pytest.CaptureFixture[str], status: int = 0
) -> list[str]:
    """What a command prints for people, by line."""
    capsys.readouterr()
    assert status == cli.main(argv)
    return capsys.readouterr().out.splitlines()


def by_hand(settings: Settings, statement: str) -> None:
    """Alter the ledger as an operator who knows SQL."""
    with closing(sqlite3.connect(settings.data_dir / "ledger.sqlite3")) as connection:
        connection.execute(statement)
        connection.commit()


def flip(path: Path) -> None:
    """Change one bit in the middle, as a failing disk does."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.chmod(0o644)
    path.write_bytes(bytes(data))


def of_class(kind: str, store: Store, stored: Stored) -> Path:
    """One file of a class of the store's files."""
    activations = store.root / "activations" / stored.document_sha256
    digest = {
        "artifact-blob": stored.artifact_id,
        "manifest-blob": stored.manifest.manifest_sha256,
        "run-blob": stored.manifest.run_sha256,
        "activation-blob": sha256((activations / "0.json").read_bytes()),
    }.get(kind, "")
    return {
        "artifact": stored.path,
        "manifest": stored.folder / "manifest.json",
        "run": stored.folder / "run.json",
        "first-activation": activations / "0.json",
        "last-activation": activations / "1.json",
    }.get(kind, store.root / "blobs" / "sha256" / digest[:2] / digest)


CLASSES = [
    *("artifact-blob", "manifest-blob", "run-blob", "activation-blob"),
    *("artifact", "manifest", "run", "first-activation", "last-activation"),
]


def test_a_sound_folder_is_sound(
    stored: Stored, capsys: pytest.CaptureFixture[str]
) -> None:
    """All of it, its records, a sample, and one artifact by any name."""
    found = printed(["audit", "verify"], "audit-verify-1", capsys)

    assert ("sound", 3, []) == (
        found["verdict"],
        found["artifacts"],
        found["findings"],
    )
    for argv, looked_at in (
        ([], "3 artifacts:"),
        (["--no-read-data"], "3 artifacts, records only:"),
        (["--sample", "2"], "3 artifacts, the content of 2 of them:"),
        ([stored.artifact_id[:12], str(stored.folder)], "2 artifacts:"),
        ([stored.recipe_hash, "--no-read-data"], "1 artifact, records only:"),
    ):
        (line,) = said(["audit", "verify", *argv], capsys)
        assert f"ok    {looked_at} every byte looked at is the one that" in line


@pytest.mark.parametrize("kind", CLASSES)
def test_a_flipped_bit_is_found(
    store: Store, stored: Stored, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In every class of files: exit status 20, and the file is named."""
    path = of_class(kind, store, stored)
    flip(path)
    found = printed(["audit", "verify"], "audit-verify-1", capsys, status=20)

    assert "mismatch" == found["verdict"]
    assert path.relative_to(store.root).as_posix() in [
        f["file"] for f in found["findings"] if f["verdict"] == "mismatch"
    ]


@pytest.mark.parametrize("kind", ["run-blob", "activation-blob", "last-activation"])
def test_a_flipped_bit_is_found_in_one_artifact(
    store: Store, stored: Stored, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The chain of its document belongs to it."""
    flip(of_class(kind, store, stored))

    assert 20 == cli.main(["audit", "verify", str(stored.folder)])
    assert "FAIL" in capsys.readouterr().out


def test_a_manifest_that_cannot_be_read_ends_the_look(
    store: Store, stored: Stored, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of one artifact there is nothing else to say."""
    flip(of_class("manifest", store, stored))

    assert 20 == cli.main(["audit", "verify", str(stored.folder)])
    assert "store_corrupt" in capsys.readouterr().err


def test_an_altered_ledger_row_is_found(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rows are compared with entries, budgets and run records."""
    by_hand(settings, "update holds set amount_nano = 1 + amount_nano")
    found = printed(["audit", "verify"], "audit-verify-1", capsys, status=20)
    files = {finding["file"].rpartition("/")[2] for finding in found["findings"]}

    assert {"ledger", "run.json"} == files


def test_a_missing_ledger_leaves_it_undecided(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store without its ledger may be a good copy; nobody can tell."""
    (data / "ledger.sqlite3").unlink()
    found = printed(["audit", "verify"], "audit-verify-1", capsys, status=21)

    assert ("undecided", ["ledger"]) == (
        found["verdict"],
        [finding["file"] for finding in found["findings"]],
    )
    assert not (data / "ledger.sqlite3").exists()
    monkeypatch.setenv("VECTORLESS_RAG_LEDGER_URL", "sqlite:///:memory:")
    assert "??" in said(["audit", "verify"], capsys, status=21)[-1]


@pytest.mark.parametrize(
    ("argv", "status", "why"),
    [
        (["--sample", "1", "--no-read-data"], 2, "--sample goes with"),
        (["--sample", "1", "12345678"], 2, "--sample goes with"),
        (["12345678"], 3, "not_found"),
        (["--data-dir", "elsewhere"], 10, "no store in elsewhere"),
    ],
)
@pytest.mark.usefixtures("data")
def test_what_cannot_be_asked_is_refused(
    argv: list[str], status: int, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder mistyped is no sound store."""
    assert status == cli.main(["audit", "verify", *argv])
    assert why in capsys.readouterr().err


def test_names_of_foreign_files_are_made_harmless(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file's name cannot speak to the terminal, nor break the JSON."""
    (store.root / "\x1b[2Jgone").touch()
    os.open(os.fsencode(store.root) + b"/\xff", os.O_CREAT)
    lines = said(["audit", "verify"], capsys)
    found = printed(["audit", "verify"], "audit-verify-1", capsys)

    assert "note  \ufffd[2Jgone: not a file of the store" in lines
    assert "\ufffd" in [finding["file"] for finding in found["findings"]]


# What is stale.


@pytest.fixture
def now() -> Recipe:
    """What would be built now, of the first sample document."""
    code = running_code(Settings.load())
    return Recipe(
        configuration=code.configuration,
        document_sha256=sample_recipe().document_sha256,
    )


def test_stale_artifacts_are_grouped_by_what_changed(
    stored: Stored, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the price of all of them, from what such pages have cost."""
    found = printed(["audit", "stale", "--model", MODEL], "audit-stale-1", capsys)
    (group,) = found["groups"]

    assert (2, 2, 6) == (found["current"], found["stale"], group["pages"])
    # Three runs over 9 pages cost 1900 nano-dollars each.
    assert ("0.0000057", "0.0000038") == (
        found["average"]["cost_usd"],
        group["price_usd"],
    )
    words = [difference["words"] for difference in group["differences"]]
    assert "patch 0010 added (accounted-model-calls)" in words
    assert stored.artifact_id in [a["artifact_id"] for a in group["artifacts"]]
    lines = said(["audit", "stale", "--model", MODEL], capsys)
    basis = f"$0.0000038 for 6 pages, based on 3 runs with {MODEL} over 9 pages"
    assert "2 of 2 current artifacts are stale" == lines[0]
    assert f"rebuild  {basis}" in lines


@pytest.mark.usefixtures("data")
def test_a_price_that_is_not_known_is_not_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """No run with that model, or no ledger: the price is null."""
    argv = ["audit", "stale", "--model", "openai/never-used"]
    found = printed(argv, "audit-stale-1", capsys)

    assert [None] == [group["price_usd"] for group in found["groups"]]
    why = (
        "price unknown for 6 pages: no priced run with openai/never-used in the ledger"
    )
    assert f"rebuild  {why}" in said(argv, capsys)


@pytest.mark.parametrize(
    "statement",
    [
        "update holds set amount_nano = 0",
        "update holds set replayed = 1, reserved_nano = 0, amount_nano = 0",
    ],
    ids=["unpriced", "replayed"],
)
def test_unpriced_and_replayed_runs_are_no_basis(
    settings: Settings, statement: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that cost nothing for such a reason says nothing about a price."""
    by_hand(settings, statement)
    found = printed(["audit", "stale", "--model", MODEL], "audit-stale-1", capsys)

    assert [0, None] == [found["average"]["runs"], found["groups"][0]["price_usd"]]


def test_an_artifact_of_today_is_not_stale(
    tmp_path: Path, now: Recipe, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither in the report nor by itself."""
    settings = Settings.load(data_dir=tmp_path / "data")
    stored = ingested(settings, now, calls=[])
    found = printed(["audit", "stale"], "audit-stale-1", capsys)

    assert (1, 0, []) == (found["current"], found["stale"], found["groups"])
    argv = ["recipe", "explain", stored.recipe_hash]
    assert printed(argv, "recipe-explain-1", capsys)["same"]
    assert "no input differs" in said(argv, capsys)[-1]


# Why recipes differ.


def test_two_artifacts_are_told_apart(
    stored: Stored, capsys: pytest.CaptureFixture[str]
) -> None:
    """By every input they do not share."""
    other = sample_recipe(model=MODEL, mode="flash").recipe_hash
    argv = ["recipe", "explain", other, stored.recipe_hash]
    found = printed(argv, "recipe-explain-1", capsys)

    assert ["mode changed: flash → auto"] == [d["words"] for d in found["differences"]]
    assert [other, stored.recipe_hash] == [
        found[side]["recipe_hash"] for side in ("before", "after")
    ]
    assert [f"after    {stored.recipe_hash}", "  mode changed: flash → auto"] == said(
        argv, capsys
    )[1:]


def test_an_artifact_is_compared_with_what_would_run(
    stored: Stored, capsys: pytest.CaptureFixture[str]
) -> None:
    """Options stand for settings that might be changed."""
    argv = ["recipe", "explain", stored.recipe_hash, "--mode", "standard"]
    lines = said(argv, capsys)

    assert "  mode changed: auto → standard" in lines
    assert f"  model changed: {MODEL} → offline/extractive" in lines
    assert "  patch 0060 changed (maintained-parser)" in lines
    assert lines[1].startswith("now      ")


def test_an_edited_file_is_compared_by_its_name(
    tmp_path: Path, sample: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is another document now; the artifact of its name is meant."""
    settings = Settings.load(data_dir=tmp_path / "data")
    ingested(settings, name="f.pdf")
    edited = tmp_path / "f.pdf"
    edited.write_bytes(sample.read_bytes())
    found = printed(["recipe", "explain", str(edited)], "recipe-explain-1", capsys)

    assert "document_sha256" in [d["field"] for d in found["differences"]]
    edited.rename(tmp_path / "other.pdf")
    assert 3 == cli.main(["recipe", "explain", str(tmp_path / "other.pdf")])
    assert 3 == cli.main(["recipe", "explain", "12345678"])


# What made it.


def test_the_statement_is_the_manifest(
    stored: Stored, capsys: pytest.CaptureFixture[str]
) -> None:
    """As stored, so that its digest is the one in the activation."""
    (line,) = said(["audit", "provenance", stored.recipe_hash], capsys)

    assert stored.manifest.manifest_sha256 == sha256(line.encode())
    assert "https://in-toto.io/Statement/v1" == json.loads(line)["_type"]


def test_the_bill_of_materials_is_printed(
    stored: Stored, capsys: pytest.CaptureFixture[str]
) -> None:
    """One object, the upstream first."""
    argv = ["audit", "provenance", stored.recipe_hash, "--format", "cyclonedx"]
    (line,) = said(argv, capsys)

    assert "pageindex" == json.loads(line)["components"][0]["name"]


# Two trees.


def test_trees_are_shown_side_by_side(
    settings: Settings,
    stored: Stored,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Within eighty columns; the summary counts."""
    monkeypatch.setenv("COLUMNS", "80")
    later = ingested(settings, sample_recipe(model=MODEL, mode="standard"), tree=OTHER)
    argv = ["artifact", "diff", stored.recipe_hash, later.recipe_hash]
    lines = said(argv, capsys)

    assert max(map(len, lines)) <= 80
    assert "2 renamed, 1 lost, 1 new, 1 unchanged" in lines[-2]
    assert "pages covered: 3 → 3" == lines[-1]
    assert "1 Fruit \ufffd[2J" in lines[1]
    assert len(said([*argv, "--only-changes"], capsys)) < len(lines)
    found = printed(argv, "artifact-diff-1", capsys)
    assert (1, 5) == (found["unchanged"], len(found["nodes"]))


OTHER = [
    {
        "title": "1 Fruit \x1b[2J",
        "start_index": 1,
        "end_index": 2,
        "nodes": [
            {"title": "Apples", "start_index": 1, "end_index": 1},
            {"title": "Plums", "start_index": 1, "end_index": 2},
        ],
    },
    {"title": "The back cover", "start_index": 3, "end_index": 3},
]


# What the folder is made of.


def test_the_folder_keeps_its_promises(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line each; the folder need not be there, and nothing stays."""
    found = printed(["store", "doctor"], "store-doctor-1", capsys)

    assert (True, str(tmp_path)) == (found["kept"], found["folder"])
    assert len(found["promises"]) == len(said(["store", "doctor"], capsys))
    assert [] == list(tmp_path.iterdir())


def test_a_broken_promise_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit status 10."""

    def refuse(_handle: int) -> None:
        raise OSError(22, "SECRET")

    monkeypatch.setattr(os, "fsync", refuse)
    found = printed(["store", "doctor"], "store-doctor-1", capsys, status=10)

    assert {"sync-file": "EINVAL", "sync-folder": "EINVAL"} == {
        p["name"]: p["broken"] for p in found["promises"] if p["broken"]
    }
    lines = said(["store", "doctor"], capsys, status=10)
    assert "FAIL  sync-file    bytes can be forced to disk: EINVAL" in lines


def test_what_nothing_reaches_is_listed(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    """And stays where it is."""
    digest = store.blobs.put(b"nothing needs it")
    found = printed(["store", "gc", "--dry-run"], "store-gc-1", capsys)
    name = f"blobs/sha256/{digest[:2]}/{digest}"

    assert (1, 16) == (found["count"], found["bytes"])
    assert [name] == [file["file"] for file in found["files"]]
    assert [f"          16  {name}  nothing refers to it"] == said(
        ["store", "gc", "--dry-run"], capsys
    )[:1]
    assert store.blobs.has(digest)
    assert 2 == cli.main(["store", "gc"])
    assert "there is no other mode" in capsys.readouterr().err


# Schemas and documents.


@pytest.mark.parametrize("kind", KINDS)
def test_schemas_are_schemas(kind: str) -> None:
    """What is published is valid, and refuses an unknown field."""
    checked = validator(kind)
    checked.check_schema(checked.schema)

    assert not checked.is_valid({**documented()[kind], "colour": "red"})
    assert [] == faults(kind, documented()[kind])


def documented() -> dict[str, Any]:
    page = (REPOSITORY / "docs" / "auditing.md").read_text(encoding="utf-8")
    found = re.findall(
        r"<!-- example: ([\w-]+) -->\n```json\n(.*?)```", page, re.DOTALL
    )
    return {kind: json.loads(body) for kind, body in found}
