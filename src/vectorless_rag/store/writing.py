"""Writing the store: one commit an artifact, and a record of what is current."""

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum

from vectorless_rag.artifact import (
    Artifact,
    Manifest,
    Provenance,
    RunRecord,
    read_artifact,
    read_manifest,
    read_run,
)
from vectorless_rag.canon import sha256
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.records import corrupt
from vectorless_rag.store.disk import STALE_S
from vectorless_rag.store.reading import (
    ARTIFACTS,
    MANIFEST,
    Stored,
    StoreReader,
    folder_name,
)
from vectorless_rag.units import Sha256


class Outcome(StrEnum):
    """What became of an artifact that was to be published."""

    CREATED = "created"

    SUPERSEDED = "superseded"
    """Another run had published the same content first; that one stays."""


@dataclass(frozen=True, kw_only=True)
class Published:
    """What stands in the store under the recipe now, and whose it is."""

    stored: Stored
    outcome: Outcome


class Store(StoreReader):
    """A folder of artifacts, made on first use. Nothing in it is overwritten."""

    def lock(
        self,
        recipe_hash: Sha256,
        *,
        timeout_s: float | None = None,
        on_wait: Callable[[], None] | None = None,
        check: Callable[[], None] | None = None,
    ) -> AbstractContextManager[None]:
        """
        Hold a recipe, so that of many processes one builds and the others wait.

        Look with `find`, lock, look again, build, `publish`. See `Disk.lock`.
        """
        name = f"locks/{recipe_hash}.lock"
        return self.disk.lock(name, timeout_s=timeout_s, on_wait=on_wait, check=check)

    def publish(
        self,
        artifact: Artifact,
        run: RunRecord,
        provenance: Provenance,
        *,
        rebuild: bool = False,
    ) -> Published:
        """
        Commit an artifact and make it current.

        Safe without the lock: of several writers one wins. Doing it again after a
        failure finishes what was begun.

        Args:
            artifact: What was made.
            run: What making it cost.
            provenance: What made it.
            rebuild: Add a generation, even where one stands under this recipe.

        Returns:
            What stands under the recipe: this artifact, or the one of another run
            that came first with the same content.

        Raises:
            VectorlessRagError: ``store_conflict``: another run came first with
                other content. That one stays.
        """
        recipe_hash = artifact.recipe.recipe_hash
        manifest = Manifest(
            artifact_id=artifact.artifact_id,
            run_sha256=sha256(run.encoded),
            attempt_id=run.attempt_id,
            recipe=artifact.recipe,
            provenance=provenance,
        )
        _check_readable(artifact, run, manifest)
        mine = self._begun(manifest)
        if mine is None and (rebuild or not self.generations(recipe_hash)):
            for data in (artifact.encoded, run.encoded, manifest.encoded):
                self.blobs.put(data)
            mine = self._commit(manifest, rebuild=rebuild)
        if mine is None:
            outcome, stored = Outcome.SUPERSEDED, self._winner(artifact)
        else:
            outcome, stored = Outcome.CREATED, self.stored(recipe_hash, mine)
        self.activate(stored)
        # Housekeeping; its failure is not the artifact's.
        with contextlib.suppress(VectorlessRagError):
            self.disk.sweep(older_than_s=STALE_S)
        return Published(stored=stored, outcome=outcome)

    def activate(self, stored: Stored) -> bool:
        """
        Make *stored* the current artifact of its document.

        Its named files are put beside its manifest first, if they are missing.

        Returns:
            Whether that changed what is current.
        """
        self.link_names(stored)
        return self.chain.append(
            stored.document_sha256,
            recipe_hash=stored.recipe_hash,
            generation=stored.generation,
            artifact_id=stored.artifact_id,
            manifest_sha256=stored.manifest.manifest_sha256,
        )

    def _begun(self, manifest: Manifest) -> int | None:
        """Return the newest generation, if it is this very manifest."""
        recipe_hash = manifest.recipe.recipe_hash
        for newest in self.generations(recipe_hash)[-1:]:
            name = f"{ARTIFACTS}/{recipe_hash}/{newest}/{MANIFEST}"
            if self.disk.read(name) == manifest.encoded:
                return newest
        return None

    def _commit(self, manifest: Manifest, *, rebuild: bool) -> int | None:
        """Return the generation that is ours now; None if another came first."""
        recipe_hash = manifest.recipe.recipe_hash
        while True:
            generations = self.generations(recipe_hash)
            if generations and not rebuild:
                return None
            number = generations[-1] + 1 if generations else 0
            name = f"{ARTIFACTS}/{recipe_hash}/{number}/{MANIFEST}"
            if self.blobs.link(manifest.manifest_sha256, name):
                return number

    def _winner(self, artifact: Artifact) -> Stored:
        recipe_hash = artifact.recipe.recipe_hash
        stored = self.find(recipe_hash)
        if stored is None:
            raise corrupt(f"{ARTIFACTS}/{recipe_hash}: vanished")
        # A file's name is no content: the same bytes go by many.
        same = stored.artifact_id == artifact.artifact_id or artifact.same_but_name(
            self.read(stored)
        )
        if not same:
            raise VectorlessRagError(Code.STORE_CONFLICT, folder_name(stored))
        return stored


def _check_readable(artifact: Artifact, run: RunRecord, manifest: Manifest) -> None:
    """Refuse what could be written once and never read again."""
    try:
        readable = (
            read_artifact(artifact.encoded) == artifact
            and read_run(run.encoded) == run
            and read_manifest(manifest.encoded) == manifest
        )
    except VectorlessRagError as error:
        raise VectorlessRagError(Code.INTERNAL_ERROR, error.failure.detail) from None
    if not readable or run.recipe_hash != artifact.recipe.recipe_hash:
        raise VectorlessRagError(Code.INTERNAL_ERROR, "records do not fit together")
