"""
``manifest.json``: which code, which inputs and which run made an artifact.

An in-toto Statement with a SLSA-style predicate. It is not signed: it proves that
things fit together, not who put them there.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from vectorless_rag.canon import Json, canonical, sha256
from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.recipe import SCHEMA_VERSION, Recipe
from vectorless_rag.records import Digest, corrupt, decode
from vectorless_rag.units import Sha256

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://slsa.dev/provenance/v1"

# Names of kinds, not addresses: there is nothing to fetch.
BUILDER = "pkg:generic/vectorless-rag"
BUILD_TYPE = f"{BUILDER}#buildtypes/artifact/v{SCHEMA_VERSION}"

_NUMBERED = re.compile(r"(\d{4})-")


@dataclass(frozen=True, kw_only=True)
class Patch:
    """One patch of the series, as it was applied."""

    name: str
    """File name: ``0010-accounted-model-calls.patch``."""

    sha256: Digest

    upstream_status: str
    """Its ``Upstream-Status`` trailer."""

    proof: tuple[str, ...]
    """Its ``Proof`` trailers: ids of tests."""

    tree_after: Digest
    """Digest of the upstream tree after it."""

    @property
    def label(self) -> str:
        """``patch/0010``."""
        number = _NUMBERED.match(self.name)
        return f"patch/{number[1] if number else self.name}"


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """The code that ran, beyond the digests that are in the recipe."""

    version: str
    """Of this package."""

    upstream_name: str
    upstream_version: str

    upstream_sha256: Digest
    """Of the archive that was fetched."""

    patches: tuple[Patch, ...]
    """In the order of the series."""

    python: str
    """Version of the interpreter."""

    libraries: dict[str, str] = field(default_factory=dict)
    """Versions of installed packages that took part, by name."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """Ties an artifact and its bill to what made them."""

    artifact_id: Digest
    run_sha256: Digest

    attempt_id: str
    """Owner of the ledger rows."""

    recipe: Recipe
    provenance: Provenance

    @cached_property
    def encoded(self) -> bytes:
        """The Statement as bytes, in canonical form."""
        return canonical(self.to_json())

    @property
    def manifest_sha256(self) -> Sha256:
        """Digest of `encoded`."""
        return sha256(self.encoded)

    @property
    def patches(self) -> dict[str, str]:
        """Digest of each patch by file name, in order, for `recipe.explain`."""
        return {patch.name: patch.sha256 for patch in self.provenance.patches}

    def to_json(self) -> dict[str, Json]:
        """Spell the Statement."""
        builder = {"vectorless-rag": self.provenance.version}
        return {
            "_type": STATEMENT_TYPE,
            "subject": [
                {"name": "artifact.json", "digest": {"sha256": self.artifact_id}},
                {"name": "run.json", "digest": {"sha256": self.run_sha256}},
            ],
            "predicateType": PREDICATE_TYPE,
            "predicate": {
                "buildDefinition": {
                    "buildType": BUILD_TYPE,
                    "externalParameters": self.recipe.inputs(),
                    "internalParameters": {
                        "configuration_hash": (
                            self.recipe.configuration.configuration_hash
                        ),
                        "recipe_hash": self.recipe.recipe_hash,
                        "python": self.provenance.python,
                    },
                    "resolvedDependencies": self._dependencies(),
                },
                "runDetails": {
                    "builder": {"id": BUILDER, "version": builder},
                    "metadata": {"invocationId": self.attempt_id},
                },
            },
        }

    def _dependencies(self) -> list[Json]:
        made, options = self.provenance, self.recipe.configuration
        upstream: Json = {
            "name": "upstream",
            "uri": f"pkg:pypi/{made.upstream_name}@{made.upstream_version}",
            "digest": {"sha256": made.upstream_sha256},
        }
        patches: list[Json] = [
            {
                "name": patch.label,
                "uri": f"patches/{patch.name}",
                "digest": {"sha256": patch.sha256},
                "annotations": {
                    "upstreamStatus": patch.upstream_status,
                    "proof": patch.proof,
                    "treeAfter": patch.tree_after,
                },
            }
            for patch in made.patches
        ]
        code: list[Json] = [
            {"name": "patch-series", "digest": {"patch_sha256": options.patch_sha256}},
            {"name": "patched-tree", "digest": {"tree_sha256": options.tree_sha256}},
            {"name": "runtime", "digest": {"runtime_sha256": options.runtime_sha256}},
            {"name": "document", "digest": {"sha256": self.recipe.document_sha256}},
        ]
        libraries: list[Json] = [
            {"name": f"library/{name}", "uri": f"pkg:pypi/{name}@{version}"}
            for name, version in sorted(made.libraries.items())
        ]
        return [upstream, *patches, *code, *libraries]


def read_manifest(data: bytes) -> Manifest:
    """
    Read a manifest back.

    Raises:
        VectorlessRagError: ``store_corrupt``: not the canonical form of a
            Statement of ours. An unknown parameter is refused too.
    """
    try:
        fields = _fields(json.loads(data))
        manifest = decode(Manifest, canonical(fields), "manifest.json")
    except VectorlessRagError:
        raise
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise corrupt("manifest.json: not a Statement") from None
    if manifest.encoded != data:
        raise corrupt("manifest.json: not in canonical form")
    return manifest


def _fields(raw: Mapping[str, Any]) -> dict[str, Json]:
    """Find the fields of a `Manifest` where the Statement has them."""
    artifact, run = raw["subject"]
    definition = raw["predicate"]["buildDefinition"]
    details = raw["predicate"]["runDetails"]
    return {
        "artifact_id": artifact["digest"]["sha256"],
        "run_sha256": run["digest"]["sha256"],
        "attempt_id": details["metadata"]["invocationId"],
        "recipe": definition["externalParameters"],
        "provenance": {
            "version": details["builder"]["version"]["vectorless-rag"],
            "python": definition["internalParameters"]["python"],
            **_resolved(definition["resolvedDependencies"]),
        },
    }


def _resolved(dependencies: list[dict[str, Any]]) -> dict[str, Json]:
    upstream = dependencies[0]
    name, _, version = upstream["uri"].removeprefix("pkg:pypi/").partition("@")
    return {
        "upstream_name": name,
        "upstream_version": version,
        "upstream_sha256": upstream["digest"]["sha256"],
        "patches": [
            {
                "name": item["uri"].removeprefix("patches/"),
                "sha256": item["digest"]["sha256"],
                "upstream_status": item["annotations"]["upstreamStatus"],
                "proof": item["annotations"]["proof"],
                "tree_after": item["annotations"]["treeAfter"],
            }
            for item in dependencies
            if item["name"].startswith("patch/")
        ],
        "libraries": {
            item["name"].removeprefix("library/"): item["uri"].rpartition("@")[2]
            for item in dependencies
            if item["name"].startswith("library/")
        },
    }
