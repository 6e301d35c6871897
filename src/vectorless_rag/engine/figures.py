"""The fleet and one worker in numbers, for whoever watches."""

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal

from vectorless_rag.engine.places import Roll
from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.ledger.board import Board
from vectorless_rag.ledger.book import Ledger, now_us
from vectorless_rag.ledger.job_types import JobRow
from vectorless_rag.results import Spend
from vectorless_rag.units import usd

_OWNER = "owner:"

HELP = {
    "vectorless_rag_database_up": "Whether the worker's database could be read.",
    "vectorless_rag_jobs": "Jobs by state.",
    "vectorless_rag_queue_age_seconds": "How long the first waiting job waits.",
    "vectorless_rag_job_failures": "Failed jobs by code.",
    "vectorless_rag_workers": "Workers that are there.",
    "vectorless_rag_workers_silent": "Workers that died, or are not heard of.",
    "vectorless_rag_slots": "Documents that they build at a time.",
    "vectorless_rag_spent_usd": "Spent by owner, in dollars.",
    "vectorless_rag_held_usd": "Set aside for requests by owner, in dollars.",
    "vectorless_rag_worker_running": "Documents that this worker is building.",
    "vectorless_rag_worker_turns_total": "Turns of jobs that ended here, by how.",
    "vectorless_rag_worker_turn_seconds_total": "Time that they took.",
}
"""Every figure; a name that ends in ``_total`` only ever grows."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """One turn that a worker has carried out."""

    job: JobRow
    attempt_id: str

    how: str
    """``built``, ``failed``, ``cancelled``, ``handed_back`` or ``lost``."""

    code: str | None
    spend: Spend

    began_ns: int
    """Nanoseconds since 1970, UTC."""

    ended_ns: int

    @property
    def seconds(self) -> float:
        """How long it took."""
        return (self.ended_ns - self.began_ns) / 1e9


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One number."""

    name: str
    """One of `HELP`."""

    value: float | Decimal
    labels: tuple[tuple[str, str], ...] = ()


@dataclass
class Counts:
    """What this worker has done since it began."""

    _turns: dict[str, tuple[int, float]] = field(default_factory=dict)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def add(self, ended: Ended) -> None:
        """Count one turn."""
        with self._guard:
            number, seconds = self._turns.get(ended.how, (0, 0.0))
            self._turns[ended.how] = (number + 1, seconds + ended.seconds)

    def figures(self, running: int) -> Iterator[Figure]:
        """Tell of this worker alone."""
        yield _figure("worker_running", running)
        with self._guard:
            turns = sorted(self._turns.items())
        for how, (number, _) in turns:
            yield _figure("worker_turns_total", number, how=how)
        for how, (_, seconds) in turns:
            yield _figure("worker_turn_seconds_total", seconds, how=how)


def figures(
    ledger_url: str, counts: Counts, running: int, *, dead_after_s: int
) -> list[Figure]:
    """
    Count the fleet and this worker.

    Args:
        ledger_url: Where the board and the ledger are. Without them the fleet is
            left out, and the figure ``database_up`` is 0.
        counts: What this worker has done.
        running: What it is at.
        dead_after_s: Seconds without a sign of life after which a worker is dead.
    """
    mine = list(counts.figures(running))
    try:
        fleet = list(_fleet(ledger_url, dead_after_s))
    except VectorlessRagError:
        return [_figure("database_up", 0), *mine]
    return [_figure("database_up", 1), *fleet, *mine]


def _fleet(ledger_url: str, dead_after_s: int) -> Iterator[Figure]:
    now = now_us()
    with Board.open(ledger_url) as board:
        tally = board.tally()
        roll = Roll.call(board.workers(), dead_after_s=dead_after_s, now_us=now)
    with Ledger.open(ledger_url) as ledger:
        budgets = ledger.budgets()
    for state, number in tally.jobs.items():
        yield _figure("jobs", number, state=state.value)
    since = tally.oldest_ready_us
    age = 0.0 if since is None else max(0.0, (now - since) / 1e6)
    yield _figure("queue_age_seconds", age)
    for code, number in sorted(tally.failures.items()):
        yield _figure("job_failures", number, code=code.value)
    yield _figure("workers", len(roll.there))
    yield _figure("workers_silent", len(roll.silent))
    yield _figure("slots", roll.slots)
    for name, budget in sorted(budgets.items()):
        if name.startswith(_OWNER):
            owner = name.removeprefix(_OWNER)
            spent, held = usd(budget.spent), usd(budget.reserved)
            yield _figure("spent_usd", spent, owner=owner)
            yield _figure("held_usd", held, owner=owner)


def _figure(name: str, value: float | Decimal, **labels: str) -> Figure:
    return Figure(
        name=f"vectorless_rag_{name}", value=value, labels=tuple(labels.items())
    )


def grows(name: str) -> bool:
    """Whether a figure of that name only ever grows, while the worker lives."""
    return name.endswith("_total")


def prometheus(found: Iterable[Figure]) -> str:
    """Spell figures as Prometheus reads them, text format 0.0.4."""
    by_name: dict[str, list[Figure]] = {}
    for figure in found:
        by_name.setdefault(figure.name, []).append(figure)
    lines: list[str] = []
    for name, some in by_name.items():
        kind = "counter" if grows(name) else "gauge"
        lines += [f"# HELP {name} {HELP[name]}", f"# TYPE {name} {kind}"]
        lines += [f"{name}{_labels(figure)} {_number(figure.value)}" for figure in some]
    return "\n".join(lines) + "\n"


def _labels(figure: Figure) -> str:
    if not figure.labels:
        return ""
    spelled = ",".join(f'{name}="{_escaped(text)}"' for name, text in figure.labels)
    return "{" + spelled + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float | Decimal) -> str:
    return f"{value:f}" if isinstance(value, Decimal) else repr(value)
