"""
An S3-compatible server, as a process of its own, and a proxy that spoils it.

``python object_server.py`` serves moto until its standard input ends, and prints its
address.
"""

import http.client
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from vectorless_rag.store.bucket import Access, Bucket

SECRET = "CANARY-of-the-bucket"  # noqa: S105
VARIABLES = {
    "AWS_ACCESS_KEY_ID": "somebody",
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_REGION": "us-east-1",
}


@contextmanager
def object_server() -> Iterator[str]:
    """Run a server; its address."""
    server = subprocess.Popen(
        [sys.executable, str(Path(__file__))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert server.stdin
    assert server.stdout
    try:
        yield server.stdout.readline().strip()
    finally:
        server.stdin.close()
        server.wait(30)
        server.stdout.close()


def make_bucket(endpoint: str, name: str) -> str:
    """Make an empty bucket; its URL."""
    connection = http.client.HTTPConnection(urlsplit(endpoint).netloc)
    connection.request("PUT", f"/{name}")
    assert 200 == connection.getresponse().status
    connection.close()
    return f"s3://{name}"


def opened(url: str, endpoint: str, folder: Path) -> Bucket:
    """The bucket at *url*, with its locks below *folder*."""
    access = Access(endpoint=endpoint, variables=VARIABLES)
    return Bucket(url, access, folder / "locks")


@contextmanager
def without_conditions(endpoint: str) -> Iterator[str]:
    """Pass everything on to *endpoint* but the header ``If-None-Match``."""
    with _proxy(endpoint, frozenset({"if-none-match"}), forgets=False) as address:
        yield address


@contextmanager
def forgetful(endpoint: str) -> Iterator[str]:
    """Pass everything on, and answer the first put of each object with an error."""
    with _proxy(endpoint, frozenset(), forgets=True) as address:
        yield address


@contextmanager
def _proxy(endpoint: str, left_out: frozenset[str], *, forgets: bool) -> Iterator[str]:
    server = _Proxy(("127.0.0.1", 0), _Handler)
    server.behind = urlsplit(endpoint).netloc
    server.left_out, server.forgets = left_out, forgets
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Proxy(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    behind: str
    left_out: frozenset[str]
    forgets: bool

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.put: set[str] = set()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Proxy  # type: ignore[mutable-override]

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        status, headers, data = self._answer(body)
        if self.command == "PUT" and self.server.forgets:
            if self.path not in self.server.put:
                status, headers, data = 503, {}, b""
            self.server.put.add(self.path)
        self.send_response(status)
        for name, value in {"content-length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _answer(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        kept = {
            name: value
            for name, value in self.headers.items()
            if name.lower() not in self.server.left_out
        }
        behind = http.client.HTTPConnection(self.server.behind)
        behind.request(self.command, self.path, body, kept)
        answer = behind.getresponse()
        data = answer.read()
        behind.close()
        ours = {"connection", "transfer-encoding", "date", "server"}
        headers = {
            n.lower(): v for n, v in answer.getheaders() if n.lower() not in ours
        }
        return answer.status, headers, data

    # The server looks methods up by these names.
    do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = _pass_on  # noqa: N815


def main() -> int:
    """Serve until nobody is there any more."""
    import logging  # noqa: PLC0415

    from moto.server import ThreadedMotoServer  # noqa: PLC0415

    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    sys.stdout.write(f"http://{host}:{port}\n")
    sys.stdout.flush()
    sys.stdin.read()
    server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
