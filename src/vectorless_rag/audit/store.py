"""
Find every byte of a store that is not the one that was written.

All files of a store are links to blobs, and a blob's name is the digest of its
bytes. On top of that each record must have its one spelling, belong where it
stands and agree with the records it names. An attacker who can write the whole
folder can still replace all of it: nothing here is signed.
"""

import random
import re
from collections.abc import Iterator
from contextlib import contextmanager

from vectorless_rag.artifact import read_artifact
from vectorless_rag.audit.findings import Finding, Verdict, in_order
from vectorless_rag.canon import sha256
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.store import Activation, Stored, StoreReader
from vectorless_rag.store.blobs import QUARANTINE, SHA256, blob_name
from vectorless_rag.store.chain import FOLDER as ACTIVATIONS
from vectorless_rag.store.chain import RECORD, record_name
from vectorless_rag.store.reading import ARTIFACTS, GENERATION, MANIFEST, folder_name
from vectorless_rag.units import Sha256

_PLACES = re.compile("artifacts|activations|blobs|locks|quarantine|tmp")


def verify_store(
    store: StoreReader, *, read_data: bool = True, sample: int | None = None
) -> list[Finding]:
    """
    Check a whole store. Nothing is written.

    Args:
        store: What to check.
        read_data: Also read artifacts, run records and every other blob. Without
            it only manifests and activations are read, and that the rest exists.
        sample: With *read_data*: read that many artifacts, picked anew each time,
            and pass over the bytes of the others.

    Returns:
        What was found, by file; an empty list for a sound store.
    """
    audit = _Audit(store)
    # Before the manifests: an artifact may be published and activated meanwhile.
    records = audit.activations()
    artifacts = audit.manifests()
    picked = artifacts if read_data else []
    if sample is not None and sample < len(picked):
        picked = random.SystemRandom().sample(picked, sample)
    for stored in artifacts:
        audit.check_named_files(stored)
    for stored in picked:
        audit.check_content(stored)
    audit.check_activations(records, artifacts)
    audit.check_blobs(read_data=read_data and sample is None)
    audit.check_strays()
    return audit.sorted()


def sound_artifacts(store: StoreReader) -> list[Stored]:
    """List the artifacts whose manifest can be read."""
    return _Audit(store).manifests()


def verify_artifact(
    store: StoreReader, stored: Stored, *, read_data: bool = True
) -> list[Finding]:
    """
    Check one artifact and the activations of its document. Nothing is written.

    Args:
        store: Where it is.
        stored: Which one.
        read_data: Also read its content and the blobs; else only records.
    """
    audit = _Audit(store)
    document = stored.document_sha256
    records = list(audit.chain(document))
    audit.refer(stored.manifest.manifest_sha256)
    audit.check_named_files(stored)
    if read_data:
        audit.check_content(stored)
    audit.check_activations(
        [r for r in records if _place(r) == _place(stored)], [stored]
    )
    audit.check_referred(read_data=read_data)
    return audit.sorted()


class _Audit:
    """The findings about one store, and the blobs that something refers to."""

    def __init__(self, store: StoreReader) -> None:
        self._store = store
        self._findings: set[Finding] = set()
        self._referred: set[Sha256] = set()

    def sorted(self) -> list[Finding]:
        return in_order(self._findings)

    def manifests(self) -> list[Stored]:
        """Read every manifest and return the sound ones."""
        sound = []
        for recipe_hash in self._names(ARTIFACTS, SHA256):
            folder = f"{ARTIFACTS}/{recipe_hash}"
            for number in self._names(folder, GENERATION):
                name = f"{folder}/{number}/{MANIFEST}"
                with self._looking_at(name):
                    if not self._store.disk.exists(name):
                        self._note(f"{folder}/{number}", "never committed")
                        continue
                    stored = self._store.stored(Sha256(recipe_hash), int(number))
                    self.refer(stored.manifest.manifest_sha256)
                    sound.append(stored)
        return sound

    def check_named_files(self, stored: Stored) -> None:
        """Check that what a manifest names exists, blobs and links."""
        folder = folder_name(stored)
        for name, digest in stored.named_files.items():
            self.refer(digest)
            with self._looking_at(f"{folder}/{name}"):
                if not self._store.disk.exists(f"{folder}/{name}"):
                    self._note(f"{folder}/{name}", "missing; reading puts it back")
        expected = re.compile("|".join(map(re.escape, (MANIFEST, *stored.named_files))))
        self._names(folder, expected)

    def check_content(self, stored: Stored) -> None:
        """Read what a manifest names, and compare it with what the manifest says."""
        folder, blobs = folder_name(stored), self._store.blobs
        for name, digest in stored.named_files.items():
            with self._looking_at(f"{folder}/{name}"):
                data = self._store.disk.read(f"{folder}/{name}")
                if data is not None and sha256(data) != digest:
                    self._mismatch(f"{folder}/{name}", "altered")
        with self._looking_at(blob_name(stored.artifact_id)):
            artifact = read_artifact(blobs.get(stored.artifact_id))
            if artifact.recipe != stored.manifest.recipe:
                self._mismatch(folder, "artifact and manifest differ in the recipe")
        with self._looking_at(blob_name(stored.manifest.run_sha256)):
            run = self._store.read_run(stored)
            if (run.attempt_id, run.recipe_hash) != (
                stored.manifest.attempt_id,
                stored.recipe_hash,
            ):
                self._mismatch(folder, "run record and manifest differ in the run")

    def activations(self) -> list[Activation]:
        """Read every activation and return the sound ones."""
        sound: list[Activation] = []
        for document in self._names(ACTIVATIONS, SHA256):
            self._names(f"{ACTIVATIONS}/{document}", RECORD)
            sound += self.chain(Sha256(document))
        return sound

    def chain(self, document: Sha256) -> Iterator[Activation]:
        """Read the activations of one document and yield the sound ones."""
        previous: Sha256 | None = None
        numbers = self._store.chain.numbers(document)
        for number in range(numbers[-1] + 1 if numbers else 0):
            name = record_name(document, number)
            with self._looking_at(name):
                data = self._store.disk.read(name) or b""
                expected, previous = previous, sha256(data)
                record = self._store.chain.read(document, number)
                self.refer(previous)
                if record.previous_sha256 != expected:
                    self._mismatch(name, "does not follow the record before it")
                yield record

    def check_activations(
        self, records: list[Activation], artifacts: list[Stored]
    ) -> None:
        """Check that what activations name is there."""
        known = {_place(stored): stored for stored in artifacts}
        for record in records:
            stored = known.get(_place(record))
            if stored is None or not _names(record, stored):
                name = record_name(record.document_sha256, record.number)
                self._mismatch(name, "names an artifact that is not there")
        active = {_place(record) for record in records}
        for key in known.keys() - active:
            self._note(folder_name(known[key]), "never activated")

    def check_blobs(self, *, read_data: bool) -> None:
        """Check that each blob is what its name says and that something needs it."""
        for name in self._store.blobs.all_names():
            digest = name.rpartition("/")[2]
            if not SHA256.fullmatch(digest) or name != blob_name(digest):
                self._note(name, "not a file of the store")
                continue
            with self._looking_at(name):
                if read_data:
                    self._store.blobs.get(Sha256(digest))
            if digest not in self._referred:
                self._note(name, "nothing refers to it")

    def check_referred(self, *, read_data: bool) -> None:
        """Check the blobs that something referred to so far."""
        for digest in sorted(self._referred):
            with self._looking_at(blob_name(digest)):
                if read_data and self._store.blobs.has(digest):
                    self._store.blobs.get(digest)

    def check_strays(self) -> None:
        """Note what crashes and repairs left behind, and what is not ours."""
        self._names("", _PLACES)
        for name in self._store.disk.names("tmp"):
            self._note(f"tmp/{name}", "left by a writer that was killed")
        for name in self._store.disk.names(QUARANTINE):
            self._note(f"{QUARANTINE}/{name}", "altered bytes, set aside")

    def _names(self, folder: str, expected: re.Pattern[str]) -> list[str]:
        """List a folder, and note what should not be in it."""
        found = []
        with self._looking_at(folder):
            for name in self._store.disk.names(folder):
                if expected.fullmatch(name):
                    found.append(name)
                else:
                    self._note(
                        f"{folder}/{name}".lstrip("/"), "not a file of the store"
                    )
        return found

    def refer(self, digest: Sha256) -> None:
        """Note that something needs a blob, and check that it is there."""
        self._referred.add(digest)
        if not self._store.blobs.has(digest):
            self._mismatch(blob_name(digest), "missing")

    @contextmanager
    def _looking_at(self, name: str) -> Iterator[None]:
        """Turn a failure of the store into a finding."""
        try:
            yield
        except VectorlessRagError as error:
            detail = error.failure.detail
            file, _, what = detail.partition(": ")
            if "/" not in file:
                # A record says what is wrong in it, not where it stands.
                file, what = name, detail
            corrupt = error.code is Code.STORE_CORRUPT
            verdict = Verdict.MISMATCH if corrupt else Verdict.UNDECIDED
            self._findings.add(Finding(verdict=verdict, file=file, what=what))

    def _mismatch(self, file: str, what: str) -> None:
        finding = Finding(verdict=Verdict.MISMATCH, file=file, what=what)
        self._findings.add(finding)

    def _note(self, file: str, what: str) -> None:
        self._findings.add(Finding(verdict=Verdict.NOTE, file=file, what=what))


def _place(what: Activation | Stored) -> tuple[Sha256, int]:
    return what.recipe_hash, what.generation


def _names(record: Activation, stored: Stored) -> bool:
    return (stored.document_sha256, stored.artifact_id) == (
        record.document_sha256,
        record.artifact_id,
    ) and stored.manifest.manifest_sha256 == record.manifest_sha256
