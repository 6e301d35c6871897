"""Nothing half-written is ever visible, and nothing is ever overwritten."""

import errno
import itertools
import os
import shutil
import sys
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import REPOSITORY
from strategies_tree import (
    sample_artifact,
    sample_provenance,
    sample_recipe,
    sample_run,
)
from vectorless_rag.artifact import Artifact
from vectorless_rag.audit import Verdict, verify_store
from vectorless_rag.canon import sha256
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.process import run_tool
from vectorless_rag.store import Outcome, Published, Store, Stored, locate
from vectorless_rag.units import Sha256

KEY = sample_recipe().recipe_hash


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test cuts the power; what is synced, and when, is a test of its own."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def publish(
    store: Store,
    artifact: Artifact | None = None,
    *,
    attempt: str = "attempt-1",
    rebuild: bool = False,
) -> Published:
    artifact = artifact or sample_artifact()
    run = sample_run(artifact.recipe, attempt)
    return store.publish(artifact, run, sample_provenance(), rebuild=rebuild)


def mismatches(store: Store) -> list[str]:
    return [
        f"{finding.file}: {finding.what}"
        for finding in verify_store(store)
        if finding.verdict is not Verdict.NOTE
    ]


def alter(path: Path, data: bytes = b"{}") -> None:
    """Change a file's bytes in place, as a failing disk would."""
    path.chmod(0o644)
    path.write_bytes(data)


def generation(store: Store, number: int) -> Path:
    return store.root / "artifacts" / KEY / str(number)


def test_what_was_published_is_found_and_read(store: Store) -> None:
    """The key leads to the artifact, its record and its provenance."""
    published = publish(store)
    found = store.find(KEY)

    assert Outcome.CREATED == published.outcome
    assert published.stored == found
    assert sample_artifact() == store.read(published.stored)
    assert sample_run() == store.read_run(published.stored)
    assert sample_provenance() == published.stored.manifest.provenance
    assert [] == verify_store(store)


def test_an_empty_store_has_nothing(store: Store) -> None:
    """Asking makes no folder."""
    assert (None, None, [], []) == (
        store.find(KEY),
        store.current(sample_recipe().document_sha256),
        list(store.all()),
        verify_store(store),
    )
    assert not store.root.exists()


def test_files_are_read_only_links_to_blobs(store: Store) -> None:
    """Every file but the blob itself is a second name of a blob."""
    publish(store)
    files = [path for path in store.root.rglob("*") if path.is_file()]
    blobs = {path.stat().st_ino for path in (store.root / "blobs").rglob("*")}

    assert {True} == {path.stat().st_ino in blobs for path in files}
    assert {0o444} == {path.stat().st_mode & 0o777 for path in files}
    assert 8 == len(files)


def test_the_same_again_is_superseded(store: Store) -> None:
    """A second run with the same content changes nothing; its cost is elsewhere."""
    first = publish(store)
    before = sorted(store.root.rglob("*"))
    second = publish(store, attempt="attempt-2")

    assert (Outcome.SUPERSEDED, first.stored) == (second.outcome, second.stored)
    assert before == sorted(store.root.rglob("*"))


def test_the_same_under_another_name_is_superseded(store: Store) -> None:
    """A document is its bytes; the first name stays."""
    publish(store, sample_artifact(name="first.pdf"))
    second = publish(store, sample_artifact(name="second.pdf"), attempt="attempt-2")

    assert Outcome.SUPERSEDED == second.outcome
    assert "first.pdf" == store.read(second.stored).document.name


def test_other_content_under_one_recipe_is_a_conflict(store: Store) -> None:
    """The winner stays as it is, and the loser is told."""
    first = publish(store)

    with pytest.raises(VectorlessRagError, match="A different artifact") as caught:
        publish(store, sample_artifact(summary="Other."), attempt="attempt-2")
    assert Code.STORE_CONFLICT == caught.value.code
    assert first.stored == store.find(KEY)
    assert [] == verify_store(store)


def test_a_rebuild_adds_a_generation(store: Store) -> None:
    """Both artifacts stay, and the new one is current."""
    first = publish(store)
    second = publish(
        store, sample_artifact(summary="New."), attempt="attempt-2", rebuild=True
    )

    assert ([0, 1], Outcome.CREATED) == (store.generations(KEY), second.outcome)
    assert second.stored == store.find(KEY)
    assert second.stored == store.current(sample_recipe().document_sha256)
    assert sample_artifact() == store.read(first.stored)
    assert [] == verify_store(store)


def test_what_was_activated_last_is_current(store: Store) -> None:
    """Going back to an older generation is an activation, too."""
    first = publish(store)
    publish(store, sample_artifact(summary="New."), attempt="2", rebuild=True)

    assert (True, False) == (store.activate(first.stored), store.activate(first.stored))
    assert first.stored == store.find(KEY)
    assert [0, 1, 0] == [
        record.generation
        for record in store.chain.newest_first(sample_recipe().document_sha256)
    ]
    assert [] == verify_store(store)


def test_without_an_activation_the_newest_is_current(store: Store) -> None:
    """A crash before the activation leaves an artifact that is found."""
    publish(store)
    second = publish(store, attempt="2", rebuild=True)
    shutil.rmtree(store.root / "activations")

    assert second.stored == store.find(KEY)


def test_another_recipe_of_the_document_becomes_current(store: Store) -> None:
    """A document has one current artifact; each of its recipes has its own."""
    other = sample_recipe(model="openai/x")
    first = publish(store)
    second = publish(store, sample_artifact(other))
    document = sample_recipe().document_sha256

    assert second.stored == store.current(document)
    assert store.activate(first.stored)
    assert (first.stored, second.stored) == (
        store.current(document),
        store.find(other.recipe_hash),
    )


def test_activating_another_document_does_not_count(store: Store) -> None:
    """Each document has its own chain."""
    publish(store)
    publish(store, attempt="2", rebuild=True)
    publish(store, sample_artifact(sample_recipe("b")))

    assert [sample_recipe(name).document_sha256 for name in "ba"] == (
        store.chain.documents()
    )
    assert 3 == len(list(store.all()))


def test_publishing_again_after_the_commit_finishes_it(store: Store) -> None:
    """A lost answer looks like a lost race; the bytes tell them apart."""
    first = publish(store)
    shutil.rmtree(store.root / "activations")
    first.stored.path.unlink()
    again = publish(store)
    rebuilt = publish(store, rebuild=True)

    assert (Outcome.CREATED, Outcome.CREATED, [0]) == (
        again.outcome,
        rebuilt.outcome,
        store.generations(KEY),
    )
    assert first.stored.path.exists()
    assert first.stored == store.current(sample_recipe().document_sha256)
    assert [] == mismatches(store)


def test_reading_puts_back_missing_names(store: Store) -> None:
    """The friendly files are conveniences; the blobs are the store."""
    stored = publish(store).stored
    stored.path.unlink()
    store.read(stored)

    assert stored.path.read_bytes() == sample_artifact().encoded


def test_a_store_that_cannot_be_written_can_be_read(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be put back is left away."""
    stored = publish(store).stored
    stored.path.unlink()
    monkeypatch.setattr(os, "link", failing(errno.EROFS))

    assert sample_artifact() == store.read(stored)
    assert not stored.path.exists()


def failing(number: int) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> Any:
        raise OSError(number, os.strerror(number))

    return fail


def test_what_could_not_be_read_again_is_not_written(store: Store) -> None:
    """A record of another run, or a value no reader takes, is a defect of ours."""
    other = sample_run(sample_recipe("b"))

    with pytest.raises(VectorlessRagError, match="do not fit together") as caught:
        store.publish(sample_artifact(), other, sample_provenance())
    assert (Code.INTERNAL_ERROR, None) == (caught.value.code, store.find(KEY))


def test_a_record_of_the_wrong_shape_is_not_written(store: Store) -> None:
    """Readers are strict, so writers are."""
    run = sample_run(attempt=7)  # type: ignore[arg-type]

    with pytest.raises(VectorlessRagError, match=r"run\.json: attempt_id") as caught:
        store.publish(sample_artifact(), run, sample_provenance())
    assert (Code.INTERNAL_ERROR, None) == (caught.value.code, store.find(KEY))


def test_a_recipe_keeps_its_own_current_artifact(store: Store) -> None:
    """That another recipe of the document became current does not matter."""
    publish(store)
    second = publish(store, attempt="2", rebuild=True)
    publish(store, sample_artifact(sample_recipe(model="openai/x")))

    assert second.stored == store.find(KEY)


class Meanwhile:
    """Lets something happen just before a file gets its name."""

    def __init__(self, name: str, happens: Callable[[], object]) -> None:
        self.name, self.happens, self.link = name, happens, os.link

    def __call__(self, source: Path, target: Path, **options: Any) -> None:
        if Path(target).name == self.name:
            self.name = ""
            self.happens()
        self.link(source, target, **options)


def test_losing_the_commit_leads_to_the_winner(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer commits between the look and the link."""
    other = Store(store.root)
    race = Meanwhile("manifest.json", lambda: publish(other, attempt="other"))
    monkeypatch.setattr(os, "link", race)

    published = publish(store)
    assert (Outcome.SUPERSEDED, "other", [0]) == (
        published.outcome,
        published.stored.manifest.attempt_id,
        store.generations(KEY),
    )


def test_losing_a_generation_leads_to_the_next(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two rebuilds at once are two generations."""
    publish(store)
    other = Store(store.root)
    race = Meanwhile(
        "manifest.json", lambda: publish(other, attempt="other", rebuild=True)
    )
    monkeypatch.setattr(os, "link", race)

    assert 2 == publish(store, attempt="mine", rebuild=True).stored.generation
    assert [] == mismatches(store)


def test_losing_an_activation_is_looked_at_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer activated the same meanwhile: once is enough."""
    first = publish(store).stored
    second = publish(store, attempt="2", rebuild=True).stored
    other = Store(store.root)
    monkeypatch.setattr(os, "link", Meanwhile("2.json", lambda: other.activate(first)))

    assert not store.activate(first)
    monkeypatch.setattr(os, "link", Meanwhile("3.json", lambda: other.activate(second)))
    assert store.activate(second) is False
    assert [1, 0, 1, 0] == [
        record.generation for record in store.chain.newest_first(first.document_sha256)
    ]


def test_an_artifact_that_vanishes_is_missed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two looks someone removed it: said so, not written again."""
    stored = publish(store).stored
    with pytest.raises(VectorlessRagError, match=r"7/manifest\.json: missing"):
        store.stored(KEY, 7)
    iterdir, looks = Path.iterdir, itertools.count()

    def vanish(path: Path) -> Any:
        if path == stored.folder.parent and next(looks) == 2:
            shutil.rmtree(path)
        return iterdir(path)

    monkeypatch.setattr(Path, "iterdir", vanish)
    with pytest.raises(VectorlessRagError, match=f"{KEY}: vanished"):
        publish(store, attempt="2")


def test_an_activation_that_cannot_be_read_stops_the_next(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not knowing what is current is no reason to go on."""
    stored = publish(store).stored
    read = Path.read_bytes

    def refuse(path: Path) -> bytes:
        if path.name == "0.json":
            raise OSError(errno.EIO, "SECRET")
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(VectorlessRagError, match=r"0\.json: EIO"):
        store.activate(stored)


# Damage


def _blob(store: Store, stored: Stored) -> Path:
    return store.root / "blobs/sha256" / stored.artifact_id[:2] / stored.artifact_id


def test_an_altered_blob_is_corrupt(store: Store) -> None:
    """Bytes are checked against their digest at every read."""
    stored = publish(store).stored
    alter(_blob(store, stored))

    with pytest.raises(
        VectorlessRagError, match=r"blobs/sha256/\w\w/\w+: altered"
    ) as e:
        store.read(stored)
    assert Code.STORE_CORRUPT == e.value.code


def test_a_missing_blob_is_corrupt(store: Store) -> None:
    """A manifest that promises what is not there is no artifact."""
    stored = publish(store).stored
    _blob(store, stored).unlink()

    with pytest.raises(VectorlessRagError, match=r"\w+: missing") as caught:
        store.read(stored)
    assert Code.STORE_CORRUPT == caught.value.code
    with pytest.raises(VectorlessRagError, match=r"\w+: missing"):
        store.activate(stored)


def test_an_altered_manifest_is_corrupt(store: Store) -> None:
    """A key never leads to something that is not what was committed."""
    stored = publish(store).stored
    alter(stored.folder / "manifest.json")

    with pytest.raises(VectorlessRagError, match=r"0/manifest\.json: altered"):
        store.find(KEY)


def test_an_artifact_in_another_place_is_corrupt(store: Store) -> None:
    """A folder that is moved does not change its key."""
    publish(store)
    other = sample_recipe("b").recipe_hash
    (store.root / "artifacts" / KEY).rename(store.root / "artifacts" / other)

    with pytest.raises(VectorlessRagError, match="of another recipe"):
        store.find(other)


def test_an_artifact_of_another_recipe_is_corrupt(store: Store) -> None:
    """A manifest cannot lend its recipe to other content."""
    stored = publish(store).stored
    other = publish(store, sample_artifact(sample_recipe("b"))).stored
    lent = Stored(folder=stored.folder, generation=0, manifest=other.manifest)
    forged = dict(vars(stored.manifest)) | {"artifact_id": other.artifact_id}
    forged = {k: v for k, v in forged.items() if k != "encoded"}
    mixed = Stored(
        folder=stored.folder, generation=0, manifest=type(stored.manifest)(**forged)
    )

    assert sample_artifact(sample_recipe("b")) == store.read(lent)
    with pytest.raises(VectorlessRagError, match="0: of another recipe"):
        store.read(mixed)


def test_one_altered_generation_does_not_hide_the_others(store: Store) -> None:
    """What is current can be read while an older one is damaged."""
    publish(store)
    second = publish(store, attempt="2", rebuild=True)
    alter(generation(store, 0) / "manifest.json")

    assert second.stored == store.find(KEY)
    alter(generation(store, 1) / "manifest.json")
    with pytest.raises(VectorlessRagError, match="every generation"):
        store.find(KEY)


def test_a_damaged_artifact_can_be_rebuilt(store: Store) -> None:
    """The right bytes go back under their name, the wrong ones are kept aside."""
    stored = publish(store).stored
    alter(_blob(store, stored), b"rot")
    rebuilt = publish(store, attempt="2", rebuild=True)
    (aside,) = (store.root / "quarantine").iterdir()

    assert sample_artifact() == store.read(rebuilt.stored)
    assert (b"rot", True) == (
        aside.read_bytes(),
        aside.name.startswith(stored.artifact_id),
    )


def test_an_altered_activation_does_not_decide(store: Store) -> None:
    """The chain goes on behind it, and what it said stays unknown."""
    stored = publish(store).stored
    publish(store, attempt="2", rebuild=True)
    record = store.root / "activations" / stored.document_sha256 / "1.json"
    alter(record, record.read_bytes().replace(b'"generation":1', b'"generation":0'))

    with pytest.raises(VectorlessRagError, match=r"1\.json: altered"):
        store.find(KEY)
    assert store.activate(stored)
    assert stored == store.find(KEY)
    assert [f"activations/{stored.document_sha256}/1.json: altered"] == [
        line for line in mismatches(store) if "activations" in line
    ]


def test_an_activation_in_another_place_is_corrupt(store: Store) -> None:
    """A record counts only for its own document and number."""
    document = publish(store).stored.document_sha256
    folder = store.root / "activations" / document
    (folder / "0.json").rename(folder / "7.json")

    with pytest.raises(VectorlessRagError, match=r"7\.json: of another place"):
        store.current(document)
    with pytest.raises(VectorlessRagError, match=r"0\.json: missing"):
        store.chain.read(document, 0)


# Names


def test_an_artifact_has_many_names(store: Store) -> None:
    """Whatever a person copies from a screen leads to it."""
    stored = publish(store).stored
    publish(store, sample_artifact(sample_recipe("b")))
    folder = generation(store, 0)

    for name in (
        KEY,
        KEY[:8],
        stored.artifact_id,
        stored.artifact_id[:8],
        stored.document_sha256,
        stored.document_sha256[:9],
        str(folder),
        str(folder.parent),
        str(stored.path),
        os.path.relpath(folder / "manifest.json"),
    ):
        assert stored == store.resolve(name)


def test_the_current_generation_is_meant(store: Store) -> None:
    """A recipe stands for its current artifact; a folder for itself."""
    first = publish(store).stored
    second = publish(store, sample_artifact(summary="New."), attempt="2", rebuild=True)

    assert (second.stored, first, first) == (
        store.resolve(KEY),
        store.resolve(str(first.folder)),
        store.resolve(first.artifact_id),
    )


@pytest.mark.parametrize(
    "name",
    [
        "0" * 64,
        "0" * 8,
        "abc",
        "no/such/folder",
        "two\nlines\x1b[2J",
        "nul\0",
        f"store/artifacts/{'0' * 64}",
        f"store/artifacts/{KEY}/7",
        f"store/artifacts/{KEY}/seven",
        f"elsewhere/artifacts/{KEY}/0",
        "store",
    ],
)
def test_a_name_of_nothing_is_not_found(store: Store, name: str) -> None:
    """The answer repeats the name on one line and nothing else."""
    publish(store)

    with pytest.raises(VectorlessRagError, match="No artifact goes by") as caught:
        store.resolve(name)
    assert Code.NOT_FOUND == caught.value.code
    assert str(caught.value).isprintable()


def test_digits_that_many_share_are_refused(store: Store) -> None:
    """More digits are asked for, instead of a guess."""
    alike = [
        replace(sample_recipe(), document_sha256=Sha256("1" * 60 + end))
        for end in ("aaaa", "bbbb")
    ]
    first, _ = [publish(store, sample_artifact(recipe)).stored for recipe in alike]

    with pytest.raises(VectorlessRagError, match="2 artifacts go by 11111111, give"):
        store.resolve("1" * 8)
    assert first == store.resolve("1" * 60 + "a")


def test_a_damaged_neighbour_does_not_hide_an_artifact(store: Store) -> None:
    """Looking for one artifact id survives another's damage."""
    other = publish(store, sample_artifact(sample_recipe("b"))).stored
    stored = publish(store).stored
    alter(other.folder / "manifest.json")

    assert stored == store.resolve(stored.artifact_id)


def test_a_path_tells_its_store(store: Store) -> None:
    """An artifact of another data folder can be shown by its path."""
    stored = publish(store).stored

    assert (store.root.resolve(), KEY, 0) == locate(str(stored.path))
    assert (store.root.resolve(), KEY, None) == locate(str(stored.folder.parent))
    assert None is locate(str(store.root))


# Faults of the operating system, one by one


class Fault:
    """Fails the *n*th call of one function of the operating system."""

    def __init__(self, real: Callable[..., Any], n: int, error: BaseException) -> None:
        self.real, self.left, self.error, self.hit = real, n, error, False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.left -= 1
        if self.left == -1:
            self.hit = True
            raise self.error
        return self.real(*args, **kwargs)


FAULTS = [
    ("write", errno.ENOSPC),
    ("fsync", errno.EIO),
    ("link", errno.EACCES),
    ("open", errno.EMFILE),
    ("mkdir", errno.ENOSPC),
    ("fchmod", errno.EPERM),
    ("unlink", errno.EIO),
    ("close", errno.EIO),
]


@pytest.mark.parametrize(
    ("function", "number", "rebuild"),
    [
        *((function, number, False) for function, number in FAULTS),
        *((function, number, True) for function, number in FAULTS[:3]),
    ],
)
def test_each_fault_is_classified_and_a_retry_succeeds(
    tmp_path: Path,
    function: str,
    number: int,
    rebuild: bool,  # noqa: FBT001  (pytest passes it by name)
) -> None:
    """Whichever call fails: one line, nothing half-visible, nothing lost."""
    for n in itertools.count():
        store = Store(tmp_path / str(n))
        if rebuild:
            publish(store, sample_artifact(summary="Old."), attempt="old")
        fault = Fault(getattr(os, function), n, OSError(number, "SECRET"))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, function, fault)
            told = outcome_of(store, rebuild=rebuild)
        if not fault.hit:
            break
        check_told(*told, errno.errorcode[number], str(tmp_path))
        check_recovers(Store(store.root), rebuild=rebuild)
        shutil.rmtree(store.root)
    # Each function is called, so each was made to fail.
    assert n > 3


def outcome_of(store: Store, *, rebuild: bool) -> tuple[Code | None, str]:
    try:
        return None, publish(store, rebuild=rebuild).outcome
    except VectorlessRagError as error:
        return error.code, str(error)


def check_told(code: Code | None, told: str, name: str, folder: str) -> None:
    # An unlink that fails leaves a file to sweep and is no failure.
    assert told == "created" if code is None else name in told
    assert code in {None, Code.STORE_UNWRITABLE}
    assert (False, False, 1) == (
        folder in told,
        "SECRET" in told,
        len(told.splitlines()),
    )


def check_recovers(store: Store, *, rebuild: bool) -> None:
    before = store.find(KEY)
    old = sample_artifact(summary="Old.")
    # Either it is there as a whole, or what was there before is.
    seen = store.read(before) if before else None
    assert seen in ([sample_artifact(), old] if rebuild else [sample_artifact(), None])
    assert [] == mismatches(store)
    published = publish(store, rebuild=rebuild)
    assert (Outcome.CREATED, [0, 1] if rebuild else [0]) == (
        published.outcome,
        store.generations(KEY),
    )
    assert published.stored == store.find(KEY)
    assert sample_artifact() == store.read(published.stored)
    assert [] == mismatches(store)


@pytest.mark.parametrize("function", ["write", "link"])
def test_an_interrupt_leaves_nothing_behind(tmp_path: Path, function: str) -> None:
    """Ctrl-C at any moment goes through, and no temporary file stays."""
    for n in itertools.count():
        store = Store(tmp_path / str(n))
        fault = Fault(getattr(os, function), n, KeyboardInterrupt("now"))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, function, fault)
            if not interrupted(store):
                break
        assert [] == list((store.root / "tmp").glob("*"))
        check_recovers(store, rebuild=False)
        shutil.rmtree(store.root)
    assert n > 3


def interrupted(store: Store) -> bool:
    try:
        publish(store)
    except KeyboardInterrupt:
        return True
    return False


def test_names_are_given_to_what_is_on_disk(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power loss a name that is there names whole bytes, commits last."""
    synced: set[int] = set()
    linked: list[tuple[str, bool]] = []
    unsynced: set[str] = set()
    link = os.link

    def sync(handle: int) -> None:
        synced.add(os.fstat(handle).st_ino)
        path = Path(f"/proc/self/fd/{handle}").readlink()
        unsynced.discard(str(path))

    def watch(source: Path, target: Path, **options: Any) -> None:
        # The bytes, and every name that this one will vouch for, are on disk.
        before = set(unsynced) if Path(target).name == "manifest.json" else set()
        linked.append(
            (Path(target).name, not before and Path(source).stat().st_ino in synced)
        )
        unsynced.add(str(Path(target).parent))
        link(source, target, **options)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "link", watch)
    publish(store)

    assert {True} == {on_disk for _, on_disk in linked}
    assert ["manifest.json", "artifact.json", "run.json"] == [
        name for name, _ in linked if name.endswith(".json")
    ][:3]
    assert set() == unsynced


def test_folders_of_a_dead_process_are_synced_too(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever made a folder may have died before its name was on disk."""
    (store.root / "blobs" / "sha256").mkdir(parents=True)
    generation(store, 0).mkdir(parents=True)
    synced: set[int] = set()
    monkeypatch.setattr(os, "fsync", lambda h: synced.add(os.fstat(h).st_ino))
    publish(store)

    folders = {path.parent for path in store.root.rglob("*") if path.is_dir()}
    assert {True} == {folder.stat().st_ino in synced for folder in folders}


def test_bytes_written_bit_by_bit_are_whole(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The operating system may take less than it was given."""
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, data[:100]))

    assert sample_artifact() == store.read(publish(store).stored)
    assert [] == verify_store(store)


def test_a_file_where_the_store_should_be(tmp_path: Path) -> None:
    """A path that is no folder is said to be one."""
    (tmp_path / "store").write_text("")

    with pytest.raises(VectorlessRagError, match=r"EEXIST|ENOTDIR") as caught:
        publish(Store(tmp_path / "store"))
    assert Code.STORE_UNWRITABLE == caught.value.code


def test_a_vanished_folder_is_made_again(store: Store) -> None:
    """One store object outlives the removal of its folder."""
    publish(store)
    shutil.rmtree(store.root)

    assert Outcome.CREATED == publish(store).outcome
    assert [] == verify_store(store)


@pytest.mark.parametrize(
    ("method", "name"), [("read", "blobs"), ("names", "tmp/x"), ("exists", "tmp/x")]
)
def test_reading_faults_are_classified(
    store: Store, monkeypatch: pytest.MonkeyPatch, method: str, name: str
) -> None:
    """A file that is there and cannot be read is not taken for absent."""
    publish(store)
    monkeypatch.setattr(Path, "iterdir", failing(errno.EACCES))
    monkeypatch.setattr(Path, "lstat", failing(errno.EACCES))

    with pytest.raises(VectorlessRagError, match=r"EISDIR|EACCES") as caught:
        getattr(store.disk, method)(name)
    assert Code.STORE_UNWRITABLE == caught.value.code


def test_only_old_leftovers_are_swept(store: Store) -> None:
    """A young temporary file may belong to a writer at work."""
    publish(store)
    young, old = store.root / "tmp" / "young", store.root / "tmp" / "old"
    young.touch()
    old.touch()
    os.utime(old, (0, 0))
    publish(store, sample_artifact(sample_recipe("b")))

    assert [young] == list((store.root / "tmp").iterdir())
    assert (1, 0) == (
        store.disk.sweep(older_than_s=0),
        store.disk.sweep(older_than_s=0),
    )


# Locks


def test_a_lock_has_one_holder(store: Store) -> None:
    """Two who want one recipe take turns; another recipe is free."""
    waited: list[str] = []

    def wait() -> None:
        with store.lock(KEY, on_wait=lambda: waited.append("waits")):
            waited.append("holds")

    with store.lock(KEY, on_wait=lambda: waited.append("never")):
        thread = threading.Thread(target=wait)
        thread.start()
        with store.lock(sample_recipe("b").recipe_hash, timeout_s=0):
            pass
        with pytest.raises(VectorlessRagError, match="held by another process"):
            store.lock(KEY, timeout_s=0).__enter__()
        while not waited:
            thread.join(0.01)
        waited.append("frees")
    thread.join()

    assert ["waits", "frees", "holds"] == waited


def test_a_lock_that_cannot_be_made_is_classified(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system without locks is no reason to build twice in silence."""
    monkeypatch.setattr("fcntl.flock", failing(errno.ENOLCK))

    with pytest.raises(VectorlessRagError, match=r"\.lock: ENOLCK"):
        store.lock(KEY).__enter__()


def test_a_lock_ends_with_its_block(store: Store) -> None:
    """Also when the block fails."""
    with pytest.raises(ValueError, match="boom"), store.lock(KEY):
        raise ValueError("boom")
    with store.lock(KEY, timeout_s=0):
        pass


# Processes

RACE = """
import os, sys
from pathlib import Path
from strategies_tree import *
from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.store import Store

key = sample_recipe().recipe_hash

def run(root, mode, n):
    store = Store(root)
    artifact = sample_artifact(summary=str(n) if mode == "differ" else "same")
    record = sample_run(attempt=f"attempt-{n}")
    if mode != "locked":
        rebuild = mode == "rebuild"
        return store.publish(
            artifact, record, sample_provenance(), rebuild=rebuild
        ).outcome
    with store.lock(key):
        if store.find(key):
            return "reused"
        store.publish(artifact, record, sample_provenance())
        return "built"

for mode in sys.argv[2:]:
    ready, go = os.pipe()
    for n in range(8):
        if os.fork() == 0:
            os.close(go)
            os.read(ready, 1)
            try:
                told = run(Path(sys.argv[1]) / mode, mode, n)
            except VectorlessRagError as error:
                told = error.code
            os.write(1, f"{mode} {told}\\n".encode())
            os._exit(0)
    os.close(go)
    for _ in range(8):
        os.wait()
"""

KILL = """
import itertools, os, random, signal, sys, time
from pathlib import Path
from strategies_tree import *
from vectorless_rag.audit import Verdict, verify_store
from vectorless_rag.store import Store

root, kills = Path(sys.argv[1]) / "store", int(sys.argv[2])
rng = random.Random(20)
# A killed process loses nothing that it wrote; without waiting for the disk the
# kills fall on more places.
os.fsync = lambda _: None
recipes = [sample_recipe(name) for name in "abc"]

def publish(round, n, root=root):
    recipe = recipes[n % 3]
    run = sample_run(recipe, f"attempt-{round}-{n}")
    rebuild = round != "end" and round % 2 == 1
    Store(root).publish(
        sample_artifact(recipe), run, sample_provenance(), rebuild=rebuild
    )

# What a process does only once is done before the kills.
publish("end", 0, root.with_name("warm"))

def check():
    store = Store(root)
    bad = [f for f in verify_store(store) if f.verdict is not Verdict.NOTE]
    assert not bad, bad
    for recipe in recipes:
        if found := store.find(recipe.recipe_hash):
            assert store.read(found) == sample_artifact(recipe)

for round in range(kills):
    ready, say = os.pipe()
    child = os.fork()
    if child == 0:
        for n in itertools.count():
            publish(round, n)
            os.write(say, b"x")
    for _ in range(rng.randrange(4)):
        os.read(ready, 1)
    time.sleep(rng.uniform(0, 0.01))
    os.kill(child, signal.SIGKILL)
    os.wait()
    check()
for n in range(3):
    publish("end", n)
check()
store = Store(root)
assert all(store.find(recipe.recipe_hash) for recipe in recipes)
assert all(store.current(recipe.document_sha256) for recipe in recipes)
print("sound", len(list(store.all())) > 3)
"""

CRASH = """
import itertools, os, shutil, sys
from pathlib import Path
from strategies_tree import *
from vectorless_rag.audit import Verdict, verify_store
from vectorless_rag.store import Store

# All that change what the next process sees.
CALLS = ("write", "link", "mkdir", "unlink")
artifact, run, provenance = sample_artifact(), sample_run(), sample_provenance()

def publish(root):
    return Store(root).publish(artifact, run, provenance)

def die_at(n):
    left = itertools.count(n, -1)
    for name in CALLS:
        def call(*args, real=getattr(os, name), **options):
            if next(left) == 0:
                os._exit(9)
            return real(*args, **options)
        setattr(os, name, call)

os.fsync = lambda _: None
publish(Path(sys.argv[1]) / "warm")
for n in itertools.count():
    root = Path(sys.argv[1]) / str(n)
    if (child := os.fork()) == 0:
        die_at(n)
        publish(root)
        os._exit(0)
    died = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    if not died:
        break
    for _ in range(2):
        found = Store(root).find(artifact.recipe.recipe_hash)
        assert found is None or Store(root).read(found) == artifact
        bad = [f for f in verify_store(Store(root)) if f.verdict is not Verdict.NOTE]
        assert not bad, (n, bad)
        publish(root)
    assert Store(root).current(artifact.document.sha256) is not None
    shutil.rmtree(root)
print("sound", n > 20)
"""

HOLD = """
import os, signal, sys, time
from pathlib import Path
from vectorless_rag.store import Store

store = Store(Path(sys.argv[1]))
ready, say = os.pipe()

def started(child):
    if (pid := os.fork()) == 0:
        child()
        os._exit(0)
    os.read(ready, 1)
    return pid

def hold():
    with store.lock("key"):
        os.write(say, b"x")
        time.sleep(600)

def wait():
    try:
        with store.lock("key", on_wait=lambda: os.write(say, b"x")):
            pass
    except KeyboardInterrupt:
        os._exit(42)

holder = started(hold)
waiter = started(wait)
os.kill(waiter, signal.SIGINT)
print("interrupted", os.waitstatus_to_exitcode(os.waitpid(waiter, 0)[1]))
os.kill(holder, signal.SIGKILL)
with store.lock("key", timeout_s=60):
    print("free")
"""


def run_script(script: str, *args: str) -> list[str]:
    """Run real processes; they fork from a fresh one that has no threads."""
    path = os.pathsep.join([str(REPOSITORY / "src"), str(REPOSITORY / "tests")])
    coverage = {k: v for k, v in os.environ.items() if k.startswith("COVERAGE_")}
    done = run_tool(
        (sys.executable, "-c", script, *args),
        cwd=REPOSITORY,
        env={"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", **coverage},
        timeout_s=120,
    )
    assert (0, "") == (done.status, done.stderr.decode()[-2000:])
    return done.stdout.decode().splitlines()


RACES = {
    # What the eight are told, and how many generations there are in the end.
    "same": ({"created": 1, "superseded": 7}, 1),
    "differ": ({"created": 1, "store_conflict": 7}, 1),
    "locked": ({"built": 1, "reused": 7}, 1),
    "rebuild": ({"created": 8}, 8),
}


def test_of_many_processes_one_wins(tmp_path: Path) -> None:
    """Eight at once on one recipe: one artifact, and everyone knows whose."""
    told = Counter(run_script(RACE, str(tmp_path), *RACES))

    assert {
        f"{mode} {word}": times
        for mode, (words, _) in RACES.items()
        for word, times in words.items()
    } == told
    for mode, (_, generations) in RACES.items():
        store = Store(tmp_path / mode)
        assert (generations, []) == (len(store.generations(KEY)), mismatches(store))
        assert store.find(KEY) == store.current(sample_recipe().document_sha256)


def test_a_killed_writer_leaves_no_half_artifact(tmp_path: Path) -> None:
    """Twenty kills at random moments: always sound, and the next run goes on."""
    assert ["sound True"] == run_script(KILL, str(tmp_path), "20")


def test_dying_at_any_call_leaves_no_half_artifact(tmp_path: Path) -> None:
    """Before each call to the operating system in turn; the next run finishes."""
    assert ["sound True"] == run_script(CRASH, str(tmp_path))


def test_waiting_can_be_interrupted_and_a_dead_holder_is_none(store: Store) -> None:
    """Ctrl-C ends the wait; a killed process holds nothing."""
    assert ["interrupted 42", "free"] == run_script(HOLD, str(store.root))


def test_the_loser_never_sees_half_the_winner(store: Store) -> None:
    """While others publish, a reader finds nothing or everything."""
    stop = threading.Event()
    seen: Counter[str] = Counter()

    def read() -> None:
        while not stop.is_set():
            found = store.find(KEY)
            whole = found and store.read(found) == sample_artifact()
            seen[str(whole)] += 1

    thread = threading.Thread(target=read)
    thread.start()
    for n in range(10):
        publish(store, attempt=str(n), rebuild=True)
    stop.set()
    thread.join()

    assert {"True", "None"} >= seen.keys()
    assert sha256(sample_artifact().encoded) == sample_artifact().artifact_id
