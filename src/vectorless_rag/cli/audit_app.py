"""Commands of ``audit``, ``artifact`` and ``store``, as a person types them."""

from pathlib import Path
from typing import Annotated

import typer

from vectorless_rag.cli.options import (
    WHAT_NAMES,
    AsJson,
    DataDir,
    Format,
    Named,
    WithApiBase,
    WithMode,
    WithModel,
    load,
)

audit = typer.Typer(
    help="Is it unaltered, is it current, what made it?", no_args_is_help=True
)
artifact = typer.Typer(help="What artifacts hold.", no_args_is_help=True)
store = typer.Typer(help="The folder of artifacts.", no_args_is_help=True)


@audit.command("verify")
def audit_verify(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ARTIFACT", help=f"{WHAT_NAMES} Everything without one."
        ),
    ] = None,
    *,
    read_data: Annotated[
        bool,
        typer.Option(
            "--read-data/--no-read-data",
            help="Read contents too; without, only manifests and activations.",
        ),
    ] = True,
    sample: Annotated[
        int | None,
        typer.Option(min=1, help="Read the contents of so many artifacts, at random."),
    ] = None,
    data_dir: DataDir = None,
    json: AsJson = False,
) -> int:
    """
    Find every byte that is not the one that was written.

    Digests, spelling, recipes, activations, and the ledger's rows. Exit status: 0
    sound, 20 something was altered, 21 something could not be looked at.

    Example: vectorless-rag audit verify --sample 20
    """
    from vectorless_rag.cli import auditing

    return auditing.verify(
        names or [],
        load(data_dir=data_dir),
        read_data=read_data,
        sample=sample,
        as_json=json,
    )


@audit.command("report")
def audit_report(
    file: Annotated[
        Path | None,
        typer.Argument(help="The file; report.html in the data folder without it."),
    ] = None,
    *,
    html: Annotated[bool, typer.Option("--html", help="As one HTML file.")] = False,
    data_dir: DataDir = None,
    json: AsJson = False,
) -> int:
    """
    Write what a data folder holds, cost and lacks, as a page to look at.

    Example: vectorless-rag audit report --html
    """
    from vectorless_rag.cli import reporting

    return reporting.report(load(data_dir=data_dir), file, html=html, as_json=json)


@audit.command("stale")
def audit_stale(
    *,
    mode: WithMode = None,
    model: WithModel = None,
    api_base: WithApiBase = None,
    data_dir: DataDir = None,
    json: AsJson = False,
) -> int:
    """
    List current artifacts that would not be made so today, and why.

    With the price of building them again, from what the ledger knows of the same
    model; unknown where it knows nothing. A report: exit status 0 either way.

    Example: vectorless-rag audit stale --model openai/gpt-4o-mini
    """
    from vectorless_rag.cli import auditing

    settings = load(mode=mode, model=model, api_base=api_base, data_dir=data_dir)
    return auditing.stale(settings, as_json=json)


@audit.command("provenance")
def audit_provenance(
    name: Named,
    *,
    spelled: Annotated[
        Format,
        typer.Option("--format", help="An in-toto Statement, or CycloneDX 1.6."),
    ] = Format.IN_TOTO,
    data_dir: DataDir = None,
) -> int:
    """
    Print what made an artifact: release, patches, libraries, inputs.

    Example: vectorless-rag audit provenance paper.pdf --format cyclonedx
    """
    from vectorless_rag.cli import auditing

    return auditing.provenance(name, load(data_dir=data_dir), spelled=spelled)


@artifact.command("diff")
def artifact_diff(
    before: Named,
    after: Named,
    *,
    only_changes: Annotated[
        bool, typer.Option("--only-changes", help="Leave out what stayed.")
    ] = False,
    data_dir: DataDir = None,
    json: AsJson = False,
) -> int:
    """
    Print two trees side by side: moved, renamed, re-ranged, lost and new sections.

    Example: vectorless-rag artifact diff 5d2ec6eb 48c9a7bf
    """
    from vectorless_rag.cli import comparing

    return comparing.diff(
        before,
        after,
        load(data_dir=data_dir),
        only_changes=only_changes,
        as_json=json,
    )


@store.command("doctor")
def store_doctor(*, data_dir: DataDir = None, json: AsJson = False) -> int:
    """
    Prove that the data folder's file system keeps what the store relies on.

    In a scratch folder that is removed. Exit status 10 if a promise is broken.

    Example: vectorless-rag store doctor
    """
    from vectorless_rag.cli import storing

    return storing.doctor(load(data_dir=data_dir), as_json=json)


@store.command("gc")
def store_gc(
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Required: there is no other mode.")
    ] = False,
    data_dir: DataDir = None,
    json: AsJson = False,
) -> int:
    """
    List what no activation reaches. Nothing is deleted, now or ever.

    Example: vectorless-rag store gc --dry-run
    """
    from vectorless_rag.cli import storing

    return storing.gc(load(data_dir=data_dir), dry_run=dry_run, as_json=json)
