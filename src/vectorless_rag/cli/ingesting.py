"""``vectorless-rag ingest``: documents in, one line or one object each out."""

import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from vectorless_rag import events
from vectorless_rag.attempts import new_run_id
from vectorless_rag.cli.printing import print_json
from vectorless_rag.cli.progress import Shown, live
from vectorless_rag.corpus import Corpus
from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.inputs import expand
from vectorless_rag.pageindex_adapter import PageIndexAdapter
from vectorless_rag.prefork import ForkServers
from vectorless_rag.results import IngestResult, Status
from vectorless_rag.runs import RunFolder, Totals
from vectorless_rag.settings import Settings
from vectorless_rag.source import printable
from vectorless_rag.units import NanoUsd, usd
from vectorless_rag.wire import Progress

_STYLES = {
    Status.BUILT: "green",
    Status.REUSED: "cyan",
    Status.FAILED: "red",
    Status.SKIPPED: "yellow",
}

log = events.logger()


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a command line asks for beside the settings."""

    jobs: int
    rebuild: bool
    as_json: bool
    quiet: bool

    run_id: str | None
    """Name of the run; a run of that name goes on, its budget too."""


def ingest(arguments: Sequence[str], settings: Settings, wanted: Wanted) -> int:
    """
    Ingest what *arguments* name; return the exit status.

    Args:
        arguments: As `vectorless_rag.inputs.expand` reads them.
        settings: Model, budget, limits and folders.
        wanted: How many at a time, and what is shown.
    """
    return ingest_paths(expand(arguments, sys.stdin.buffer), settings, wanted)


def ingest_paths(paths: Sequence[Path], settings: Settings, wanted: Wanted) -> int:
    """Ingest *paths*; return the exit status."""
    run_id = wanted.run_id or new_run_id()
    servers = ForkServers(at_once=len(paths) > 1)
    adapter = PageIndexAdapter(settings, run_id=run_id, servers=servers)
    corpus = Corpus(adapter=adapter, jobs=wanted.jobs, rebuild=wanted.rebuild)
    records = _Records(RunFolder(settings.runs_dir, run_id))
    console = Console(stderr=True, highlight=False)
    try:
        with _shown(console, len(paths), quiet=wanted.quiet) as shown:
            corpus.run(paths, _Watch(console, shown, records, as_json=wanted.as_json))
    finally:
        servers.close()
        records.finish(
            mode=settings.mode.value,
            model=settings.model,
            ended=corpus.ended.value if corpus.ended else "complete",
        )
        if len(paths) > 1:
            _sum_up(console, records)
    return exit_status(records.results)


class _Records:
    """What is kept of the run. A full disk costs the record, never the documents."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._by_number: dict[int, IngestResult] = {}
        self.manifest: Path | None = None
        self._warned = False

    @property
    def results(self) -> list[IngestResult]:
        """Every result, in the order of the documents."""
        return [self._by_number[number] for number in sorted(self._by_number)]

    def begin(self, path: Path) -> None:
        """Keep that a document was begun."""
        # Whatever is in the way, its end will find it too, and say so.
        with suppress(VectorlessRagError):
            self._folder.begin(path)

    def add(self, number: int, result: IngestResult) -> None:
        """Keep how a document ended."""
        self._by_number[number] = result
        try:
            self._folder.add(result)
        except VectorlessRagError as error:
            self._warn(error)

    def finish(self, **about: str) -> None:
        """Account for every document."""
        try:
            self.manifest = self._folder.finish(self.results, **about)
        except VectorlessRagError as error:
            self._warn(error)
        finally:
            self._folder.close()

    def _warn(self, error: VectorlessRagError) -> None:
        """Say so once, unless a document has failed for the same reason."""
        failed = {r.failure.code for r in self.results if r.failure is not None}
        if not self._warned and error.code not in failed:
            log.warning("run_record_unwritable", detail=error.failure.detail)
        self._warned = True


class _Watch:
    """Prints, shows and records what happens."""

    def __init__(
        self, console: Console, shown: Shown, records: _Records, *, as_json: bool
    ) -> None:
        self._console = console
        self._shown = shown
        self._records = records
        self._as_json = as_json

    def started(self, number: int, path: Path) -> None:
        """Keep that it was begun, and show its name."""
        self._records.begin(path)
        self._shown.started(number, printable(path.name))

    def progressed(self, number: int, progress: Progress) -> None:
        """Show the stage, the calls and what they cost."""
        self._shown.progressed(number, progress)

    def done(self, number: int, result: IngestResult) -> None:
        """Print how it ended."""
        self._records.add(number, result)
        self._shown.done(number, result)
        for line in summary_lines(result):
            self._console.print(line, soft_wrap=True)
        if self._as_json:
            print_json(result.to_json())
            sys.stdout.flush()


@contextmanager
def _shown(console: Console, documents: int, *, quiet: bool) -> Iterator[Shown]:
    if quiet or not console.is_terminal:
        yield Shown()
        return
    with live(console, documents) as shown:
        yield shown


# Where documents failed in different ways, the gravest decides.
_GRAVEST = (1, 20, 10, 2, 4, 5, 3)


def exit_status(results: Sequence[IngestResult]) -> int:
    """Sum up a run: 0 only if every document has an artifact."""
    return gravest({r.failure.exit_status for r in results if r.failure is not None})


def gravest(found: Collection[int]) -> int:
    """Return the exit status that stands for all of *found*; 0 if there is none."""
    return next((status for status in _GRAVEST if status in found), 0)


def _sum_up(console: Console, records: _Records) -> None:
    totals = Totals.of(records.results)
    counts = ", ".join(
        f"{number} {status}" for status, number in totals.by_status.items() if number
    )
    line = f"{len(records.results)} documents: {counts}"
    line += f"  ({totals.calls} calls, ${usd(totals.cost):f}"
    if totals.cost and totals.cost_per_1000_pages is not None:
        line += f"; {_cents(totals.cost_per_1000_documents)} per 1,000 documents"
        line += f", {_cents(totals.cost_per_1000_pages)} per 1,000 pages"
    console.print(Text(line + ")"), soft_wrap=True)
    if records.manifest is not None:
        console.print(Text(f"run      {records.manifest}", "dim"), soft_wrap=True)


def _cents(amount: NanoUsd | None) -> str:
    return f"${usd(amount or NanoUsd(0)):.2f}"


def summary_lines(result: IngestResult) -> list[Text]:
    """Spell how a document ended, for people."""
    name = printable(result.source.name)
    head = Text.assemble((f"{result.status:<7}", _STYLES[result.status]), f" {name}")
    if result.skipped is not None:
        head.append(f"  not begun: {result.skipped}")
    elif result.failure is not None:
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
