"""
Which process a pid means: whether a worker of this machine is still there.

A pid says nothing without the machine, its last start and the process table it is
of; with them, a killed worker is known to be dead at once.
"""

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from vectorless_rag.ledger.job_types import WorkerRow

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_TABLE = Path("/proc/self/ns/pid")
_STARTED_FIELD = 19
_DEAD = frozenset("ZX")


@dataclass(frozen=True, kw_only=True)
class Roll:
    """The workers on the board, those told apart that are certainly or likely dead."""

    there: tuple[WorkerRow, ...]

    silent: tuple[WorkerRow, ...]
    """They died, or gave no sign of life for too long; the next worker buries them."""

    @classmethod
    def call(
        cls, listed: Sequence[WorkerRow], *, dead_after_s: int, now_us: int
    ) -> Self:
        """
        Tell who is there.

        Args:
            listed: The workers on the board.
            dead_after_s: Seconds without a sign of life.
            now_us: By the clock of this machine; others' may differ a little.
        """
        there: list[WorkerRow] = []
        silent: list[WorkerRow] = []
        for worker in listed:
            if worker.stopped:
                continue
            quiet_us = now_us - worker.seen_us
            dead = quiet_us > dead_after_s * 1_000_000
            dead = dead or is_gone(worker.place, worker.pid)
            (silent if dead else there).append(worker)
        return cls(there=tuple(there), silent=tuple(silent))

    @property
    def slots(self) -> int:
        """Documents that those who are there build at a time."""
        return sum(worker.slots for worker in self.there)


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
