"""Hold the run records of a store against the rows of the ledger."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from vectorless_rag.artifact import Manifest, RunRecord, RunUsage
from vectorless_rag.audit.findings import Finding, Verdict, in_order
from vectorless_rag.canon import Json
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.ledger.book import Ledger
from vectorless_rag.ledger.connection import ALTERED
from vectorless_rag.ledger.types import (
    AttemptRow,
    Correction,
    HoldRow,
    Outcome,
)
from vectorless_rag.store import Stored, StoreReader
from vectorless_rag.store.reading import folder_name
from vectorless_rag.units import NanoUsd

LEDGER = "ledger"
"""What a finding about the ledger itself is filed under."""


def verify_ledger(ledger: Ledger) -> list[Finding]:
    """Check that balances, holds, entries and budgets of a ledger tell one story."""
    problems = ledger.problems()
    found = [_mismatch(LEDGER, line) for line in problems.wrong + ledger.strays()]
    found += [
        Finding(verdict=Verdict.NOTE, file=LEDGER, what=line)
        for line in problems.overdue
    ]
    return in_order(found)


def verify_bills(
    store: StoreReader, ledger: Ledger, artifacts: Iterable[Stored]
) -> list[Finding]:
    """
    Check that each artifact's run record is the sum of its rows in the ledger.

    Rows that got their real price after the run are no contradiction: a note
    names the correction.

    Args:
        store: Where the artifacts are.
        ledger: What was spent on them.
        artifacts: Which to look at.
    """
    found: list[Finding] = []
    for stored in artifacts:
        file = f"{folder_name(stored)}/run.json"
        try:
            found += _verify_bill(file, store.read_run(stored), stored.manifest, ledger)
        except VectorlessRagError as error:
            if error.detail == ALTERED:
                attempt = stored.manifest.attempt_id
                what = f"the rows of attempt {attempt} hold what is never written"
                found.append(_mismatch(file, what))
            elif error.code is Code.STORE_CORRUPT:
                what = "not readable, so not compared with the ledger"
                found.append(Finding(verdict=Verdict.UNDECIDED, file=file, what=what))
            else:
                raise
    return in_order(found)


def verify_built(
    ledger: Ledger, artifacts: Sequence[Stored], *, own: bool
) -> list[Finding]:
    """
    Check that what the ledger says was built is still there.

    Args:
        ledger: What was spent.
        artifacts: All that the store holds.
        own: No other store is paid from this ledger, so that what is not in this
            one is lost.
    """
    attempts = {stored.manifest.attempt_id for stored in artifacts}
    recipes = {stored.recipe_hash for stored in artifacts}
    found: list[Finding] = []
    for row in ledger.built():
        if row.attempt_id in attempts:
            continue
        # Two runs may have built it at once: one of them in vain.
        lost = own and row.recipe_hash not in recipes
        what = (
            f"attempt {row.attempt_id} built recipe {row.recipe_hash},"
            f" and the store has no sound artifact of {'it' if lost else 'its own'}"
        )
        verdict = Verdict.MISMATCH if lost else Verdict.NOTE
        found.append(Finding(verdict=verdict, file=LEDGER, what=what))
    return in_order(found)


def _verify_bill(
    file: str, run: RunRecord, manifest: Manifest, ledger: Ledger
) -> Iterator[Finding]:
    attempt = ledger.attempt(run.attempt_id)
    if attempt is None:
        yield _mismatch(file, f"the ledger has no attempt {run.attempt_id}")
        return
    yield from _compare_attempt(file, run, manifest, attempt)
    rows = ledger.holds(run.attempt_id)
    model = manifest.recipe.configuration.model
    for row in rows:
        if row.model != model:
            yield _mismatch(file, f"hold {row.hold_id} is of model {row.model}")
    late = _after(run, ledger.corrections(run.attempt_id))
    booked = RunUsage.of_rows(rows)
    if late and run.usage == RunUsage.of_rows(_as_before(rows, late)):
        for item in late:
            yield Finding(verdict=Verdict.NOTE, file=file, what=_told(item))
    elif run.usage != booked:
        for name, recorded, now in _differing(run.usage, booked):
            what = f"{name} is {recorded}, and the ledger's rows say {now}"
            yield _mismatch(file, what)


def _compare_attempt(
    file: str, run: RunRecord, manifest: Manifest, attempt: AttemptRow
) -> Iterator[Finding]:
    recipe = manifest.recipe
    for name, ours, theirs in (
        ("run_id", run.run_id, attempt.run_id),
        ("owner", run.owner, attempt.owner),
        ("recipe_hash", run.recipe_hash, attempt.recipe_hash),
        ("document_sha256", recipe.document_sha256, attempt.document_sha256),
        ("model", recipe.configuration.model, attempt.model),
    ):
        if ours != theirs:
            yield _mismatch(file, f"{name} is {ours}, and the ledger says {theirs}")
    if attempt.outcome is not Outcome.BUILT:
        # It was published, and then killed or stopped.
        end = attempt.outcome.value if attempt.outcome else "not ended"
        what = f"the ledger says that its attempt is {end}"
        yield Finding(verdict=Verdict.NOTE, file=file, what=what)


def _after(run: RunRecord, corrections: Sequence[Correction]) -> list[Correction]:
    ended = datetime.fromisoformat(run.ended_at)
    return [c for c in corrections if c.at_us >= int(ended.timestamp() * 1_000_000)]


def _as_before(
    rows: Sequence[HoldRow], corrections: Sequence[Correction]
) -> list[HoldRow]:
    """Undo corrections: those holds counted at their amount, with no usage."""
    undone = {item.hold_id: item for item in corrections}
    return [
        _uncorrected(row, undone[row.hold_id]) if row.hold_id in undone else row
        for row in rows
    ]


def _uncorrected(row: HoldRow, item: Correction) -> HoldRow:
    amount = NanoUsd((row.amount_nano or 0) - item.change_nano)
    return replace(row, state=item.before, amount_nano=amount, usage=None)


def _told(item: Correction) -> str:
    return (
        f"corrected since: hold {item.hold_id} was {item.before.value}"
        f" and costs {item.change_nano:+d} nano-dollars"
    )


def _differing(
    recorded: RunUsage, booked: RunUsage
) -> Iterator[tuple[str, Json, Json]]:
    ours, theirs = _flat(recorded), _flat(booked)
    for name in sorted(ours.keys() | theirs.keys()):
        if ours.get(name) != theirs.get(name):
            yield name, ours.get(name, 0), theirs.get(name, 0)


def _flat(usage: RunUsage) -> dict[str, Json]:
    flat: dict[str, Json] = {
        "calls": usage.calls,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cost_nano_usd": usage.cost_nano_usd,
    }
    flat |= {f"by_state.{name}": count for name, count in usage.by_state.items()}
    for operation, part in usage.by_operation.items():
        flat |= {f"{operation}.calls": part.calls}
        flat |= {f"{operation}.prompt_tokens": part.prompt_tokens}
        flat |= {f"{operation}.completion_tokens": part.completion_tokens}
        flat |= {f"{operation}.cost_nano_usd": part.cost_nano_usd}
    return flat


def _mismatch(file: str, what: str) -> Finding:
    return Finding(verdict=Verdict.MISMATCH, file=file, what=what)
