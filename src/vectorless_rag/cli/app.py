"""Commands and options, as a person types them."""

import sys
from typing import Annotated

import typer

import vectorless_rag
from vectorless_rag.cli import BROKEN_PIPE, audit_app, code_app, fleet_app, ledger_app
from vectorless_rag.cli.direct import Command
from vectorless_rag.cli.options import (
    AsJson,
    DataDir,
    Named,
    decimal,
    load,
    run_name,
)
from vectorless_rag.settings import Mode

_app = typer.Typer(
    name="vectorless-rag",
    help="Turn long PDFs into audited trees of sections, with no vectors.",
    no_args_is_help=True,
    # Its tracebacks print local variables, keys included.
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
_failures = typer.Typer(
    help="Documents that have no artifact yet.", no_args_is_help=True
)
_app.add_typer(code_app.recipe, name="recipe")
_app.add_typer(ledger_app.ledger, name="ledger")
_app.add_typer(_failures, name="failures")
_app.add_typer(ledger_app.budget, name="budget")
_app.add_typer(code_app.upstream, name="upstream")
_app.add_typer(audit_app.audit, name="audit")
_app.add_typer(audit_app.artifact, name="artifact")
_app.add_typer(audit_app.store, name="store")
fleet_app.add_to(_app)

INTERRUPTED = 130
"""Exit status of a command that Ctrl-C ended."""

Jobs = Annotated[int | None, typer.Option(help="Documents built at a time.")]
OfClass = Annotated[
    str | None,
    typer.Option(
        "--class",
        metavar="CODE",
        help="Only these: a failure code, or `retryable` for all that may end better.",
    ),
]


def app(argv: list[str], command: Command | None = None) -> int:
    """
    Carry out *argv*; return the exit status.

    Args:
        argv: Command, options and arguments.
        command: Leaves a memo, if the command may be repeated.
    """
    try:
        status = _app(argv, standalone_mode=False, obj=command)
        # Here, so that a full disk is noticed while it can still be told.
        sys.stdout.flush()
    except typer.Abort:
        raise KeyboardInterrupt from None
    except SystemExit as error:
        # The reader of standard output went away, as `head` does.
        return BROKEN_PIPE if error.code else 0
    except typer.TyperException as error:
        return _misused(error)
    if status == INTERRUPTED:
        # So Typer reports an interrupt that it has caught.
        raise KeyboardInterrupt
    return int(status or 0)


def _misused(error: typer.TyperException) -> int:
    """Say what is wrong with the command line, and what would be right."""
    said = error.format_message()
    if said.startswith("Usage:"):
        # A group without a command: its help is what was asked for.
        sys.stderr.write(f"{said}\n")
    else:
        stop = "" if said.endswith((".", "?", ")")) else "."
        sys.stderr.write(f"vectorless-rag: {said}{stop} See --help.\n")
    return 2


def _version(wanted: bool) -> None:  # noqa: FBT001  (Typer hands it over so)
    if wanted:
        sys.stdout.write(f"vectorless-rag {vectorless_rag.__version__}\n")
        raise typer.Exit


@_app.callback()
def _main(
    *,
    _: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Turn long PDFs into audited trees of sections, with no vectors."""


Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH…",
        help="PDF files, folders, patterns, @FILE with a path a line, or - for"
        " paths on standard input.",
        show_default=False,
    ),
]
RunName = Annotated[
    str | None,
    typer.Option(
        "--run",
        metavar="NAME",
        help="Name of the run; one of that name goes on, with what is left of"
        " its budget.",
    ),
]
InMode = Annotated[
    Mode | None, typer.Option(help="How to find sections (auto by default).")
]
OfModel = Annotated[
    str | None, typer.Option(help="provider/name, for example openai/gpt-4o-mini.")
]
AtBase = Annotated[
    str | None, typer.Option(help="Address of an OpenAI-compatible server.")
]
BudgetUsd = Annotated[
    str | None, typer.Option(help="Most this command may spend, in dollars.")
]
Unpriced = Annotated[
    bool, typer.Option(help="Call a model with no known price, counted as free.")
]
ByBatch = Annotated[
    bool | None,
    typer.Option(
        "--batch/--no-batch",
        help="Ask by the provider's batches: half the price, replies may take hours.",
        show_default=False,
    ),
]
Rebuild = Annotated[
    bool, typer.Option(help="Build again, even if the artifact is there.")
]


@_app.command()
def ingest(
    context: typer.Context,
    paths: Paths,
    *,
    jobs: Jobs = None,
    run: RunName = None,
    mode: InMode = None,
    model: OfModel = None,
    api_base: AtBase = None,
    budget_usd: BudgetUsd = None,
    allow_unpriced: Unpriced = False,
    batch: ByBatch = None,
    rebuild: Rebuild = False,
    no_replay: Annotated[
        bool,
        typer.Option("--no-replay", help="Ask again what an earlier run has paid for."),
    ] = False,
    quiet: Annotated[bool, typer.Option(help="No progress display.")] = False,
    data_dir: DataDir = None,
    json: AsJson = False,
) -> int:
    """
    Build the tree of each PDF, or reuse the one that is stored.

    Example: vectorless-rag ingest papers/ --jobs 4 --model openai/gpt-4o-mini
    """
    from vectorless_rag.cli import ingesting

    settings = load(
        jobs=jobs,
        mode=mode,
        model=model,
        api_base=api_base,
        budget_usd=decimal(budget_usd),
        allow_unpriced=allow_unpriced or None,
        batch=batch,
        replay=False if no_replay else None,
        data_dir=data_dir,
    )
    wanted = ingesting.Wanted(
        jobs=settings.jobs,
        rebuild=rebuild,
        as_json=json,
        quiet=quiet,
        run_id=run_name(run),
    )
    results = ingesting.ingest(paths, settings, wanted)
    if isinstance(context.obj, Command):
        context.obj.remember(paths, settings, wanted, results)
    return ingesting.exit_status(results)


@_app.command()
def plan(
    paths: Paths,
    *,
    jobs: Jobs = None,
    run: RunName = None,
    mode: InMode = None,
    model: OfModel = None,
    api_base: AtBase = None,
    budget_usd: BudgetUsd = None,
    allow_unpriced: Unpriced = False,
    batch: ByBatch = None,
    rebuild: Rebuild = False,
    data_dir: DataDir = None,
    json: AsJson = False,
) -> int:
    """
    Say what an ingest of these would do and cost; no model is asked.

    Example: vectorless-rag plan papers/ --model openai/gpt-4o-mini --budget-usd 5
    """
    from vectorless_rag.cli import planning

    settings = load(
        jobs=jobs,
        mode=mode,
        model=model,
        api_base=api_base,
        budget_usd=decimal(budget_usd),
        allow_unpriced=allow_unpriced or None,
        batch=batch,
        data_dir=data_dir,
    )
    return planning.plan(
        paths, settings, run_id=run_name(run), rebuild=rebuild, as_json=json
    )


@_failures.command("ls")
def failures_ls(
    *, of_class: OfClass = None, data_dir: DataDir = None, json: AsJson = False
) -> int:
    """
    List documents whose last ingest left no artifact.

    Example: vectorless-rag failures ls --class retryable
    """
    from vectorless_rag.cli import failing

    return failing.ls(load(data_dir=data_dir), of_class, as_json=json)


@_failures.command("retry")
def failures_retry(
    *,
    of_class: OfClass = None,
    jobs: Jobs = None,
    quiet: Annotated[bool, typer.Option(help="No progress display.")] = False,
    data_dir: DataDir = None,
    json: AsJson = False,
) -> int:
    """
    Ingest them again, with the settings of today.

    Example: vectorless-rag failures retry --class retryable --jobs 4
    """
    from vectorless_rag.cli import failing, ingesting

    settings = load(jobs=jobs, data_dir=data_dir)
    wanted = ingesting.Wanted(
        jobs=settings.jobs, rebuild=False, as_json=json, quiet=quiet, run_id=None
    )
    return failing.retry(settings, of_class, wanted)


@_app.command()
def show(
    name: Named,
    *,
    pages: Annotated[
        str | None, typer.Option(help="Print the text of these pages: 3 or 3-5.")
    ] = None,
    data_dir: DataDir = None,
    json: AsJson = False,
) -> int:
    """
    Print a document's tree, with page ranges and summaries.

    Example: vectorless-rag show paper.pdf --pages 3-5
    """
    from vectorless_rag.cli import artifacts

    return artifacts.show(name, load(data_dir=data_dir), pages=pages, as_json=json)


@_app.command()
def doctor(*, data_dir: DataDir = None, json: AsJson = False) -> int:
    """
    Say what is installed, built, configured and reachable.

    Example: vectorless-rag doctor
    """
    from vectorless_rag.cli import doctoring

    return doctoring.doctor(load(data_dir=data_dir), as_json=json)
