"""
Watch over a child: what it answers, how far it is, and that it ends.

How the child is started is somebody else's affair.
"""

import os
import selectors
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass

from vectorless_rag.process import (
    Child,
    ChildCommand,
    ChildFiles,
    Start,
    start_directly,
)


@dataclass(frozen=True, kw_only=True)
class ChildEnd:
    """How a child ended and what it answered."""

    status: int
    """Exit status; negative: the signal that ended it."""

    answer: bytes
    timed_out: bool = False

    lost: bool = False
    """Whether it ended only because the one who started it for us did."""


class _Pipes:
    """The reading ends of a child's answer and progress, drained as they fill."""

    def __init__(self, on_line: Callable[[bytes], None], answer_limit: int) -> None:
        self._on_line = on_line
        self._limit = answer_limit
        self._line = b""
        self.answer = bytearray()
        self.answer_r, self.answer_w = os.pipe()
        self.progress_r, self.progress_w = os.pipe()
        self._open = selectors.DefaultSelector()
        self._open.register(self.answer_r, selectors.EVENT_READ)
        self._open.register(self.progress_r, selectors.EVENT_READ)

    def close_writers(self) -> None:
        """Close this process's copies, so that the child's end is seen."""
        for fd in (self.answer_w, self.progress_w):
            os.close(fd)

    def close(self) -> None:
        """Close the reading ends."""
        self._open.close()
        for fd in (self.answer_r, self.progress_r):
            os.close(fd)

    def drain(self, wait_s: float) -> bool:
        """Read what is there; return whether more may come."""
        for key, _ in self._open.select(wait_s):
            data = os.read(key.fd, 1 << 16)
            if not data:
                self._open.unregister(key.fd)
            elif key.fd == self.answer_r:
                # Past the limit it is thrown away; the frame will not add up.
                if len(self.answer) <= self._limit:
                    self.answer += data
            else:
                *lines, self._line = (self._line + data).split(b"\n")
                self._line = self._line[-_LONGEST_LINE:]
                for line in lines:
                    self._on_line(line)
        return bool(self._open.get_map())


_LONGEST_LINE = 1 << 16


def _go_on() -> None:
    """Stop nothing."""


def _no_longer() -> float:
    """Leave the limit as it is."""
    return 0


def run_child(
    command: ChildCommand,
    *,
    timeout_s: float,
    grace_s: float,
    on_line: Callable[[bytes], None],
    answer_limit: int,
    check: Callable[[], None] = _go_on,
    extra_s: Callable[[], float] = _no_longer,
    start: Start = start_directly,
) -> ChildEnd:
    """
    Run a child to its end and return its answer.

    Args:
        command: What to run and all it is given.
        timeout_s: Longest life of the child, in seconds. Then it gets SIGTERM
            to settle what is in flight, and *grace_s* later its whole process
            group is killed.
        grace_s: Time between the soft and the hard stop, in seconds.
        on_line: Is handed every progress line, without its end.
        answer_limit: Longest answer kept, in bytes.
        check: Is called a few times a second. Where it raises, the child is stopped
            the same way, and what it raised passes.
        extra_s: Is asked as often how many seconds *timeout_s* has grown by.
        start: How the child is started. What it raises passes.

    Raises:
        FileNotFoundError: The program is not installed.
        KeyboardInterrupt: This process was interrupted; the child is gone.
    """
    end = time.monotonic() + timeout_s
    pipes = _Pipes(on_line, answer_limit)
    try:
        child = _start(command, pipes, check, timeout_s, start)
        stopped = False
        try:
            stopped = _until_end(child, pipes, lambda: end + extra_s(), grace_s, check)
        finally:
            if child.returncode is None:
                _stop(child, pipes, grace_s)
            # Whatever it started goes with it.
            child.kill()
        while pipes.drain(0):
            pass
    except _NeverStartedError:
        return ChildEnd(status=-signal.SIGKILL, answer=b"", timed_out=True)
    finally:
        pipes.close()
    return ChildEnd(
        # No status: it cannot be waited for any more, and was killed.
        status=-signal.SIGKILL if child.returncode is None else child.returncode,
        answer=bytes(pipes.answer),
        timed_out=stopped,
        lost=child.lost and not stopped,
    )


class _NeverStartedError(Exception):
    """The child was not there in time."""


def _start(
    command: ChildCommand,
    pipes: _Pipes,
    check: Callable[[], None],
    timeout_s: float,
    start: Start,
) -> Child:
    try:
        with tempfile.TemporaryFile() as stdin:
            stdin.write(command.stdin)
            stdin.seek(0)
            files = ChildFiles(
                stdin=stdin.fileno(),
                # Never this process's standard output: that is for results alone.
                output=sys.stderr.fileno() if command.inherit_output else None,
                answer=pipes.answer_w,
                progress=pipes.progress_w,
            )
            return start(command, files, check, timeout_s)
    except TimeoutError:
        raise _NeverStartedError from None
    finally:
        pipes.close_writers()


def _until_end(
    child: Child,
    pipes: _Pipes,
    end: Callable[[], float],
    grace_s: float,
    check: Callable[[], None],
) -> bool:
    """Wait for the child; return whether it had to be stopped."""
    open_ = True
    while child.poll() is None:
        check()
        left = end() - time.monotonic()
        if left <= 0:
            _stop(child, pipes, grace_s)
            return True
        if open_:
            open_ = pipes.drain(min(left, _POLL_S))
        else:
            child.wait(min(left, _POLL_S))
    return False


_POLL_S = 0.25


def _stop(child: Child, pipes: _Pipes, grace_s: float) -> None:
    """Ask the child to end, then make it."""
    child.terminate()
    end = time.monotonic() + grace_s
    try:
        while child.poll() is None and time.monotonic() < end:
            if not pipes.drain(0.05):
                time.sleep(0.05)
    finally:
        # A second interrupt cuts the grace short, never the kill.
        child.kill()
        child.wait()
