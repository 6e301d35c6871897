"""``vectorless-rag submit``: documents into the queue, one line or object each."""

import sys
from collections.abc import Sequence
from contextlib import closing

from rich.console import Console
from rich.text import Text

from vectorless_rag.cli.lines import print_json
from vectorless_rag.engine.dbos_engine import DbosQueue
from vectorless_rag.engine.submission import Submission, Submitted
from vectorless_rag.errors import Code
from vectorless_rag.inputs import expand
from vectorless_rag.ledger.board import Board
from vectorless_rag.ledger.job_types import JobRow, JobState
from vectorless_rag.running import running_code
from vectorless_rag.runs import new_run_id
from vectorless_rag.settings import Settings
from vectorless_rag.source import printable
from vectorless_rag.store import open_reader


def submit(
    arguments: Sequence[str],
    settings: Settings,
    *,
    run_id: str | None,
    priority: int,
    as_json: bool,
) -> int:
    """
    Submit what *arguments* name; return the exit status.

    Args:
        arguments: As `vectorless_rag.inputs.expand` reads them.
        settings: What is asked for, and what it may cost.
        run_id: Name of the run; made up if not given.
        priority: Lower goes first.
        as_json: Print one object a document.
    """
    paths = expand(arguments, sys.stdin.buffer)
    code = running_code(settings)
    console = Console(stderr=True, highlight=False)
    done: list[Submitted] = []
    with (
        Board.open(settings.effective_ledger_url) as board,
        closing(DbosQueue(settings.effective_engine_url)) as queue,
    ):
        submission = Submission(
            settings=settings,
            code=code,
            board=board,
            queue=queue,
            store=open_reader(settings),
            run_id=run_id or new_run_id(),
            priority=priority,
        )
        for submitted in submission.submit(paths):
            done.append(submitted)
            console.print(_line(submitted), soft_wrap=True)
            if as_json:
                print_json(submitted.to_json())
    new = sum(one.new for one in done)
    failed = sum(one.failure is not None for one in done)
    line = f"run {submission.run_id}: {new} new"
    line += f", {len(done) - new - failed} known" if len(done) > new + failed else ""
    line += f", {failed} not submitted" if failed else ""
    console.print(Text(line), soft_wrap=True)
    return max((one.failure.exit_status for one in done if one.failure), default=0)


def _line(one: Submitted) -> Text:
    name = printable(one.source.name)
    if one.failure is not None:
        return Text.assemble(
            ("refused", "red"), f"  {name}  {one.failure.code}: {one.failure.message}"
        )
    if one.job is None:
        raise AssertionError("neither submitted nor refused")
    line = Text.assemble(
        ("queued " if one.new else "known  ", "green" if one.new else "cyan"),
        f"  {name}",
        (f"  {one.job.recipe_hash[:12]}", "dim"),
    )
    if not one.new:
        line.append(f"  {one.job.state}, run {one.job.run_id}", "dim")
        if one.job.state in {JobState.FAILED, JobState.CANCELLED}:
            line.append(f"  ({_advice(one.job)})", "yellow")
    return line


def _advice(job: JobRow) -> str:
    failure = job.failure
    if failure is None or failure.code is not Code.BUDGET_EXCEEDED:
        return "jobs retry"
    # It stays on the bill of its run, which is the one to be raised.
    return f"submit --run {job.run_id} --budget-usd MORE, then jobs retry"
