"""Data folders for reports: sound, spent, hostile and large."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from strategies_ledger import attempt, hold, used
from strategies_tree import sample_provenance, sample_recipe, sample_run
from vectorless_rag.artifact import Artifact, RunUsage, artifact_of
from vectorless_rag.errors import Code, Failure
from vectorless_rag.ledger.book import Ledger
from vectorless_rag.results import IngestResult, Status
from vectorless_rag.runs import RunFolder
from vectorless_rag.settings import Settings
from vectorless_rag.store import Store, Stored
from vectorless_rag.units import NanoUsd
from vectorless_rag.wire import Found, Parser

HOSTILE = (
    "</script><script>window.pwned = 1</script>",
    "<img src=x onerror='window.pwned = 1'>",
    '" onmouseover="window.pwned = 1" x="',
    "<!-- <style>*{display:none}</style>",
    "\u202egnp.exe\u2066",
    "nul\0here",
    "&lt;b&gt; stays an entity",
    "]]><svg onload=window.pwned=1>",
    "javascript:window.pwned=1",
)
"""Titles and summaries that would do something if they were markup."""

LONG = "A title of a whole page. " * 4000
"""100 kB."""


def artifact(document: str, sections: list[str], **options: Any) -> Artifact:
    """An artifact with one section a page, all under one root."""
    pages = len(sections)
    nodes: list[dict[str, Any]] = [
        {"title": title, "start_index": n, "end_index": n, "summary": f"About {title}"}
        for n, title in enumerate(sections, 1)
    ]
    # A section without a summary, on a page without text.
    nodes.append({"title": "Blank", "start_index": pages + 1, "end_index": pages + 1})
    marks = [
        {"code": "pageindex_timeout", "what": "summary"},
        {"code": "bookmark_range", "what": "location"},
    ]
    root = {
        "title": f"All of {document}",
        "start_index": 1,
        "end_index": pages + 1,
        "summary": "Everything.",
        "direct_summary": "The opening.",
        "degraded": marks,
        "key_items": ["Merged heading"],
        "nodes": nodes,
    }
    found = Found(
        route="flash",
        tree=(root,),
        pages=(*(f"text of page {n}" for n in range(1, pages + 1)), " "),
        parser=Parser(name="pypdf", version="7.1.1"),
    )
    return artifact_of(
        found,
        recipe=sample_recipe(document, **options),
        name=f"{document}.pdf",
        size_bytes=4321,
    )


NOTHING = RunUsage.of(
    calls=0,
    prompt_tokens=0,
    completion_tokens=0,
    cost_nano_usd=0,
    by_state={},
    by_operation={},
)


def publish(settings: Settings, made: Artifact, *, rebuild: bool = False) -> Stored:
    """Publish an artifact of a run that cost nothing, and enter it in the ledger."""
    sample = sample_run(made.recipe, f"attempt-{made.artifact_id[:12]}")
    run = replace(sample, usage=NOTHING)
    with Ledger.open(settings.effective_ledger_url) as book:
        book.start_attempt(
            attempt(
                run.attempt_id,
                run_id=run.run_id,
                owner=run.owner,
                document_sha256=made.recipe.document_sha256,
                recipe_hash=run.recipe_hash,
                model=made.recipe.configuration.model,
            )
        )
        book.end_attempt(run.attempt_id, "built", None)
    store = Store(settings.store_dir)
    return store.publish(made, run, sample_provenance(), rebuild=rebuild).stored


def spend(settings: Settings, *, price: int = 40_000_000) -> None:
    """Two operations over some days, a document that failed, and one at work."""
    day_us = 86_400_000_000
    now = 1_800_000_000_000_000
    with Ledger.open(settings.effective_ledger_url, clock=lambda: now) as book:
        book.set_budget("owner:ann", NanoUsd(5_000_000_000))
        book.start_attempt(attempt())
        for number, operation in enumerate(("expand", "summary_leaf", "expand")):
            name = f"call-{number}:1"
            book.reserve(hold(name, price and 90_000_000, operation=operation))
            if number < 2:
                book.settle(name, NanoUsd(price * (number + 1)), used())
            else:
                book.unknown(name, "cut off", Code.TIMEOUT)
            now += 2 * day_us
        book.reserve(hold("call-9:1", 0, operation="expand"))
        book.void("call-9:1", "rate limit", Code.LLM_RETRY_EXHAUSTED)
        book.end_attempt("attempt-1", "failed", Code.TIMEOUT)
        book.start_attempt(attempt("attempt-2"))


def leave(settings: Settings, name: str, code: Code) -> None:
    """A document of an earlier run that left no artifact."""
    result = IngestResult(
        source=Path(name), status=Status.FAILED, failure=Failure(code=code)
    )
    RunFolder(settings.runs_dir, "run-1").add(result)


def hostile_folder(root: Path) -> Settings:
    """Two ordinary documents, one that is all traps, and some spend."""
    settings = Settings.load(data_dir=root)
    publish(settings, artifact("apples", ["Blue ones"]))
    publish(settings, artifact("apples", ["Red ones", "Green ones"]), rebuild=True)
    publish(settings, artifact("pears", ["Soft ones"], model="openai/a-model"))
    traps = artifact("<b>traps & \u202etxt", [*HOSTILE, LONG])
    publish(settings, traps)
    spend(settings)
    leave(settings, "<i>scan & \u202ex.pdf", Code.SOURCE_NO_TEXT)
    return settings


def large_folder(root: Path, *, documents: int, sections: int) -> Settings:
    """More sections than a page can hold as markup."""
    settings = Settings.load(data_dir=root)
    for number in range(documents):
        titles = [f"Part {n} of {number}" for n in range(sections)]
        publish(settings, artifact(f"book-{number}", [*titles, *HOSTILE]))
    return settings
