"""What a report says, as frozen values, before anyone decides how it looks."""

from dataclasses import dataclass
from datetime import datetime

from vectorless_rag.artifact import Route, RunRecord
from vectorless_rag.audit import Finding, Verdict
from vectorless_rag.errors import Failure
from vectorless_rag.ledger.outcomes import EndRow
from vectorless_rag.ledger.types import Budget, Outcome, ReportRow
from vectorless_rag.recipe import Configuration
from vectorless_rag.runs import Ended
from vectorless_rag.store import Stored
from vectorless_rag.units import NanoUsd, Sha256


@dataclass(frozen=True, kw_only=True)
class DocumentFacts:
    """One document and its current artifact."""

    stored: Stored
    run: RunRecord

    name: str
    size_bytes: int
    page_count: int
    pages_without_text: int
    node_count: int

    degraded: tuple[tuple[str, int], ...]
    """Marks by code; a node may have several."""

    degraded_nodes: int
    route: Route

    activated_at: str
    """When its artifact became the current one, as `Moment` spells it."""

    activations: int
    """How often the document was given another current artifact."""

    changes: tuple[str, ...] | None
    """
    Why the current build and settings would not make this artifact, in words.

    Empty: they would. None: there is no build to ask.
    """

    @property
    def configuration(self) -> Configuration:
        """What it was made with."""
        return self.stored.manifest.recipe.configuration

    @property
    def stale(self) -> bool:
        """Whether the current build and settings would not make it."""
        return bool(self.changes)


@dataclass(frozen=True, kw_only=True)
class Unreadable:
    """A document whose current artifact cannot be read."""

    document_sha256: Sha256
    failure: Failure


@dataclass(frozen=True, kw_only=True)
class RecipeFacts:
    """A configuration that current artifacts were made with."""

    configuration: Configuration
    documents: int

    running: bool
    """Whether the current build and settings are this one."""


@dataclass(frozen=True, kw_only=True)
class PatchFacts:
    """A patch of the series, and why there is one."""

    id: str
    title: str

    reason: str
    """Its header's first sentences."""

    prose: str
    """Its header, in paragraphs."""

    upstream_status: str
    drop_when: str

    proofs: tuple[str, ...]
    """Tests that fail just before it and pass just after it."""


@dataclass(frozen=True, kw_only=True)
class CodeFacts:
    """The build that runs here, and the settings it runs under."""

    configuration: Configuration | None
    """None: there is no sound build."""

    failure: Failure | None
    """Why there is none."""

    patches: tuple[PatchFacts, ...]


@dataclass(frozen=True, kw_only=True)
class FailureFacts:
    """What went wrong under one code."""

    code: str
    documents: int = 0
    """Documents whose last ingest ended so."""

    attempts: int = 0
    requests: int = 0

    marks: int = 0
    """Marks of this code on sections of current artifacts."""

    last_us: int | None = None
    """When an attempt or a request last failed so."""

    @property
    def only_requests(self) -> bool:
        """Whether asking again helped each time."""
        return not (self.documents or self.attempts or self.marks)


@dataclass(frozen=True, kw_only=True)
class LedgerFacts:
    """What the ledger holds."""

    failure: Failure | None = None
    """Why it could not be read."""

    present: bool = True
    """Whether there is one; nothing was ever run without it."""

    problems: tuple[str, ...] = ()
    """What does not add up."""

    by_operation: tuple[ReportRow, ...] = ()
    by_day: tuple[ReportRow, ...] = ()
    by_model: tuple[ReportRow, ...] = ()
    budgets: tuple[tuple[str, Budget], ...] = ()
    """Those with a limit, or with something held."""

    ends: tuple[EndRow, ...] = ()

    @property
    def cost(self) -> NanoUsd:
        """Everything ever spent."""
        return NanoUsd(sum(row.cost_nano for row in self.by_operation))

    @property
    def calls(self) -> int:
        """Every provider request."""
        return sum(row.calls for row in self.by_operation)

    def count(self, outcome: Outcome | None) -> int:
        """Count the attempts that ended so; None: not at all yet."""
        return sum(end.attempts for end in self.ends if end.outcome is outcome)


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Everything a report says, but for the trees."""

    made_at: datetime
    version: str

    folder: str
    """Name of the data folder, without what is above it."""

    code: CodeFacts
    documents: tuple[DocumentFacts, ...]
    unreadable: tuple[Unreadable, ...]
    recipes: tuple[RecipeFacts, ...]
    failures: tuple[FailureFacts, ...]
    left: tuple[Ended, ...]
    """Documents whose last ingest left no artifact."""

    ledger: LedgerFacts
    findings: tuple[Finding, ...]

    def found(self, verdict: Verdict) -> list[Finding]:
        """Return the findings of one kind."""
        return [finding for finding in self.findings if finding.verdict is verdict]

    @property
    def stale(self) -> list[DocumentFacts]:
        """Documents that would be built otherwise now."""
        return [document for document in self.documents if document.stale]

    @property
    def node_count(self) -> int:
        """Sections of all current artifacts."""
        return sum(document.node_count for document in self.documents)

    @property
    def exit_status(self) -> int:
        """20: something is not what was written; 21: something went unseen."""
        if self.found(Verdict.MISMATCH) or self.ledger.problems or self.unreadable:
            return 20
        undecided = self.found(Verdict.UNDECIDED) or self.ledger.failure
        return 21 if undecided else 0
