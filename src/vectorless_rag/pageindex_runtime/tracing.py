"""
The only door to Langfuse: it is imported here, late, and nowhere else.

Closed ledger rows go in; each becomes one Langfuse generation in the trace of its
attempt. Nothing here fails a run, and nothing delays one but a bounded `close`.
Importing this module imports neither Langfuse nor OpenTelemetry.
"""

import logging
import os
import threading
from base64 import b64encode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, cast

from vectorless_rag.pageindex_runtime.generations import fields_of
from vectorless_rag.pageindex_runtime.observations import (
    NoObserver,
    Observation,
    Observer,
)
from vectorless_rag.tracing_ids import span_id, trace_id

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

ENVIRONMENT = {
    # Otherwise whatever looks like an inline picture is uploaded on its own.
    "LANGFUSE_MEDIA_UPLOAD_ENABLED": "false",
    # Otherwise whole spans are printed.
    "LANGFUSE_DEBUG": "false",
}
"""What Langfuse must find in the environment of its process when it is set up."""

_CLOUD = "https://cloud.langfuse.com"
_PATH = "/api/public/otel/v1/traces"
_LOGGERS = ("langfuse", "opentelemetry", "httpx", "urllib3")
# The scope by which Langfuse's exporter knows its own spans.
_SCOPE = "langfuse-sdk"

_WAITING = 2048
_BATCH = 128
_EVERY_S = 1.0
_POST_S = 5
# The import is local work, so it is not for the endpoint's allowance to pay.
_LOAD_S = 5.0


def observer_from(attempt_id: str, environ: Mapping[str, str]) -> Observer:
    """
    Choose who is told of an attempt's closed rows.

    Args:
        attempt_id: The attempt the rows belong to.
        environ: Langfuse's own variables: ``LANGFUSE_PUBLIC_KEY`` and
            ``LANGFUSE_SECRET_KEY`` switch tracing on,
            ``LANGFUSE_TRACING_ENABLED=false`` switches it off again.
    """
    if not is_wanted(environ):
        return NoObserver()
    return LangfuseTracer(attempt_id, environ=environ)


def is_wanted(environ: Mapping[str, str]) -> bool:
    """Say whether *environ* switches tracing on."""
    keys = ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY")
    wanted = environ.get("LANGFUSE_TRACING_ENABLED", "true").lower()
    return wanted not in {"false", "0"} and all(environ.get(key) for key in keys)


def load() -> None:
    """Import Langfuse ahead of the first row; nothing is set up."""
    os.environ.update(ENVIRONMENT)  # noqa: TID251  (Langfuse reads no other place)
    # Without it there are no traces, as without an import later.
    with suppress(ImportError):
        # ruff: disable[PLC0415]  (importing them takes a second)
        import langfuse  # noqa: F401, TID251
        import opentelemetry.exporter.otlp.proto.http.trace_exporter  # noqa: F401
        # ruff: enable[PLC0415]


class LangfuseTracer:
    """
    Tells Langfuse of closed rows, from a thread of its own.

    Langfuse keeps one client per public key and process, so a process has one
    tracer per key.

    Args:
        attempt_id: The attempt whose trace the rows go to.
        environ: ``LANGFUSE_PUBLIC_KEY`` and ``LANGFUSE_SECRET_KEY``; optionally
            ``LANGFUSE_BASE_URL``, ``LANGFUSE_TRACING_ENVIRONMENT`` and
            ``LANGFUSE_RELEASE``.
        flush_s: Longest that `close` waits for the endpoint, in seconds.
    """

    def __init__(
        self, attempt_id: str, *, environ: Mapping[str, str], flush_s: float = 1.0
    ) -> None:
        self._attempt_id = attempt_id
        self._environ = dict(environ)
        self._flush_s = flush_s
        # Reentrant, as the queue is: a signal may interrupt the thread that holds it.
        self._lock = threading.RLock()
        self._rows: SimpleQueue[Observation | None] = SimpleQueue()
        self._loaded = threading.Event()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._offered = 0
        self._tally = _Tally()
        self._delivered: int | None = None

    @property
    def notes(self) -> dict[str, int]:
        """
        What was delivered and what was not, for the run record.

        ``traces_delivered`` rows were accepted by the endpoint before the end of
        `close`; ``traces_dropped`` are all others, those on their way included.
        """
        with self._lock:
            final = self._delivered
            delivered = self._tally.delivered if final is None else final
            dropped = self._offered - delivered
        return {"traces_delivered": delivered, "traces_dropped": dropped}

    def observe(self, observation: Observation) -> None:
        """Take note of a closed row; with too many waiting, it is dropped."""
        with self._lock:
            self._offered += 1
            if self._closed or self._rows.qsize() >= _WAITING:
                return
            self._rows.put(observation)
            if self._thread is None:
                self._start()

    def close(self) -> None:
        """Deliver what is left, as far as that goes within the allowed time."""
        with self._lock:
            again, self._closed = self._closed, True
            thread = self._thread
        if again:
            return
        self._rows.put(None)
        if thread is not None:
            self._loaded.wait(_LOAD_S)
            thread.join(self._flush_s)
        with self._lock:
            self._delivered = self._tally.delivered

    def _start(self) -> None:
        # A daemon, so that a silent endpoint does not keep the process alive.
        thread = threading.Thread(target=self._work, name="tracing", daemon=True)
        # Out of threads or memory: the rows stay where they are, undelivered.
        with suppress(RuntimeError, MemoryError):
            thread.start()
            self._thread = thread

    def _work(self) -> None:
        try:
            sink = _Sink(self._attempt_id, self._environ, self._tally)
        except Exception:  # noqa: BLE001  (no tracing then; the rows count as dropped)
            return
        finally:
            self._loaded.set()
        while (row := self._rows.get()) is not None:
            with suppress(Exception):
                sink.send(row)
        with suppress(Exception):
            sink.finish()


class _Tally:
    """How many rows the endpoint accepted."""

    delivered = 0


class _Counting:
    """An exporter that counts; elsewhere delivery shows in no result."""

    def __init__(self, inner: "SpanExporter", tally: _Tally) -> None:
        self._inner = inner
        self._tally = tally

    def export(self, spans: "Sequence[ReadableSpan]") -> "SpanExportResult":
        result = self._inner.export(spans)
        if result.name == "SUCCESS":
            self._tally.delivered += len(spans)
        return result

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  (whatever it has)
        return getattr(self._inner, name)


class _Sink:
    """Langfuse, loaded and set up."""

    def __init__(
        self, attempt_id: str, environ: Mapping[str, str], tally: _Tally
    ) -> None:
        os.environ.update(ENVIRONMENT)  # noqa: TID251  (Langfuse reads no other place)
        # ruff: disable[PLC0415]  (importing them takes a second)
        from langfuse import Langfuse, LangfuseGeneration  # noqa: TID251
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.sampling import ALWAYS_ON
        # ruff: enable[PLC0415]

        # Their messages quote addresses, headers and values.
        for name in _LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        key, secret = environ["LANGFUSE_PUBLIC_KEY"], environ["LANGFUSE_SECRET_KEY"]
        base = environ.get("LANGFUSE_BASE_URL") or environ.get("LANGFUSE_HOST")
        base = (base or _CLOUD).rstrip("/")
        # Its own, since what else this process traces is not for this endpoint.
        self._provider = TracerProvider(
            sampler=ALWAYS_ON,
            resource=Resource({"service.name": "vectorless-rag"}),
            shutdown_on_exit=False,
        )
        self._client = Langfuse(
            public_key=key,
            secret_key=secret,
            base_url=base,
            timeout=_POST_S,
            flush_at=_BATCH,
            flush_interval=_EVERY_S,
            sample_rate=1.0,
            environment=environ.get("LANGFUSE_TRACING_ENVIRONMENT"),
            release=environ.get("LANGFUSE_RELEASE"),
            tracer_provider=self._provider,
            span_exporter=_exporter(base, key, secret, tally),
        )
        self._tracer = self._provider.get_tracer(_SCOPE, attributes={"public_key": key})
        self._generation = LangfuseGeneration
        self._parent = _parent(attempt_id)

    def send(self, row: Observation) -> None:
        # Langfuse's own call takes no start time.
        span = self._tracer.start_span(
            row.operation, context=self._parent, start_time=row.started_us * 1000
        )
        generation = self._generation(
            otel_span=span, langfuse_client=self._client, **fields_of(row)
        )
        generation.end(end_time=row.ended_us * 1000)

    def finish(self) -> None:
        # First of all it takes back what would flush again, unbounded, at exit.
        self._client.shutdown()
        self._provider.shutdown()


def _exporter(base: str, key: str, secret: str, tally: _Tally) -> "SpanExporter":
    # ruff: disable[PLC0415]  (as above)
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    # ruff: enable[PLC0415]

    token = b64encode(f"{key}:{secret}".encode()).decode()
    inner = OTLPSpanExporter(
        endpoint=base + _PATH,
        headers={
            "Authorization": f"Basic {token}",
            "x-langfuse-ingestion-version": "4",
        },
        timeout=_POST_S,
        compression=Compression.Gzip,
    )
    return cast("SpanExporter", _Counting(inner, tally))


def _parent(attempt_id: str) -> Any:  # noqa: ANN401  (its type is not loaded yet)
    from opentelemetry import trace  # noqa: PLC0415  (as above)

    attempt = trace.SpanContext(
        trace_id=int(trace_id(attempt_id), 16),
        span_id=int(span_id(attempt_id), 16),
        is_remote=True,
        trace_flags=trace.TraceFlags(trace.TraceFlags.SAMPLED),
    )
    return trace.set_span_in_context(trace.NonRecordingSpan(attempt))
