"""``vectorless-rag plan``: what an ingest would do, asked of nobody."""

import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.text import Text

from vectorless_rag.cli.accounting import ledger_if_there
from vectorless_rag.cli.ingesting import gravest
from vectorless_rag.cli.lines import print_json
from vectorless_rag.cli.printing import console
from vectorless_rag.cli.words import counted
from vectorless_rag.errors import FAILURES, Code, VectorlessRagError
from vectorless_rag.estimates import Tally, total
from vectorless_rag.funds import Allows, Funds, funds
from vectorless_rag.inputs import expand
from vectorless_rag.plan import (
    DocumentPlan,
    plan_document,
    plan_to_json,
    sums,
    without_duplicates,
)
from vectorless_rag.prefork import ForkServers
from vectorless_rag.running import RunningCode, running_code
from vectorless_rag.runs import new_run_id
from vectorless_rag.settings import Settings
from vectorless_rag.source import printable
from vectorless_rag.units import usd

_WORDS = {
    Allows.YES: ("enough, in the worst case too", "green"),
    Allows.LIKELY: (
        "enough for what is expected; it stops a run that is worse",
        "cyan",
    ),
    Allows.NO: ("not enough", "red"),
}


def plan(
    arguments: Sequence[str],
    settings: Settings,
    *,
    run_id: str | None,
    rebuild: bool,
    as_json: bool,
) -> int:
    """
    Print what ingesting *arguments* would come to; return the exit status.

    Args:
        arguments: As `vectorless_rag.inputs.expand` reads them.
        settings: As for the ingest.
        run_id: Name of a run that would go on.
        rebuild: As if built again where an artifact is there.
        as_json: Print one object.
    """
    paths = expand(arguments, sys.stdin.buffer)
    code = running_code(settings)

    plans = without_duplicates(_each(paths, settings, code, rebuild=rebuild))
    today = datetime.now(UTC).date()
    with ledger_if_there(settings) as ledger:
        left = funds(settings, ledger, run_id or new_run_id(), today)
    if as_json:
        print_json(plan_to_json(plans, settings, left))
    else:
        by_batch = settings.batch and not settings.offline
        _show(console(), plans, left, "  by batch" if by_batch else "")
    return _status(plans, left)


def _each(
    paths: Sequence[Path], settings: Settings, code: RunningCode, *, rebuild: bool
) -> list[DocumentPlan]:
    """Plan as many at a time as would be built; an interrupt ends all of them."""
    stopped = threading.Event()

    def check() -> None:
        if stopped.is_set():
            raise VectorlessRagError(Code.CANCELLED)

    def one(path: Path) -> DocumentPlan:
        return plan_document(
            path, settings, code, rebuild=rebuild, check=check, servers=servers
        )

    servers = ForkServers(at_once=len(paths) > 1)
    with ThreadPoolExecutor(settings.jobs) as pool:
        try:
            return list(pool.map(one, paths))
        except BaseException:
            stopped.set()
            raise
        finally:
            servers.close()


def _status(plans: Sequence[DocumentPlan], left: Funds) -> int:
    found = {p.refused.exit_status for p in plans if p.refused is not None}
    if left.allow(sums(plans)) is Allows.NO:
        found.add(FAILURES[Code.BUDGET_EXCEEDED].exit_status)
    return gravest(found)


def _show(out: Console, plans: Sequence[DocumentPlan], left: Funds, how: str) -> None:
    for each in plans:
        out.print(_line(each, left), soft_wrap=True)
    needs = sums(plans)
    if len(plans) > 1:
        built = sum(each.answered is None and each.refused is None for each in plans)
        out.print(
            Text(f"{counted(len(plans), 'document')}, {built} to build"), soft_wrap=True
        )
    out.print(Text(f"expected  {_figures(needs.expected)}{how}"), soft_wrap=True)
    out.print(Text(f"at most   {_figures(needs.worst)}{how}"), soft_wrap=True)
    allows = left.allow(needs)
    words, style = _WORDS[allows]
    if allows is Allows.NO and needs.expected.cost <= left.left:
        words += f", a request has up to ${usd(needs.slack):f} more set aside meanwhile"
    amount = f"budget    ${usd(left.left):f} left of {left.budget}: "
    out.print(Text.assemble(amount, (words, style)), soft_wrap=True)


def _line(each: DocumentPlan, left: Funds) -> Text:
    name = printable(str(each.source))
    if each.answered is not None:
        return Text.assemble((f"{each.answered:<9}", "cyan"), f" {name}")
    pages = each.page_tokens
    told = ""
    if pages is not None:
        told = f"  {counted(len(pages), 'page')}, {counted(sum(pages), 'token')}"
        if blank := pages.count(0):
            told += f", {counted(blank, 'page')} without text"
    if each.refused is not None:
        why = f"  {each.refused.code}: {each.refused.message}"
        return Text.assemble(("refused  ", "red"), f" {name}{told}{why}")
    expected, worst = total(each.expected), total(each.worst)
    cost = f"  ({counted(expected.calls, 'call')}, ${usd(expected.cost):f};"
    cost += f" at most ${usd(min(worst.cost, left.left)):f}"
    cost += ", where the budget ends it)" if worst.cost > left.left else ")"
    return Text.assemble((f"{each.route:<9}", "green"), f" {name}{told}", (cost, "dim"))


def _figures(tally: Tally) -> str:
    return (
        f"{counted(tally.calls, 'call')}, {tally.prompt_tokens} prompt and"
        f" {tally.completion_tokens} completion tokens, ${usd(tally.cost):f}"
    )
