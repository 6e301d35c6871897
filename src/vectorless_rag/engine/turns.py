"""The names of turns, and how a job is put into the queue for one."""

from vectorless_rag.engine.port import Queue, Turn
from vectorless_rag.ledger.board import Board
from vectorless_rag.ledger.job_types import JobRow
from vectorless_rag.units import Sha256


def turn_id(recipe: str, turn: int) -> str:
    """Name a turn of a job: one workflow for each, and one job for each recipe."""
    return f"{recipe}:{turn}"


def read_turn(name: str) -> tuple[Sha256, int]:
    """Read `turn_id` back."""
    recipe, _, number = name.rpartition(":")
    return Sha256(recipe), int(number)


def enqueue(queue: Queue, job: JobRow, *, delay_s: float = 0) -> None:
    """Put a job into the queue for its present turn."""
    queue.enqueue(
        Turn(
            turn_id=turn_id(job.recipe_hash, job.turn),
            owner=job.owner,
            version=job.version,
            priority=job.priority,
            delay_s=delay_s,
        )
    )


def enqueue_next(
    board: Board,
    queue: Queue,
    job: JobRow,
    *,
    delay_s: float = 0,
    cancel: bool = True,
) -> None:
    """
    Put a job that waits into the queue anew, under a turn of its own.

    Whoever was handed the old turn finds it over. Of several that try, one does it.

    Args:
        board: Where jobs are recorded.
        queue: Where jobs are queued.
        job: As it was read.
        delay_s: Nobody begins it before, in seconds.
        cancel: Take the old turn out of the queue.
    """
    if not board.next_turn(job.recipe_hash, job.turn, delay_s=delay_s):
        return
    if cancel:
        queue.cancel([turn_id(job.recipe_hash, job.turn)])
    now = board.job(job.recipe_hash)
    if now is not None:
        enqueue(queue, now, delay_s=delay_s)
