"""
Landlock: a Linux process gives up files, sockets and signals for good.

It needs no privilege, and holds for every thread and process that is started
afterwards. Nothing here knows what a run needs.
"""

import ctypes
import errno
import os
import stat
import struct
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

# The same numbers on every architecture that Linux calls generic, and on x86.
_CREATE_RULESET = 444
_ADD_RULE = 445
_RESTRICT_SELF = 446
_WANTS_VERSION = 1
_PATH_BENEATH = 1
_PR_SET_NO_NEW_PRIVS = 38

_EXECUTE = 1 << 0
_WRITE_FILE = 1 << 1
_READ_FILE = 1 << 2
_READ_DIR = 1 << 3
_MAKE_CHAR = 1 << 6
_MAKE_BLOCK = 1 << 11
_TRUNCATE = 1 << 14
_IOCTL_DEV = 1 << 15

_ON_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_READ = _EXECUTE | _READ_FILE | _READ_DIR

# How many of the rights above a version knows.
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
_ALL_RIGHTS = 16

_NETWORK_SINCE, _SCOPES_SINCE = 4, 6
_TCP = 0b11
_OUTSIDE = 0b11  # abstract sockets and signals


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What stays allowed; all else is refused with EACCES or EPERM."""

    readable: tuple[Path, ...]
    """Files, and folders with all below them; programs there may be started."""

    writable: tuple[Path, ...]
    """The same, also to be changed; no program there may be started."""

    network: bool
    """Whether TCP connections may be opened."""


@cache
def version() -> int:
    """Return the version of Landlock that this kernel offers; 0: none."""
    if not sys.platform.startswith("linux"):
        return 0
    try:
        return _call(_CREATE_RULESET, None, ctypes.c_size_t(0), _WANTS_VERSION)
    except OSError:
        return 0


def restrict(rules: Rules) -> int:
    """
    Give up everything but *rules*, in this thread and all that it starts.

    Paths that are not there are left out.

    Returns:
        The version that is in force. Before 4 the network stays open, before 6
        signals and abstract sockets reach other processes.

    Raises:
        OSError: The kernel offers no Landlock, or refused.
    """
    offered = version()
    if offered == 0:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    rights = (1 << _RIGHTS.get(offered, _ALL_RIGHTS)) - 1
    ruleset = _ruleset(offered, rights, network=rules.network)
    try:
        writing = rights & ~(_EXECUTE | _MAKE_CHAR | _MAKE_BLOCK)
        _allow(ruleset, rules.readable, _READ)
        _allow(ruleset, rules.writable, writing)
        _prctl(_PR_SET_NO_NEW_PRIVS, 1)
        _call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)
    return offered


def _ruleset(offered: int, rights: int, *, network: bool) -> int:
    fields = [rights]
    if offered >= _NETWORK_SINCE:
        fields.append(0 if network else _TCP)
    if offered >= _SCOPES_SINCE:
        fields.append(_OUTSIDE)
    asked = struct.pack(f"={len(fields)}Q", *fields)
    return _call(_CREATE_RULESET, asked, ctypes.c_size_t(len(asked)), 0)


def _allow(ruleset: int, paths: Iterable[Path], rights: int) -> None:
    for path in paths:
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            folder = stat.S_ISDIR(os.fstat(place).st_mode)
            allowed = rights if folder else rights & _ON_FILES
            rule = struct.pack("=Qi", allowed, place)
            _call(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0)
        finally:
            os.close(place)


def _call(*args: Any) -> int:  # noqa: ANN401  (whatever a system call takes)
    return _checked(_libc().syscall(*args))


def _prctl(option: int, value: int) -> None:
    nothing = ctypes.c_ulong(0)
    _checked(_libc().prctl(option, ctypes.c_ulong(value), nothing, nothing, nothing))


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
