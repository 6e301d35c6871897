"""
The child: index one document with the patched upstream, under account.

``python -m vectorless_rag.run_pageindex ANSWER_FD PROGRESS_FD`` reads one
`Request` from standard input, writes progress lines to one descriptor and one
framed `Answer` to the other. The parent names this module by argv and never
imports it.
"""

import errno
import gc
import os
import random
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import NoReturn

# What is imported lives as long as the process: to look through it for garbage again
# and again takes a tenth of the time.
gc.disable()

from vectorless_rag.confinement import (
    close_files,
    end_group,
    end_with,
    limit,
    use_memory_reserve,
)
from vectorless_rag.errors import Code, Failure, VectorlessRagError
from vectorless_rag.ledger.book import Ledger
from vectorless_rag.pageindex_runtime.calls import Caller, Counts, Policy
from vectorless_rag.pageindex_runtime.gate import FileGate
from vectorless_rag.pageindex_runtime.indexing import index_document
from vectorless_rag.pageindex_runtime.journal import (
    FileJournal,
    Journal,
    NoJournal,
    sweep,
)
from vectorless_rag.pageindex_runtime.local_documents import count_blank
from vectorless_rag.pageindex_runtime.offline import MODEL, OfflineProvider
from vectorless_rag.pageindex_runtime.rehearsal import rehearse
from vectorless_rag.pageindex_runtime.remotes import remote_of
from vectorless_rag.pageindex_runtime.tracing import observer_from
from vectorless_rag.pageindex_runtime.tries import BATCH_LEASE_S
from vectorless_rag.pageindex_runtime.wiring import use
from vectorless_rag.prices import OFFLINE_PREFIX, Prices
from vectorless_rag.wire import Answer, Found, Progress, Request

gc.freeze()
gc.enable()

# Ends from outside: a run that goes on later goes the same way, for nothing.
_CUT_OFF = frozenset({
    Code.BUDGET_EXCEEDED, Code.BUDGET_CONTENDED, Code.CANCELLED, Code.CHILD_MEMORY,
    Code.CHILD_TIMEOUT, Code.CHILD_LIMIT,
})  # fmt: skip

# What the operating system says at a limit, and the limit's name in settings.
_AT_A_LIMIT = {
    errno.EMFILE: "VECTORLESS_RAG_CHILD_OPEN_FILES",
    errno.EFBIG: "VECTORLESS_RAG_CHILD_FILE_BYTES",
    errno.EAGAIN: "VECTORLESS_RAG_CHILD_PROCESSES",
}
_FULL = {errno.ENOSPC, errno.EDQUOT}


class _Stopped(BaseException):
    """A signal ends this. Not an `Exception`, so that no upstream code swallows it."""

    def __init__(self, failure: Failure) -> None:
        super().__init__()
        self.failure = failure


class _Channel:
    """The two descriptors to the parent. Workers of the child don't inherit them."""

    def __init__(self, answer_fd: int, progress_fd: int) -> None:
        self._answer_fd = answer_fd
        self._progress_fd = progress_fd
        for fd in (answer_fd, progress_fd):
            os.set_inheritable(fd, False)  # noqa: FBT003  (positional only)

    def progress(self, report: Progress) -> None:
        """Send a progress line."""
        _write(self._progress_fd, report.encode())

    def answer(self, answer: Answer) -> None:
        """Send the one answer."""
        _write(self._answer_fd, answer.encode())
        os.close(self._answer_fd)


def main(argv: list[str]) -> int:
    """Carry out the request on standard input; return the exit status."""
    channel = _Channel(int(argv[0]), int(argv[1]))
    try:
        answer = _answer(channel)
    except _Stopped as stopped:
        answer = Answer(failure=stopped.failure)
    except MemoryError:
        use_memory_reserve()
        answer = _failed(Code.CHILD_MEMORY)
    _ignore_signals()
    channel.answer(answer)
    return 0


def _answer(channel: _Channel) -> Answer:
    with _soft_stop() as soft:
        try:
            request = _request()
            end_with(request.parent_pid)
            limit(request.limits)
            # The environment of this process is the one its parent chose for it.
            sandbox = close_files(request, os.environ)  # noqa: TID251
            end_group()
            if request.rehearse:
                return rehearse(request, _policy(request), channel.progress)
            found, notes = _index(request, channel, soft)
        except VectorlessRagError as error:
            return Answer(failure=error.failure)
        except MemoryError:
            raise
        except OSError as error:
            return Answer(failure=_of_the_system(error))
        except Exception as error:  # noqa: BLE001  (upstream may raise anything)
            return _failed(Code.INTERNAL_ERROR, _where(error))
    return Answer(found=found, notes={**notes, "landlock": sandbox})


def _index(
    request: Request, channel: _Channel, soft: "_SoftStop"
) -> tuple[Found, dict[str, int]]:
    """Index under account: who owns the usage is settled before upstream is there."""

    def on_call(counts: Counts) -> None:
        channel.progress(
            Progress(
                stage="model calls",
                calls=counts.calls,
                cost_nano_usd=counts.cost_nano_usd,
                in_flight=counts.in_flight,
            )
        )

    renewed_s = 0

    def on_beat(waited_s: int) -> None:
        counts = caller.counts
        channel.progress(
            Progress(
                stage="waiting for a batch",
                calls=counts.calls,
                cost_nano_usd=counts.cost_nano_usd,
                in_flight=counts.in_flight,
                waited_s=waited_s,
            )
        )
        nonlocal renewed_s
        if waited_s >= renewed_s + BATCH_LEASE_S / 4:
            ledger.renew(request.attempt_id, BATCH_LEASE_S)
            renewed_s = waited_s

    if request.model.startswith(OFFLINE_PREFIX) and request.model != MODEL:
        raise VectorlessRagError(Code.BAD_REQUEST, f"offline: {MODEL} alone")
    observer = observer_from(request.attempt_id, os.environ)  # noqa: TID251
    journal = _journal(request)
    try:
        with Ledger.open(request.ledger_url) as ledger:
            caller = Caller(
                policy=_policy(request),
                account=ledger,
                prices=Prices(request.prices_json),
                offline=OfflineProvider(),
                remote=lambda: remote_of(request, ledger, journal, on_beat),
                on_call=on_call,
                journal=journal,
                gate=_gate(request),
                observer=observer,
                content=request.trace_content,
            )
            soft.before = caller.interrupt
            with caller, use(caller):
                found = index_document(request, caller, channel.progress)
    except VectorlessRagError as error:
        if error.code not in _CUT_OFF:
            journal.forget_rejected()
        raise
    finally:
        observer.close()
    return found, _notes(caller.counts, found) | observer.notes


def _journal(request: Request) -> Journal:
    if request.journal_dir is None:
        return NoJournal()
    folder = Path(request.journal_dir)
    sweep(folder, keep_days=request.journal_days)
    return FileJournal(folder, server=request.api_base, replay=request.replay)


def _gate(request: Request) -> FileGate:
    provider, _, _ = request.model.partition("/")
    return FileGate(
        Path(request.gate_dir),
        provider=(provider, request.api_base),
        most=request.limits.provider_concurrency,
        rng=random.Random(request.attempt_id),  # noqa: S311  (spread, no secret)
    )


def _policy(request: Request) -> Policy:
    return Policy(
        attempt_id=request.attempt_id,
        restarts=request.restarts,
        model=request.model,
        budgets=request.budgets,
        limits=request.limits,
        mode=request.mode,
        allow_unpriced=request.allow_unpriced,
        batching=request.batching,
    )


def _notes(counts: Counts, found: Found) -> dict[str, int]:
    named = ("replayed", "retries", "reasks", "unpriced", "usage_unknown")
    told = {name: getattr(counts, name) for name in named}
    # A tree over them rests on titles alone, which no field of a node can say.
    told["pages_without_text"] = count_blank(found.pages)
    return {name: count for name, count in told.items() if count}


def _request() -> Request:
    request = Request.decode(sys.stdin.buffer.read())
    # The request is read; nothing else may wait for this process's input.
    with Path(os.devnull).open("rb") as null:
        os.dup2(null.fileno(), 0)
    return request


@dataclass
class _SoftStop:
    """What is done first: threads that wait for replies must not be waited for."""

    before: Callable[[], None] = field(default=lambda: None)


@contextmanager
def _soft_stop() -> Iterator[_SoftStop]:
    """Turn the first signal into `_Stopped`, so that calls in flight are settled."""
    soft = _SoftStop()

    def stop(number: int, _frame: FrameType | None) -> NoReturn:
        _ignore_signals()
        soft.before()
        raise _Stopped(_STOPPED_BY[signal.Signals(number)])

    for number in _STOPPED_BY:
        signal.signal(number, stop)
    yield soft


_STOPPED_BY = {
    signal.SIGTERM: Failure(code=Code.CANCELLED),
    signal.SIGPROF: Failure(code=Code.CHILD_TIMEOUT, detail="CPU time"),
}


def _ignore_signals() -> None:
    for number in _STOPPED_BY:
        signal.signal(number, signal.SIG_IGN)


def _of_the_system(error: OSError) -> Failure:
    number = error.errno or 0
    if name := _AT_A_LIMIT.get(number):
        return Failure(code=Code.CHILD_LIMIT, detail=name)
    if number in _FULL:
        why = f"working folder: {errno.errorcode[number]}"
        return Failure(code=Code.STORE_UNWRITABLE, detail=why)
    return Failure(code=Code.INTERNAL_ERROR, detail=_where(error))


def _failed(code: Code, detail: str = "") -> Answer:
    return Answer(failure=Failure(code=code, detail=detail))


def _where(error: BaseException) -> str:
    """Name the exception's class and place; its text may quote the document."""
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1] if frames else None
    place = f" at {Path(last.filename).name}:{last.lineno}" if last else ""
    return f"{type(error).__name__}{place}"


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
