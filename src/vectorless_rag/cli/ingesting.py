"""``vectorless-rag ingest``: documents in, one line or one object each out."""

import sys
from collections.abc import Collection, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vectorless_rag import events
from vectorless_rag.cli.lines import Line, StandardError, print_json
from vectorless_rag.cli.shown import Shown
from vectorless_rag.cli.words import counted
from vectorless_rag.corpus import Corpus, Ingester
from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.inputs import expand
from vectorless_rag.results import IngestResult, Status
from vectorless_rag.runs import RunFolder, Totals, new_run_id
from vectorless_rag.source import printable
from vectorless_rag.units import NanoUsd, usd
from vectorless_rag.wire import Progress

if TYPE_CHECKING:
    from vectorless_rag.settings import Settings

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


@dataclass(frozen=True, kw_only=True)
class Run:
    """What the record of a run says of it."""

    run_id: str
    folder: Path
    """``runs`` of the data folder."""

    mode: str
    model: str


def ingest(
    arguments: Sequence[str], settings: "Settings", wanted: Wanted
) -> list[IngestResult]:
    """
    Ingest what *arguments* name; return a result for each document.

    Args:
        arguments: As `vectorless_rag.inputs.expand` reads them.
        settings: Model, budget, limits and folders.
        wanted: How many at a time, and what is shown.
    """
    return ingest_paths(expand(arguments, sys.stdin.buffer), settings, wanted)


def ingest_paths(
    paths: Sequence[Path], settings: "Settings", wanted: Wanted
) -> list[IngestResult]:
    """Ingest *paths*; return a result for each."""
    # What builds is not needed to tell what was looked up.
    from vectorless_rag.pageindex_adapter import PageIndexAdapter  # noqa: PLC0415
    from vectorless_rag.prefork import ForkServers  # noqa: PLC0415

    run_id = wanted.run_id or new_run_id()
    run = Run(
        run_id=run_id,
        folder=settings.runs_dir,
        mode=settings.mode.value,
        model=settings.model,
    )
    servers = ForkServers(at_once=len(paths) > 1)
    adapter = PageIndexAdapter(settings, run_id=run_id, servers=servers)
    with closing(servers):
        return follow(paths, adapter, run, wanted)


def follow(
    paths: Sequence[Path], ingester: Ingester, run: Run, wanted: Wanted
) -> list[IngestResult]:
    """
    Have *paths* ingested; show, print and record what becomes of each.

    Args:
        paths: The documents.
        ingester: Ingests one.
        run: For the record.
        wanted: How many at a time, and what is shown.
    """
    corpus = Corpus(adapter=ingester, jobs=wanted.jobs, rebuild=wanted.rebuild)
    records = _Records(RunFolder(run.folder, run.run_id))
    err = StandardError()
    try:
        with err.shown(len(paths), quiet=wanted.quiet) as shown:
            corpus.run(paths, _Watch(err, shown, records, as_json=wanted.as_json))
    finally:
        records.finish(
            mode=run.mode,
            model=run.model,
            ended=corpus.ended.value if corpus.ended else "complete",
        )
        if len(paths) > 1:
            _sum_up(err, records)
    return records.results


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
        self, err: StandardError, shown: Shown, records: _Records, *, as_json: bool
    ) -> None:
        self._err = err
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
        self._err.print(summary_lines(result))
        if self._as_json:
            print_json(result.to_json())
            sys.stdout.flush()


# Where documents failed in different ways, the gravest decides.
_GRAVEST = (1, 20, 10, 2, 4, 5, 3)


def exit_status(results: Sequence[IngestResult]) -> int:
    """Sum up a run: 0 only if every document has an artifact."""
    return gravest({r.failure.exit_status for r in results if r.failure is not None})


def gravest(found: Collection[int]) -> int:
    """Return the exit status that stands for all of *found*; 0 if there is none."""
    return next((status for status in _GRAVEST if status in found), 0)


def _sum_up(err: StandardError, records: _Records) -> None:
    totals = Totals.of(records.results)
    counts = ", ".join(
        f"{number} {status}" for status, number in totals.by_status.items() if number
    )
    line = f"{counted(len(records.results), 'document')}: {counts}"
    line += f"  ({counted(totals.calls, 'call')}, ${usd(totals.cost):f}"
    if totals.cost and totals.cost_per_1000_pages is not None:
        line += f"; {_cents(totals.cost_per_1000_documents)} per 1,000 documents"
        line += f", {_cents(totals.cost_per_1000_pages)} per 1,000 pages"
    lines = [Line(line + ")")]
    if records.manifest is not None:
        lines.append(Line(f"run      {records.manifest}", "dim"))
    err.print(lines)


def _cents(amount: NanoUsd | None) -> str:
    return f"${usd(amount or NanoUsd(0)):.2f}"


def summary_lines(result: IngestResult) -> list[Line]:
    """Spell how a document ended, for people."""
    name = printable(result.source.name)
    head = Line(f"{result.status:<7}", _STYLES[result.status])
    head.append(f" {name}")
    if result.skipped is not None:
        head.append(f"  not begun: {result.skipped}")
    elif result.failure is not None:
        head.append(f"  {result.failure.code}: {result.failure.message}")
    else:
        head.append(
            f"  {counted(result.pages, 'page')}, {counted(result.nodes, 'node')}"
        )
        if result.degraded:
            head.append(f", {result.degraded} of them degraded", "yellow")
    spend = result.spend
    if result.status is Status.BUILT or spend.calls:
        cost = f"{counted(spend.calls, 'call')}, {spend.prompt_tokens} prompt and"
        cost += f" {spend.completion_tokens} completion tokens, ${usd(spend.cost):f}"
        head.append(f"  ({cost})", "dim")
    lines = [head]
    if result.artifact_path is not None:
        lines.append(Line(f"        recipe   {result.recipe_hash}", "dim"))
        lines.append(Line(f"        artifact {result.artifact_path}", "dim"))
    return lines
