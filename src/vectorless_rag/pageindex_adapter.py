"""What an ingestion worker calls: settings once, then one document after another."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from vectorless_rag.attempts import new_run_id
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.ledger.book import Ledger
from vectorless_rag.ledger.types import Outcome
from vectorless_rag.pipeline import ingest
from vectorless_rag.results import IngestResult, Spend, Status
from vectorless_rag.running import RunningCode, running_code
from vectorless_rag.settings import Settings
from vectorless_rag.wire import Progress


def _ignore(_progress: Progress) -> None:
    """Report to nobody."""


class PageIndexAdapter:
    """
    Turns PDFs into published artifacts.

    All documents of one adapter are one run: they share its budget.

    Args:
        settings: Model, budget, limits and folders.
        run_id: Name of the run in the ledger; made up if not given.
    """

    def __init__(self, settings: Settings, *, run_id: str | None = None) -> None:
        self.settings = settings
        self.run_id = run_id or new_run_id()
        self._code: RunningCode | None = None

    def interrupted(self, path: str | Path) -> IngestResult:
        """
        Return the result of a document whose `ingest` was interrupted.

        It says what the attempt had cost by then, as the ledger knows it.
        """
        failure = VectorlessRagError(Code.CANCELLED).failure
        result = IngestResult(source=Path(path), status=Status.FAILED, failure=failure)
        # An interrupt may come before there is a ledger.
        with (
            suppress(VectorlessRagError),
            Ledger.open(self.settings.effective_ledger_url) as ledger,
        ):
            for attempt in ledger.attempts(self.run_id)[-1:]:
                if attempt.outcome is Outcome.CANCELLED:
                    spend = Spend.of(ledger.usage(attempt.attempt_id))
                    result = replace(
                        result, recipe_hash=attempt.recipe_hash, spend=spend
                    )
        return result

    def ingest(
        self,
        path: str | Path,
        *,
        rebuild: bool = False,
        on_progress: Callable[[Progress], None] = _ignore,
    ) -> IngestResult:
        """
        Publish the artifact of one document, or return the one that is there.

        Args:
            path: The PDF.
            rebuild: Build again where an artifact is there; both stay, and the
                new one becomes current.
            on_progress: Is handed each report of the child while it works.

        Returns:
            An artifact, or a classified failure with what it cost. It never
            raises for a document; a defect of ours or an interrupt passes.
        """
        try:
            if self._code is None:
                self._code = running_code(self.settings)
        except VectorlessRagError as error:
            return IngestResult(
                source=Path(path), status=Status.FAILED, failure=error.failure
            )
        return ingest(
            Path(path),
            self.settings,
            self._code,
            run_id=self.run_id,
            rebuild=rebuild,
            on_progress=on_progress,
        )
