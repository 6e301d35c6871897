"""
The build record: which bytes made a patched tree, and which files it holds.

It is shaped as an in-toto Statement. Unsigned, it proves that a build is
consistent, not who made it.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vectorless_rag.canon import Json, canonical
from vectorless_rag.units import Sha256
from vectorless_rag.upstream.faults import reason, tampered, unavailable
from vectorless_rag.upstream.tree import Entry

RECORD_FILE = "build-record.json"
_STATEMENT = "https://in-toto.io/Statement/v1"
_PREDICATE = "https://slsa.dev/provenance/v1"
_BUILD = "urn:vectorless-rag:buildtype:patched-tree:1"
_BUILDER = "urn:vectorless-rag:builder:local:1"


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where the bytes of a build came from."""

    uri: str
    """``pkg:pypi/...``, ``git+<commit>`` or ``file:<name>``; no host, no path."""

    algorithm: str
    """What *digest* is: ``sha256``, ``gitCommit`` or ``tree_sha256``."""

    digest: str


@dataclass(frozen=True, kw_only=True)
class BuiltPatch:
    """One patch of a build."""

    id: str
    file: str
    sha256: Sha256
    upstream_status: str
    proofs: tuple[str, ...]
    tree_after: Sha256


@dataclass(frozen=True, kw_only=True)
class BuildRecord:
    """What a build folder was made of."""

    pageindex_version: str
    """``0.4.7+vrN``."""

    upstream_sha256: Sha256
    """Digest of the pinned wheel."""

    patch_sha256: Sha256
    tree_sha256: Sha256
    patches: tuple[BuiltPatch, ...]

    files: tuple[Entry, ...]
    """Every file of the folder but the record itself."""

    origin: Origin

    git: str
    """Version of the git that applied the patches."""

    python: str
    """Version of the Python that ran the build."""

    def identity(self) -> tuple[str, Sha256, Sha256, Sha256]:
        """Return what two builds of one pin and one series share."""
        return (
            self.pageindex_version,
            self.upstream_sha256,
            self.patch_sha256,
            self.tree_sha256,
        )

    def encode(self) -> bytes:
        """Spell the record as its file does, in canonical JSON."""
        return canonical(
            {
                "_type": _STATEMENT,
                "predicateType": _PREDICATE,
                "subject": [
                    {
                        "name": "patched-tree",
                        "digest": {"tree_sha256": self.tree_sha256},
                    }
                ],
                "predicate": {
                    "buildDefinition": {
                        "buildType": _BUILD,
                        "externalParameters": {
                            "pageindex_version": self.pageindex_version
                        },
                        "internalParameters": {
                            "git": self.git,
                            "patch_sha256": self.patch_sha256,
                            "python": self.python,
                            "upstream_sha256": self.upstream_sha256,
                        },
                        "resolvedDependencies": self._dependencies(),
                    },
                    "runDetails": {
                        "builder": {"id": _BUILDER},
                        "byproducts": [_byproduct(entry) for entry in self.files],
                    },
                },
            }
        )

    def _dependencies(self) -> list[Json]:
        upstream: Json = {
            "name": "upstream",
            "uri": self.origin.uri,
            "digest": {self.origin.algorithm: self.origin.digest},
        }
        return [upstream, *(_dependency(patch) for patch in self.patches)]


def read_record(folder: Path) -> BuildRecord:
    """
    Read the record of a build folder.

    Raises:
        VectorlessRagError: ``upstream_unavailable``: there is none;
            ``upstream_tampered``: it is no record of ours.
    """
    try:
        raw = json.loads((folder / RECORD_FILE).read_bytes())
    except OSError as error:
        raise unavailable(f"{folder.name}/{RECORD_FILE}: {reason(error)}") from None
    except ValueError:
        raise tampered(f"{RECORD_FILE} is no JSON") from None
    try:
        return _record(raw)
    except (TypeError, KeyError, ValueError) as error:
        raise tampered(f"{RECORD_FILE} is no build record: {error!r}") from None


def _record(raw: dict[str, Any]) -> BuildRecord:
    if (raw["_type"], raw["predicateType"]) != (_STATEMENT, _PREDICATE):
        raise ValueError("another kind of statement")
    definition = raw["predicate"]["buildDefinition"]
    if definition["buildType"] != _BUILD:
        raise ValueError("another kind of build")
    ((subject,), external) = raw["subject"], definition["externalParameters"]
    if set(external) != {"pageindex_version"}:
        raise ValueError("unknown external parameters")
    inner = definition["internalParameters"]
    upstream, *patches = definition["resolvedDependencies"]
    ((algorithm, digest),) = upstream["digest"].items()
    byproducts = raw["predicate"]["runDetails"]["byproducts"]
    return BuildRecord(
        pageindex_version=external["pageindex_version"],
        upstream_sha256=inner["upstream_sha256"],
        patch_sha256=inner["patch_sha256"],
        tree_sha256=subject["digest"]["tree_sha256"],
        patches=_patches(patches),
        files=tuple(_entry(item) for item in byproducts),
        origin=Origin(uri=upstream["uri"], algorithm=algorithm, digest=digest),
        git=inner["git"],
        python=inner["python"],
    )


def _dependency(patch: BuiltPatch) -> Json:
    return {
        "name": f"patch/{patch.id}",
        "uri": f"patches/{patch.file}",
        "digest": {"sha256": patch.sha256},
        "annotations": {
            "upstreamStatus": patch.upstream_status,
            "proof": patch.proofs,
            "treeAfter": patch.tree_after,
        },
    }


def _patches(raw: Sequence[dict[str, Any]]) -> tuple[BuiltPatch, ...]:
    return tuple(
        BuiltPatch(
            id=item["name"].removeprefix("patch/"),
            file=item["uri"].removeprefix("patches/"),
            sha256=item["digest"]["sha256"],
            upstream_status=item["annotations"]["upstreamStatus"],
            proofs=tuple(item["annotations"]["proof"]),
            tree_after=item["annotations"]["treeAfter"],
        )
        for item in raw
    )


def _byproduct(entry: Entry) -> Json:
    return {
        "name": entry.path,
        "digest": {"sha256": entry.sha256},
        "annotations": {"mode": entry.mode},
    }


def _entry(raw: dict[str, Any]) -> Entry:
    return Entry(
        path=raw["name"],
        mode=raw["annotations"]["mode"],
        sha256=raw["digest"]["sha256"],
    )
