"""
Start the child for one document, and turn how it ended into an answer.

The child is a program named by argv. Nothing of it is imported here.
"""

import signal
from collections.abc import Callable
from pathlib import Path

import vectorless_rag
from vectorless_rag.batching import PROVIDERS, Batching
from vectorless_rag.environment import (
    measuring_environment,
    provider_environment,
    python_executable,
    search_path,
    tracing_environment,
)
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.process import ChildCommand, ChildEnd, run_child
from vectorless_rag.settings import ChildOutput, Settings
from vectorless_rag.wire import Answer, Found, Limits, Progress, Request

# Page texts are a few kilobytes each; this is far above any real document.
_ANSWER_LIMIT_BYTES = 1 << 30


def run_document(
    request: Request,
    settings: Settings,
    *,
    work: Path,
    on_progress: Callable[[Progress], None],
    check: Callable[[], None],
) -> tuple[Found, dict[str, int]]:
    """
    Run the child on one document and return what it found.

    Args:
        request: What the child is told.
        settings: Time limits, and what becomes of the child's output.
        work: The child's own folder; the caller removes it.
        on_progress: Is handed each progress report.
        check: Is called a few times a second; what it raises stops the child.

    Returns:
        What was found, not yet checked, and counters for the run record.

    Raises:
        VectorlessRagError: The failure the child reported, or ``child_timeout``,
            ``child_killed``, ``child_memory`` or ``child_protocol``.
    """
    answer = _run(
        request,
        settings,
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
    request: Request, settings: Settings, *, work: Path, check: Callable[[], None]
) -> Answer:
    """
    Have the child say what a run would come to; it is handed no key.

    Args:
        request: What a run would be told, and that it is a rehearsal.
        settings: Time limits, and what becomes of the child's output.
        work: The child's own folder; the caller removes it.
        check: Is called a few times a second; what it raises stops the child.

    Returns:
        An answer with an estimate, or one with a failure, or with both.

    Raises:
        VectorlessRagError: ``child_timeout``, ``child_killed``, ``child_memory`` or
            ``child_protocol``.
    """
    answer = _run(
        request,
        settings,
        work=work,
        env=_bare_environment(work),
        on_progress=lambda _: None,
        check=check,
    )
    if answer.estimate is None and answer.failure is None:
        raise VectorlessRagError(Code.CHILD_PROTOCOL, "empty answer")
    return answer


def limits_of(settings: Settings) -> Limits:
    """Pick what bounds a child."""
    return Limits(
        max_output_tokens=settings.max_output_tokens,
        call_timeout_s=settings.call_timeout_s,
        call_attempts=settings.call_attempts,
        concurrency=settings.concurrency,
        provider_concurrency=settings.provider_concurrency,
        max_pages=settings.max_pages,
        memory_bytes=settings.child_memory_bytes,
        cpu_s=settings.child_cpu_s,
        open_files=settings.child_open_files,
        file_bytes=settings.child_file_bytes,
        processes=settings.child_processes,
    )


def batching_of(settings: Settings) -> Batching | None:
    """
    Say how calls are batched; None: they are not, as an offline model's never are.

    Raises:
        VectorlessRagError: ``settings_invalid``: the provider has no batches that are
            used here, or what a killed run has sent could not be taken up again.
    """
    if not settings.batch or settings.offline:
        return None
    if settings.provider not in PROVIDERS:
        those = ", ".join(sorted(PROVIDERS))
        raise VectorlessRagError(
            Code.SETTINGS_INVALID, f"VECTORLESS_RAG_BATCH: for models of {those} alone"
        )
    if not settings.journal:
        raise VectorlessRagError(
            Code.SETTINGS_INVALID, "VECTORLESS_RAG_BATCH needs VECTORLESS_RAG_JOURNAL"
        )
    return Batching(
        window_s=settings.batch_window_s,
        requests=settings.batch_requests,
        timeout_s=settings.batch_timeout_s,
        poll_s=settings.batch_poll_s,
        # Of the time to stop in, the child needs some for the rest.
        stop_s=max(settings.grace_s - 2, 0),
    )


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
    work: Path,
    env: dict[str, str],
    on_progress: Callable[[Progress], None],
    check: Callable[[], None],
) -> Answer:
    batched = settings.batch and not settings.offline
    waiting = _Waiting(_MOST_ROUNDS * settings.batch_timeout_s if batched else 0)
    end = run_child(
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
    )
    if end.timed_out:
        raise VectorlessRagError(Code.CHILD_TIMEOUT, f"{settings.child_timeout_s} s")
    return _answer(end)


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
