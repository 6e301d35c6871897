"""
Provenance as a CycloneDX bill of materials, version 1.6.

The upstream is one component, and the patches are its pedigree. The in-toto
Statement needs no code: the manifest is one.
"""

import uuid
from collections.abc import Iterator, Sequence

from vectorless_rag.artifact import Manifest
from vectorless_rag.artifact import Patch as Applied
from vectorless_rag.canon import Json
from vectorless_rag.upstream.mailbox import Patch

_SCHEMA = "http://cyclonedx.org/schema/bom-1.6.schema.json"
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "pkg:generic/vectorless-rag")
_OURS = "vectorless-rag"


def cyclonedx(manifest: Manifest, known: Sequence[Patch] = ()) -> dict[str, Json]:
    """
    Spell what made an artifact as a bill of materials.

    The same manifest and patches give the same bill: its serial number is made
    from the manifest, and it holds no time.

    Args:
        manifest: Of the artifact.
        known: Patches whose headers can be read here; those that are the applied
            ones, byte for byte, add what they resolve.
    """
    made = manifest.provenance
    upstream = _upstream(manifest, {patch.sha256: patch for patch in known})
    pinned = sorted(made.libraries.items())
    libraries: list[Json] = [_library(name, version) for name, version in pinned]
    return {
        "$schema": _SCHEMA,
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(_NAMESPACE, manifest.manifest_sha256)}",
        "version": 1,
        "metadata": {
            "tools": {
                "components": [
                    {"type": "application", "name": _OURS, "version": made.version}
                ]
            },
            "component": _artifact(manifest),
        },
        "components": [upstream, *libraries, _python(made.python)],
        "dependencies": [
            {"ref": "artifact", "dependsOn": ["upstream"]},
            {
                "ref": "upstream",
                "dependsOn": [
                    *(_purl(n, v) for n, v in sorted(made.libraries.items()))
                ],
            },
        ],
    }


def _artifact(manifest: Manifest) -> dict[str, Json]:
    recipe = manifest.recipe
    return {
        "type": "data",
        "bom-ref": "artifact",
        "name": "artifact.json",
        "hashes": [_sha256(manifest.artifact_id)],
        "properties": _properties(
            recipe_hash=recipe.recipe_hash,
            configuration_hash=recipe.configuration.configuration_hash,
            document_sha256=recipe.document_sha256,
            run_sha256=manifest.run_sha256,
            attempt_id=manifest.attempt_id,
            runtime_sha256=recipe.configuration.runtime_sha256,
            model=recipe.configuration.model,
            mode=recipe.configuration.mode,
        ),
    }


def _upstream(manifest: Manifest, known: dict[str, Patch]) -> dict[str, Json]:
    made, options = manifest.provenance, manifest.recipe.configuration
    return {
        "type": "library",
        "bom-ref": "upstream",
        "name": made.upstream_name,
        "version": options.pageindex_version,
        "pedigree": {
            "ancestors": [
                {
                    "type": "library",
                    "name": made.upstream_name,
                    "version": made.upstream_version,
                    "purl": _purl(made.upstream_name, made.upstream_version),
                    "hashes": [_sha256(made.upstream_sha256)],
                }
            ],
            "patches": [
                _patch(patch, known.get(patch.sha256)) for patch in made.patches
            ],
        },
        "properties": _properties(
            patch_sha256=options.patch_sha256,
            tree_sha256=options.tree_sha256,
            **{f"{patch.label}:sha256": patch.sha256 for patch in made.patches},
        ),
    }


def _patch(applied: Applied, header: Patch | None) -> dict[str, Json]:
    backport = applied.upstream_status.startswith("Backport ")
    spelled: dict[str, Json] = {
        "type": "backport" if backport else "unofficial",
        "diff": {"url": f"patches/{applied.name}"},
    }
    resolves = list(_resolves(header)) if header is not None else []
    return spelled | ({"resolves": resolves} if resolves else {})


def _resolves(header: Patch) -> Iterator[Json]:
    for bug in header.values("Bug"):
        if bug != "none":
            yield {
                "type": "defect",
                "id": bug.rpartition("/")[2],
                "name": header.title,
                "references": [bug],
            }
    for cve in header.values("CVE"):
        yield {"type": "security", "id": cve, "name": header.title}


def _library(name: str, version: str) -> dict[str, Json]:
    return {
        "type": "library",
        "bom-ref": _purl(name, version),
        "name": name,
        "version": version,
        "purl": _purl(name, version),
    }


def _python(version: str) -> dict[str, Json]:
    return {
        "type": "platform",
        "bom-ref": "python",
        "name": "python",
        "version": version,
    }


def _purl(name: str, version: str) -> str:
    return f"pkg:pypi/{name}@{version.replace('+', '%2B')}"


def _sha256(digest: str) -> dict[str, Json]:
    return {"alg": "SHA-256", "content": digest}


def _properties(**values: str) -> list[Json]:
    return [
        {"name": f"{_OURS}:{name}", "value": value} for name, value in values.items()
    ]
