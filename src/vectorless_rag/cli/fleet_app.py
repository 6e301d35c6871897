"""Commands for many machines: submit, worker, jobs."""

from typing import Annotated

import typer

from vectorless_rag.cli.options import AsJson, DataDir, load, run_name
from vectorless_rag.ledger.job_types import JobState
from vectorless_rag.settings import Mode

jobs = typer.Typer(
    help="Documents that were submitted to workers.", no_args_is_help=True
)

Named = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="JOB…",
        help="First digits of recipe hashes, or PDFs.",
        show_default=False,
    ),
]
OfRun = Annotated[
    str | None, typer.Option("--run", metavar="NAME", help="Only jobs of this run.")
]
OfOwner = Annotated[
    str | None, typer.Option("--owner", metavar="NAME", help="Only jobs of this owner.")
]
OfClass = Annotated[
    str | None,
    typer.Option(
        "--class",
        metavar="CODE",
        help="Only these: a failure code, or `retryable` for all that may end better.",
    ),
]


def add_to(app: typer.Typer) -> None:
    """Add the commands to *app*."""
    app.add_typer(jobs, name="jobs")
    app.command()(submit)
    app.command()(worker)


def submit(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH…",
            help="As of ingest; every worker must find them under the same paths.",
            show_default=False,
        ),
    ],
    *,
    run: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Name of the run, whose budget they share."),
    ] = None,
    priority: Annotated[
        int,
        typer.Option(
            min=1, max=1000, help="Of jobs of one owner the lower number goes first."
        ),
    ] = 100,
    mode: Annotated[
        Mode | None, typer.Option(help="How to find sections (auto by default).")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="provider/name, for example openai/gpt-4o-mini.")
    ] = None,
    api_base: Annotated[
        str | None,
        typer.Option(
            help="Address of an OpenAI-compatible server; workers need it too."
        ),
    ] = None,
    budget_usd: Annotated[
        str | None, typer.Option(help="Most the run may spend, in dollars.")
    ] = None,
    data_dir: DataDir = None,
    json: AsJson = False,
) -> int:
    """
    Queue documents for workers; the same document again is the same job.

    Example: vectorless-rag submit /srv/papers --run night --budget-usd 20
    """
    from vectorless_rag.cli import submitting
    from vectorless_rag.cli.options import decimal

    settings = load(
        mode=mode,
        model=model,
        api_base=api_base,
        budget_usd=decimal(budget_usd),
        data_dir=data_dir,
    )
    return submitting.submit(
        paths, settings, run_id=run_name(run), priority=priority, as_json=json
    )


def worker(
    *,
    jobs: Annotated[
        int | None, typer.Option(help="Documents built at a time by this worker.")
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="Answer /healthz, /readyz and /metrics there."
        ),
    ] = None,
    until_idle: Annotated[
        bool, typer.Option(help="End when nothing is left to build.")
    ] = False,
    data_dir: DataDir = None,
) -> int:
    """
    Build what is submitted, until it is told to end (SIGTERM, Ctrl-C).

    Example: vectorless-rag worker --jobs 2 --listen 127.0.0.1:9464
    """
    from vectorless_rag.cli.stopping import told_to_end

    # Before all that takes seconds: a supervisor may change its mind.
    stopping = told_to_end()

    from vectorless_rag.cli import working

    return working.work(
        load(jobs=jobs, listen=listen, data_dir=data_dir, quiet_level="info"),
        stopping,
        until_idle=until_idle,
    )


@jobs.command("ls")
def jobs_ls(
    *,
    state: Annotated[
        JobState | None, typer.Option(help="Only jobs in this state.")
    ] = None,
    run: OfRun = None,
    owner: OfOwner = None,
    data_dir: DataDir = None,
    json: AsJson = False,
) -> int:
    """
    List jobs, and say how many workers there are.

    Example: vectorless-rag jobs ls --state failed --json
    """
    from vectorless_rag.cli import jobbing

    which = jobbing.Which(state=state, run=run, owner=owner)
    return jobbing.ls(load(data_dir=data_dir), which, as_json=json)


@jobs.command("show")
def jobs_show(
    job: Annotated[
        str,
        typer.Argument(metavar="JOB", help="First digits of a recipe hash, or a PDF."),
    ],
    *,
    data_dir: DataDir = None,
    json: AsJson = False,
) -> int:
    """
    Show one job: where it stands, its tries, what it cost, what it waits for.

    Example: vectorless-rag jobs show papers/a.pdf
    """
    from vectorless_rag.cli import jobbing

    return jobbing.show(job, load(data_dir=data_dir), as_json=json)


@jobs.command("cancel")
def jobs_cancel(
    names: Named = None,
    *,
    run: OfRun = None,
    data_dir: DataDir = None,
    json: AsJson = False,
) -> int:
    """
    Cancel jobs; one that is being built settles what is in flight first.

    Example: vectorless-rag jobs cancel --run night
    """
    from vectorless_rag.cli import jobbing

    settings = load(data_dir=data_dir)
    return jobbing.cancel(names or [], settings, jobbing.Which(run=run), as_json=json)


@jobs.command("retry")
def jobs_retry(
    names: Named = None,
    *,
    of_class: OfClass = None,
    run: OfRun = None,
    data_dir: DataDir = None,
    json: AsJson = False,
) -> int:
    """
    Queue jobs again that failed or were cancelled, with all their tries.

    Example: vectorless-rag jobs retry --class retryable
    """
    from vectorless_rag.cli import jobbing

    which = jobbing.Which(run=run, of_class=of_class)
    return jobbing.retry(names or [], load(data_dir=data_dir), which, as_json=json)
