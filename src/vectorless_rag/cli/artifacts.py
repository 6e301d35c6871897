"""``vectorless-rag show`` and ``recipe show``: what an artifact holds, and why."""

import json
import re
import sys
from pathlib import Path

from rich.text import Text
from rich.tree import Tree

from vectorless_rag.artifact import Artifact, RunRecord
from vectorless_rag.cli.printing import console
from vectorless_rag.cli.words import counted
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.settings import Settings
from vectorless_rag.source import displayable, identify
from vectorless_rag.store import Address, Stored, StoreReader, locate, open_reader
from vectorless_rag.tree import Node, span

# A title may be a whole page; a line is enough to know it by.
_LONGEST_TITLE = 200

_PAGES = re.compile(r"(\d+)(?:-(\d+))?")


def show(name: str, settings: Settings, *, pages: str | None, as_json: bool) -> int:
    """
    Print an artifact's tree, or the text of some of its pages.

    Args:
        name: A PDF, an artifact's folder, or digits of an id or a recipe hash.
        settings: Where the store is.
        pages: Which pages' text to print instead: ``3`` or ``3-5``.
        as_json: Print ``artifact.json`` as it is stored, or the pages as objects.
    """
    store, stored = find(name, settings)
    artifact = store.read(stored)
    if pages is not None:
        _print_pages(artifact, pages, as_json=as_json)
    elif as_json:
        sys.stdout.write(artifact.encoded.decode() + "\n")
    else:
        _print_tree(artifact, stored, store.read_run(stored))
    return 0


def show_recipe(name: str, settings: Settings, *, as_json: bool) -> int:
    """Print every input of an artifact's key, and what making it cost."""
    store, stored = find(name, settings)
    recipe, run = stored.manifest.recipe, store.read_run(stored)
    rows = {
        "recipe_hash": recipe.recipe_hash,
        "configuration_hash": recipe.configuration.configuration_hash,
        "document_sha256": recipe.document_sha256,
        **recipe.configuration.to_json(),
        "artifact_id": stored.artifact_id,
        "generation": stored.generation,
        "cost_usd": run.usage.cost_usd,
    }
    if as_json:
        sys.stdout.write(json.dumps(rows) + "\n")
        return 0
    out = console()
    for key, value in rows.items():
        shown = "default" if value is None else str(value)
        out.print(Text.assemble((f"{key:<20}", "dim"), shown), soft_wrap=True)
    return 0


def find(name: str, settings: Settings) -> tuple[StoreReader, Stored]:
    """
    Find the artifact that a person means, and the store it is in.

    Raises:
        VectorlessRagError: ``not_found``, ``source_unreadable``, ``store_corrupt``.
    """
    store = open_reader(settings)
    place = locate(name)
    if place is not None and not isinstance(place[0], Address):
        # The path of an artifact says which store it is in.
        store = StoreReader(place[0])
    elif Path(name).is_file():
        source = identify(Path(name), max_bytes=settings.max_source_bytes)
        stored = store.current(source.sha256)
        if stored is None:
            raise VectorlessRagError(Code.NOT_FOUND, source.name)
        return store, stored
    return store, store.resolve(name)


def _print_pages(artifact: Artifact, wanted: str, *, as_json: bool) -> None:
    match = _PAGES.fullmatch(wanted)
    first = int(match[1]) if match else 0
    last = int(match[2] or first) if match else 0
    if not 1 <= first <= last <= artifact.page_count:
        raise VectorlessRagError(
            Code.SETTINGS_INVALID, f"--pages takes 1 to {artifact.page_count}, as 3-5"
        )
    for number in range(first, last + 1):
        text = artifact.pages[number - 1]
        if as_json:
            sys.stdout.write(json.dumps({"page": number, "text": text}) + "\n")
        else:
            sys.stdout.write(f"--- page {number} ---\n{displayable(text)}\n")


def _print_tree(artifact: Artifact, stored: Stored, run: RunRecord) -> None:
    out = console()
    head = Text(displayable(artifact.document.name), "bold")
    head.append(
        f"  {counted(artifact.page_count, 'page')}, {artifact.route.value}", "dim"
    )
    tree = Tree(head, guide_style="dim")
    _add(tree, artifact.tree)
    out.print(tree)
    usage = run.usage
    cost = f"${usage.cost_usd} for {counted(usage.calls, 'call')},"
    cost += (
        f" {usage.prompt_tokens} prompt and {usage.completion_tokens} completion tokens"
    )
    rows = {
        "provider": artifact.provider,
        "recipe": artifact.recipe.recipe_hash,
        "artifact": str(stored.folder),
        "cost": cost,
    }
    for key, value in rows.items():
        out.print(Text.assemble((f"{key:<9}", "dim"), value), soft_wrap=True)


def _add(branch: Tree, nodes: tuple[Node, ...]) -> None:
    for node in nodes:
        title = displayable(node.title)[:_LONGEST_TITLE] or "(untitled)"
        label = Text(title, "bold")
        label.append(f"  [{span(node.start_index, node.end_index)}]", "cyan")
        if node.degraded:
            codes = ", ".join(sorted({mark.code for mark in node.degraded}))
            label.append(f"  degraded: {codes}", "yellow")
        summary = " ".join(displayable(node.summary).split())
        if summary:
            label.append("\n" + summary, "dim")
        _add(branch.add(label), node.nodes)
