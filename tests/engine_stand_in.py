"""An engine in this process: a list for a queue, and a thread for each turn."""

import threading
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from vectorless_rag.engine.port import Turn, Work
from vectorless_rag.errors import Code, VectorlessRagError


@dataclass
class Listed:
    """A queue that keeps a list."""

    turns: dict[str, Turn] = field(default_factory=dict)
    holders: dict[str, str] = field(default_factory=dict)

    due: dict[str, float] = field(default_factory=dict)
    away: bool = False
    """Whether its database cannot be reached."""

    def enqueue(self, turn: Turn) -> None:
        if self.away:
            raise VectorlessRagError(Code.ENGINE_UNAVAILABLE)
        self.due[turn.turn_id] = time.monotonic() + turn.delay_s
        self.turns.setdefault(turn.turn_id, turn)

    def cancel(self, turn_ids: Sequence[str]) -> None:
        for turn_id in turn_ids:
            self.turns.pop(turn_id, None)
            self.holders.pop(turn_id, None)

    def lost(self, turn_ids: Sequence[str], alive: Collection[str]) -> set[str]:
        return {
            turn_id
            for turn_id in turn_ids
            if turn_id not in self.turns
            or self.holders.get(turn_id, next(iter(alive))) not in alive
        }

    def held_by(self, worker_id: str) -> list[str]:
        return [turn for turn, who in self.holders.items() if who == worker_id]

    def close(self) -> None:
        """Keep nothing open."""


@dataclass
class Handing:
    """Hands out what a list holds, each turn once, on a thread of its own."""

    queue: Listed
    worker_id: str
    version: str
    slots: int
    given: set[str] = field(default_factory=set)
    threads: list[threading.Thread] = field(default_factory=list)
    said: dict[str, str] = field(default_factory=dict)
    """What came of each turn."""

    _over: threading.Event = field(default_factory=threading.Event)

    def start(self, work: Work) -> None:
        """Look for turns until `stop`."""
        self._work = work
        self._looking = threading.Thread(target=self._look)
        self._looking.start()

    def take(self, slots: int) -> None:
        """Hand out turns while fewer are being carried out."""
        self.slots = slots

    def stop(self) -> None:
        """Hand out nothing more, and wait for what was."""
        self._over.set()
        self._looking.join()
        for thread in self.threads:
            thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.01):
            now = time.monotonic()
            for turn_id, turn in list(self.queue.turns.items()):
                busy = sum(thread.is_alive() for thread in self.threads)
                due = self.queue.due.get(turn_id, 0) <= now
                mine = turn.version == self.version and turn_id not in self.given
                if due and mine and busy < self.slots:
                    self._hand(turn_id)

    def _hand(self, turn_id: str) -> None:
        self.given.add(turn_id)
        self.queue.holders[turn_id] = self.worker_id

        def carry_out() -> None:
            self.said[turn_id] = self._work(turn_id)
            self.queue.holders.pop(turn_id, None)
            self.queue.turns.pop(turn_id, None)

        self.threads.append(threading.Thread(target=carry_out))
        self.threads[-1].start()
