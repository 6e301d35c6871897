"""``vectorless-rag jobs``: what was submitted, where it stands, and what to do."""

import re
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.text import Text

from vectorless_rag.canon import Json
from vectorless_rag.cli.accounting import require_folder
from vectorless_rag.cli.lines import print_json
from vectorless_rag.cli.printing import console, labelled
from vectorless_rag.cli.words import counted
from vectorless_rag.engine import turns
from vectorless_rag.engine.dbos_engine import DbosQueue
from vectorless_rag.engine.places import Roll
from vectorless_rag.engine.submission import path_of
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.ledger.board import Board
from vectorless_rag.ledger.book import Ledger, now_us
from vectorless_rag.ledger.job_types import OPEN, JobRow, JobState
from vectorless_rag.results import Spend, spelled
from vectorless_rag.settings import Settings
from vectorless_rag.source import identify, printable, storable

RETRYABLE = "retryable"

_DIGITS = re.compile(r"[0-9a-f]{8,64}")
_STYLES = {
    JobState.QUEUED: "yellow",
    JobState.RUNNING: "cyan",
    JobState.BUILT: "green",
    JobState.FAILED: "red",
    JobState.CANCELLED: "magenta",
    JobState.SUPERSEDED: "dim",
}
_AGAIN = frozenset({JobState.FAILED, JobState.CANCELLED})


@dataclass(frozen=True, kw_only=True)
class Which:
    """Which jobs are meant, where none is named."""

    state: JobState | None = None
    run: str | None = None
    owner: str | None = None
    of_class: str | None = None

    def __post_init__(self) -> None:
        if self.of_class not in {None, RETRYABLE, *Code}:
            raise VectorlessRagError(
                Code.SETTINGS_INVALID,
                f"{printable(str(self.of_class))}: no failure code",
            )

    def takes(self, job: JobRow) -> bool:
        """Whether *job* is meant."""
        return (
            self.state in {None, job.state}
            and self.run in {None, job.run_id}
            and self.owner in {None, job.owner}
            and self._is_of_class(job)
        )

    def _is_of_class(self, job: JobRow) -> bool:
        if self.of_class is None:
            return True
        if job.failure is None:
            return False
        if self.of_class == RETRYABLE:
            return job.failure.retryable or job.failure.code is Code.JOB_TRIES_SPENT
        return job.failure.code == self.of_class


def ls(settings: Settings, which: Which, *, as_json: bool) -> int:
    """List jobs; return 0."""
    with _board(settings) as board:
        found = [job for job in board.jobs() if which.takes(job)]
        roll = _roll(board, settings)
    if as_json:
        for job in found:
            print_json(_spelled(job))
        return 0
    out = console()
    for job in found:
        out.print(_line(job), soft_wrap=True)
    states = Counter(job.state for job in found)
    counts = ", ".join(f"{states[s]} {s}" for s in JobState if states[s])
    line = f"jobs: {counts or 'none'}; workers: {len(roll.there)}, slots: {roll.slots}"
    if roll.silent:
        line += f"; not heard of any more: {len(roll.silent)}"
    sys.stderr.write(line + "\n")
    return 0


def show(name: str, settings: Settings, *, as_json: bool) -> int:
    """Show one job; return 0."""
    with _board(settings) as board:
        job, *more = _named(board, name, settings)
        if more:
            others = ", ".join(one.recipe_hash[:12] for one in (job, *more))
            raise VectorlessRagError(
                Code.NOT_FOUND, f"{printable(name)}: more than one job, name {others}"
            )
        served = {worker.version for worker in _roll(board, settings).there}
    with Ledger.open(settings.effective_ledger_url) as ledger:
        tries = [
            a for a in ledger.attempts(job.run_id) if a.recipe_hash == job.recipe_hash
        ]
        spend = [Spend.of(ledger.usage(a.attempt_id)).to_json() for a in tries]
    waits = _waits_for(job, served)
    if as_json:
        attempts: list[Json] = [
            {
                "attempt_id": a.attempt_id,
                "outcome": a.outcome.value if a.outcome else None,
                "code": a.code.value if a.code else None,
                "started_at": _time(a.started_us),
                "ended_at": _time(a.ended_us),
                "usage": usage,
            }
            for a, usage in zip(tries, spend, strict=True)
        ]
        print_json({**_spelled(job), "waits_for": waits, "attempts": attempts})
        return 0
    out = console()
    out.print(_line(job), soft_wrap=True)
    for label, words in (
        ("recipe", job.recipe_hash),
        ("source", printable(str(path_of(job.source)))),
        ("owner", f"{job.owner}, run {job.run_id}, priority {job.priority}"),
        ("model", job.model),
        ("code", job.version),
        ("tries", str(job.tries)),
        ("worker", job.worker_id or "none"),
        ("waits for", waits or "nothing"),
        ("failure", job.failure.message if job.failure else "none"),
        ("artifact", job.artifact_id or "none"),
        *((("successor", job.successor),) if job.successor else ()),
    ):
        out.print(labelled(label, words, 11), soft_wrap=True)
    for a, usage in zip(tries, spend, strict=True):
        how = a.outcome.value if a.outcome else "running"
        cost = f"{counted(usage['calls'], 'call')}, ${usage['cost_usd']}"
        out.print(
            labelled("attempt", f"{_time(a.started_us)} {how} {cost}", 11),
            soft_wrap=True,
        )
    return 0


def cancel(
    names: Sequence[str], settings: Settings, which: Which, *, as_json: bool
) -> int:
    """Cancel jobs; return 0."""
    with (
        _board(settings) as board,
        closing(DbosQueue(settings.effective_engine_url)) as queue,
    ):
        chosen, left = _chosen(board, names, settings, which, OPEN)
        done = [after for job in chosen if (after := board.cancel(job.recipe_hash))]
        waited = [job for job in done if job.state is JobState.CANCELLED]
        queue.cancel([turns.turn_id(job.recipe_hash, job.turn) for job in waited])
    return _tell(done, "cancelled", left, as_json=as_json)


def retry(
    names: Sequence[str], settings: Settings, which: Which, *, as_json: bool
) -> int:
    """Queue jobs again; return 0."""
    with (
        _board(settings) as board,
        closing(DbosQueue(settings.effective_engine_url)) as queue,
    ):
        done: list[JobRow] = []
        chosen, left = _chosen(board, names, settings, which, _AGAIN)
        for job in chosen:
            after = board.again(job.recipe_hash)
            if after is not None:
                turns.enqueue(queue, after)
                done.append(after)
    return _tell(done, "queued again", left, as_json=as_json)


def _tell(
    done: Sequence[JobRow], what: str, left: Sequence[JobRow], *, as_json: bool
) -> int:
    for job in done:
        if as_json:
            print_json(_spelled(job))
        else:
            console().print(_line(job), soft_wrap=True)
    for job in left:
        sys.stderr.write(f"left: {job.recipe_hash[:12]} is {job.state}\n")
    sys.stderr.write(f"{what}: {len(done)}\n")
    return 0


def _chosen(
    board: Board,
    names: Sequence[str],
    settings: Settings,
    which: Which,
    states: frozenset[JobState],
) -> tuple[list[JobRow], list[JobRow]]:
    """Return the jobs that are meant, and of those that were named the others."""
    if not names and which == Which():
        raise VectorlessRagError(Code.SETTINGS_INVALID, "name jobs, or say --run NAME")
    found = [job for name in names for job in _named(board, name, settings)]
    meant = [
        job
        for job in (found if names else board.jobs())
        if which.takes(job) and job.state in states
    ]
    return meant, [job for job in found if job not in meant]


def _named(board: Board, name: str, settings: Settings) -> list[JobRow]:
    """Find a job by the start of its recipe hash, or the jobs of a PDF's bytes."""
    found: list[JobRow] = []
    if _DIGITS.fullmatch(name):
        recipes = board.named(name)
        if len(recipes) > 1:
            raise VectorlessRagError(Code.NOT_FOUND, f"{name}: more than one job")
        found = [job for recipe in recipes if (job := board.job(recipe)) is not None]
    elif Path(name).is_file():
        source = identify(Path(name), max_bytes=settings.max_source_bytes)
        found = board.of_document(source.sha256)
    if not found:
        raise VectorlessRagError(Code.NOT_FOUND, f"{printable(name)}: no such job")
    return found


def _roll(board: Board, settings: Settings) -> Roll:
    listed, limit_s = board.workers(), settings.dead_after_s
    return Roll.call(listed, dead_after_s=limit_s, now_us=now_us())


def _board(settings: Settings) -> Board:
    if settings.owns_ledger:
        # Opening the board would make it.
        require_folder(settings)
    return Board.open(settings.effective_ledger_url)


def _waits_for(job: JobRow, served: set[str]) -> str | None:
    if job.state is not JobState.QUEUED:
        return None
    if job.version not in served:
        return f"a worker with the code {job.version}"
    if job.failure is not None:
        return f"another try from {_time(job.ready_us)}"
    return "a free worker"


def _time(us: int | None) -> str | None:
    if us is None:
        return None
    return datetime.fromtimestamp(us / 1e6, UTC).isoformat(timespec="milliseconds")


def _spelled(job: JobRow) -> dict[str, Json]:
    return {
        "recipe_hash": job.recipe_hash,
        "state": job.state.value,
        "source": storable(str(path_of(job.source))),
        "document_sha256": job.document_sha256,
        "owner": job.owner,
        "run_id": job.run_id,
        "model": job.model,
        "version": job.version,
        "priority": job.priority,
        "tries": job.tries,
        "worker_id": job.worker_id,
        "cancelling": job.cancelling,
        "artifact_id": job.artifact_id,
        "successor": job.successor,
        "failure": spelled(job.failure) if job.failure else None,
        "submitted_at": _time(job.submitted_us),
        "ready_at": _time(job.ready_us),
        "started_at": _time(job.started_us),
        "ended_at": _time(job.ended_us),
    }


def _line(job: JobRow) -> Text:
    state = "cancelling" if job.cancelling else job.state.value
    line = Text.assemble(
        (f"{state:<10}", _STYLES[job.state]),
        (f" {job.recipe_hash[:12]}", "dim"),
        f"  {printable(path_of(job.source).name)}",
    )
    if job.failure is not None:
        line.append(f"  {job.failure.code}", "red")
    if job.successor is not None:
        line.append(f"  by {job.successor[:12]}", "dim")
    return line
