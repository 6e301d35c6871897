"""
What an ingest would do and cost, before anything is spent.

Each document is rehearsed in the child that would build it. No provider is asked, the
ledger is read at most, and nothing is stored.
"""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from vectorless_rag.canon import Json
from vectorless_rag.child_settings import batching_of, limits_of
from vectorless_rag.errors import Failure, VectorlessRagError
from vectorless_rag.estimates import Tally, total
from vectorless_rag.funds import Funds, Needs
from vectorless_rag.launch import Upstream, rehearse_document
from vectorless_rag.ledger.types import run_budget
from vectorless_rag.prefork import ForkServers
from vectorless_rag.recipe import Recipe
from vectorless_rag.running import RunningCode
from vectorless_rag.settings import Settings
from vectorless_rag.source import Source, copy, identify, storable
from vectorless_rag.store import open_reader
from vectorless_rag.units import NanoUsd, Sha256, usd
from vectorless_rag.wire import Answer, Request
from vectorless_rag.workspace import working_folder

PLAN_SCHEMA = "plan/1"

_NOTHING = NanoUsd(0)
_DOCUMENT = "document.pdf"
_CHECKOUT = "upstream"


class Answered(StrEnum):
    """Why a document needs no run."""

    STORED = "stored"
    """The store has its artifact."""

    DUPLICATE = "duplicate"
    """The same bytes stand earlier in the list."""


@dataclass(frozen=True, kw_only=True)
class DocumentPlan:
    """What ingesting one document would come to."""

    source: Path
    recipe_hash: Sha256 | None = None

    answered: Answered | None = None
    """None: it would be built."""

    artifact_id: Sha256 | None = None
    """Of the artifact that answers it."""

    page_tokens: tuple[int, ...] | None = None
    """Tokens of every page's text, in order; 0: no text layer. None: not known."""

    route: str | None = None
    """``shortcut``, ``flash`` or ``standard``; None: it would be refused."""

    refused: Failure | None = None
    """Why no tree would be built."""

    expected: tuple[Tally, ...] = ()
    worst: tuple[Tally, ...] = ()

    slack: NanoUsd = _NOTHING
    """How much more than its cost one request has set aside meanwhile, at most."""

    def to_json(self, left: NanoUsd) -> dict[str, Json]:
        """Spell it; dollars are exact decimal texts. *left* is in the budget."""
        pages = self.page_tokens
        return {
            "source": storable(str(self.source)),
            "recipe_hash": self.recipe_hash,
            "answered": self.answered.value if self.answered else None,
            "artifact_id": self.artifact_id,
            "pages": None if pages is None else len(pages),
            "pages_with_text": None if pages is None else sum(map(bool, pages)),
            "tokens": None if pages is None else sum(pages),
            "page_tokens": None if pages is None else list(pages),
            "route": self.route,
            "refused": _spelled(self.refused) if self.refused else None,
            "expected": _sums(total(self.expected)),
            "worst": _worst(total(self.worst), left),
            "calls_by_operation": {t.operation: t.calls for t in self.expected},
        }


def plan_document(
    path: Path,
    settings: Settings,
    code: RunningCode,
    *,
    rebuild: bool = False,
    check: Callable[[], None] = lambda: None,
    servers: ForkServers | None = None,
) -> DocumentPlan:
    """
    Say what ingesting *path* would do.

    Args:
        path: The PDF.
        settings: As for the ingest.
        code: What would run.
        rebuild: As if built again where an artifact is there.
        check: Is called a few times a second; what it raises ends the rehearsal.
        servers: What may start the child; None: it is started directly.

    Returns:
        The plan; a foreseen failure is one of its values.
    """
    plan = DocumentPlan(source=path)
    try:
        source = identify(
            path, max_bytes=settings.max_source_bytes, roots=settings.source_roots
        )
        recipe = Recipe(configuration=code.configuration, document_sha256=source.sha256)
        plan = replace(plan, recipe_hash=recipe.recipe_hash)
        store = open_reader(settings)
        stored = None if rebuild else store.find(recipe.recipe_hash)
        if stored is not None:
            return replace(
                plan, answered=Answered.STORED, artifact_id=stored.artifact_id
            )
        upstream = Upstream(copy_to=code.copy_to, code=code.names, servers=servers)
        return _with(plan, _rehearsed(source, settings, upstream, check))
    except VectorlessRagError as error:
        return replace(plan, refused=error.failure)


def without_duplicates(plans: Iterable[DocumentPlan]) -> list[DocumentPlan]:
    """Count what several paths have in common once."""
    seen: set[Sha256] = set()
    found = []
    for plan in plans:
        twice = plan.recipe_hash in seen and plan.answered is None
        if twice and plan.refused is None:
            plan = replace(  # noqa: PLW2901
                plan,
                answered=Answered.DUPLICATE,
                expected=(),
                worst=(),
                slack=_NOTHING,
            )
        elif plan.recipe_hash is not None:
            seen.add(plan.recipe_hash)
        found.append(plan)
    return found


def plan_to_json(
    plans: list[DocumentPlan], settings: Settings, funds_left: Funds
) -> dict[str, Json]:
    """Spell the whole plan as the one object that ``plan --json`` prints."""
    needs = sums(plans)
    return {
        "schema": PLAN_SCHEMA,
        "model": settings.model,
        "mode": settings.mode.value,
        "batch": settings.batch and not settings.offline,
        "budget": {
            "name": funds_left.budget,
            "left_usd": f"{usd(funds_left.left):f}",
            "set_aside_usd": f"{usd(needs.slack):f}",
            "allows": funds_left.allow(needs).value,
        },
        "totals": {
            "documents": len(plans),
            "to_build": sum(_is_built(plan) for plan in plans),
            "answered": sum(plan.answered is not None for plan in plans),
            "refused": sum(plan.refused is not None for plan in plans),
            "expected": _sums(needs.expected),
            "worst": _worst(needs.worst, funds_left.left),
        },
        "documents": [plan.to_json(funds_left.left) for plan in plans],
    }


def sums(plans: Iterable[DocumentPlan]) -> Needs:
    """Sum up what *plans* come to."""
    every = list(plans)
    expected = tuple(tally for plan in every for tally in plan.expected)
    worst = tuple(tally for plan in every for tally in plan.worst)
    return Needs(
        expected=total(expected),
        worst=total(worst),
        slack=max((plan.slack for plan in every), default=_NOTHING),
    )


def _is_built(plan: DocumentPlan) -> bool:
    return plan.answered is None and plan.refused is None


def _rehearsed(
    source: Source, settings: Settings, upstream: Upstream, check: Callable[[], None]
) -> Answer:
    with working_folder() as work:
        copy(source, work / _DOCUMENT)
        request = Request(
            attempt_id="rehearsal",
            parent_pid=os.getpid(),
            document_path=str(work / _DOCUMENT),
            document_sha256=source.sha256,
            checkout=str(work / _CHECKOUT),
            mode=settings.mode.value,
            model=settings.model,
            # Named and never opened: a rehearsal charges nothing.
            ledger_url=f"sqlite:///{work / 'no-ledger'}",
            budgets=(run_budget("rehearsal"),),
            limits=limits_of(settings),
            gate_dir=str(work),
            prices_json=settings.prices,
            allow_unpriced=settings.allow_unpriced,
            sandbox=settings.sandbox.value,
            closed_dir=str(settings.data_dir.absolute()),
            batching=batching_of(settings),
            rehearse=True,
        )
        return rehearse_document(
            request, settings, upstream=upstream, work=work, check=check
        )


def _with(plan: DocumentPlan, answer: Answer) -> DocumentPlan:
    estimate = answer.estimate
    if estimate is not None:
        plan = replace(
            plan,
            page_tokens=estimate.page_tokens,
            expected=estimate.expected,
            worst=estimate.worst,
            slack=estimate.slack,
        )
    route = answer.found.route if answer.found else None
    return replace(plan, route=route, refused=answer.failure)


def _sums(tally: Tally) -> dict[str, Json]:
    return {
        "calls": tally.calls,
        "prompt_tokens": tally.prompt_tokens,
        "completion_tokens": tally.completion_tokens,
        "cost_usd": f"{usd(tally.cost):f}",
    }


def _worst(tally: Tally, left: NanoUsd) -> dict[str, Json]:
    # Nothing is sent that a budget could not pay for.
    return _sums(tally) | {"within_budget_usd": f"{usd(min(tally.cost, left)):f}"}


def _spelled(failure: Failure) -> dict[str, Json]:
    return {
        "code": failure.code.value,
        "phase": failure.phase,
        "retryable": failure.retryable,
        "message": failure.message,
    }
