"""
Start a process, and end it.

This module knows nothing of PDF files, models or trees. It is the only one
that may import ``subprocess``.
"""

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


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
class ChildFiles:
    """The descriptors that a child is handed; their owner closes them."""

    stdin: int
    output: int | None
    """Where what it prints goes; None: nowhere."""

    answer: int
    progress: int


class Child(Protocol):
    """A child that was started, and leads a process group of its own."""

    @property
    def lost(self) -> bool:
        """Whether it ended because the one who started it for us did."""
        ...

    @property
    def returncode(self) -> int | None:
        """Its exit status, once it was seen to have ended."""
        ...

    def poll(self) -> int | None:
        """Look whether it has ended; return its exit status then."""
        ...

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until it has ended, or for so long; return whether it has."""
        ...

    def terminate(self) -> None:
        """Ask it to end."""
        ...

    def kill(self) -> None:
        """Kill it and whatever is left of its group, also once it has ended."""
        ...


Start = Callable[[ChildCommand, ChildFiles, Callable[[], None], float], Child]
"""
Starts a child, and may take its time: calls the function meanwhile, a few times a
second, and raises `TimeoutError` after so many seconds.
"""


class _Direct:
    """A child that this process started itself."""

    lost = False

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    def poll(self) -> int | None:
        return self._process.poll()

    def wait(self, timeout_s: float | None = None) -> bool:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout_s)
        return self._process.returncode is not None

    def terminate(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()

    def kill(self) -> None:
        kill_group(self._process.pid)


def start_directly(
    command: ChildCommand,
    files: ChildFiles,
    _check: Callable[[], None],
    _timeout_s: float,
) -> Child:
    """
    Start the program that *command* names.

    Raises:
        FileNotFoundError: It is not installed.
    """
    output = subprocess.DEVNULL if files.output is None else files.output
    return _Direct(
        subprocess.Popen(
            (*command.argv, str(files.answer), str(files.progress)),
            cwd=command.cwd,
            env=dict(command.env),
            stdin=files.stdin,
            stdout=output,
            stderr=output,
            pass_fds=(files.answer, files.progress),
            process_group=0,
        )
    )


class Helper(Protocol):
    """A program that serves this process."""

    @property
    def pid(self) -> int:
        """Its number."""
        ...

    def wait(self) -> int:
        """Wait until it has ended."""
        ...

    def kill(self) -> None:
        """Kill it, if it is still there."""
        ...


def start_helper(
    argv: tuple[str, ...], *, cwd: Path, env: Mapping[str, str], keep: int
) -> Helper:
    """
    Start a program that serves this process, in a group of its own, and silent.

    Args:
        argv: The program and its arguments.
        cwd: Folder it runs in.
        env: Its whole environment.
        keep: The one descriptor that it inherits.
    """
    return subprocess.Popen(
        argv,
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(keep,),
        process_group=0,
    )
