"""
What the child gives up before it reads a document.

Limits of the operating system, a life no longer than its parent's, and all files
but those that it needs. None of it can be taken back afterwards.
"""

import contextlib
import ctypes
import os
import resource
import signal
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from vectorless_rag import landlock
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.ledger.backends import backend
from vectorless_rag.prices import OFFLINE_PREFIX
from vectorless_rag.wire import Limits, Request

_PR_SET_PDEATHSIG = 1

# Head room to unwind and to report a memory failure in.
_MEMORY_RESERVE_BYTES = 256 * 1024**2

# From the soft stop at the limit of CPU time to the hard one.
_CPU_GRACE_S = 5

# Shared libraries, certificates, name resolution, and what Python asks of itself.
_SYSTEM = (
    "/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/nix/store",
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives",
    "/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/etc/crypto-policies",
    "/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf",
    "/etc/gai.conf", "/etc/services", "/etc/protocols", "/etc/localtime",
    "/etc/timezone", "/etc/mime.types", "/etc/passwd", "/etc/group", "/etc/os-release",
    "/gnu/store", "/run/systemd/resolve", "/run/current-system",
    "/dev/urandom", "/dev/random", "/dev/zero", "/sys/devices/system/cpu",
    "/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat",
)  # fmt: skip

# Semaphores of worker processes are files there.
_SHARED = ("/dev/null", "/dev/shm")  # noqa: S108


def end_with(parent: int) -> None:
    """
    Die when the parent does: an orphan would go on spending.

    Args:
        parent: The process that this one was started by.
    """
    _on_death_of_parent(signal.SIGKILL)
    if os.getppid() != parent:
        # It went away before the call above.
        os._exit(1)


def end_group() -> None:
    """
    Have all that this process starts end with it, where it leads a group.

    Call it once the files are closed: a process in a sandbox reaches none outside,
    not even by its death.
    """
    me = os.getpid()
    if os.getpgrp() != me:
        return
    # What ends this process with its parent reaches no other.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    if os.fork() == 0:
        _kill_the_group_after(me)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})


def _kill_the_group_after(leader: int) -> None:
    """Wait, as a process of its own, until *leader* is gone."""
    os.closerange(0, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    _on_death_of_parent(signal.SIGUSR1)
    if os.getppid() == leader:
        signal.sigwait({signal.SIGUSR1})
    os.killpg(0, signal.SIGKILL)


def _on_death_of_parent(number: signal.Signals) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, number)


def limit(limits: Limits) -> None:
    """
    Bound memory, CPU time, open files, file size and processes.

    Each holds for this process and anew for each that it starts, except the
    number of processes: that counts all of the user's, and does not bind root.
    """
    _lower(resource.RLIMIT_CORE, 0, 0)
    _lower(
        resource.RLIMIT_AS,
        limits.memory_bytes,
        limits.memory_bytes + _MEMORY_RESERVE_BYTES,
    )
    if limits.cpu_s is not None:
        # First a signal that Python turns into an orderly end; code that never
        # comes back to Python gets one that ends it.
        signal.setitimer(signal.ITIMER_PROF, limits.cpu_s)
        hard = limits.cpu_s + _CPU_GRACE_S
        _lower(resource.RLIMIT_CPU, hard, hard + 1)
    for what, most in (
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_NPROC, limits.processes),
    ):
        if most is not None:
            _lower(what, most, most)


def use_memory_reserve() -> None:
    """Free the head room that was kept back to report a memory failure in."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def _lower(what: int, soft: int, hard: int) -> None:
    _, ceiling = resource.getrlimit(what)
    if ceiling != resource.RLIM_INFINITY:
        soft, hard = min(soft, ceiling), min(hard, ceiling)
    resource.setrlimit(what, (soft, hard))


def close_files(request: Request, environment: Mapping[str, str]) -> int:
    """
    Give up every file but those that a run needs.

    Args:
        request: Names the ledger, the journal and the folder to keep closed.
        environment: This process's; a path in it is there to be read.

    Returns:
        The version of Landlock in force; 0: this process is in no sandbox.

    Raises:
        VectorlessRagError: ``settings_invalid``: a sandbox is required, and this
            kernel offers none.
    """
    if request.sandbox == "off":
        return 0
    try:
        return landlock.restrict(_rules(request, environment))
    except OSError as error:
        if request.sandbox == "auto":
            return 0
        raise VectorlessRagError(
            Code.SETTINGS_INVALID, f"VECTORLESS_RAG_SANDBOX=required: {error.strerror}"
        ) from None


def _rules(request: Request, environment: Mapping[str, str]) -> landlock.Rules:
    closed = Path(request.closed_dir).resolve() if request.closed_dir else None
    files = backend(request.ledger_url).files
    offline = request.rehearse or request.model.startswith(OFFLINE_PREFIX)
    traced = any(name.startswith("LANGFUSE_") for name in environment)
    own = (Path.cwd(), *map(Path, _SHARED), *_measured(environment))
    return landlock.Rules(
        readable=tuple(
            part
            for path in _needed(environment)
            for part in without(path.resolve(), closed)
        ),
        writable=(
            *(path for path in own if closed is None or path not in closed.parents),
            *files,
            *_kept(request),
        ),
        network=not offline or traced or not files,
    )


def _needed(environment: Mapping[str, str]) -> Iterator[Path]:
    yield from map(Path, _SYSTEM)
    yield from map(Path, (sys.prefix, sys.base_prefix, sys.exec_prefix))
    yield from (Path(entry) for entry in sys.path if entry)
    for name, value in environment.items():
        # Certificates and credentials; only what the child needs was let through.
        if value.startswith("/") and value != "/" and name not in _NO_FILES:
            yield Path(value)


_NO_FILES = frozenset({"HOME", "PATH", "PYTHONPATH", "TMPDIR"})


def _measured(environment: Mapping[str, str]) -> Iterator[Path]:
    """Where a coverage run collects what it measured."""
    if "COVERAGE_FILE" in environment:
        yield Path(environment["COVERAGE_FILE"]).parent


def _kept(request: Request) -> Iterator[Path]:
    """Where it keeps replies and counts requests; an offline run does neither."""
    for name in (request.journal_dir, request.gate_dir):
        offline = request.rehearse or request.model.startswith(OFFLINE_PREFIX)
        if name is not None and not offline:
            # What is not there cannot be allowed.
            with contextlib.suppress(OSError):
                Path(name).mkdir(mode=0o700, parents=True, exist_ok=True)
            yield Path(name)


def without(path: Path, closed: Path | None) -> Iterator[Path]:
    """
    Name what is below *path*, but not *closed* nor anything in it.

    Args:
        path: A file or folder.
        closed: A folder; rules only ever add, so that one above it must be
            spelled out.
    """
    if closed is None or path not in (closed, *closed.parents):
        yield path
        return
    with contextlib.suppress(OSError):
        for below in path.iterdir() if path != closed else ():
            # A link leads to what has its own rule, or none.
            if not below.is_symlink():
                yield from without(below, closed)
