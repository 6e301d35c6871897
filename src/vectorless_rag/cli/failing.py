"""``vectorless-rag failures``: what is left over from earlier runs, and again."""

import sys

from vectorless_rag.cli.accounting import require_folder
from vectorless_rag.cli.ingesting import Wanted, exit_status, ingest_paths
from vectorless_rag.cli.lines import print_json
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.ledger.board import Board
from vectorless_rag.ledger.job_types import JobState
from vectorless_rag.runs import Ended, unfinished
from vectorless_rag.settings import Settings
from vectorless_rag.source import printable, storable

RETRYABLE = "retryable"


def ls(settings: Settings, of_class: str | None, *, as_json: bool) -> int:
    """List documents whose last ingest left no artifact; return 0."""
    left = _chosen(settings, of_class)
    if as_json:
        for ended in left:
            line = {"path": storable(str(ended.path)), "at": ended.at,
                    "run_id": ended.run_id, "code": ended.code}  # fmt: skip
            print_json({**line, "retryable": ended.retryable})
        return 0
    for ended in left:
        when = ended.at[:19].replace("T", " ")
        sys.stdout.write(
            f"{ended.code:<30} {printable(str(ended.path))}  ({when} UTC)\n"
        )
    sys.stderr.write(f"without an artifact: {len(left)}\n")
    if jobs := _failed_jobs(settings):
        sys.stderr.write(
            f"submitted, and failed: {jobs} (vectorless-rag jobs ls --state failed)\n"
        )
    return 0


def _failed_jobs(settings: Settings) -> int:
    if settings.owns_ledger and not settings.ledger_file.exists():
        return 0
    with Board.open(settings.effective_ledger_url) as board:
        return board.tally().jobs[JobState.FAILED]


def retry(settings: Settings, of_class: str | None, wanted: Wanted) -> int:
    """Ingest them again; return the exit status."""
    left = _chosen(settings, of_class)
    if not left:
        sys.stderr.write("nothing to retry\n")
        return 0
    return exit_status(ingest_paths([ended.path for ended in left], settings, wanted))


def _chosen(settings: Settings, of_class: str | None) -> list[Ended]:
    require_folder(settings)
    left = unfinished(settings.runs_dir)
    if of_class is None:
        return left
    if of_class == RETRYABLE:
        return [ended for ended in left if ended.retryable]
    if of_class not in set(Code):
        raise VectorlessRagError(
            Code.SETTINGS_INVALID, f"{printable(of_class)}: no failure code"
        )
    return [ended for ended in left if ended.code == of_class]
