"""
The words of the fleet: what is to be built, where it stands, who works on it.

Times are integer microseconds since 1970, UTC.
"""

from dataclasses import dataclass
from enum import StrEnum

from vectorless_rag.errors import Code, Failure
from vectorless_rag.units import Sha256


class JobState(StrEnum):
    """Where a job stands; it is in exactly one state."""

    QUEUED = "queued"
    RUNNING = "running"
    BUILT = "built"
    FAILED = "failed"
    CANCELLED = "cancelled"

    SUPERSEDED = "superseded"
    """Newer code builds the document under another recipe."""


OPEN = frozenset({JobState.QUEUED, JobState.RUNNING})
"""States in which a job still goes on."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One document to be built in one way, as it was submitted."""

    recipe_hash: Sha256
    """Its name: the same recipe again is the same job."""

    document_sha256: Sha256

    source: str
    """Where the document lies, as a ``file:`` address: text that any bytes fit in."""

    owner: str
    run_id: str
    model: str

    options: str
    """The other settings that decide the result, as JSON."""

    version: str
    """The code that builds it, see `engine.versions`."""

    priority: int
    """Of two jobs of one owner the one with the lower number goes first."""


@dataclass(frozen=True, kw_only=True)
class JobRow(Job):
    """A job as recorded."""

    turn: int
    """How often it was queued; a turn that is over is not begun again."""

    state: JobState

    cancelling: bool
    """Whether its worker has been asked to stop."""

    tries: int
    """How often a worker began it since it was submitted or retried."""

    worker_id: str | None
    """Who is at it."""

    attempt_id: str | None
    """The last attempt: the owner of its ledger rows."""

    failure: Failure | None
    """Why it failed, or why its last try did."""

    artifact_id: Sha256 | None

    successor: Sha256 | None
    """The recipe that stands in for a superseded one."""

    submitted_us: int

    ready_us: int
    """When it was queued last; later than now: it waits on purpose until then."""

    started_us: int | None
    ended_us: int | None


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A worker's wish to begin a job."""

    recipe_hash: Sha256
    turn: int
    worker_id: str
    attempt_id: str

    most_tries: int
    """Tries after which nobody begins it any more."""

    most_of_model: int | None
    """Documents of one model built at a time, by all workers; None: any number."""


class Claimed(StrEnum):
    """What came of a claim."""

    TAKEN = "taken"
    """The job is this worker's, and the try is counted."""

    STALE = "stale"
    """It has ended, another worker is at it, or the turn is over."""

    FULL = "full"
    """As many documents of its model are being built as may be."""

    SPENT = "spent"
    """No try is left; it has failed by that."""


@dataclass(frozen=True, kw_only=True)
class End:
    """How a claimed job ended."""

    state: JobState
    failure: Failure | None = None
    artifact_id: Sha256 | None = None


@dataclass(frozen=True, kw_only=True)
class Held:
    """A job that a worker is at."""

    recipe_hash: Sha256
    attempt_id: str
    cancelling: bool


@dataclass(frozen=True, kw_only=True)
class WorkerRow:
    """A worker process as recorded."""

    worker_id: str

    place: str
    """The machine and process table that its pid is of, see `engine.places`."""

    pid: int
    version: str

    slots: int
    """Documents it builds at a time."""

    beats: int
    """Grows while it lives."""

    started_us: int
    seen_us: int
    stopped: bool
    """It ended by itself; what it left is free at once."""


@dataclass(frozen=True, kw_only=True)
class Tally:
    """All jobs in numbers."""

    jobs: dict[JobState, int]
    failures: dict[Code, int]
    """Jobs that failed, by code."""

    oldest_ready_us: int | None
    """Since when the first of those that could be begun waits."""
