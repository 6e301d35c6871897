"""What an ingestion worker calls: settings once, then one document after another."""

import threading
from collections.abc import Callable
from pathlib import Path

from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.pipeline import Order, ingest
from vectorless_rag.prefork import ForkServers
from vectorless_rag.results import IngestResult, Status
from vectorless_rag.running import RunningCode, running_code
from vectorless_rag.runs import new_run_id
from vectorless_rag.settings import Settings
from vectorless_rag.wire import Progress


def _ignore(_progress: Progress) -> None:
    """Report to nobody."""


def _go_on() -> None:
    """Stop nothing."""


class PageIndexAdapter:
    """
    Turns PDFs into published artifacts.

    All documents of one adapter are one run: they share its budget. Any number of
    threads may use one; a child dies with the thread that started it.

    Args:
        settings: Model, budget, limits and folders.
        run_id: Name of the run in the ledger; made up if not given.
        servers: What children are forked from, shared with others; the owner closes
            them. By default its own, from the second child on.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        run_id: str | None = None,
        servers: ForkServers | None = None,
    ) -> None:
        self.settings = settings
        self._servers = servers or ForkServers(at_once=False)
        self.run_id = run_id or new_run_id()
        self._code: RunningCode | None = None
        self._looking = threading.Lock()

    def ingest(
        self,
        path: str | Path,
        *,
        rebuild: bool = False,
        on_progress: Callable[[Progress], None] = _ignore,
        check: Callable[[], None] = _go_on,
        order: Order | None = None,
    ) -> IngestResult:
        """
        Publish the artifact of one document, or return the one that is there.

        Args:
            path: The PDF.
            rebuild: Build again where an artifact is there; both stay, and the
                new one becomes current.
            on_progress: Is handed each report of the child while it works.
            check: Is called a few times a second meanwhile. Raises it ``cancelled``,
                the child settles what is in flight, and the result says so.
            order: Build these bytes only, as this attempt, under the run's budget as
                it stands; None: whatever is there, and set that budget.

        Returns:
            An artifact, or a classified failure with what it cost. It never
            raises for a document; a defect of ours or an interrupt passes.
        """
        try:
            code = self.code()
        except VectorlessRagError as error:
            return IngestResult(
                source=Path(path), status=Status.FAILED, failure=error.failure
            )
        return ingest(
            Path(path),
            self.settings,
            code,
            run_id=self.run_id,
            rebuild=rebuild,
            on_progress=on_progress,
            check=check,
            order=order,
            servers=self._servers,
        )

    def code(self) -> RunningCode:
        """
        Return what runs, looked at once a run, however many threads ingest at once.

        Raises:
            VectorlessRagError: ``upstream_unavailable``, ``upstream_tampered`` or
                ``upstream_drift``.
        """
        with self._looking:
            if self._code is None:
                self._code = running_code(self.settings)
            return self._code
