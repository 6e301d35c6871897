"""``vectorless-rag recipe explain``: why two artifacts differ, or one is stale."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from vectorless_rag.artifact import read_artifact
from vectorless_rag.canon import Json
from vectorless_rag.cli.artifacts import find
from vectorless_rag.cli.lines import print_json
from vectorless_rag.cli.printing import console, labelled
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.recipe import Recipe, explain
from vectorless_rag.running import running_code
from vectorless_rag.settings import Settings
from vectorless_rag.source import identify, printable
from vectorless_rag.store import Stored, StoreReader, open_reader


@dataclass(frozen=True, kw_only=True)
class _Side:
    recipe: Recipe
    patches: Mapping[str, str]

    artifact_id: str | None
    """None: it is not built, only what would be built now."""

    @classmethod
    def of(cls, stored: Stored) -> "_Side":
        manifest = stored.manifest
        return cls(
            recipe=manifest.recipe,
            patches=manifest.patches,
            artifact_id=stored.artifact_id,
        )

    def to_json(self) -> dict[str, Json]:
        return {
            "recipe_hash": self.recipe.recipe_hash,
            "document_sha256": self.recipe.document_sha256,
            "artifact_id": self.artifact_id,
        }


def explain_recipes(
    name: str, other: str | None, settings: Settings, *, as_json: bool
) -> int:
    """
    Print why two recipes differ; return 0.

    Args:
        name: The earlier artifact, or the document whose current one is meant.
        other: The later artifact; None: what would be built now.
        settings: Where the store is, and with *other* None what would be built.
        as_json: Print one object.
    """
    if other is not None:
        before = _Side.of(find(name, settings)[1])
        after = _Side.of(find(other, settings)[1])
    else:
        stored, document = _built(name, settings)
        before, after = _Side.of(stored), _now(document, settings)
    differences = explain(
        before.recipe,
        after.recipe,
        patches_before=before.patches,
        patches_after=after.patches,
    )
    if as_json:
        print_json(
            {
                "before": before.to_json(),
                "after": after.to_json(),
                "same": not differences,
                "differences": [d.to_json() for d in differences],
            }
        )
        return 0
    out = console()
    out.print(labelled("before", before.recipe.recipe_hash))
    later = "after" if after.artifact_id else "now"
    out.print(labelled(later, after.recipe.recipe_hash))
    for difference in differences:
        out.print(f"  {printable(difference.words)}", soft_wrap=True, markup=False)
    if not differences:
        out.print("  no input differs: one recipe, one artifact")
    return 0


def _now(document: str, settings: Settings) -> _Side:
    code = running_code(settings)
    recipe = Recipe.from_inputs(
        {
            "configuration": code.configuration.to_json(),
            "document_sha256": document,
        }
    )
    patches = {patch.file: patch.sha256 for patch in code.record.patches}
    return _Side(recipe=recipe, patches=patches, artifact_id=None)


def _built(name: str, settings: Settings) -> tuple[Stored, str]:
    """Find the artifact, and the digest of the document that it would be of now."""
    try:
        stored = find(name, settings)[1]
    except VectorlessRagError as error:
        if error.code is not Code.NOT_FOUND or not Path(name).is_file():
            raise
        # An edited file is another document, under the name of the earlier one.
        source = identify(Path(name), max_bytes=settings.max_source_bytes)
        store = open_reader(settings)
        same = [s for s in _currents(store) if _name(store, s) == source.name]
        if len(same) != 1:
            raise
        return same[0], source.sha256
    return stored, stored.document_sha256


def _currents(store: StoreReader) -> list[Stored]:
    return [s for d in store.chain.documents() if (s := store.current(d))]


def _name(store: StoreReader, stored: Stored) -> str:
    return read_artifact(store.blobs.get(stored.artifact_id)).document.name
