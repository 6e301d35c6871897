"""
What became of every document of a run, kept beside the store.

``runs/<run_id>/documents.jsonl`` gains a line whenever a document is begun or done, so
that a killed run has its record too; ``manifest.json`` accounts for every input at the
end.
"""

import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from vectorless_rag.canon import Json
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.results import IngestResult, Status
from vectorless_rag.units import NanoUsd, usd

DOCUMENTS = "documents.jsonl"
MANIFEST = "manifest.json"
MANIFEST_SCHEMA = "corpus-run/1"

_WITHOUT = frozenset({Status.FAILED.value, Status.SKIPPED.value})


@dataclass(frozen=True, kw_only=True)
class Totals:
    """A run in numbers."""

    by_status: Mapping[Status, int]
    pages: int
    """Of the documents that were built."""

    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: NanoUsd

    @classmethod
    def of(cls, results: Iterable[IngestResult]) -> Self:
        """Sum up *results*."""
        every = list(results)
        return cls(
            by_status={s: sum(r.status is s for r in every) for s in Status},
            pages=sum(r.pages or 0 for r in every if r.status is Status.BUILT),
            calls=sum(r.spend.calls for r in every),
            prompt_tokens=sum(r.spend.prompt_tokens for r in every),
            completion_tokens=sum(r.spend.completion_tokens for r in every),
            cost=NanoUsd(sum(r.spend.cost for r in every)),
        )

    @property
    def cost_per_1000_documents(self) -> NanoUsd | None:
        """Spent for 1,000 built documents at this rate; None where none was built."""
        return _per_1000(self.cost, self.by_status[Status.BUILT])

    @property
    def cost_per_1000_pages(self) -> NanoUsd | None:
        """Spent for 1,000 built pages at this rate; None where none was built."""
        return _per_1000(self.cost, self.pages)

    def to_json(self) -> dict[str, Json]:
        """Spell the totals; dollars are exact decimal texts."""
        return {
            **{status.value: number for status, number in self.by_status.items()},
            "pages_built": self.pages,
            "calls": self.calls,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "cost_usd": _dollars(self.cost),
            "cost_usd_per_1000_documents": _dollars(self.cost_per_1000_documents),
            "cost_usd_per_1000_pages": _dollars(self.cost_per_1000_pages),
        }


def _per_1000(cost: NanoUsd, number: int) -> NanoUsd | None:
    return NanoUsd(cost * 1000 // number) if number else None


def _dollars(amount: NanoUsd | None) -> str | None:
    return None if amount is None else f"{usd(amount):f}"


def new_run_id() -> str:
    """Make the name of a run: when it started, and something unique."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{os.urandom(6).hex()}"


class RunFolder:
    """
    The records of one run; a run that goes on adds to them.

    Args:
        folder: ``runs`` of the data folder.
        run_id: Name of the run.
    """

    def __init__(self, folder: Path, run_id: str) -> None:
        self.path = folder / run_id
        self.run_id = run_id
        self._file: int | None = None

    def begin(self, path: Path) -> None:
        """
        Note that a document is being worked on.

        Raises:
            VectorlessRagError: ``store_unwritable``.
        """
        self._note(path, None)

    def add(self, result: IngestResult) -> None:
        """
        Note how a document ended.

        Raises:
            VectorlessRagError: ``store_unwritable``.
        """
        self._note(result.source, result.to_json())

    def _note(self, path: Path, result: dict[str, Json] | None) -> None:
        line = {
            "at": _now(),
            # Bytes that are no text are kept as lone surrogates, and survive.
            "path": os.path.abspath(path),  # noqa: PTH100  (".." goes too)
            "result": result,
        }
        with _writing(DOCUMENTS):
            if self._file is None:
                self._file = _open(self.path / DOCUMENTS)
            _append(self._file, json.dumps(line).encode("ascii") + b"\n")
            if result is not None:
                # A beginning is for those who look after a kill; the power may take it.
                os.fsync(self._file)

    def finish(self, results: Sequence[IngestResult], **about: Json) -> Path:
        """
        Write the manifest that accounts for every input; nothing is added then.

        Args:
            results: One for each input, in the order they were given.
            about: Further fields: what was run, and how it ended.

        Raises:
            VectorlessRagError: ``store_unwritable``.
        """
        manifest = {
            "schema": MANIFEST_SCHEMA,
            "run_id": self.run_id,
            "ended_at": _now(),
            **about,
            "totals": Totals.of(results).to_json(),
            "documents": [result.to_json() for result in results],
        }
        path = self.path / MANIFEST
        new = path.with_name(f".{MANIFEST}.{os.getpid()}")
        with _writing(MANIFEST):
            self.path.mkdir(parents=True, exist_ok=True)
            new.write_bytes(json.dumps(manifest, indent=1).encode("ascii") + b"\n")
            new.replace(path)
        return path

    def close(self) -> None:
        """Let go of the record: the run is over, however it ended."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a document ended the last time."""

    path: Path
    at: str
    run_id: str
    result: Mapping[str, Any] | None
    """As `IngestResult.to_json` spells it; None: it was begun, and has not ended."""

    @property
    def code(self) -> str | None:
        """Code of the failure; None if there was none."""
        if self.result is None:
            # Its program was killed, or is still at it.
            return Code.CHILD_KILLED.value
        failure = self.result["failure"]
        code = failure["code"] if failure else self.result["skipped"]
        return str(code) if code else None

    @property
    def has_artifact(self) -> bool:
        """Whether it ended with an artifact."""
        return self.result is not None and self.result["status"] not in _WITHOUT

    @property
    def retryable(self) -> bool:
        """Whether the same again may end better."""
        if self.result is None:
            return True
        failure = self.result["failure"]
        return failure is None or bool(failure["retryable"])


def unfinished(folder: Path) -> list[Ended]:
    """
    List the documents whose last ingest of all runs left no artifact.

    Those that a run is at now are left out.

    Args:
        folder: ``runs`` of the data folder; it need not be there.
    """
    last: dict[str, str] = {}
    left: dict[str, Ended] = {}
    for path in folder.glob(f"*/{DOCUMENTS}"):
        at_work = _is_written(path)
        for ended in _read(path):
            key = str(ended.path)
            if ended.at < last.get(key, ""):
                continue
            last[key] = ended.at
            # No more is kept of one that was built, or is being built.
            if at_work if ended.result is None else ended.has_artifact:
                left.pop(key, None)
            else:
                left[key] = ended
    return sorted(left.values(), key=lambda ended: ended.path)


def _read(path: Path) -> Iterator[Ended]:
    for line in path.read_bytes().splitlines():
        # A line that says nothing is of a writer that was killed at it.
        with suppress(ValueError, KeyError, TypeError):
            raw = json.loads(line)
            yield Ended(
                path=Path(raw["path"]),
                at=str(raw["at"]),
                run_id=path.parent.name,
                result=_checked(raw["result"]),
            )


def _checked(result: dict[str, Any] | None) -> dict[str, Any] | None:
    if result is None:
        return None
    if result["failure"] is not None:
        _ = result["failure"]["code"], result["failure"]["retryable"]
    _ = result["status"], result["skipped"]
    return result


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


@contextmanager
def _writing(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise VectorlessRagError(
            Code.STORE_UNWRITABLE, f"{name}: {error.strerror}"
        ) from None


def _open(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    with suppress(OSError):
        # Held until this process ends, however it does. A file system without locks
        # costs no more than that its documents are listed while they are in work.
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    return file


def _is_written(path: Path) -> bool:
    """Whether a process is at the run of this record."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(file)
    return False


def _append(file: int, line: bytes) -> None:
    size = os.fstat(file).st_size
    if size and os.pread(file, 1, size - 1) != b"\n":
        # Half a line of a writer that was killed; it must not spoil this one.
        line = b"\n" + line
    os.write(file, line)
