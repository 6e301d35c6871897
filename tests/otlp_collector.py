"""A collector on this machine: takes metrics and traces over HTTP, and decodes them."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue


@dataclass
class Collector:
    """What has arrived."""

    base: str = ""
    bodies: list[bytes] = field(default_factory=list)
    spans: list[dict[str, Any]] = field(default_factory=list)
    """The attributes of each."""

    values: dict[tuple[str, frozenset[tuple[str, Any]]], float] = field(
        default_factory=dict
    )
    """The last one of each series."""

    def value(self, name: str, **labels: str) -> float | None:
        """The last value of one series."""
        return self.values.get((name, frozenset(labels.items())))

    def take(self, path: str, body: bytes) -> None:
        """Decode what was posted."""
        self.bodies.append(body)
        if path == "/v1/traces":
            traces = ExportTraceServiceRequest.FromString(body)
            self.spans += [
                {a.key: _plain(a.value) for a in span.attributes}
                for resource in traces.resource_spans
                for scope in resource.scope_spans
                for span in scope.spans
            ]
            return
        metrics = ExportMetricsServiceRequest.FromString(body)
        for resource in metrics.resource_metrics:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    for point in (*metric.gauge.data_points, *metric.sum.data_points):
                        labels = frozenset(
                            (a.key, _plain(a.value)) for a in point.attributes
                        )
                        self.values[metric.name, labels] = point.as_double


def _plain(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    return getattr(value, kind) if kind else None


@contextmanager
def collecting() -> Iterator[Collector]:
    """Run a collector until the block ends."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            collector.take(self.path, body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector.base = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
