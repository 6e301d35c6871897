"""Put documents into the queue: each recipe once, however often it is asked for."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote_from_bytes, unquote_to_bytes, urlsplit

from vectorless_rag.canon import Json
from vectorless_rag.engine import turns
from vectorless_rag.engine.port import AWAY, Queue
from vectorless_rag.engine.versions import options_of, version_of
from vectorless_rag.errors import Code, Failure, VectorlessRagError
from vectorless_rag.ledger.board import Board
from vectorless_rag.ledger.book import Ledger
from vectorless_rag.ledger.job_types import Job, JobRow, JobState
from vectorless_rag.ledger.types import run_budget
from vectorless_rag.recipe import Recipe
from vectorless_rag.results import spelled
from vectorless_rag.running import RunningCode
from vectorless_rag.settings import Settings
from vectorless_rag.source import identify, storable
from vectorless_rag.store import StoreReader

NORMAL_PRIORITY = 100

# It may be the path and not the document; to try again costs no call.
_OF_THE_PATH = frozenset({
    Code.SOURCE_CHANGED, Code.SOURCE_FORBIDDEN, Code.SOURCE_UNREADABLE,
})  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Submitted:
    """What became of one document that was submitted."""

    source: Path

    job: JobRow | None = None
    """None: it could not be submitted."""

    new: bool = False
    """Whether the job was not there before."""

    failure: Failure | None = None

    def to_json(self) -> dict[str, Json]:
        """Spell it as the one object a document that ``submit --json`` prints."""
        return {
            "source": storable(str(self.source)),
            "recipe_hash": self.job.recipe_hash if self.job else None,
            "run_id": self.job.run_id if self.job else None,
            "state": self.job.state.value if self.job else None,
            "new": self.new,
            "failure": spelled(self.failure) if self.failure else None,
        }


@dataclass(frozen=True, kw_only=True)
class Submission:
    """
    Submits documents to be built with one set of settings.

    Args:
        settings: What is asked for, who pays, and what the run may spend.
        code: What would build it here; workers that run the same are handed it.
        board: Where jobs are recorded.
        queue: Where workers are handed them from.
        store: Where artifacts are.
        run_id: The run whose budget they count towards.
        priority: Of two jobs of one owner the lower number goes first.
    """

    settings: Settings
    code: RunningCode
    board: Board
    queue: Queue
    store: StoreReader
    run_id: str
    priority: int = NORMAL_PRIORITY

    def submit(self, paths: Sequence[Path]) -> Iterator[Submitted]:
        """
        Submit *paths*, and tell of each as it is done.

        Raises:
            VectorlessRagError: ``ledger_unavailable`` or ``engine_unavailable``; what
                was submitted before stays.
        """
        self.board.meet(version_of(self.code.configuration))
        self._set_budget()
        for path in paths:
            try:
                job = self._job(path)
                recorded, new = self._record(job)
            except VectorlessRagError as error:
                if error.code in AWAY:
                    raise
                yield Submitted(source=path, failure=error.failure)
                continue
            if recorded.state is JobState.QUEUED:
                # Whoever recorded it first may have been killed before this.
                turns.enqueue(self.queue, recorded)
            yield Submitted(source=path, job=recorded, new=new)

    def _record(self, job: Job) -> tuple[JobRow, bool]:
        recorded, new = self.board.add(job)
        if recorded.state is JobState.BUILT:
            if self.store.find(job.recipe_hash) is not None:
                return recorded, new
            # It was removed, or is in the store of others.
            return self.board.anew(job.recipe_hash) or recorded, True
        if recorded.failure is None or recorded.state is not JobState.FAILED:
            return recorded, new
        if recorded.failure.code not in _OF_THE_PATH:
            return recorded, new
        # Here the file is, with the very bytes that were missed.
        return self.board.again(job.recipe_hash) or recorded, True

    def _set_budget(self) -> None:
        """Limit the run, unless it has a limit and nobody says another."""
        name = run_budget(self.run_id)
        with Ledger.open(self.settings.effective_ledger_url) as ledger:
            ledger.set_budget(
                name,
                self.settings.budget_nano_usd,
                keep=not self.settings.says_budget,
            )

    def _job(self, path: Path) -> Job:
        source = identify(
            path,
            max_bytes=self.settings.max_source_bytes,
            roots=self.settings.source_roots,
        )
        configuration = self.code.configuration
        recipe = Recipe(configuration=configuration, document_sha256=source.sha256)
        return Job(
            recipe_hash=recipe.recipe_hash,
            document_sha256=source.sha256,
            source=address_of(path),
            owner=self.settings.owner,
            run_id=self.run_id,
            model=self.settings.model,
            options=options_of(configuration),
            version=version_of(configuration),
            priority=self.priority,
        )


def address_of(path: Path) -> str:
    """Spell a path as a ``file:`` address: text, whatever bytes are in it."""
    # ".." goes too, links stay: a worker follows them itself.
    absolute = os.fsencode(os.path.abspath(path))  # noqa: PTH100
    return "file://" + quote_from_bytes(absolute)


def path_of(address: str) -> Path:
    """Read `address_of` back."""
    return Path(os.fsdecode(unquote_to_bytes(urlsplit(address).path)))
