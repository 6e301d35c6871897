"""Commands of ``recipe`` and ``upstream``, as a person types them."""

from pathlib import Path
from typing import Annotated

import typer

from vectorless_rag.cli.options import (
    AsJson,
    DataDir,
    Named,
    WithApiBase,
    WithMode,
    WithModel,
    load,
)

recipe = typer.Typer(help="What decides an artifact's key.", no_args_is_help=True)
upstream = typer.Typer(help="The pinned, patched PageIndex.", no_args_is_help=True)


@recipe.command("show")
def recipe_show(name: Named, *, data_dir: DataDir = None, json: AsJson = False) -> int:
    """
    Print every input that decided an artifact, and its cost.

    Example: vectorless-rag recipe show paper.pdf
    """
    from vectorless_rag.cli import artifacts

    return artifacts.show_recipe(name, load(data_dir=data_dir), as_json=json)


@recipe.command("explain")
def recipe_explain(
    name: Named,
    other: Annotated[
        str | None,
        typer.Argument(
            metavar="OTHER",
            help="A later artifact; none: what would be built now.",
        ),
    ] = None,
    *,
    mode: WithMode = None,
    model: WithModel = None,
    api_base: WithApiBase = None,
    data_dir: DataDir = None,
    json: AsJson = False,
) -> int:
    """
    Say why two artifacts differ, or why one would be built again now.

    Example: vectorless-rag recipe explain paper.pdf --model openai/gpt-4o-mini
    """
    from vectorless_rag.cli import explaining

    settings = load(mode=mode, model=model, api_base=api_base, data_dir=data_dir)
    return explaining.explain_recipes(name, other, settings, as_json=json)


@upstream.command("fetch")
def upstream_fetch() -> int:
    """
    Fetch the pinned release into vendor/ and verify it.

    Example: vectorless-rag upstream fetch
    """
    from vectorless_rag.cli import building

    return building.fetch()


@upstream.command("build")
def upstream_build(
    dest: Annotated[Path | None, typer.Argument(help="Folder to build.")] = None,
) -> int:
    """
    Fetch, verify and patch the pinned release.

    Example: vectorless-rag upstream build
    """
    from vectorless_rag.cli import building

    return building.build(load(), dest)


@upstream.command("verify")
def upstream_verify(
    dest: Annotated[Path | None, typer.Argument(help="Folder that was built.")] = None,
) -> int:
    """
    Compare every file of a build with its record.

    Example: vectorless-rag upstream verify
    """
    from vectorless_rag.cli import building

    return building.verify(load(), dest)


@upstream.command("drift")
def upstream_drift(
    *,
    to: Annotated[
        str | None, typer.Option(help="One release; default: the newest known.")
    ] = None,
    matrix: Annotated[
        str | None, typer.Option(help="Several releases, as 0.4.0..0.4.7 or A,B.")
    ] = None,
    json: AsJson = False,
) -> int:
    """
    Say what would become of each patch on another release, by running its proofs.

    Minutes a release. Needs a source checkout: an installed package has no proofs.

    Example: vectorless-rag upstream drift --to 0.4.6
    """
    from vectorless_rag.cli import building

    return building.drift(to, matrix, as_json=json)


@upstream.command("why")
def upstream_why(
    place: Annotated[
        str,
        typer.Argument(metavar="FILE:LINE", help="A line of the patched upstream."),
    ],
    *,
    json: AsJson = False,
) -> int:
    """
    Say which patch put a line there, why, and what proves it.

    Example: vectorless-rag upstream why page_index_classic.py:552
    """
    from vectorless_rag.cli import building

    return building.why(place, load(), as_json=json)
