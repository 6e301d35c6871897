"""What of the settings a child is told: its limits, and how its calls are batched."""

from vectorless_rag.batching import PROVIDERS, Batching
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.settings import Settings
from vectorless_rag.wire import Limits


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
