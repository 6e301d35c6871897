"""
A worker's end of the engine with toy work, for `test_engine_dbos`.

``python dbos_script.py URL WORKER VERSION SLOTS PER_OWNER SECONDS LOG`` carries out
turns by writing a line when each begins and ends, until it is told to end.
"""

import os
import sys
import threading
import time
from pathlib import Path

from vectorless_rag.engine.dbos_engine import DbosHands


def main() -> None:
    """Carry out turns until standard input ends."""
    url, name, version, slots, per_owner, took, log = sys.argv[1:8]

    def tell(*words: str) -> None:
        line = f"{time.monotonic_ns()} {name} {' '.join(words)}\n"
        with Path(log).open("a", encoding="utf-8") as file:
            file.write(line)

    def work(turn_id: str) -> str:
        tell("begin", turn_id, str(threading.get_native_id()))
        time.sleep(float(took))
        tell("end", turn_id)
        return "done"

    hands = DbosHands(
        url,
        worker_id=name,
        version=version,
        slots=int(slots),
        per_owner=int(per_owner) if per_owner else None,
    )
    hands.start(work)
    tell("ready", str(os.getpid()))
    for line in sys.stdin:
        hands.take(int(line))
        tell("takes", line.strip())
    hands.stop()
    tell("stopped")


if __name__ == "__main__":
    main()
