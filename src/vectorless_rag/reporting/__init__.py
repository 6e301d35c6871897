"""A report of a data folder that a person would rather look at than query."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from vectorless_rag.audit import Verdict
from vectorless_rag.canon import Json
from vectorless_rag.reporting.collecting import collect
from vectorless_rag.reporting.documents import Shelf, Trees
from vectorless_rag.reporting.facts import Facts
from vectorless_rag.reporting.page import page
from vectorless_rag.reporting.writing import write
from vectorless_rag.settings import Settings
from vectorless_rag.store import open_store
from vectorless_rag.units import usd


@dataclass(frozen=True, kw_only=True)
class Written:
    """A report that stands in its file."""

    path: Path
    size_bytes: int
    trees: Trees
    facts: Facts

    @property
    def exit_status(self) -> int:
        """0; 20 if something is not what was written, 21 if something went unseen."""
        return self.facts.exit_status

    def to_json(self) -> dict[str, Json]:
        """Spell what the report counts."""
        facts = self.facts
        return {
            "path": str(self.path),
            "bytes": self.size_bytes,
            "trees": self.trees.value,
            "documents": len(facts.documents),
            "unreadable": len(facts.unreadable),
            "sections": facts.node_count,
            "degraded": sum(document.degraded_nodes for document in facts.documents),
            "without_artifact": len(facts.left),
            "stale": None if facts.code.configuration is None else len(facts.stale),
            "recipes": len(facts.recipes),
            "patches": len(facts.code.patches),
            "failures": {
                failure.code: failure.attempts
                for failure in facts.failures
                if failure.attempts
            },
            "requests": facts.ledger.calls,
            "cost_usd": f"{usd(facts.ledger.cost):f}",
            "ledger_problems": len(facts.ledger.problems),
            "findings": {
                verdict.value: len(facts.found(verdict)) for verdict in Verdict
            },
        }


def make_report(settings: Settings, path: Path | None = None) -> Written:
    """
    Write the report of a data folder.

    Args:
        settings: Which folder, and what would run now.
        path: The file; by default ``report.html`` in the folder.

    Raises:
        VectorlessRagError: ``store_unwritable``: there is no such folder, or the
            file cannot be written; ``settings_invalid``: another kind of file
            stands there.
    """
    facts = collect(settings, now=datetime.now(UTC))
    shelf = Shelf.for_facts(facts, open_store(settings))
    target = path or settings.data_dir / "report.html"
    size = write(target, page(facts, shelf))
    return Written(path=target, size_bytes=size, trees=shelf.form, facts=facts)


__all__ = ["Trees", "Written", "make_report"]
