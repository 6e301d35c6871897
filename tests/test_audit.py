"""Any altered byte of a store is found and named."""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strategies_tree import (
    sample_artifact,
    sample_provenance,
    sample_recipe,
    sample_run,
)
from vectorless_rag.artifact import Manifest
from vectorless_rag.audit import Finding, Verdict, verify_artifact, verify_store
from vectorless_rag.canon import sha256
from vectorless_rag.store import Store, Stored


def fill(root: Path) -> Store:
    """Two documents; the first was rebuilt, and then set back."""
    store = Store(root)
    first = publish(store, "attempt-1")
    publish(store, "attempt-2", summary="New.", rebuild=True)
    store.activate(first)
    other = sample_recipe("b")
    store.publish(sample_artifact(other), sample_run(other), sample_provenance())
    return store


def publish(
    store: Store, attempt: str, *, summary: str = "Old.", rebuild: bool = False
) -> Stored:
    return store.publish(
        sample_artifact(summary=summary),
        sample_run(attempt=attempt),
        sample_provenance(),
        rebuild=rebuild,
    ).stored


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return fill(tmp_path / "store")


def files(store: Store) -> list[Path]:
    return sorted(path for path in store.root.rglob("*") if path.is_file())


def kinds(store: Store) -> dict[str, Path]:
    """One file of every kind."""
    stored = store.find(sample_recipe().recipe_hash)
    assert stored is not None
    activation = store.root / "activations" / stored.document_sha256 / "1.json"
    return {
        "blob": blob_of(store, stored.path),
        "manifest-blob": blob_of(store, stored.folder / "manifest.json"),
        "activation-blob": blob_of(store, activation),
        "manifest": stored.folder / "manifest.json",
        "artifact": stored.path,
        "run": stored.folder / "run.json",
        "activation": activation,
        "last-activation": activation.with_name("2.json"),
    }


def blob_of(store: Store, path: Path) -> Path:
    digest = sha256(path.read_bytes())
    return store.root / "blobs/sha256" / digest[:2] / digest


KINDS = [
    *("blob", "manifest-blob", "activation-blob"),
    *("manifest", "artifact", "run", "activation", "last-activation"),
]


def wrong(findings: list[Finding]) -> list[str]:
    return [f.file for f in findings if f.verdict is Verdict.MISMATCH]


def named(store: Store, path: Path) -> str:
    return path.relative_to(store.root).as_posix()


def in_place(path: Path, data: bytes) -> None:
    """As a failing disk does it: every link to the file sees it."""
    path.chmod(0o644)
    path.write_bytes(data)


def replaced(path: Path, data: bytes) -> None:
    """As an editor does it: another file under the same name."""
    path.unlink()
    path.write_bytes(data)


def test_a_sound_store_has_no_findings(store: Store) -> None:
    """Rebuilds, and going back to an older artifact, are no findings."""
    assert [] == verify_store(store)
    assert [] == verify_store(store, read_data=False)
    assert [] == verify_store(store, sample=1)
    assert [] == [f for stored in store.all() for f in verify_artifact(store, stored)]


@pytest.mark.parametrize("alter", [in_place, replaced])
@pytest.mark.parametrize("kind", KINDS)
@settings(
    deadline=None,
    max_examples=8,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_every_altered_byte_is_found(
    store: Store, kind: str, alter: Callable[[Path, bytes], None], data: st.DataObject
) -> None:
    """One bit, anywhere in any kind of file, and the file is named."""
    path = kinds(store)[kind]
    good = path.read_bytes()
    bad = bytearray(good)
    bad[data.draw(st.integers(0, len(good) - 1))] ^= 1 << data.draw(st.integers(0, 7))

    alter(path, bytes(bad))
    try:
        assert named(store, path) in wrong(verify_store(store))
    finally:
        alter(path, good)
    assert [] == verify_store(store)


@pytest.mark.parametrize("change", ["cut", "empty", "longer"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_altered_length_is_found(store: Store, kind: str, change: str) -> None:
    """A file that lost or gained bytes is named."""
    path = kinds(store)[kind]
    good = path.read_bytes()
    in_place(path, {"cut": good[:-1], "empty": b"", "longer": good + b"\n"}[change])

    assert named(store, path) in wrong(verify_store(store))


@pytest.mark.parametrize("kind", ["manifest", "activation", "last-activation"])
def test_records_are_checked_without_the_data(store: Store, kind: str) -> None:
    """The quick look reads manifests and activations, and no content."""
    paths = kinds(store)
    in_place(paths["blob"], b"rot")
    in_place(paths[kind], b"rot")

    found = wrong(verify_store(store, read_data=False))
    assert named(store, paths[kind]) in found
    assert named(store, paths["blob"]) not in found


@pytest.mark.parametrize("kind", ["blob", "manifest", "activation"])
@pytest.mark.parametrize("read_data", [True, False])
def test_a_missing_file_is_found(store: Store, kind: str, *, read_data: bool) -> None:
    """A file that something refers to is missed."""
    path = kinds(store)[kind]
    path.unlink()
    findings = verify_store(store, read_data=read_data)

    expected = {
        "manifest": f"activations/{sample_recipe().document_sha256}/2.json",
    }.get(kind, named(store, path))
    assert expected in wrong(findings)


@pytest.mark.parametrize("kind", ["artifact", "run"])
def test_a_missing_name_is_a_note(store: Store, kind: str) -> None:
    """Friendly names can be put back."""
    path = kinds(store)[kind]
    path.unlink()

    assert [
        Finding(
            verdict=Verdict.NOTE,
            file=named(store, path),
            what="missing; reading puts it back",
        )
    ] == verify_store(store)
    assert not path.exists()


def test_a_backup_without_links_is_sound(store: Store, tmp_path: Path) -> None:
    """A copy of every file is as good as the links."""
    shutil.copytree(store.root, tmp_path / "copy")

    assert [] == verify_store(Store(tmp_path / "copy"))


def test_a_well_made_manifest_in_a_foreign_place_is_found(store: Store) -> None:
    """Blobs alone do not make a manifest the right one; the activation names it."""
    stored = store.find(sample_recipe().recipe_hash)
    assert stored is not None
    forged = Manifest(
        artifact_id=stored.artifact_id,
        run_sha256=stored.manifest.run_sha256,
        attempt_id="attempt-9",
        recipe=stored.manifest.recipe,
        provenance=stored.manifest.provenance,
    )
    store.blobs.put(forged.encoded)
    replaced(stored.folder / "manifest.json", forged.encoded)
    activations = f"activations/{stored.document_sha256}"

    assert [
        f"{activations}/0.json",
        f"{activations}/2.json",
        named(store, stored.folder),
    ] == wrong(verify_store(store))


def test_a_blob_of_another_kind_is_no_manifest(store: Store) -> None:
    """The bytes are whole, but they are not the record that belongs there."""
    manifest = kinds(store)["manifest"]
    replaced(manifest, sample_run().encoded)
    store.blobs.put(sample_run().encoded)

    assert ("mismatch", named(store, manifest), "manifest.json: not a Statement") in [
        (f.verdict.value, f.file, f.what) for f in verify_store(store)
    ]


def test_an_artifact_of_another_recipe_is_found(store: Store) -> None:
    """A manifest cannot vouch for content that has another recipe."""
    stored = store.find(sample_recipe().recipe_hash)
    other = store.find(sample_recipe("b").recipe_hash)
    assert stored is not None
    assert other is not None
    forged = Manifest(
        artifact_id=other.artifact_id,
        run_sha256=stored.manifest.run_sha256,
        attempt_id=stored.manifest.attempt_id,
        recipe=stored.manifest.recipe,
        provenance=stored.manifest.provenance,
    )
    store.blobs.put(forged.encoded)
    replaced(stored.folder / "manifest.json", forged.encoded)
    replaced(stored.path, other.path.read_bytes())
    findings = [
        f.what for f in verify_artifact(store, store.stored(stored.recipe_hash, 0))
    ]

    # The two activations of it name another manifest, too.
    gone = "names an artifact that is not there"
    assert [gone, gone, "artifact and manifest differ in the recipe"] == findings


def test_a_chain_with_a_record_changed_is_found(store: Store) -> None:
    """A well-made record in the middle breaks the one behind it."""
    paths = kinds(store)
    data = paths["activation"].read_bytes()
    forged = data.replace(b'"activated_at":"2', b'"activated_at":"1')
    store.blobs.put(forged)
    replaced(paths["activation"], forged)

    assert [named(store, paths["last-activation"])] == wrong(verify_store(store))


def test_leftovers_are_notes(store: Store) -> None:
    """What crashes, repairs and other programs leave is told apart from damage."""
    recipe = sample_recipe().recipe_hash
    (store.root / "tmp" / "tmpx").touch()
    (store.root / "quarantine").mkdir()
    (store.root / "quarantine" / "x").touch()
    (store.root / "artifacts" / recipe / "7").mkdir()
    (store.root / "artifacts" / recipe / "0" / "notes.txt").touch()
    (store.root / "artifacts" / recipe / "x").mkdir()
    (store.root / "activations" / "x").mkdir()
    (store.root / "desktop.ini").touch()
    (store.root / "blobs/sha256/zz").mkdir()
    (store.root / "blobs/sha256/zz/x").touch()
    orphan = store.blobs.put(b"nothing needs it")
    findings = verify_store(store)

    assert {Verdict.NOTE} == {finding.verdict for finding in findings}
    assert [
        ("activations/x", "not a file of the store"),
        (f"artifacts/{recipe}/0/notes.txt", "not a file of the store"),
        (f"artifacts/{recipe}/7", "never committed"),
        (f"artifacts/{recipe}/x", "not a file of the store"),
        (f"blobs/sha256/{orphan[:2]}/{orphan}", "nothing refers to it"),
        ("blobs/sha256/zz/x", "not a file of the store"),
        ("desktop.ini", "not a file of the store"),
        ("quarantine/x", "altered bytes, set aside"),
        ("tmp/tmpx", "left by a writer that was killed"),
    ] == [(finding.file, finding.what) for finding in findings]


def test_an_artifact_without_activation_is_a_note(store: Store) -> None:
    """A crash between commit and activation is no damage."""
    shutil.rmtree(store.root / "activations")
    notes = [f for f in verify_store(store) if f.what == "never activated"]

    assert 3 == len(notes)


def test_what_cannot_be_read_is_undecided(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not knowing is another answer than knowing that it is wrong."""
    manifest = kinds(store)["manifest"]
    read = Path.read_bytes

    def refuse(path: Path) -> bytes:
        if path == manifest:
            raise OSError(errno.EACCES, "SECRET")
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    undecided = [f for f in verify_store(store) if f.verdict is Verdict.UNDECIDED]

    assert [
        {"verdict": "undecided", "file": named(store, manifest), "what": "EACCES"}
    ] == [finding.to_json() for finding in undecided]


def test_what_is_published_meanwhile_is_no_damage(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An audit may run beside the ingest."""
    iterdir, other = Path.iterdir, sample_recipe("c")

    def publish_meanwhile(path: Path) -> Iterator[Path]:
        found = list(iterdir(path))
        if path.name == "artifacts" and not Store(store.root).find(other.recipe_hash):
            monkeypatch.undo()
            store.publish(
                sample_artifact(other), sample_run(other), sample_provenance()
            )
        return iter(found)

    monkeypatch.setattr(Path, "iterdir", publish_meanwhile)
    findings = verify_store(store)

    assert store.find(other.recipe_hash) is not None
    assert {Verdict.NOTE} >= {finding.verdict for finding in findings}


def test_a_sample_reads_some(store: Store) -> None:
    """Of three artifacts two are read; damage in the third may stay unseen."""
    for stored in store.all():
        in_place(stored.path, stored.path.read_bytes() + b" ")
    read = {
        name for name in wrong(verify_store(store, sample=2)) if "artifacts" in name
    }

    assert 2 == len(read)


def test_an_audit_writes_nothing(store: Store) -> None:
    """Also where it could put something back."""
    kinds(store)["artifact"].unlink()
    before = {path: path.stat().st_mtime_ns for path in store.root.rglob("*")}
    verify_store(store)

    assert before == {path: path.stat().st_mtime_ns for path in store.root.rglob("*")}


def test_the_digest_of_a_file_is_its_name(store: Store) -> None:
    """The rule that everything rests on."""
    blobs = [p for p in files(store) if p.is_relative_to(store.root / "blobs")]

    assert [path.name for path in blobs] == [sha256(p.read_bytes()) for p in blobs]
    assert len(blobs) == len({path.stat().st_ino for path in files(store)})
