"""Nothing that an activation reaches is called garbage."""

from pathlib import Path

import pytest

from audited import ingested
from strategies_tree import sample_recipe
from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.settings import Settings
from vectorless_rag.store import Store, Stored
from vectorless_rag.store.garbage import unreached

pytest_plugins = ["audited_folder"]


def test_earlier_artifacts_are_reached_too(store: Store) -> None:
    """An activation may go back to them."""
    assert [] == unreached(store)
    assert [] == unreached(Store(store.root / "nowhere"))


def test_what_is_left_over_says_why(store: Store) -> None:
    """Blobs, unfinished files, and altered bytes that were set aside."""
    orphan = store.blobs.put(b"nothing needs it")
    for folder in ("tmp", "quarantine"):
        (store.root / folder).mkdir(exist_ok=True)
        (store.root / folder / "x").write_bytes(b"xx")
    # Not ours, so not listed.
    (store.root / "blobs" / "sha256" / orphan[:2] / "notes.txt").touch()

    assert [
        (f"blobs/sha256/{orphan[:2]}/{orphan}", 16, "nothing refers to it"),
        ("quarantine/x", 2, "altered bytes, set aside"),
        ("tmp/x", 2, "left by a writer that was killed"),
    ] == [(item.file, item.size_bytes, item.why) for item in unreached(store)]


def test_an_artifact_never_activated_is_told_apart(tmp_path: Path) -> None:
    """A crash came between its commit and its activation."""
    settings = Settings.load(data_dir=tmp_path / "data")
    ingested(settings, sample_recipe(), calls=[])
    store = Store(settings.store_dir)
    for path in (store.root / "activations").rglob("*.json"):
        path.unlink()
    why = sorted(item.why for item in unreached(store))

    # Artifact, manifest and run record; then the record of its activation.
    assert [*["nothing refers to it"], *["of an artifact never activated"] * 3] == why


def test_an_altered_record_leaves_it_open(store: Store, stored: Stored) -> None:
    """What it reaches is not known, so nothing is called garbage."""
    path = store.root / "activations" / stored.document_sha256 / "0.json"
    path.chmod(0o644)
    path.write_bytes(b"rot")

    with pytest.raises(VectorlessRagError, match=r"0\.json: altered"):
        unreached(store)


def test_the_size_of_no_file_is_nothing(store: Store) -> None:
    """It may be gone by the time it is asked for."""
    assert 0 == store.disk.size("tmp/gone")
