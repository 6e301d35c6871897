"""What one ingest came to, for callers and for the command line."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Self

from vectorless_rag.canon import Json
from vectorless_rag.errors import Code, Failure
from vectorless_rag.source import storable
from vectorless_rag.units import NanoUsd, Sha256, usd

if TYPE_CHECKING:
    from vectorless_rag.ledger.types import Usage


class Status(StrEnum):
    """How an ingest ended."""

    BUILT = "built"
    REUSED = "reused"
    FAILED = "failed"

    SKIPPED = "skipped"
    """Not begun: the run ended before its turn."""


@dataclass(frozen=True, kw_only=True)
class Spend:
    """What a run used, over all provider requests."""

    calls: int = 0
    """Provider requests, failed ones included."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: NanoUsd = NanoUsd(0)  # noqa: RUF009  (an int to Python)

    @classmethod
    def of(cls, usage: "Usage") -> Self:
        """Take the sums of an attempt's ledger rows."""
        return cls(
            calls=usage.calls,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            cost=usage.cost_nano,
        )

    def to_json(self) -> dict[str, Json]:
        """Spell it; dollars are an exact decimal text."""
        return {
            "calls": self.calls,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "cost_usd": f"{usd(self.cost):f}",
        }


@dataclass(frozen=True, kw_only=True)
class IngestResult:
    """
    One document: its artifact, or a classified failure.

    What is not known when it fails is None.
    """

    source: Path
    status: Status
    recipe_hash: Sha256 | None = None
    artifact_id: Sha256 | None = None

    artifact_path: Path | None = None
    """Folder with ``artifact.json``, ``manifest.json`` and ``run.json``."""

    pages: int | None = None
    nodes: int | None = None

    degraded: int = 0
    """Nodes in which something fell back, and says so."""

    spend: Spend = Spend()
    """What this ingest cost; nothing when it was reused."""

    failure: Failure | None = None

    skipped: Code | None = None
    """Why the run ended before this document's turn."""

    def to_json(self) -> dict[str, Json]:
        """Spell the result as the one object a document that ``--json`` prints."""
        return {
            # JSON has no bytes: those that are not UTF-8 become replacement marks.
            "source": storable(str(self.source)),
            "status": self.status.value,
            "recipe_hash": self.recipe_hash,
            "artifact_id": self.artifact_id,
            "artifact_path": str(self.artifact_path) if self.artifact_path else None,
            "pages": self.pages,
            "nodes": self.nodes,
            "degraded": self.degraded,
            "usage": self.spend.to_json(),
            "failure": spelled(self.failure) if self.failure else None,
            "skipped": self.skipped.value if self.skipped else None,
        }


def spelled(failure: Failure) -> dict[str, Json]:
    """Spell a failure as every command prints it."""
    return {
        "code": failure.code.value,
        "phase": failure.phase,
        "retryable": failure.retryable,
        "message": failure.message,
    }
