"""
An endpoint for traces on this machine: real sockets, real gzip, real protobuf.

It keeps what arrived, raw and decoded, and misbehaves on request.
"""

import gzip
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

PATH = "/api/public/otel/v1/traces"
_PREFIX = "langfuse.observation."


@dataclass(frozen=True)
class Post:
    """One request as it arrived."""

    path: str

    headers: dict[str, str]
    """By name in lower case."""

    body: bytes
    """Unzipped protobuf: the place to look for what must not be there."""


@dataclass(frozen=True)
class Generation:
    """One span, decoded."""

    trace_id: str
    parent_id: str
    name: str
    started_us: int
    ended_us: int
    status: str
    events: int
    attributes: dict[str, str]

    def text(self, name: str) -> str | None:
        """Langfuse's attribute of that name."""
        return self.attributes.get(_PREFIX + name)

    def value(self, name: str) -> Any:
        """Langfuse's attribute of that name, which holds JSON."""
        return json.loads(self.attributes[_PREFIX + name])

    @property
    def metadata(self) -> dict[str, Any]:
        start = f"{_PREFIX}metadata."
        return {
            name.removeprefix(start): json.loads(value)
            for name, value in self.attributes.items()
            if name.startswith(start)
        }


def _generation(span: Span) -> Generation:
    return Generation(
        trace_id=span.trace_id.hex(),
        parent_id=span.parent_span_id.hex(),
        name=span.name,
        started_us=span.start_time_unix_nano // 1000,
        ended_us=span.end_time_unix_nano // 1000,
        status=span.status.message,
        events=len(span.events),
        attributes={a.key: a.value.string_value for a in span.attributes},
    )


class Receiver:
    """
    What arrived at one endpoint.

    Args:
        status: HTTP status of every answer.
        held: Answer nothing until `release`.
    """

    def __init__(self, *, status: int = 200, held: bool = False) -> None:
        self.status = status
        self.posts: list[Post] = []
        self.url = ""
        self._go = threading.Event()
        if not held:
            self.release()

    def release(self) -> None:
        """Answer from here on."""
        self._go.set()

    def take(self, post: Post) -> tuple[int, bytes]:
        """Keep a request; return the answer's status and body."""
        self.posts.append(post)
        self._go.wait()
        return self.status, ExportTraceServiceResponse().SerializeToString()

    @property
    def raw(self) -> bytes:
        return b"".join(post.body for post in self.posts)

    @property
    def generations(self) -> list[Generation]:
        return [
            _generation(span)
            for post in self.posts
            for resource in ExportTraceServiceRequest.FromString(
                post.body
            ).resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


@contextmanager
def receiving(*, status: int = 200, held: bool = False) -> Iterator[Receiver]:
    """Run a receiver on a free port of this machine."""
    receiver = Receiver(status=status, held=held)

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            """Say nothing."""

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers["Content-Encoding"] == "gzip":
                body = gzip.decompress(body)
            headers = {name.lower(): value for name, value in self.headers.items()}
            post = Post(self.path, headers, body)
            answered, answer = receiver.take(post)
            self.send_response(answered)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def handle_error(self, *_: Any) -> None:
            """The client gave up first, as it should."""

    with Server(("127.0.0.1", 0), Handler) as server:
        receiver.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield receiver
        finally:
            receiver.release()
            server.shutdown()
            thread.join()


def dead_url() -> str:
    """An address where nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"
