"""What a terminal shows while documents are built."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars

from vectorless_rag.cli.shown import Shown
from vectorless_rag.cli.words import counted
from vectorless_rag.results import IngestResult
from vectorless_rag.units import NanoUsd, usd
from vectorless_rag.wire import Progress


class Live(Shown):
    """
    A line for each document that is being built, and one for all of them.

    Args:
        bars: What is on the terminal.
        documents: How many there are in all.
    """

    def __init__(self, bars: Bars, documents: int) -> None:
        self._bars = bars
        self._whole: TaskID | None = None
        if documents > 1:
            self._whole = bars.add_task("all", total=documents, stage="")
        self._lines: dict[int, TaskID] = {}
        self._latest: dict[int, Progress] = {}
        self._ended: Counter[str] = Counter()
        self._spent = 0

    def started(self, number: int, name: str) -> None:
        """Give the document a line."""
        self._lines[number] = self._bars.add_task(
            # Text of a file's name is no markup.
            escape(name), total=None, stage="reading",
        )  # fmt: skip

    def progressed(self, number: int, progress: Progress) -> None:
        """Show the stage, the calls and what they cost."""
        self._latest[number] = progress
        stage = progress.stage
        if progress.calls:
            stage += f" · {counted(progress.calls, 'call')}"
            stage += f" · {_dollars(progress.cost_nano_usd)}"
        self._bars.update(self._lines[number], stage=stage)
        self._sum_up()

    def done(self, number: int, result: IngestResult) -> None:
        """Take the document's line away, and count it."""
        line = self._lines.pop(number, None)
        if line is not None:
            self._bars.remove_task(line)
        self._latest.pop(number, None)
        self._ended[result.status.value] += 1
        self._spent += result.spend.cost
        if self._whole is not None:
            self._bars.advance(self._whole)
        self._sum_up()

    def _sum_up(self) -> None:
        if self._whole is None:
            return
        working = self._latest.values()
        spent = self._spent + sum(progress.cost_nano_usd for progress in working)
        parts = [f"{number} {status}" for status, number in self._ended.items()]
        parts.append(_dollars(spent))
        in_flight = sum(progress.in_flight for progress in working)
        if in_flight:
            parts.append(f"{counted(in_flight, 'call')} in flight")
        self._bars.update(self._whole, stage=" · ".join(parts))


class _OfAll(ProgressColumn):
    """A column that only the line for all documents has."""

    def __init__(self, column: ProgressColumn) -> None:
        super().__init__()
        self._column = column

    def render(self, task: Task) -> RenderableType:
        """Render it, or nothing."""
        return "" if task.total is None else self._column(task)


def _dollars(amount: int) -> str:
    return f"${usd(NanoUsd(amount)):.4f}"


@contextmanager
def live(console: Console, documents: int) -> Iterator[Live]:
    """Show progress on *console* until the block ends; then it is wiped away."""
    columns: list[ProgressColumn] = [
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TextColumn("[dim]{task.fields[stage]}"),
        TimeElapsedColumn(),
    ]
    if documents > 1:
        columns[2:2] = [_OfAll(BarColumn(bar_width=20)), _OfAll(MofNCompleteColumn())]
        columns.append(_OfAll(TimeRemainingColumn()))
    with Bars(*columns, console=console, transient=True) as bars:
        yield Live(bars, documents)
