"""Values for tests of jobs and workers."""

from typing import Any

from vectorless_rag.ledger.board import Board
from vectorless_rag.ledger.job_types import Claim, Job, JobRow, WorkerRow
from vectorless_rag.units import Sha256

RECIPE = Sha256("e" * 64)
VERSION = "0.4.7+vr1-aaaa"
OPTIONS = (
    '{"api_base_sha256":null,"call_attempts":3,"max_output_tokens":4096,'
    '"mode":"auto","model":"offline/extractive"}'
)


def job(name: str = RECIPE, **changes: Any) -> Job:
    usual: dict[str, Any] = {
        "recipe_hash": Sha256(name),
        "document_sha256": Sha256("d" * 64),
        "source": "file:///srv/a.pdf",
        "owner": "ann",
        "run_id": "night",
        "model": "offline/extractive",
        "options": OPTIONS,
        "version": VERSION,
        "priority": 100,
    }
    return Job(**(usual | changes))


def claim(attempt: str = "attempt-1", **changes: Any) -> Claim:
    usual: dict[str, Any] = {
        "recipe_hash": RECIPE,
        "turn": 0,
        "worker_id": "worker-1",
        "attempt_id": attempt,
        "most_tries": 3,
        "most_of_model": None,
    }
    return Claim(**(usual | changes))


def worker(name: str = "worker-1", **changes: Any) -> WorkerRow:
    usual: dict[str, Any] = {
        "worker_id": name,
        "place": "elsewhere boot table 7",
        "pid": 4,
        "version": VERSION,
        "slots": 2,
        "beats": 0,
        "started_us": 1,
        "seen_us": 1,
        "stopped": False,
    }
    return WorkerRow(**(usual | changes))


def there(board: Board, recipe: str = RECIPE) -> JobRow:
    """The job, which is there."""
    found = board.job(recipe)
    assert found is not None
    return found
