"""
A real headless browser, driven through its DevTools protocol over two pipes.

The protocol is JSON with a zero byte after each message; the browser reads it from
descriptor 3 and writes it to descriptor 4. No port is opened and no package needed.
"""

import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CHROMIUM = Path("/usr/bin/chromium")

# Also what it would otherwise ask its maker for at each start.
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
_PATIENCE_S = 120
"""Only a hang takes so long."""

# The browser's ends of the pipes, put where it looks for them.
_START = 'exec 3<&"$1" 4>&"$2"; shift 2; exec "$@"'


class BrowserError(AssertionError):
    """The browser refused a command, or a script in the page threw."""


@dataclass
class Page:
    """A tab, and everything it said or asked for."""

    _to: int
    _from: int
    events: list[dict[str, Any]] = field(default_factory=list)
    _session: str | None = None
    _number: int = 0
    _buffer: bytes = b""

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send one command and wait for its answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        data = memoryview(json.dumps(message).encode() + b"\0")
        while data:
            data = data[os.write(self._to, data) :]
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def run(self, script: str) -> Any:
        """Evaluate an expression, awaited, and return its value."""
        done = self.call(
            "Runtime.evaluate",
            expression=script,
            awaitPromise=True,
            returnByValue=True,
        )
        if "exceptionDetails" in done:
            raise BrowserError(done["exceptionDetails"])
        return done["result"].get("value")

    def wait(self, condition: str) -> None:
        """Return once an expression is true."""
        self.until(lambda: bool(self.run(f"Boolean({condition})")), condition)

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Return once *condition* holds; it may look at what the page said."""
        end = time.monotonic() + _PATIENCE_S
        while not condition():
            if time.monotonic() > end:
                raise BrowserError(f"never true: {what}")
            time.sleep(0.02)
            # Answers bring along what was said meanwhile.
            self.run("0")

    def open(self, path: Path, *, width: int = 1280, dark: bool = False) -> None:
        """Show a file in a window of that many pixels, once it is loaded."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        # What an earlier page said is not this one's.
        self.events.clear()
        self.call("Page.navigate", url=path.as_uri())
        while not self.named("Page.loadEventFired"):
            self.events.append(self._receive())

    def named(self, *methods: str) -> list[dict[str, Any]]:
        """Return the parameters of the events of these names, so far."""
        return [e["params"] for e in self.events if e.get("method") in methods]

    @property
    def complaints(self) -> list[dict[str, Any]]:
        """What went to the console: warnings, errors, refusals of the policy."""
        return self.named(
            "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"
        )

    @property
    def requests(self) -> list[str]:
        """Addresses of everything that was asked for."""
        return [e["request"]["url"] for e in self.named("Network.requestWillBeSent")]

    def attach(self) -> None:
        """Make a tab, and have it tell what it does."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        done = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = done["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], _PATIENCE_S)
            data = os.read(self._from, 1 << 20) if ready else b""
            if not data:
                raise BrowserError("the browser says nothing")
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        decoded: dict[str, Any] = json.loads(message)
        return decoded


@contextmanager
def browsing() -> Iterator[Page]:
    """Start a browser with a profile of its own; it is gone afterwards."""
    to_read, to_write = os.pipe()
    from_read, from_write = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        process = subprocess.Popen(
            [
                *("/bin/bash", "-c", _START, "browser", str(to_read), str(from_write)),
                str(CHROMIUM),
                *_FLAGS,
                f"--user-data-dir={home}/profile",
            ],
            env={"HOME": home, "PATH": os.defpath},
            pass_fds=(to_read, from_write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(to_read)
        os.close(from_write)
        try:
            page = Page(to_write, from_read)
            page.attach()
            yield page
        finally:
            os.close(to_write)
            os.close(from_read)
            # Its own group: helpers of the browser must not outlive the test.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
