"""How a program that works on and on is told to end."""

import os
import signal
import sys
import threading
from types import FrameType


def told_to_end() -> threading.Event:
    """
    Return an event that the first SIGTERM or SIGINT sets.

    The second ends this process at once, with the status that shells give to a program
    that died of it: children die with it, and what it was at is begun anew by others.
    """
    stopping = threading.Event()

    def end(number: int, _frame: FrameType | None) -> None:
        if stopping.is_set():
            sys.stderr.flush()
            os._exit(128 + number)
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    return stopping
