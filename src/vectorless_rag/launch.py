"""
Start the child for one document, and turn how it ended into an answer.

The child is a program named by argv. Nothing of it is imported here.
"""

import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import vectorless_rag
from vectorless_rag import landlock
from vectorless_rag.environment import (
    measuring_environment,
    provider_environment,
    python_executable,
    search_path,
    tracing_environment,
)
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.forked import NoServerError
from vectorless_rag.prefork import ForkServer, ForkServers, Kind
from vectorless_rag.process import ChildCommand, Start, start_directly
from vectorless_rag.settings import ChildOutput, Sandbox, Settings
from vectorless_rag.supervision import ChildEnd, run_child
from vectorless_rag.wire import Answer, Found, Progress, Request

# Page texts are a few kilobytes each; this is far above any real document.
_ANSWER_LIMIT_BYTES = 1 << 30

# A child's own folder, and no reason for a server of its own.
_OWN_FOLDER = frozenset({"HOME", "TMPDIR"})


@dataclass(frozen=True, kw_only=True)
class Upstream:
    """The build that a child runs, and where it may come from."""

    copy_to: Callable[[Path], None]
    """Makes a private copy that is checked on the way."""

    code: tuple[str, ...]
    """Names it and all that runs with it."""

    servers: ForkServers | None = None
    """May start the child; None: it is started directly."""


def run_document(
    request: Request,
    settings: Settings,
    *,
    upstream: Upstream,
    work: Path,
    on_progress: Callable[[Progress], None],
    check: Callable[[], None],
) -> tuple[Found, dict[str, int]]:
    """
    Run the child on one document and return what it found.

    Args:
        request: What the child is told.
        settings: Time limits, and what becomes of the child's output.
        upstream: What the child runs; its copy goes to the request's checkout.
        work: The child's own folder; the caller removes it.
        on_progress: Is handed each progress report.
        check: Is called a few times a second; what it raises stops the child.

    Returns:
        What was found, not yet checked, and counters for the run record.

    Raises:
        VectorlessRagError: The failure the child reported, or ``child_timeout``,
            ``child_killed``, ``child_memory`` or ``child_protocol``; or why there is
            no copy of the upstream.
    """
    answer = _run(
        request,
        settings,
        upstream=upstream,
        work=work,
        env=_environment(settings.model, work),
        on_progress=on_progress,
        check=check,
    )
    if answer.failure is not None:
        raise VectorlessRagError.of(answer.failure)
    if answer.found is None:
        raise VectorlessRagError(Code.CHILD_PROTOCOL, "empty answer")
    return answer.found, answer.notes


def rehearse_document(
    request: Request,
    settings: Settings,
    *,
    upstream: Upstream,
    work: Path,
    check: Callable[[], None],
) -> Answer:
    """
    Have the child say what a run would come to; it is handed no key.

    Args:
        request: What a run would be told, and that it is a rehearsal.
        settings: Time limits, and what becomes of the child's output.
        upstream: What the child runs; its copy goes to the request's checkout.
        work: The child's own folder; the caller removes it.
        check: Is called a few times a second; what it raises stops the child.

    Returns:
        An answer with an estimate, or one with a failure, or with both.

    Raises:
        VectorlessRagError: ``child_timeout``, ``child_killed``, ``child_memory`` or
            ``child_protocol``; or why there is no copy of the upstream.
    """
    answer = _run(
        request,
        settings,
        upstream=upstream,
        work=work,
        env=_bare_environment(work),
        on_progress=lambda _: None,
        check=check,
    )
    if answer.estimate is None and answer.failure is None:
        raise VectorlessRagError(Code.CHILD_PROTOCOL, "empty answer")
    return answer


class _Waiting:
    """
    How much longer a child may live for the batches that it says it waited for.

    Args:
        most_s: What is believed, in seconds; the child may have been taken over.
    """

    def __init__(self, most_s: int) -> None:
        self._most_s = most_s
        self.extra_s = 0

    def note(self, progress: Progress) -> Progress:
        """Take note of a report, and hand it on."""
        self.extra_s = min(max(progress.waited_s, self.extra_s), self._most_s)
        return progress


_MOST_ROUNDS = 50
"""Batches one after another that a document may take."""


def _run(
    request: Request,
    settings: Settings,
    *,
    upstream: Upstream,
    work: Path,
    env: dict[str, str],
    on_progress: Callable[[Progress], None],
    check: Callable[[], None],
) -> Answer:
    batched = settings.batch and not settings.offline
    waiting = _Waiting(_MOST_ROUNDS * settings.batch_timeout_s if batched else 0)
    run = partial(
        _run_child,
        settings=settings,
        work=work,
        env=env,
        waiting=waiting,
        on_progress=on_progress,
        check=check,
    )
    end = None
    if (server := _server(request, settings, upstream, env)) is not None:
        theirs = replace(request, parent_pid=server.pid, checkout=str(server.checkout))
        try:
            end = run(theirs, start=server.start)
        except NoServerError:
            end = None
    if end is None or end.lost:
        # What a lost child had begun counts at what it could cost.
        upstream.copy_to(Path(request.checkout))
        lost = 0 if end is None else 1
        end = run(replace(request, restarts=lost), start=start_directly)
    if end.timed_out:
        raise VectorlessRagError(Code.CHILD_TIMEOUT, f"{settings.child_timeout_s} s")
    return _answer(end)


def _server(
    request: Request, settings: Settings, upstream: Upstream, env: dict[str, str]
) -> ForkServer | None:
    """Find who may start the child; None: it is started directly."""
    # Without a sandbox a child could write to the copy that the next one reads.
    closed = settings.sandbox is not Sandbox.OFF and landlock.version() > 0
    if upstream.servers is None or not settings.fork_server or not closed:
        return None
    remote = not settings.offline and not request.rehearse
    kind = Kind(
        argv=(python_executable(), "-m", "vectorless_rag.fork_server"),
        options=(request.model, "remote" if remote else "local"),
        env=tuple(sorted(e for e in env.items() if e[0] not in _OWN_FOLDER)),
        code=upstream.code,
    )
    try:
        return upstream.servers.get(kind, upstream.copy_to)
    except NoServerError:
        return None


def _run_child(
    request: Request,
    *,
    settings: Settings,
    work: Path,
    env: dict[str, str],
    waiting: _Waiting,
    on_progress: Callable[[Progress], None],
    check: Callable[[], None],
    start: Start,
) -> ChildEnd:
    return run_child(
        ChildCommand(
            argv=(python_executable(), "-m", "vectorless_rag.run_pageindex"),
            cwd=work,
            env=env,
            stdin=request.encode(),
            inherit_output=settings.child_output is ChildOutput.INHERIT,
        ),
        timeout_s=settings.child_timeout_s,
        grace_s=settings.grace_s,
        extra_s=lambda: waiting.extra_s,
        on_line=lambda line: on_progress(waiting.note(Progress.decode(line))),
        answer_limit=_ANSWER_LIMIT_BYTES,
        check=check,
        start=start,
    )


def _answer(end: ChildEnd) -> Answer:
    try:
        return Answer.decode(end.answer)
    except VectorlessRagError as garbled:
        raise _why_no_answer(end, garbled) from None


def _why_no_answer(end: ChildEnd, garbled: VectorlessRagError) -> VectorlessRagError:
    if end.status < 0:
        return _killed_by(-end.status)
    return VectorlessRagError(
        Code.CHILD_PROTOCOL, f"exit status {end.status}, {garbled.detail}"
    )


def _killed_by(number: int) -> VectorlessRagError:
    match number:
        case signal.SIGXCPU:
            return VectorlessRagError(Code.CHILD_TIMEOUT, "CPU time")
        case signal.SIGXFSZ:
            name = "VECTORLESS_RAG_CHILD_FILE_BYTES"
            return VectorlessRagError(Code.CHILD_LIMIT, name)
        case _ if number in set(signal.Signals):
            return VectorlessRagError(Code.CHILD_KILLED, signal.Signals(number).name)
        case _:
            return VectorlessRagError(Code.CHILD_KILLED, f"signal {number}")


def _environment(model: str, work: Path) -> dict[str, str]:
    """Build the child's environment from nothing."""
    return {
        **_bare_environment(work),
        **provider_environment(model),
        **tracing_environment(),
    }


def _bare_environment(work: Path) -> dict[str, str]:
    """Leave out what reaches a provider."""
    return {
        "PATH": search_path(),
        # This very package, wherever it runs from; never the working folder.
        "PYTHONPATH": str(Path(vectorless_rag.__file__).parents[1]),
        "PYTHONSAFEPATH": "1",
        # Hashing is seeded per process: no set order may reorder prompts.
        "PYTHONHASHSEED": "0",
        "PYTHONUTF8": "1",
        "PYTHONNOUSERSITE": "1",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        # Whatever writes to a home or a temporary folder writes to its own.
        "HOME": str(work),
        "TMPDIR": str(work),
        # LiteLLM would fetch a price map and read a .env file at import.
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_MODE": "PRODUCTION",
        **measuring_environment(),
    }
