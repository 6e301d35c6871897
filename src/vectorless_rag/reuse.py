"""The artifact that is there already: looked up, checked and made the current one."""

from dataclasses import replace

from vectorless_rag.recipe import Recipe
from vectorless_rag.results import IngestResult, Status
from vectorless_rag.running import RunningCode
from vectorless_rag.source import Source
from vectorless_rag.store import Store, Stored
from vectorless_rag.tree import count, walk


def recipe_of(source: Source, code: RunningCode) -> Recipe:
    """Return what an artifact of *source* is made by now."""
    return Recipe(configuration=code.configuration, document_sha256=source.sha256)


def reuse(result: IngestResult, store: Store, stored: Stored) -> IngestResult:
    """
    Make *stored* the current artifact of its document, and say so.

    Raises:
        VectorlessRagError: ``store_corrupt`` or ``store_unwritable``.
    """
    store.activate(stored)
    return done(result, store, stored, Status.REUSED)


def done(
    result: IngestResult, store: Store, stored: Stored, status: Status
) -> IngestResult:
    """
    Read the artifact, and complete *result* with what is in it.

    Raises:
        VectorlessRagError: ``store_corrupt``.
    """
    artifact = store.read(stored)
    return replace(
        result,
        status=status,
        recipe_hash=stored.recipe_hash,
        artifact_id=stored.artifact_id,
        artifact_path=stored.folder,
        pages=artifact.page_count,
        nodes=count(artifact.tree),
        degraded=sum(bool(node.degraded) for _, node in walk(artifact.tree)),
    )
