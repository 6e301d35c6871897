"""
Which process a pid means: whether a worker of this machine is still there.

A pid says nothing without the machine, its last start and the process table it is
of; with them, a killed worker is known to be dead at once.
"""

import os
import socket
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_TABLE = Path("/proc/self/ns/pid")
_STARTED_FIELD = 19
_DEAD = frozenset("ZX")


def here() -> str:
    """Name this machine, its last start, and the process table of this process."""
    try:
        boot = _BOOT.read_text(encoding="ascii").strip()
        table = str(_TABLE.readlink())
    except OSError:
        # No such files: nobody can be judged by a pid here.
        boot, table = "unknown", str(os.getpid())
    return f"{socket.gethostname()} {boot} {table}"


def started(pid: int) -> str | None:
    """Return when a process started, in ticks of the kernel; None: it is dead."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # Its name is in brackets, and may hold any.
    state, *rest = text.rpartition(")")[2].split()
    return None if state in _DEAD else rest[_STARTED_FIELD - 1]


def worker_place() -> str:
    """Name the place of this very process."""
    return f"{here()} {started(os.getpid())}"


def is_gone(place: str, pid: int) -> bool:
    """
    Whether the process *pid* of *place* is certainly dead.

    Args:
        place: From `worker_place`, in that process.
        pid: Its pid.

    Returns:
        False, too, where nobody can tell from here.
    """
    where, _, when = place.rpartition(" ")
    if not Path("/proc/self/stat").exists() or where != here():
        return False
    return started(pid) != when
