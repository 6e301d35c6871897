"""One document, from its path to a published artifact: every stage by name."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from vectorless_rag import events
from vectorless_rag.artifact import artifact_of
from vectorless_rag.attempts import AccountedAttempt
from vectorless_rag.child_settings import batching_of, limits_of
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.launch import Upstream, run_document
from vectorless_rag.prefork import ForkServers
from vectorless_rag.recipe import Recipe
from vectorless_rag.results import IngestResult, Status
from vectorless_rag.reuse import done, recipe_of, reuse
from vectorless_rag.running import RunningCode
from vectorless_rag.settings import Settings
from vectorless_rag.source import Source, check_unchanged, copy, identify
from vectorless_rag.store import Store, Stored, open_store
from vectorless_rag.units import Sha256
from vectorless_rag.wire import Progress, Request
from vectorless_rag.workspace import working_folder

log = events.logger()


@dataclass(frozen=True, kw_only=True)
class Order:
    """What was ordered, where the one who builds did not choose it."""

    document_sha256: Sha256
    """Digest of the document: other bytes under its name are not built."""

    attempt_id: str
    """Name of the attempt, so that the one who ordered can find it."""

    patience_s: float | None = None
    """Longest wait for another who builds the same, in seconds; None: for ever."""


# The child reads copies in its own folder: of the PDF, and of the upstream.
_DOCUMENT = "document.pdf"
_CHECKOUT = "upstream"

_SAID_AFTER_S = 5.0
_WAITING = "waiting for another process"


def ingest(
    path: Path,
    settings: Settings,
    code: RunningCode,
    *,
    run_id: str,
    rebuild: bool,
    on_progress: Callable[[Progress], None],
    check: Callable[[], None],
    order: Order | None = None,
    servers: ForkServers | None = None,
) -> IngestResult:
    """
    Publish the artifact of one document, or return the one that is there.

    Args:
        path: The PDF.
        settings: Model, budget, limits and folders.
        code: What will run.
        run_id: The run whose budget it counts towards.
        rebuild: Build again where an artifact is there.
        order: What was ordered, where somebody else did.
        servers: What may start the child; None: it is started directly.
        on_progress: Is handed each report of the child.
        check: Is called a few times a second while the child works or another
            process builds the same; what it raises ends the ingest.

    Returns:
        The result; a foreseen failure is one of its values.
    """
    result = IngestResult(source=path, status=Status.FAILED)
    attempt: AccountedAttempt | None = None
    try:
        source = identify(
            path, max_bytes=settings.max_source_bytes, roots=settings.source_roots
        )
        _check_ordered(source, order)
        recipe = recipe_of(source, code)
        result = replace(result, recipe_hash=recipe.recipe_hash)
        store = open_store(settings)
        waiting = _Waiting(
            recipe=recipe,
            patience_s=order.patience_s if order is not None else None,
            on_progress=on_progress,
            check=check,
        )
        with _unless_stored(store, recipe, rebuild=rebuild, check=waiting) as reused:
            if reused is not None:
                return reuse(result, store, reused)
            attempt = _attempt(settings, recipe, run_id, order)
            job = _Job(
                source=source,
                recipe=recipe,
                code=code,
                store=store,
                check=check,
                servers=servers,
            )
            built = _build(job, attempt, rebuild=rebuild, on_progress=on_progress)
        result = replace(result, spend=attempt.spend)
        return done(result, store, built, Status.BUILT)
    except VectorlessRagError as error:
        log.info("ingest_failed", code=error.code, recipe=result.recipe_hash)
        spend = attempt.spend if attempt is not None else result.spend
        return replace(result, failure=error.failure, spend=spend)


def _check_ordered(source: Source, order: Order | None) -> None:
    if order is not None and source.sha256 != order.document_sha256:
        raise VectorlessRagError(Code.SOURCE_CHANGED, source.name)


def _attempt(
    settings: Settings, recipe: Recipe, run_id: str, order: Order | None
) -> AccountedAttempt:
    if order is None:
        return AccountedAttempt(settings=settings, recipe=recipe, run_id=run_id)
    return AccountedAttempt(
        settings=settings,
        recipe=recipe,
        run_id=run_id,
        # Whoever ordered it has set what the run may spend.
        limits_run=False,
        attempt_id=order.attempt_id,
    )


@dataclass(frozen=True, kw_only=True)
class _Job:
    """What is built, of what, by what, and where it goes."""

    source: Source
    recipe: Recipe
    code: RunningCode
    store: Store
    check: Callable[[], None]
    servers: ForkServers | None

    @property
    def upstream(self) -> Upstream:
        """What the child runs."""
        return Upstream(
            copy_to=self.code.copy_to, code=self.code.names, servers=self.servers
        )

    def check_code(self, settings: Settings) -> None:
        """
        See that the code is what it was before the child ran.

        Raises:
            VectorlessRagError: ``upstream_tampered``.
        """
        try:
            self.code.check_unchanged(settings)
        except VectorlessRagError:
            # A server may have imported what was there meanwhile.
            if self.servers is not None:
                self.servers.retire()
            raise


@dataclass(kw_only=True)
class _Waiting:
    """What is called while another process builds the same."""

    recipe: Recipe
    patience_s: float | None
    on_progress: Callable[[Progress], None]
    check: Callable[[], None]
    _since: float | None = None
    _said: bool = False

    def __call__(self) -> None:
        """
        Say after a while what is waited for.

        Raises:
            VectorlessRagError: ``in_progress``: patience is at its end; and what
                *check* raises.
        """
        self.check()
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        waited_s = now - self._since
        if not self._said and waited_s >= _SAID_AFTER_S:
            self._said = True
            # Who holds it may be frozen: nobody else would ever hear of it.
            log.warning("waits_for_another", recipe=self.recipe.recipe_hash)
            self.on_progress(Progress(stage=_WAITING))
        if self.patience_s is not None and waited_s >= self.patience_s:
            raise VectorlessRagError(Code.IN_PROGRESS)


@contextmanager
def _unless_stored(
    store: Store, recipe: Recipe, *, rebuild: bool, check: Callable[[], None]
) -> Iterator[Stored | None]:
    """Look, lock, look again: of many processes that ask at once, one builds."""
    stored = None if rebuild else store.find(recipe.recipe_hash)
    if stored is not None:
        yield stored
        return
    with store.lock(recipe.recipe_hash, check=check):
        yield None if rebuild else store.find(recipe.recipe_hash)


def _build(
    job: _Job,
    attempt: AccountedAttempt,
    *,
    rebuild: bool,
    on_progress: Callable[[Progress], None],
) -> Stored:
    settings, source = attempt.settings, job.source
    with attempt, working_folder() as work:
        copy(source, work / _DOCUMENT)
        request = _request(job, attempt, work, rebuild=rebuild)
        found, notes = run_document(
            request,
            settings,
            upstream=job.upstream,
            work=work,
            on_progress=on_progress,
            check=job.check,
        )
        artifact = artifact_of(
            found, recipe=job.recipe, name=source.name, size_bytes=source.size_bytes
        )
        # Hashed before the run; an edit meanwhile must not go under the old key.
        check_unchanged(source)
        job.check_code(settings)
        run = attempt.record(notes)
        published = job.store.publish(
            artifact, run, job.code.provenance, rebuild=rebuild
        )
    stored = published.stored
    log.info("artifact_published", artifact=stored.artifact_id, was=published.outcome)
    return stored


def _request(
    job: _Job, attempt: AccountedAttempt, work: Path, *, rebuild: bool
) -> Request:
    settings = attempt.settings
    return Request(
        attempt_id=attempt.attempt_id,
        parent_pid=os.getpid(),
        document_path=str(work / _DOCUMENT),
        document_sha256=job.source.sha256,
        checkout=str(work / _CHECKOUT),
        mode=settings.mode.value,
        model=settings.model,
        api_base=settings.api_base,
        ledger_url=settings.effective_ledger_url,
        budgets=attempt.budgets,
        limits=limits_of(settings),
        gate_dir=str(settings.gate_dir),
        journal_dir=str(settings.journal_dir) if settings.journal else None,
        journal_days=settings.journal_days,
        replay=settings.replay and not rebuild,
        trace_content=settings.trace_content,
        prices_json=settings.prices,
        allow_unpriced=settings.allow_unpriced,
        billed_statuses=tuple(
            sorted(settings.billed_statuses.get(settings.provider, ()))
        ),
        sandbox=settings.sandbox.value,
        closed_dir=str(settings.data_dir.absolute()),
        batching=batching_of(settings),
    )
