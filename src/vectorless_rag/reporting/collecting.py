"""Collect what a report says from a data folder; nothing in it is written."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime

import vectorless_rag
from vectorless_rag import upstream
from vectorless_rag.artifact import Artifact, read_artifact
from vectorless_rag.audit import (
    Verdict,
    changes,
    sound_artifacts,
    verify_bills,
    verify_built,
    verify_ledger,
    verify_store,
)
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.ledger.book import Ledger
from vectorless_rag.ledger.outcomes import FailedRequests
from vectorless_rag.ledger.types import By
from vectorless_rag.recipe import Configuration, Difference
from vectorless_rag.reporting.facts import (
    CodeFacts,
    DocumentFacts,
    Facts,
    FailureFacts,
    LedgerFacts,
    RecipeFacts,
    Unreadable,
)
from vectorless_rag.reporting.patches import patches_of
from vectorless_rag.running import running_code
from vectorless_rag.runs import Ended, unfinished
from vectorless_rag.settings import Settings
from vectorless_rag.store import Store, Stored, open_store
from vectorless_rag.tree import count, walk
from vectorless_rag.units import Sha256


def collect(settings: Settings, *, now: datetime) -> Facts:
    """
    Look at everything a data folder holds.

    Args:
        settings: Which folder, and what would run now.
        now: When the report is made.

    Raises:
        VectorlessRagError: ``store_unwritable``: there is no such folder. What is
            wrong inside it is part of the report.
    """
    if not settings.data_dir.is_dir():
        raise VectorlessRagError(
            Code.STORE_UNWRITABLE, f"{settings.data_dir.name}: no such folder"
        )
    store = open_store(settings)
    code, patches = _code(settings)
    entries = list(_documents(store, code.configuration, patches))
    documents = [entry for entry in entries if isinstance(entry, DocumentFacts)]
    documents.sort(key=lambda document: document.activated_at, reverse=True)
    ledger, failed = _ledger(settings, store)
    left = unfinished(settings.runs_dir)
    return Facts(
        made_at=now,
        version=vectorless_rag.__version__,
        folder=settings.data_dir.absolute().name,
        code=code,
        documents=tuple(documents),
        unreadable=tuple(entry for entry in entries if isinstance(entry, Unreadable)),
        recipes=_recipes(documents, code.configuration),
        failures=_failures(ledger, failed, documents, left),
        left=tuple(left),
        ledger=ledger,
        findings=tuple(verify_store(store)),
    )


def read_unaltered(store: Store, stored: Stored) -> Artifact:
    """
    Read an artifact as an audit does: nothing is put back in place.

    Raises:
        VectorlessRagError: ``store_corrupt`` or ``store_unwritable``.
    """
    return read_artifact(store.blobs.get(stored.artifact_id))


def _documents(
    store: Store, now: Configuration | None, patches: Mapping[str, str]
) -> Iterator[DocumentFacts | Unreadable]:
    for document in store.chain.documents():
        try:
            yield _document(store, document, now, patches)
        except VectorlessRagError as error:
            yield Unreadable(document_sha256=document, failure=error.failure)


def _document(
    store: Store,
    document: Sha256,
    now: Configuration | None,
    patches: Mapping[str, str],
) -> DocumentFacts:
    activation = next(store.chain.newest_first(document), None)
    if activation is None:
        raise VectorlessRagError(Code.STORE_CORRUPT, "no activation")
    stored = store.stored(activation.recipe_hash, activation.generation)
    artifact = read_unaltered(store, stored)
    marks = [node.degraded for _, node in walk(artifact.tree) if node.degraded]
    codes = Counter(mark.code for of_node in marks for mark in of_node)
    return DocumentFacts(
        stored=stored,
        run=store.read_run(stored),
        name=artifact.document.name,
        size_bytes=artifact.document.size_bytes,
        page_count=artifact.page_count,
        pages_without_text=sum(not text.strip() for text in artifact.pages),
        node_count=count(artifact.tree),
        degraded=tuple(sorted(codes.items())),
        degraded_nodes=len(marks),
        route=artifact.route,
        activated_at=activation.activated_at,
        activations=len(store.chain.numbers(document)),
        changes=None if now is None else _words(changes(stored, now, patches)),
    )


def _words(differences: Sequence[Difference]) -> tuple[str, ...]:
    return tuple(difference.words for difference in differences)


def _code(settings: Settings) -> tuple[CodeFacts, Mapping[str, str]]:
    """Return what runs here, and the digest of each of its patches."""
    try:
        patches = patches_of(upstream.resources_root())
    except VectorlessRagError as error:
        return CodeFacts(configuration=None, failure=error.failure, patches=()), {}
    try:
        code = running_code(settings)
    except VectorlessRagError as error:
        broken = CodeFacts(configuration=None, failure=error.failure, patches=patches)
        return broken, {}
    digests = {patch.file: patch.sha256 for patch in code.record.patches}
    facts = CodeFacts(configuration=code.configuration, failure=None, patches=patches)
    return facts, digests


def _ledger(
    settings: Settings, store: Store
) -> tuple[LedgerFacts, Sequence[FailedRequests]]:
    if settings.owns_ledger and not settings.ledger_file.exists():
        return LedgerFacts(present=False), ()
    try:
        with closing(Ledger.open(settings.effective_ledger_url)) as ledger:
            facts = LedgerFacts(
                problems=tuple(
                    _contradictions(store, ledger, own=settings.owns_ledger)
                ),
                by_operation=tuple(ledger.report(By.OPERATION)),
                by_day=tuple(ledger.report(By.DAY)),
                by_model=tuple(ledger.report(By.MODEL)),
                budgets=tuple(
                    (name, budget)
                    for name, budget in ledger.budgets().items()
                    if budget.reserved
                    or (budget.limit is not None and not name.startswith("run:"))
                ),
                ends=tuple(ledger.ends()),
            )
            return facts, ledger.failed_requests()
    except VectorlessRagError as error:
        return LedgerFacts(failure=error.failure), ()


def _contradictions(store: Store, ledger: Ledger, *, own: bool) -> Iterator[str]:
    """Yield what the ledger says against itself, and against the run records."""
    artifacts = sound_artifacts(store)
    found = [
        *verify_ledger(ledger),
        *verify_bills(store, ledger, artifacts),
        *verify_built(ledger, artifacts, own=own),
    ]
    yield from (f"{f.file}: {f.what}" for f in found if f.verdict is Verdict.MISMATCH)


def _recipes(
    documents: Sequence[DocumentFacts], now: Configuration | None
) -> tuple[RecipeFacts, ...]:
    used = Counter(document.configuration for document in documents)
    return tuple(
        RecipeFacts(configuration=options, documents=number, running=options == now)
        for options, number in used.most_common()
    )


def _failures(
    ledger: LedgerFacts,
    failed: Sequence[FailedRequests],
    documents: Sequence[DocumentFacts],
    left: Sequence[Ended],
) -> tuple[FailureFacts, ...]:
    attempts: Counter[str] = Counter()
    requests: Counter[str] = Counter()
    marks: Counter[str] = Counter()
    last: dict[str, int] = {}
    for end in ledger.ends:
        if end.code is not None:
            attempts[end.code] += end.attempts
            last[end.code] = max(last.get(end.code, 0), end.last_us)
    for row in failed:
        requests[row.code] += row.requests
        last[row.code] = max(last.get(row.code, 0), row.last_us)
    for document in documents:
        marks.update(dict(document.degraded))
    lost = Counter(ended.code for ended in left if ended.code is not None)
    codes = attempts.keys() | requests.keys() | marks.keys() | lost.keys()
    facts = [
        FailureFacts(
            code=str(code),
            documents=lost[code],
            attempts=attempts[code],
            requests=requests[code],
            marks=marks[code],
            last_us=last.get(code),
        )
        for code in codes
    ]
    return tuple(
        sorted(facts, key=lambda f: (-f.documents, -f.attempts, -f.marks, f.code))
    )
