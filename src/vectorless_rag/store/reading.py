"""
Reading the store: which artifacts there are, and which one is current.

Layout, below the root::

    blobs/sha256/ab/abcd…                      every file by its digest
    artifacts/<recipe_hash>/<generation>/      manifest.json: the commit point
                                               artifact.json, run.json
    activations/<document_sha256>/<n>.json     what is current, as a chain
    locks/  tmp/  quarantine/

All but the last line are links to blobs, create-only.
"""

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from vectorless_rag.artifact import (
    Artifact,
    Manifest,
    RunRecord,
    read_artifact,
    read_manifest,
    read_run,
)
from vectorless_rag.canon import sha256
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.records import corrupt, one_line
from vectorless_rag.store.blobs import SHA256, Blobs
from vectorless_rag.store.chain import Chain
from vectorless_rag.store.disk import Disk
from vectorless_rag.store.medium import SCHEME, Address, Medium
from vectorless_rag.units import Sha256

ARTIFACTS = "artifacts"
MANIFEST = "manifest.json"

GENERATION = re.compile(r"0|[1-9][0-9]*")
_DIGITS = re.compile(r"[0-9a-f]{8,64}")


@dataclass(frozen=True, kw_only=True)
class Stored:
    """An artifact that is committed, and where it is."""

    folder: Path

    generation: int
    """0, and the next number for each rebuild under the same recipe."""

    manifest: Manifest

    @property
    def recipe_hash(self) -> Sha256:
        """Its key."""
        return self.manifest.recipe.recipe_hash

    @property
    def document_sha256(self) -> Sha256:
        """The document it is of."""
        return self.manifest.recipe.document_sha256

    @property
    def artifact_id(self) -> Sha256:
        """Digest of its bytes."""
        return self.manifest.artifact_id

    @property
    def named_files(self) -> dict[str, Sha256]:
        """Digests of the files beside the manifest."""
        return {
            "artifact.json": self.artifact_id,
            "run.json": self.manifest.run_sha256,
        }

    @property
    def path(self) -> Path:
        """Its ``artifact.json``."""
        return self.folder / "artifact.json"


class StoreReader:
    """
    What can be asked of a store.

    Every method raises ``store_unwritable`` when the operating system fails, and
    ``store_corrupt`` when bytes are missing or not the ones that were written; the
    message names the file, relative to *root*.

    Args:
        place: The folder, or what else it lies on.
        now: Tells the time of activations.
    """

    def __init__(
        self, place: Path | Medium, now: Callable[[], datetime] | None = None
    ) -> None:
        self.disk: Medium = Disk(place) if isinstance(place, Path) else place
        self.root = self.disk.root
        self.blobs = Blobs(self.disk)
        self.chain = Chain(self.disk, self.blobs, now)

    def find(self, recipe_hash: Sha256) -> Stored | None:
        """
        Return the current artifact of a recipe, or None.

        That is the one activated last, and without any activation the newest.
        """
        generations = self.generations(recipe_hash)
        if len(generations) > 1:
            document = self._document(recipe_hash, generations)
            for activation in self.chain.newest_first(document):
                if activation.recipe_hash == recipe_hash:
                    return self.stored(recipe_hash, activation.generation)
        return self.stored(recipe_hash, generations[-1]) if generations else None

    def current(self, document: Sha256) -> Stored | None:
        """Return the current artifact of a document, of whatever recipe, or None."""
        for activation in self.chain.newest_first(document):
            return self.stored(activation.recipe_hash, activation.generation)
        return None

    def read(self, stored: Stored) -> Artifact:
        """
        Return the artifact, from its blob and checked against its digest.

        Its named files are put back if they are missing and the store can be
        written.
        """
        artifact = read_artifact(self.blobs.get(stored.artifact_id))
        if artifact.recipe != stored.manifest.recipe:
            raise corrupt(f"{folder_name(stored)}: of another recipe")
        self._check_names(stored)
        with contextlib.suppress(VectorlessRagError):
            self.link_names(stored)
        return artifact

    def _check_names(self, stored: Stored) -> None:
        """People open these files: an altered one must not pass for the artifact."""
        for name, digest in stored.named_files.items():
            file = f"{folder_name(stored)}/{name}"
            data = self.disk.read(file)
            if data is not None and sha256(data) != digest:
                raise corrupt(f"{file}: altered")

    def read_run(self, stored: Stored) -> RunRecord:
        """Return the record of the run that made the artifact."""
        return read_run(self.blobs.get(stored.manifest.run_sha256))

    def recipes(self) -> list[Sha256]:
        """Return every recipe that has a folder."""
        names = self.disk.names(ARTIFACTS)
        return [Sha256(name) for name in names if SHA256.fullmatch(name)]

    def generations(self, recipe_hash: Sha256) -> list[int]:
        """Return the numbers of the committed generations of a recipe, ascending."""
        return self.disk.numbers(f"{ARTIFACTS}/{recipe_hash}", "{}/" + MANIFEST)

    def stored(self, recipe_hash: Sha256, generation: int) -> Stored:
        """Return one generation of a recipe."""
        folder = f"{ARTIFACTS}/{recipe_hash}/{generation}"
        name = f"{folder}/{MANIFEST}"
        data = self.blobs.read_linked(name)
        if data is None:
            raise corrupt(f"{name}: missing")
        manifest = read_manifest(data)
        if manifest.recipe.recipe_hash != recipe_hash:
            raise corrupt(f"{name}: of another recipe")
        return Stored(
            folder=self.disk.path(folder), generation=generation, manifest=manifest
        )

    def all(self) -> Iterator[Stored]:
        """Yield every committed artifact, all generations."""
        for recipe_hash in self.recipes():
            for generation in self.generations(recipe_hash):
                yield self.stored(recipe_hash, generation)

    def link_names(self, stored: Stored) -> None:
        """Put the named files beside the manifest, where they are missing."""
        for name, digest in stored.named_files.items():
            self.blobs.link(digest, f"{folder_name(stored)}/{name}")

    def resolve(self, name: str) -> Stored:
        """
        Find the artifact that a person means.

        Args:
            name: An artifact id, a recipe hash or a document's sha256, or the
                first eight or more digits of one; or the path of an artifact's
                folder or of a file in it. A recipe or a document stands for its
                current artifact.

        Raises:
            VectorlessRagError: ``not_found``: there is none, or the digits are the
                start of several.
        """
        meant = self._by_digits if _DIGITS.fullmatch(name) else self._by_path
        found = {stored.folder: stored for stored in meant(name)}
        if len(found) != 1:
            shown = one_line(name)
            many = f"{len(found)} artifacts go by {shown}, give more digits"
            raise VectorlessRagError(Code.NOT_FOUND, many if found else shown)
        return found.popitem()[1]

    def _by_digits(self, digits: str) -> Iterator[Stored]:
        for document in self.chain.documents():
            if document.startswith(digits) and (stored := self.current(document)):
                yield stored
        for recipe_hash in self.recipes():
            if recipe_hash.startswith(digits) and (stored := self.find(recipe_hash)):
                yield stored
            # The newest of those with this content: a rebuild may repeat it.
            yield from self._with_content(recipe_hash, digits)[-1:]

    def _with_content(self, recipe_hash: Sha256, digits: str) -> list[Stored]:
        same = []
        for generation in self.generations(recipe_hash):
            # An altered manifest must not hide the other artifacts.
            with contextlib.suppress(VectorlessRagError):
                stored = self.stored(recipe_hash, generation)
                if stored.artifact_id.startswith(digits):
                    same.append(stored)
        return same

    def _by_path(self, name: str) -> Iterator[Stored]:
        place = locate(name)
        if place is None or place[0] != _whole(str(self.root)):
            return
        _, recipe_hash, generation = place
        if generation is None:
            if stored := self.find(recipe_hash):
                yield stored
        elif generation in self.generations(recipe_hash):
            yield self.stored(recipe_hash, generation)

    def _document(self, recipe_hash: Sha256, generations: list[int]) -> Sha256:
        # Any generation can say it: an altered one must not hide the others.
        for generation in reversed(generations):
            with contextlib.suppress(VectorlessRagError):
                return self.stored(recipe_hash, generation).document_sha256
        raise corrupt(f"{ARTIFACTS}/{recipe_hash}: every generation")


def folder_name(stored: Stored) -> str:
    """Return where an artifact's folder is, relative to the store."""
    return f"{ARTIFACTS}/{stored.recipe_hash}/{stored.generation}"


def locate(path: str) -> tuple[Path, Sha256, int | None] | None:
    """
    Read a path, or the address of an object, as one inside some store.

    Returns:
        The store's root, the recipe, and the generation, None for a recipe's
        folder; None if the path has another shape. Nothing but links is looked up.
    """
    try:
        whole = _whole(path)
    except (ValueError, OSError, RuntimeError):
        return None
    for place in (whole, *whole.parents):
        if place.parent.name == ARTIFACTS and SHA256.fullmatch(place.name):
            below = whole.relative_to(place).parts
            number = below[0] if below else None
            if number is not None and not GENERATION.fullmatch(number):
                return None
            generation = None if number is None else int(number)
            return place.parents[1], Sha256(place.name), generation
    return None


def _whole(path: str) -> Path:
    return Address(path) if path.startswith(SCHEME) else Path(path).resolve()
