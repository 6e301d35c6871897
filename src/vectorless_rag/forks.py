"""
Work on a row of items shared between this process and forks of it.

A fork starts in a hundredth of a second and has everything that this process has. It
is confined as this process is, ends with its share, and brings nothing but its results.
"""

import os
import pickle
import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Generic, TypeVar

T = TypeVar("T")

Work = Callable[[range], Sequence[T]]
"""Does the items of a range, each result in its place."""

MOST = 4
"""Processes at once."""

SHARE = 16
"""Pages that are worth a process."""


class ForkError(Exception):
    """A fork did not bring its results, for whatever reason."""


def shared(
    work: Work[T], count: int, *, share: int = SHARE, processes: int | None = None
) -> list[T]:
    """
    Do *count* items, on as many processors as there are.

    Args:
        work: Does some of them; an item's result depends on nothing else.
        count: How many there are.
        share: Fewer items than this are not worth a process.
        processes: Most processes; default: one for each processor.

    Returns:
        The results, in order.

    Raises:
        ForkError: A fork failed; nothing says how. The caller may do all by itself.
        OSError: No process could be started.
    """
    ranges = _ranges(count, share, processes)
    forks: list[_Fork[T]] = []
    try:
        # One by one: those that were started are ended, should the next not start.
        for items in ranges[1:]:
            forks += [_Fork(work, items)]
        results = [list(work(ranges[0])), *(fork.results() for fork in forks)]
    finally:
        for fork in forks:
            fork.end()
    return [results[n % len(ranges)][n // len(ranges)] for n in range(count)]


def shared_or_alone(work: Work[T], count: int) -> list[T]:
    """Do *count* items as `shared` does; should that fail, in this process alone."""
    try:
        return shared(work, count)
    except (ForkError, OSError):
        return list(work(range(count)))


def _ranges(count: int, share: int, processes: int | None) -> list[range]:
    """Deal the items out in turns, the first to this process."""
    most = min(processes or MOST, MOST, len(os.sched_getaffinity(0)))
    # A fork has one thread alone, and the locks of all others as they are.
    alone = threading.active_count() > 1
    number = 1 if alone else max(1, min(most, count // share))
    return [range(first, count, number) for first in range(number)]


class _Fork(Generic[T]):
    def __init__(self, work: Work[T], items: range) -> None:
        ours, theirs = os.pipe()
        try:
            self._pid = os.fork()
        except OSError:
            os.close(ours)
            os.close(theirs)
            raise
        if self._pid == 0:
            os.close(ours)
            _serve(theirs, work, items)
        os.close(theirs)
        self._answer = ours

    def results(self) -> list[T]:
        with os.fdopen(os.dup(self._answer), "rb") as stream:
            data = stream.read()
        try:
            found: list[T] = pickle.loads(data)  # noqa: S301  (our own fork's)
        except (EOFError, pickle.UnpicklingError):
            raise ForkError from None
        return found

    def end(self) -> None:
        os.close(self._answer)
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


def _serve(answer: int, work: Work[T], items: range) -> None:
    """Do the work and end: nothing that was inherited is to run, not even at exit."""
    status = 1
    try:
        data = pickle.dumps(list(work(items)), pickle.HIGHEST_PROTOCOL)
        with os.fdopen(answer, "wb") as stream:
            stream.write(data)
        status = 0
    finally:
        os._exit(status)
