"""``vectorless-rag ingest``: documents in, one line or one object each out."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from rich.console import Console
from rich.progress import Progress as Bars
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from vectorless_rag.cli import Terminated
from vectorless_rag.pageindex_adapter import PageIndexAdapter
from vectorless_rag.results import IngestResult, Status
from vectorless_rag.settings import Settings
from vectorless_rag.source import printable
from vectorless_rag.units import usd
from vectorless_rag.wire import Progress

_STYLES = {Status.BUILT: "green", Status.REUSED: "cyan", Status.FAILED: "red"}


class _Display(Protocol):
    def start(self, path: Path) -> None: ...
    def report(self, progress: Progress) -> None: ...
    def done(self, result: IngestResult) -> None: ...


def ingest(
    paths: Sequence[Path],
    settings: Settings,
    *,
    rebuild: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    """
    Ingest *paths* one after another; return the exit status.

    Args:
        paths: PDF files.
        settings: Model, budget, limits and folders.
        rebuild: Build again where an artifact is there.
        as_json: Print one object a document on standard output.
        quiet: Show no progress.
    """
    adapter = PageIndexAdapter(settings)
    results: list[IngestResult] = []
    with _display(quiet=quiet) as display:
        for path in paths:
            display.start(path)
            try:
                result = adapter.ingest(
                    path, rebuild=rebuild, on_progress=display.report
                )
            except (KeyboardInterrupt, Terminated):
                if as_json:
                    _print(adapter.interrupted(path))
                raise
            display.done(result)
            results.append(result)
            if as_json:
                _print(result)
    return exit_status(results)


def _print(result: IngestResult) -> None:
    sys.stdout.write(json.dumps(result.to_json()) + "\n")
    sys.stdout.flush()


# Where documents failed in different ways, the gravest decides.
_GRAVEST = (1, 20, 10, 2, 4, 5, 3)


def exit_status(results: Sequence[IngestResult]) -> int:
    """Sum up a run: 0 only if every document has an artifact."""
    found = {r.failure.exit_status for r in results if r.failure is not None}
    return next((status for status in _GRAVEST if status in found), 0)


@contextmanager
def _display(*, quiet: bool) -> Iterator[_Display]:
    console = Console(stderr=True, highlight=False)
    if quiet or not console.is_terminal:
        yield _Lines(console)
        return
    bars = Bars(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TextColumn("[dim]{task.fields[stage]}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
    with bars:
        yield _Live(console, bars)


class _Lines:
    """One line a document, when it is done."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def start(self, path: Path) -> None:
        """Nothing to show yet."""

    def report(self, progress: Progress) -> None:
        """Nothing to show yet."""

    def done(self, result: IngestResult) -> None:
        """Print how it ended."""
        for line in summary_lines(result):
            self._console.print(line, soft_wrap=True)


class _Live(_Lines):
    """The same, and the stage that the document is in."""

    def __init__(self, console: Console, bars: Bars) -> None:
        super().__init__(console)
        self._bars = bars
        self._task = bars.add_task("", stage="")

    def start(self, path: Path) -> None:
        """Show the document's name."""
        # Text of a file's name is no markup.
        name = printable(path.name).replace("[", r"\[")
        self._bars.reset(self._task, description=name, stage="reading")

    def report(self, progress: Progress) -> None:
        """Show the stage, the calls and what they cost."""
        stage = progress.stage
        if progress.calls:
            stage += f" · {progress.calls} calls · ${usd(progress.cost_nano_usd):.4f}"
        self._bars.update(self._task, stage=stage)


def summary_lines(result: IngestResult) -> list[Text]:
    """Spell how a document ended, for people."""
    name = printable(result.source.name)
    head = Text.assemble((f"{result.status:<7}", _STYLES[result.status]), f" {name}")
    if result.failure is not None:
        head.append(f"  {result.failure.code}: {result.failure.message}")
    else:
        head.append(f"  {result.pages} pages, {result.nodes} nodes")
        if result.degraded:
            head.append(f", {result.degraded} of them degraded", "yellow")
    spend = result.spend
    if result.status is Status.BUILT or spend.calls:
        cost = f"{spend.calls} calls, {spend.prompt_tokens} prompt and"
        cost += f" {spend.completion_tokens} completion tokens, ${usd(spend.cost):f}"
        head.append(f"  ({cost})", "dim")
    lines = [head]
    if result.artifact_path is not None:
        lines.append(Text(f"        recipe   {result.recipe_hash}", "dim"))
        lines.append(Text(f"        artifact {result.artifact_path}", "dim"))
    return lines
