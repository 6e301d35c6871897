"""What one run leaves behind: the artifact, its provenance and its bill."""

from vectorless_rag.artifact.content import (
    Artifact,
    Document,
    Route,
    artifact_of,
    read_artifact,
)
from vectorless_rag.artifact.manifest import (
    Manifest,
    Patch,
    Provenance,
    read_manifest,
)
from vectorless_rag.artifact.run import (
    FailureRecord,
    OperationUsage,
    RunRecord,
    RunUsage,
    read_run,
    timestamp,
)

__all__ = [
    "Artifact",
    "Document",
    "FailureRecord",
    "Manifest",
    "OperationUsage",
    "Patch",
    "Provenance",
    "Route",
    "RunRecord",
    "RunUsage",
    "artifact_of",
    "read_artifact",
    "read_manifest",
    "read_run",
    "timestamp",
]
