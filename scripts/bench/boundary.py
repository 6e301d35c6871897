#!/usr/bin/env python3
"""
What the call boundary costs: accounted calls against raw LiteLLM, side by side.

    python scripts/bench/boundary.py [--calls 100] [--rounds 5]

Both ask the same server on this machine, which answers at once, in turns within one
run, each from a process of its own. Printed: milliseconds a call for each, and their
ratio, as minimum, median and maximum over the rounds. Before each accounted call a
hold is written to a SQLite ledger in full-sync mode, and settled after it: two
flushes of the disk.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from boundary import caller_for, opened  # noqa: E402
from fault_server import completion, serving  # noqa: E402
from vectorless_rag.pageindex_runtime.litellm_provider import (  # noqa: E402
    ENVIRONMENT,
    load,
)

REPLY = completion('{"summary": "Fruit."}')
PROMPT = "Summarise this. " * 200


async def raw(litellm: ModuleType, base: str, _number: int) -> None:
    """One call as anybody makes it."""
    await litellm.acompletion(
        model="openai/gpt-4o-mini",
        messages=[{"role": "user", "content": PROMPT}],
        api_base=base,
        api_key="k",
        max_tokens=64,
        max_retries=0,
        num_retries=0,
    )


async def timed(calls: int, call: Callable[[int], Awaitable[object]]) -> float:
    """Milliseconds a call, one after another."""
    start = time.perf_counter()
    for number in range(calls):
        await call(number)
    return (time.perf_counter() - start) * 1000 / calls


def spread(values: list[float]) -> str:
    """Minimum, median and maximum."""
    middle = statistics.median(values)
    return f"{min(values):7.2f} {middle:7.2f} {max(values):7.2f}"


async def _serve(pipe: Connection, call: Callable[[int], Awaitable[object]]) -> None:
    """Time as many calls as are asked for, until none are."""
    await timed(5, call)
    pipe.send(0.0)
    while calls := await asyncio.to_thread(pipe.recv):
        pipe.send(await timed(calls, call))


def side(name: str, base: str, folder: str, pipe: Connection) -> None:
    """Be one side, in a process of its own: LiteLLM keeps state for each event loop."""
    os.environ.update(ENVIRONMENT, OPENAI_API_KEY="k")
    litellm = load()
    if name == "raw":
        asyncio.run(_serve(pipe, partial(raw, litellm, base)))
        return
    with opened(Path(folder)) as ledger, caller_for(ledger, api_base=base) as caller:

        async def accounted(_number: int) -> None:
            await caller.acomplete("summary_leaf", PROMPT)

        asyncio.run(_serve(pipe, accounted))


def measure(calls: int, rounds: int, folder: str) -> dict[str, list[float]]:
    """Time both in turns."""
    found: dict[str, list[float]] = {"raw": [], "accounted": [], "ratio": []}
    start = multiprocessing.get_context("spawn")
    with serving([REPLY]) as server:
        pipes: dict[str, Connection] = {}
        for name in ("raw", "accounted"):
            pipes[name], other = start.Pipe()
            given = (name, server.base, folder, other)
            start.Process(target=side, args=given, daemon=True).start()
            pipes[name].recv()
        for _ in range(rounds):
            for name, pipe in pipes.items():
                pipe.send(calls)
                found[name].append(pipe.recv())
            found["ratio"].append(found["accounted"][-1] / found["raw"][-1])
        for pipe in pipes.values():
            pipe.send(0)
    return found


def main() -> None:
    """Print the table, then JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(given.calls, given.rounds, folder)
    print("              min  median     max")
    for name, values in found.items():
        print(f"{name:<10}{spread(values)}" + ("" if name == "ratio" else "  ms"))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
