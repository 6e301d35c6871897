"""
Start a process, and end it.

This module knows nothing of PDF files, models or trees. It is the only one
that may import ``subprocess``.
"""

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A tool that ran to its end."""

    status: int
    """Exit status; negative: the signal that ended it."""

    stdout: bytes
    stderr: bytes


def run_tool(
    argv: tuple[str, ...],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdin: bytes = b"",
    timeout_s: float = 600,
) -> Finished:
    """
    Run a program to its end and keep what it printed.

    Args:
        argv: The program and its arguments; no shell reads them.
        cwd: Folder it runs in.
        env: Its whole environment.
        stdin: What it may read.
        timeout_s: Longest life, in seconds; then its process group is killed.

    Raises:
        FileNotFoundError: The program is not installed.
        TimeoutError: *timeout_s* passed first.
    """
    child = subprocess.Popen(
        argv,
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Its own group, so that one signal also reaches its children.
        process_group=0,
    )
    try:
        out, err = child.communicate(stdin, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"{argv[0]} ran for more than {timeout_s} s") from None
    finally:
        if child.returncode is None:
            kill_group(child.pid)
            child.communicate()
    return Finished(status=child.returncode, stdout=out, stderr=err)


def kill_group(pid: int) -> None:
    """Kill the process group that *pid* leads, if it is still there."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


@dataclass(frozen=True, kw_only=True)
class ChildCommand:
    """Everything a child is given. It inherits nothing else."""

    argv: tuple[str, ...]
    """Program and arguments. The numbers of two descriptors are appended: the
    answer goes to the first and progress lines to the second."""

    cwd: Path
    env: Mapping[str, str]
    stdin: bytes = field(repr=False)

    inherit_output: bool = False
    """Let the child print to this process's standard error; else it is thrown
    away, since it may quote the document."""


@dataclass(frozen=True, kw_only=True)
class ChildEnd:
    """How a child ended and what it answered."""

    status: int
    """Exit status; negative: the signal that ended it."""

    answer: bytes
    timed_out: bool = False


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

    Raises:
        FileNotFoundError: The program is not installed.
        KeyboardInterrupt: This process was interrupted; the child is gone.
    """
    pipes = _Pipes(on_line, answer_limit)
    try:
        with tempfile.TemporaryFile() as stdin:
            stdin.write(command.stdin)
            stdin.seek(0)
            child = _start(command, stdin.fileno(), pipes)
        stopped = False
        try:
            stopped = _until_end(
                child, pipes, lambda: timeout_s + extra_s(), grace_s, check
            )
        finally:
            if child.returncode is None:
                _stop(child, pipes, grace_s)
            # Whatever it started goes with it.
            kill_group(child.pid)
        while pipes.drain(0):
            pass
    finally:
        pipes.close()
    return ChildEnd(
        status=child.returncode, answer=bytes(pipes.answer), timed_out=stopped
    )


def _start(command: ChildCommand, stdin: int, pipes: _Pipes) -> subprocess.Popen[bytes]:
    output = None if command.inherit_output else subprocess.DEVNULL
    try:
        return subprocess.Popen(
            (*command.argv, str(pipes.answer_w), str(pipes.progress_w)),
            cwd=command.cwd,
            env=dict(command.env),
            stdin=stdin,
            # Never this process's standard output: that is for results alone.
            stdout=sys.stderr.fileno() if command.inherit_output else output,
            stderr=output,
            pass_fds=(pipes.answer_w, pipes.progress_w),
            process_group=0,
        )
    finally:
        pipes.close_writers()


def _until_end(
    child: subprocess.Popen[bytes],
    pipes: _Pipes,
    timeout_s: Callable[[], float],
    grace_s: float,
    check: Callable[[], None],
) -> bool:
    """Wait for the child; return whether it had to be stopped."""
    began = time.monotonic()
    open_ = True
    while child.poll() is None:
        check()
        left = began + timeout_s() - time.monotonic()
        if left <= 0:
            _stop(child, pipes, grace_s)
            return True
        if open_:
            open_ = pipes.drain(min(left, _POLL_S))
        else:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(min(left, _POLL_S))
    return False


_POLL_S = 0.25


def _stop(child: subprocess.Popen[bytes], pipes: _Pipes, grace_s: float) -> None:
    """Ask the child to end, then make it."""
    with contextlib.suppress(ProcessLookupError):
        child.terminate()
    end = time.monotonic() + grace_s
    try:
        while child.poll() is None and time.monotonic() < end:
            if not pipes.drain(0.05):
                time.sleep(0.05)
    finally:
        # A second interrupt cuts the grace short, never the kill.
        kill_group(child.pid)
        child.wait()
