"""Commands of ``ledger`` and ``budget``, as a person types them."""

from pathlib import Path
from typing import Annotated

import typer

from vectorless_rag.cli.options import AsJson, DataDir, load
from vectorless_rag.ledger.types import By

ledger = typer.Typer(
    help="What was spent, and whether it adds up.", no_args_is_help=True
)
budget = typer.Typer(help="What may be spent.", no_args_is_help=True)


@ledger.command("report")
def ledger_report(
    *,
    by: Annotated[By, typer.Option(help="What to group by.")] = By.OPERATION,
    data_dir: DataDir = None,
    json: AsJson = False,
) -> int:
    """
    Sum up every provider request.

    Example: vectorless-rag ledger report --by model
    """
    from vectorless_rag.cli import accounting

    return accounting.report(load(data_dir=data_dir), by, as_json=json)


@ledger.command("verify")
def ledger_verify(*, data_dir: DataDir = None, json: AsJson = False) -> int:
    """
    Check that every hold is closed or leased and that all sums agree.

    Example: vectorless-rag ledger verify
    """
    from vectorless_rag.cli import accounting

    return accounting.verify(load(data_dir=data_dir), as_json=json)


@ledger.command("reconcile")
def ledger_reconcile(
    late: Annotated[
        Path | None,
        typer.Argument(
            help="JSON lines of late usage: key (hold or response id), cost_usd,"
            " prompt_tokens, completion_tokens."
        ),
    ] = None,
    *,
    data_dir: DataDir = None,
    json: AsJson = False,
) -> int:
    """
    Expire holds whose lease ran out, and post usage that turned up late.

    Example: vectorless-rag ledger reconcile late.jsonl
    """
    from vectorless_rag.cli import accounting

    return accounting.reconcile(load(data_dir=data_dir), late, as_json=json)


@budget.command("set")
def budget_set(
    name: Annotated[
        str,
        typer.Argument(help="owner:NAME, day:NAME:YYYY-MM-DD or run:ID."),
    ],
    limit_usd: Annotated[str, typer.Argument(help="Dollars, or `none`.")],
    *,
    data_dir: DataDir = None,
) -> int:
    """
    Limit a budget.

    Example: vectorless-rag budget set owner:local 25
    """
    from vectorless_rag.cli import accounting

    return accounting.set_budget(load(data_dir=data_dir), name, limit_usd)


@budget.command("show")
def budget_show(
    name: Annotated[
        str | None, typer.Argument(help="One budget; all without it.")
    ] = None,
    *,
    data_dir: DataDir = None,
    json: AsJson = False,
) -> int:
    """
    Print limits, what is held and what is spent.

    Example: vectorless-rag budget show owner:local
    """
    from vectorless_rag.cli import accounting

    return accounting.show_budgets(load(data_dir=data_dir), name, as_json=json)
