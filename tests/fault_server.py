"""
A provider on this machine that speaks chat completions and misbehaves on request.

Everything is real but the model: sockets, HTTP, headers, half-sent bodies.
"""

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CANARY = "sk-live-CANARY-d41d8cd98f00b204"
"""Stands in every error body, as careless providers put keys there."""

USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 5,
    "total_tokens": 105,
    "prompt_tokens_details": {"cached_tokens": 40},
    "completion_tokens_details": {"reasoning_tokens": 2},
}


@dataclass(frozen=True)
class Fault:
    """What the server does with one request."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)

    missing_bytes: int = 0
    """Promised by the header and never sent."""

    stall_s: float = 0.0
    """Silence before anything is sent."""

    drip_s: float = 0.0
    """Blanks, one every 50 ms, for that long before the body."""


def completion(
    content: str | None = '{"answer": "yes"}',
    *,
    finish: str | None = "stop",
    usage: object = USAGE,
    **more: Any,
) -> Fault:
    """An ordinary reply, or one with an odd part."""
    message = {"role": "assistant", "content": content}
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-4o-mini",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": usage,
    }
    return Fault(body=json.dumps(body | more).encode())


def without_usage() -> Fault:
    body = json.loads(completion().body)
    del body["usage"]
    return Fault(body=json.dumps(body).encode())


def error(
    status: int, *, code: str | None = None, message: str = "", **headers: str
) -> Fault:
    """An error as OpenAI spells it; header names with _ for -."""
    what = {"message": f"{message} {CANARY}", "type": code or "x", "code": code}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Fault(status, json.dumps({"error": what}).encode(), named)


def in_seconds(seconds: float) -> str:
    """An HTTP date that far from now."""
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


CONTEXT = error(
    400, code="context_length_exceeded", message="maximum context length is 8192"
)
POLICY = error(400, code="content_policy_violation", message="rejected")
QUOTA = error(429, code="insufficient_quota", message="You exceeded your quota")
RATE_LIMIT_WORDS = error(400, message="Bad input: rate limit appears in the text")
UNKNOWN_MODEL = error(404, code="model_not_found", message="no such model")
HTML = Fault(
    body=f"<html>gateway {CANARY}</html>".encode(),
    headers={"content-type": "text/html"},
)
EMPTY_BODY = Fault()
CUT_BODY = Fault(body=completion().body, missing_bytes=50)
STALLED = Fault(body=completion().body, stall_s=3)
DRIPPING = Fault(body=completion().body, drip_s=30)


@dataclass
class FaultServer:
    """A running server: what it will do next, and what it was asked."""

    base: str
    """What to give as ``api_base``."""

    script: Callable[[int, dict[str, Any]], Fault]
    """From the number of the request, from 0, and its body, to what happens."""

    requests: list[dict[str, Any]] = field(default_factory=list)
    """The decoded body of every request, in order of arrival."""

    headers: list[dict[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        from batch_desk import Desk  # noqa: PLC0415  (which takes faults from here)

        self.desk: Desk = Desk()
        """Where files and batches are handed in."""

    def play(self, *faults: Fault) -> None:
        """Answer the next requests in turn, and the last way from then on."""
        start = len(self.requests)
        self.script = lambda number, _: faults[min(number - start, len(faults) - 1)]


@contextmanager
def serving(faults: Iterable[Fault] = ()) -> Iterator[FaultServer]:
    """Run a server for the length of a test."""
    server = _Server(("127.0.0.1", 0), _Handler)
    port = server.server_address[1]
    play = FaultServer(f"http://127.0.0.1:{port}/v1", lambda _n, _body: completion())
    server.play = play
    if listed := tuple(faults):
        play.play(*listed)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield play
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    play: FaultServer

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.over = threading.Event()
        self.lock = threading.Lock()

    def handle_error(self, *_: Any) -> None:
        """Broken pipes are part of the play."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body are two writes: held back, the second would wait 40 ms.
    disable_nagle_algorithm = True
    server: _Server  # type: ignore[mutable-override]

    def log_message(self, *_: Any) -> None:
        """Print nothing."""

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        with self.server.lock:
            if self.path.endswith("/chat/completions"):
                fault = self._answer(json.loads(raw))
            else:
                self.server.play.desk.headers.append(dict(self.headers.items()))
                fault = self.server.play.desk.act(
                    self.command, self.path, raw, self._answer
                )
        self._act(fault)

    do_GET = do_POST  # noqa: N815  (names of the standard library)

    def _answer(self, request: dict[str, Any]) -> Fault:
        play = self.server.play
        number = len(play.requests)
        play.requests.append(request)
        play.headers.append(dict(self.headers.items()))
        return play.script(number, request)

    def _act(self, fault: Fault) -> None:
        if self.server.over.wait(fault.stall_s) and fault.stall_s:
            return
        self.send_response(fault.status)
        headers = {"content-type": "application/json", **fault.headers}
        for name, value in headers.items():
            self.send_header(name, value)
        if fault.drip_s:
            self._drip(fault)
            return
        self.send_header("content-length", str(len(fault.body) + fault.missing_bytes))
        self.end_headers()
        self.wfile.write(fault.body)
        if fault.missing_bytes:
            self.close_connection = True

    def _drip(self, fault: Fault) -> None:
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        end = time.monotonic() + fault.drip_s
        try:
            while time.monotonic() < end and not self.server.over.wait(0.05):
                self.wfile.write(b"1\r\n \r\n")
            size = f"{len(fault.body):x}\r\n".encode()
            self.wfile.write(size + fault.body + b"\r\n0\r\n\r\n")
        except OSError:
            self.close_connection = True
