"""
Many processes on one ledger, and SIGKILL at random.

A program of its own: it imports the ledger once and forks its workers, so that a
killed one is replaced in a millisecond. Run it with ``PYTHONPATH=src``:

    python tests/ledger_hammer.py sqlite:////tmp/hammer.sqlite3 --workers 32 --kills 300

It prints one JSON object: what happened, and everything that was wrong.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from strategies_ledger import BUDGETS, attempt, hold, used
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.ledger.book import Ledger, now_us
from vectorless_rag.units import NanoUsd

AMOUNT = 1000
LEASE_S = 0.5
REFUSALS = {Code.BUDGET_CONTENDED, Code.BUDGET_EXCEEDED}


class Worker:
    """One process's life: reserve, call, close, and say what was closed."""

    def __init__(self, ledger: Ledger, number: int, told: int) -> None:
        # Opened by the parent: the ledger has to notice that it was forked.
        self.ledger = ledger
        self.owner = f"attempt-{number}"
        self.random = random.Random(number)  # noqa: S311  (chance, no secret)
        self.told = told

    def live(self) -> None:
        self.ledger.start_attempt(attempt(self.owner))
        serial = 0
        while True:
            serial += 1
            self.call(f"{self.owner}-{serial}:1")

    def call(self, name: str) -> None:
        names = self.random.sample(BUDGETS, k=self.random.randint(1, len(BUDGETS)))
        new = hold(
            name,
            AMOUNT,
            attempt_id=self.owner,
            # The run's budget always counts; the others overlap at random.
            budgets=(BUDGETS[0], *names),
            lease_s=LEASE_S,
        )
        try:
            self.ledger.reserve(new)
        except VectorlessRagError as error:
            if error.code not in REFUSALS:
                raise
            time.sleep(self.random.uniform(0, 0.01))
            return
        time.sleep(self.random.uniform(0, 0.004))
        self.close(name)

    def close(self, name: str) -> None:
        luck, price = self.random.random(), self.random.randint(0, AMOUNT)
        if luck < 0.1:
            self.ledger.void(name, "not sent")
            price = 0
        elif luck < 0.15:
            self.ledger.unknown(name, "cut off")
            price = AMOUNT
        else:
            self.ledger.settle(name, NanoUsd(price), used())
            self.ledger.settle(name, NanoUsd(price), used())
        # The forks share one offset: short writes neither mix nor break off.
        os.write(self.told, f"{name} {price}\n".encode())


@dataclass
class Hammer:
    """The parent: forks, kills, looks, and clears up at the end."""

    url: str
    workers: int
    kills: int
    seed: int
    wrong: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    fullest: float = 0.0

    def run(self) -> dict[str, object]:
        self.random = random.Random(self.seed)  # noqa: S311  (chance, no secret)
        self.limit = 40 * AMOUNT
        self.children: dict[int, str] = {}
        self.born = 0
        with (
            Ledger.open(self.url) as self.ledger,
            tempfile.NamedTemporaryFile(mode="a+") as told,
        ):
            self.told = told.fileno()
            self.ledger.set_budget(BUDGETS[0], NanoUsd(self.limit))
            while self.counts["kills"] < self.kills and not self.wrong:
                self.turn()
            while self.children:
                self.kill(next(iter(self.children)))
            self.settle_up()
            self.compare(Path(told.name).read_text("ascii"))
        return self.report()

    def turn(self) -> None:
        while len(self.children) < self.workers:
            self.fork()
        time.sleep(self.random.uniform(0.02, 0.08))
        self.counts["expired"] += self.ledger.expire()
        self.look()
        victim = self.random.choice(list(self.children))
        owner = self.children[victim]
        self.kill(victim)
        # Some deaths are noticed at once, the others by their leases.
        if self.random.random() < 0.5 and self.ledger.attempt(owner):
            self.ledger.end_attempt(owner, "failed", Code.CHILD_KILLED)
            self.counts["noticed"] += 1

    def fork(self) -> None:
        self.born += 1
        child = os.fork()
        if child:
            self.children[child] = f"attempt-{self.born}"
            return
        try:
            Worker(self.ledger, self.born, self.told).live()
        except BaseException as error:  # noqa: BLE001  (a fork must not return)
            os.write(self.told, f"wrong {type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(1)

    def kill(self, child: int) -> None:
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        del self.children[child]
        if os.WIFSIGNALED(status):
            self.counts["kills"] += 1
        else:
            self.wrong.append("a worker ended by itself")

    def look(self) -> None:
        """No limit is passed; then it is raised, so that it keeps biting."""
        self.counts["looks"] += 1
        run = self.ledger.budget(BUDGETS[0])
        used_up = run.reserved + run.spent
        self.fullest = max(self.fullest, used_up / self.limit)
        if used_up > self.limit:
            self.wrong.append(f"{used_up} of {self.limit}")
        if used_up > self.limit - 2 * AMOUNT:
            self.limit += 20 * AMOUNT
            self.ledger.set_budget(BUDGETS[0], NanoUsd(self.limit))

    def settle_up(self) -> None:
        """After every lease has run out nothing is held, and all sums agree."""
        with Ledger.open(self.url, clock=lambda: now_us() + 10**9) as later:
            self.counts["expired"] += later.expire()
            self.wrong += later.check()
            for name, budget in later.budgets().items():
                if budget.reserved:
                    self.wrong.append(f"{name} still holds {budget.reserved}")
            rows = later.report("owner")
            self.counts["requests"] = sum(row.calls for row in rows)
            self.spent = later.budget(BUDGETS[0]).spent
            if self.spent != sum(row.cost_nano for row in rows):
                self.wrong.append(f"{self.spent} spent is not the sum of the rows")

    def compare(self, told: str) -> None:
        """What a worker was told is recorded, whatever killed it afterwards."""
        recorded = {
            row.hold_id: row.amount_nano
            for number in range(1, self.born + 1)
            for row in self.ledger.holds(f"attempt-{number}")
        }
        for line in told.splitlines():
            name, _, price = line.partition(" ")
            if name == "wrong":
                self.wrong.append(price)
            elif recorded.get(name) != int(price):
                self.wrong.append(f"{name}: {price} told, {recorded.get(name)} kept")
            self.counts["told"] += 1

    def report(self) -> dict[str, object]:
        return {
            **self.counts,
            "spent": self.spent,
            "limit": self.limit,
            "fullest": round(self.fullest, 3),
            "wrong": self.wrong[:20],
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--workers", type=int, default=32)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    report = Hammer(given.url, given.workers, given.kills, given.seed).run()
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(json.dumps(report) + "\n")
    sys.exit(bool(report["wrong"]))


if __name__ == "__main__":
    main()
