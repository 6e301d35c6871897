"""``vectorless-rag audit``: is everything what it was, and what would change."""

from pathlib import Path
from typing import Annotated

import typer

from vectorless_rag import events
from vectorless_rag.cli import reporting
from vectorless_rag.settings import Settings

audit = typer.Typer(
    help="Is it unaltered, is it current, what made it?", no_args_is_help=True
)


@audit.command("report")
def audit_report(
    file: Annotated[
        Path | None,
        typer.Argument(help="The file; report.html in the data folder without it."),
    ] = None,
    *,
    html: Annotated[bool, typer.Option("--html", help="As one HTML file.")] = False,
    data_dir: Annotated[
        Path | None,
        typer.Option("--data-dir", help="Folder of the artifact store and the ledger."),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print JSON on standard output.")
    ] = False,
) -> int:
    """
    Write what a data folder holds, cost and lacks, as a page to look at.

    Example: vectorless-rag audit report --html
    """
    settings = Settings.load(data_dir=data_dir)
    events.configure(settings.log_level.value)
    return reporting.report(settings, file, html=html, as_json=json)
