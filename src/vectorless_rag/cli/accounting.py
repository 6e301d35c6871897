"""``vectorless-rag ledger`` and ``budget``: what was spent, and what may be."""

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict
from datetime import date
from decimal import Decimal, InvalidOperation
from pathlib import Path

from rich.table import Table

from vectorless_rag.audit import (
    Verdict,
    sound_artifacts,
    verify_bills,
    verify_built,
)
from vectorless_rag.canon import Json
from vectorless_rag.cli.lines import print_json
from vectorless_rag.cli.printing import console
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.ledger.book import Ledger
from vectorless_rag.ledger.types import (
    MOST_NANO,
    Budget,
    By,
    LateUsage,
    ReportRow,
    TokenUsage,
)
from vectorless_rag.settings import Settings
from vectorless_rag.source import printable
from vectorless_rag.store import open_reader
from vectorless_rag.units import NanoUsd, nano_usd, usd

AUDIT_MISMATCH = 20
"""Exit status of an audit that found a contradiction."""

_BUDGET = re.compile(r"(run|owner):\S{1,200}|day:\S{1,180}:(\d{4}-\d\d-\d\d)")
_BUDGETS = "a budget is owner:NAME, day:NAME:YYYY-MM-DD or run:ID"
_LIMITS = f"a limit is none, or dollars from 0 to {usd(MOST_NANO):f}"


def report(settings: Settings, by: By, *, as_json: bool) -> int:
    """Print the sums of all requests in groups, and their total."""
    with _ledger(settings) as ledger:
        rows = ledger.report(by)
    if as_json:
        for row in rows:
            print_json({"by": by.value, **_spelled(row)})
        return 0
    table = Table(by.value, box=None, pad_edge=False)
    for heading in (
        "calls",
        "replayed",
        "prompt",
        "completion",
        "cost $",
        "in it at hold $",
        "open $",
    ):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(row.key, *_figures(row))
    if rows:
        table.add_section()
        table.add_row("total", *_totals(rows))
    console().print(table)
    return 0


def verify(settings: Settings, *, as_json: bool) -> int:
    """Check the ledger, and that each artifact's run record agrees with its rows."""
    store = open_reader(settings)
    with _ledger(settings) as ledger:
        found = ledger.problems()
        problems = found.wrong + ledger.strays()
        artifacts = sound_artifacts(store)
        bills = verify_bills(store, ledger, artifacts)
        bills += verify_built(ledger, artifacts, own=settings.owns_ledger)
    told = [f"{b.file}: {b.what}" for b in bills if b.verdict is Verdict.NOTE]
    notes = found.overdue + told
    problems += [f"{b.file}: {b.what}" for b in bills if b.verdict is not Verdict.NOTE]
    if as_json:
        print_json({"problems": problems, "notes": notes})
    for note in notes:
        sys.stderr.write(f"note  {printable(note)}\n")
    for problem in problems:
        sys.stderr.write(f"FAIL  {printable(problem)}\n")
    if not problems:
        closed = "" if found.overdue else "every hold is closed or leased, and "
        sys.stderr.write(f"ok    {closed}all sums agree\n")
    return AUDIT_MISMATCH if problems else 0


def reconcile(settings: Settings, late: Path | None, *, as_json: bool) -> int:
    """Expire what is overdue, and post late usage."""
    usage = list(_late(late)) if late is not None else []
    with _ledger(settings) as ledger:
        done = ledger.reconcile(usage)
    if as_json:
        print_json(asdict(done))
    else:
        sys.stderr.write(f"expired {done.expired}, corrected {done.corrected}\n")
        for key in done.unmatched:
            sys.stderr.write(f"note  no hold takes the usage of {key}\n")
        for attempt in done.running:
            sys.stderr.write(f"note  attempt {attempt} has not ended\n")
    return 0


def _late(path: Path) -> Iterable[LateUsage]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        raise VectorlessRagError(Code.SETTINGS_INVALID, f"no {path.name}") from None
    for number, line in enumerate(lines, start=1):
        try:
            raw = json.loads(line)
            yield LateUsage(
                key=str(raw["key"]),
                amount=nano_usd(Decimal(str(raw["cost_usd"]))),
                usage=TokenUsage(
                    prompt_tokens=int(raw["prompt_tokens"]),
                    completion_tokens=int(raw["completion_tokens"]),
                ),
            )
        except (ValueError, KeyError, TypeError, InvalidOperation):
            where = f"{path.name}, line {number}"
            raise VectorlessRagError(Code.SETTINGS_INVALID, where) from None


def set_budget(settings: Settings, budget: str, limit_usd: str) -> int:
    """Limit *budget*; ``none`` lifts the limit."""
    _check_budget(budget)
    with closing(Ledger.open(settings.effective_ledger_url)) as ledger:
        ledger.set_budget(budget, _limit(limit_usd))
        _show({budget: ledger.budget(budget)})
    return 0


def _check_budget(budget: str) -> None:
    found = _BUDGET.fullmatch(budget)
    if found is None:
        raise VectorlessRagError(Code.SETTINGS_INVALID, _BUDGETS)
    if found[2] is not None:
        try:
            date.fromisoformat(found[2])
        except ValueError:
            why = f"{found[2]}: no such day"
            raise VectorlessRagError(Code.SETTINGS_INVALID, why) from None


def _limit(text: str) -> NanoUsd | None:
    if text == "none":
        return None
    try:
        limit = nano_usd(Decimal(text))
    except (InvalidOperation, OverflowError, ValueError):
        limit = NanoUsd(-1)
    if not 0 <= limit <= MOST_NANO:
        raise VectorlessRagError(Code.SETTINGS_INVALID, _LIMITS)
    return limit


def show_budgets(settings: Settings, budget: str | None, *, as_json: bool) -> int:
    """Print one budget, or all."""
    with _ledger(settings) as ledger:
        found = {budget: ledger.budget(budget)} if budget else ledger.budgets()
    if as_json:
        for name, row in found.items():
            print_json({"budget": name, **_balance(row)})
    else:
        _show(found)
    return 0


def _show(found: Mapping[str, Budget]) -> None:
    table = Table("budget", box=None, pad_edge=False)
    for heading in ("limit $", "held $", "spent $"):
        table.add_column(heading, justify="right")
    for name, row in found.items():
        balance = _balance(row)
        table.add_row(name, *(str(balance[k] or "none") for k in balance))
    console().print(table)


def _balance(row: Budget) -> dict[str, Json]:
    return {
        "limit_usd": None if row.limit is None else f"{usd(row.limit):f}",
        "reserved_usd": f"{usd(row.reserved):f}",
        "spent_usd": f"{usd(row.spent):f}",
    }


@contextmanager
def ledger_if_there(settings: Settings) -> Iterator[Ledger | None]:
    """Open the ledger; None where it would have to be made first."""
    if settings.owns_ledger and not settings.ledger_file.exists():
        yield None
        return
    with _ledger(settings) as ledger:
        yield ledger


def require_folder(settings: Settings) -> None:
    """
    See that the data folder is there: a typing error is no empty folder.

    Raises:
        VectorlessRagError: ``store_unwritable``.
    """
    if not settings.data_dir.is_dir():
        raise VectorlessRagError(
            Code.STORE_UNWRITABLE,
            f"{printable(settings.data_dir.name)}: no such folder",
        )


def _ledger(settings: Settings) -> closing[Ledger]:
    # Opening it would make it.
    if settings.owns_ledger:
        require_folder(settings)
    return closing(Ledger.open(settings.effective_ledger_url))


def _spelled(row: ReportRow) -> dict[str, Json]:
    raw: dict[str, Json] = asdict(row)
    for name in ("cost", "open", "guessed"):
        amount = raw.pop(f"{name}_nano")
        raw[f"{name}_usd"] = f"{usd(int(str(amount))):f}"
    return raw


def _figures(row: ReportRow) -> tuple[str, ...]:
    return (
        f"{row.calls:,}",
        f"{row.replayed:,}",
        f"{row.prompt_tokens:,}",
        f"{row.completion_tokens:,}",
        f"{usd(row.cost_nano):f}",
        f"{usd(row.guessed_nano):f}",
        f"{usd(row.open_nano):f}",
    )


def _totals(rows: list[ReportRow]) -> tuple[str, ...]:
    return (
        f"{sum(r.calls for r in rows):,}",
        f"{sum(r.replayed for r in rows):,}",
        f"{sum(r.prompt_tokens for r in rows):,}",
        f"{sum(r.completion_tokens for r in rows):,}",
        f"{usd(sum(r.cost_nano for r in rows)):f}",
        f"{usd(sum(r.guessed_nano for r in rows)):f}",
        f"{usd(sum(r.open_nano for r in rows)):f}",
    )
