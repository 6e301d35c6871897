"""
A worker's answers to whoever watches it: /healthz, /readyz, /metrics.

It answers GET alone, keeps nothing, and tells of counts and codes: no document, no
prompt, no path.
"""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

from vectorless_rag.errors import Code, VectorlessRagError

_TIMEOUT_S = 10.0


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What there is to tell, asked for at each request."""

    healthy: Callable[[], bool]
    """Whether it still goes round; if not, restart it."""

    ready: Callable[[], bool]
    """Whether it takes jobs."""

    metrics: Callable[[], str]


@contextmanager
def answering(address: str, answers: Answers) -> Iterator[int]:
    """
    Answer at ``host:port`` while the block runs.

    Yields:
        The port, also where 0 was asked for.

    Raises:
        VectorlessRagError: ``settings_invalid``: the address cannot be had.
    """
    host, _, port = address.rpartition(":")
    try:
        server = _Server((host.strip("[]"), int(port)), _handler(answers))
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or "no such port"
        raise VectorlessRagError(
            Code.SETTINGS_INVALID, f"VECTORLESS_RAG_LISTEN: {why}"
        ) from None
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Say nothing: somebody hung up."""


def _handler(answers: Answers) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout: ClassVar[float | None] = _TIMEOUT_S
        server_version = "vectorless-rag"
        sys_version = ""

        def do_GET(self) -> None:
            match self.path.partition("?")[0]:
                case "/healthz":
                    self._say(well=answers.healthy())
                case "/readyz":
                    self._say(well=answers.ready())
                case "/metrics":
                    text = "text/plain; version=0.0.4; charset=utf-8"
                    self._send(HTTPStatus.OK, text, answers.metrics())
                case _:
                    self._send(HTTPStatus.NOT_FOUND, "text/plain", "no such page\n")

        def _say(self, *, well: bool) -> None:
            status = HTTPStatus.OK if well else HTTPStatus.SERVICE_UNAVAILABLE
            body = json.dumps({"ok": well}) + "\n"
            self._send(status, "application/json", body)

        def _send(self, status: HTTPStatus, kind: str, body: str) -> None:
            data = body.encode("utf-8")
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Report no request."""

    return Handler
