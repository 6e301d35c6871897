"""A data folder as ingests leave it: artifacts, and the ledger rows they cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from strategies_ledger import hold, used
from strategies_tree import sample_artifact, sample_provenance, sample_recipe
from vectorless_rag.attempts import AccountedAttempt
from vectorless_rag.ledger.book import Ledger
from vectorless_rag.recipe import Recipe
from vectorless_rag.settings import Settings
from vectorless_rag.store import Store, Stored
from vectorless_rag.units import NanoUsd

MODEL = "openai/gpt-4o-mini"


@dataclass(frozen=True)
class Call:
    """A request of a run: settled at a price, or of unknown outcome without one."""

    operation: str = "summary_leaf"
    held: int = 1000
    price: int | None = 700


CALLS = (Call(), Call("toc_detect", 500, 400), Call("summary_leaf", 800, None))


def ingested(
    settings: Settings,
    recipe: Recipe | None = None,
    calls: Sequence[Call] = CALLS,
    run_id: str = "run-1",
    **artifact: Any,
) -> Stored:
    """Account for calls, and publish an artifact, as the pipeline does."""
    recipe = recipe or sample_recipe(model=MODEL)
    attempt = AccountedAttempt(
        settings=Settings.load(
            data_dir=settings.data_dir, model=recipe.configuration.model
        ),
        recipe=recipe,
        run_id=run_id,
    )
    with attempt, Ledger.open(settings.effective_ledger_url) as ledger:
        for number, call in enumerate(calls, start=1):
            _request(ledger, attempt, number, call)
        run = attempt.record({})
        made = sample_artifact(recipe, **artifact)
        store = Store(settings.store_dir)
        return store.publish(made, run, sample_provenance()).stored


def _request(
    ledger: Ledger, attempt: AccountedAttempt, number: int, call: Call
) -> None:
    name = f"{attempt.attempt_id}.{number}:1"
    ledger.reserve(
        hold(
            name,
            call.held,
            attempt_id=attempt.attempt_id,
            operation=call.operation,
            model=attempt.recipe.configuration.model,
            budgets=attempt.budgets,
        )
    )
    if call.price is None:
        ledger.unknown(name, "timeout")
    else:
        ledger.settle(name, NanoUsd(call.price), used(), f"response-{number}", "stop")


def two_runs(settings: Settings) -> None:
    """Two documents of two runs; the first document has a later artifact too."""
    ingested(settings, sample_recipe(model=MODEL, mode="flash"))
    ingested(settings)
    ingested(settings, sample_recipe("b", model=MODEL), run_id="run-2", name="g.pdf")
