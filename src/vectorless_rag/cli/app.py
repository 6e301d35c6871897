"""Commands and options, as a person types them."""

import sys
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import click
import typer

import vectorless_rag
from vectorless_rag import events
from vectorless_rag.cli import artifacts, building, doctoring, ingesting
from vectorless_rag.settings import Mode, Settings

_app = typer.Typer(
    name="vectorless-rag",
    help="Turn long PDFs into audited trees of sections, with no vectors.",
    no_args_is_help=True,
    # Its tracebacks print local variables, keys included.
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
_recipe = typer.Typer(help="What decides an artifact's key.", no_args_is_help=True)
_upstream = typer.Typer(help="The pinned, patched PageIndex.", no_args_is_help=True)
_app.add_typer(_recipe, name="recipe")
_app.add_typer(_upstream, name="upstream")

DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", help="Folder of the artifact store and the ledger."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]
Named = Annotated[
    str,
    typer.Argument(
        metavar="ARTIFACT_OR_PATH",
        help="A PDF, an artifact's folder, or the first 8 digits of an artifact id"
        " or a recipe hash.",
    ),
]


def app(argv: list[str]) -> int:
    """Carry out *argv*; return the exit status."""
    try:
        status = _app(argv, standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return 2
    except click.Abort:
        raise KeyboardInterrupt from None
    return int(status or 0)


def _load(**options: object) -> Settings:
    settings = Settings.load(**options)
    events.configure(settings.log_level.value)
    return settings


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


@_app.command()
def ingest(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH…", help="PDF files.", show_default=False),
    ],
    *,
    mode: Annotated[
        Mode | None, typer.Option(help="How to find sections (auto by default).")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="provider/name, for example openai/gpt-4o-mini.")
    ] = None,
    api_base: Annotated[
        str | None, typer.Option(help="Address of an OpenAI-compatible server.")
    ] = None,
    budget_usd: Annotated[
        str | None, typer.Option(help="Most this command may spend, in dollars.")
    ] = None,
    allow_unpriced: Annotated[
        bool, typer.Option(help="Call a model with no known price, counted as free.")
    ] = False,
    rebuild: Annotated[
        bool, typer.Option(help="Build again, even if the artifact is there.")
    ] = False,
    quiet: Annotated[bool, typer.Option(help="No progress display.")] = False,
    data_dir: DataDir = None,
    json: AsJson = False,
) -> int:
    """
    Build the tree of each PDF, or reuse the one that is stored.

    Example: vectorless-rag ingest paper.pdf --model openai/gpt-4o-mini
    """
    settings = _load(
        mode=mode,
        model=model,
        api_base=api_base,
        budget_usd=_decimal(budget_usd),
        allow_unpriced=allow_unpriced or None,
        data_dir=data_dir,
    )
    return ingesting.ingest(paths, settings, rebuild=rebuild, as_json=json, quiet=quiet)


def _decimal(text: str | None) -> Decimal | str | None:
    try:
        return Decimal(text) if text is not None else None
    except ArithmeticError:
        # Left to the settings, whose message names the field.
        return text


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
    return artifacts.show(name, _load(data_dir=data_dir), pages=pages, as_json=json)


@_recipe.command("show")
def recipe_show(name: Named, *, data_dir: DataDir = None, json: AsJson = False) -> int:
    """Print every input that decided an artifact, and its cost."""
    return artifacts.show_recipe(name, _load(data_dir=data_dir), as_json=json)


@_upstream.command("fetch")
def upstream_fetch() -> int:
    """Fetch the pinned release into vendor/ and verify it."""
    return building.fetch()


@_upstream.command("build")
def upstream_build(
    dest: Annotated[Path | None, typer.Argument(help="Folder to build.")] = None,
) -> int:
    """Fetch, verify and patch the pinned release."""
    return building.build(_load(), dest)


@_upstream.command("verify")
def upstream_verify(
    dest: Annotated[Path | None, typer.Argument(help="Folder that was built.")] = None,
) -> int:
    """Compare every file of a build with its record."""
    return building.verify(_load(), dest)


@_app.command()
def doctor(*, data_dir: DataDir = None, json: AsJson = False) -> int:
    """Say what is installed, built, configured and reachable."""
    return doctoring.doctor(_load(data_dir=data_dir), as_json=json)
