"""
OpenTelemetry, where it is asked for: the one module that imports it.

The figures of `vectorless_rag.engine.figures` go out as metrics, and each turn as a
span. Where to is for the standard variables to say (``OTEL_EXPORTER_OTLP_ENDPOINT``,
``OTEL_EXPORTER_OTLP_HEADERS``, …). A slow or dead receiver costs a worker nothing: all
is sent from threads of its own, and at the end it is waited for for a moment.
"""

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from vectorless_rag.engine.figures import HELP, Ended, Figure, grows
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.units import usd

SERVICE = "vectorless-rag-worker"

_FAREWELL_S = 5.0
_FRESH_S = 1.0


class Telemetry:
    """
    Sends metrics and traces by OTLP over HTTP.

    Args:
        worker_id: Name of the worker.
        version: The code it runs.
        read: Reads the figures; called on a thread of the sender.

    Raises:
        VectorlessRagError: ``settings_invalid``: the extra ``otel`` is missing.
    """

    def __init__(
        self, *, worker_id: str, version: str, read: Callable[[], Iterable[Figure]]
    ) -> None:
        try:
            import opentelemetry.exporter.otlp.proto.http.metric_exporter as out_metrics  # noqa: PLC0415
            import opentelemetry.exporter.otlp.proto.http.trace_exporter as out_traces  # noqa: PLC0415
            import opentelemetry.sdk.metrics.export as metrics_export  # noqa: PLC0415
            import opentelemetry.sdk.trace.export as trace_export  # noqa: PLC0415
            from opentelemetry.sdk import metrics, resources, trace  # noqa: PLC0415
        except ImportError:
            raise VectorlessRagError(
                Code.SETTINGS_INVALID,
                "VECTORLESS_RAG_OTEL: the extra 'otel' is missing",
            ) from None
        resource = resources.Resource.create(
            {
                "service.name": SERVICE,
                "service.instance.id": worker_id,
                "service.version": version,
            }
        )
        self._read = read
        self._figures_read: list[Figure] | None = None
        self._read_at = 0.0
        self._traces = trace.TracerProvider(resource=resource)
        self._traces.add_span_processor(
            trace_export.BatchSpanProcessor(out_traces.OTLPSpanExporter())
        )
        self._tracer = self._traces.get_tracer("vectorless_rag")
        reader = metrics_export.PeriodicExportingMetricReader(
            out_metrics.OTLPMetricExporter()
        )
        self._metrics = metrics.MeterProvider([reader], resource=resource)
        self._offer(self._metrics.get_meter("vectorless_rag"))

    def ended(self, ended: Ended) -> None:
        """Tell of a turn that is over."""
        job = ended.job
        span = self._tracer.start_span(
            "job",
            start_time=ended.began_ns,
            attributes={
                "job.recipe_hash": job.recipe_hash,
                "job.document_sha256": job.document_sha256,
                "job.run_id": job.run_id,
                "job.owner": job.owner,
                "job.model": job.model,
                "job.tries": job.tries,
                "job.turn": job.turn,
                "job.attempt_id": ended.attempt_id,
                "job.how": ended.how,
                "job.code": ended.code or "",
                "job.calls": ended.spend.calls,
                "job.cost_usd": float(usd(ended.spend.cost)),
            },
        )
        if ended.how == "failed":
            from opentelemetry.trace import Status, StatusCode  # noqa: PLC0415

            span.set_status(Status(StatusCode.ERROR, ended.code))
        span.end(ended.ended_ns)

    def close(self) -> None:
        """Send what is left, if that takes no time."""
        thread = threading.Thread(target=self._say_farewell, daemon=True)
        thread.start()
        thread.join(_FAREWELL_S)

    def _say_farewell(self) -> None:
        self._metrics.shutdown()
        self._traces.shutdown()

    def _offer(self, meter: Any) -> None:  # noqa: ANN401
        """Offer every figure under its name; one reading serves all of a round."""
        from opentelemetry.metrics import Observation  # noqa: PLC0415

        def observed(name: str) -> Callable[[Any], list[Any]]:
            def observe(_options: Any) -> list[Any]:  # noqa: ANN401
                return [
                    Observation(float(figure.value), dict(figure.labels))
                    for figure in self._figures()
                    if figure.name == name
                ]

            return observe

        for name, words in HELP.items():
            make = (
                meter.create_observable_counter
                if grows(name)
                else meter.create_observable_gauge
            )
            make(name, callbacks=[observed(name)], description=words)

    def _figures(self) -> list[Figure]:
        """Read the figures, once for all the instruments of a round."""
        now = time.monotonic()
        if self._figures_read is None or now - self._read_at > _FRESH_S:
            self._figures_read, self._read_at = list(self._read()), now
        return self._figures_read
