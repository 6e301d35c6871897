"""Requests to one provider are bounded over processes, and no place is ever lost."""

import asyncio
import random
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from boundary import Priced, opened, priced, said
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.pageindex_runtime.gate import FileGate, OpenGate

SOURCE = Path(__file__).parents[1] / "src"

# Each pass prints when it was inside; clocks of one machine agree.
PASSES = """
import asyncio, random, sys, time
from pathlib import Path
from vectorless_rag.pageindex_runtime.gate import FileGate

async def one(gate):
    async with gate.place():
        start = time.monotonic_ns()
        await asyncio.sleep(0.01)
        print(start, time.monotonic_ns(), flush=True)

async def main(number):
    gate = FileGate(Path("gate"), provider=("openai", None), most=3,
                    rng=random.Random(number))
    await asyncio.gather(*(one(gate) for _ in range(10)))

asyncio.run(main(int(sys.argv[1])))
"""

HOLDS = """
import asyncio, random, time
from pathlib import Path
from vectorless_rag.pageindex_runtime.gate import FileGate

async def main():
    gate = FileGate(Path("gate"), provider=("openai", None), most=1,
                    rng=random.Random(1))
    async with gate.place():
        print("inside", flush=True)
        time.sleep(600)

asyncio.run(main())
"""


def start(script: str, *args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), *args],
        env={"PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE,
        text=True,
    )


def gate(folder: Path, most: int = 1, server: str | None = None) -> FileGate:
    return FileGate(
        folder, provider=("openai", server), most=most, rng=random.SystemRandom()
    )


async def passed(through: FileGate | OpenGate) -> bool:
    async with through.place():
        return True


def most_at_once(spans: list[tuple[int, int]]) -> int:
    changes = sorted([(s, 1) for s, _ in spans] + [(e, -1) for _, e in spans])
    inside = most = 0
    for _, change in changes:
        inside += change
        most = max(most, inside)
    return most


def test_processes_share_the_places(tmp_path: Path) -> None:
    """Three places for thirty requests of three processes: never more, and all pass."""
    programs = [start(PASSES, str(number)) for number in range(3)]
    told = [program.communicate(timeout=60)[0] for program in programs]
    lines = [line.split() for one in told for line in one.splitlines()]

    assert 30 == len(lines)
    assert most_at_once([(int(a), int(b)) for a, b in lines]) <= 3
    assert 3 == len(list((tmp_path / "gate").rglob("*.lock")))


def test_a_killed_holder_leaves_its_place(tmp_path: Path) -> None:
    """The kernel lets go of it, whatever the process died of."""
    program = start(HOLDS)
    assert program.stdout is not None
    with program, program.stdout:
        assert "inside\n" == program.stdout.readline()
        held = gate(tmp_path / "gate")
        assert held._try() is None
        program.send_signal(signal.SIGKILL)
        program.wait(timeout=60)

        assert asyncio.run(passed(held))


def test_another_server_has_its_own_places(tmp_path: Path) -> None:
    """What one server is asked does not slow another down."""

    async def both() -> bool:
        async with gate(tmp_path).place():
            return await passed(gate(tmp_path, server="http://127.0.0.1:1"))

    assert asyncio.run(both())


def test_a_folder_that_takes_no_locks_is_named(tmp_path: Path) -> None:
    """A bound that cannot be kept is no bound: the run says so."""
    (tmp_path / "in-flight").touch()

    with pytest.raises(VectorlessRagError, match="in-flight: Not a directory") as got:
        asyncio.run(passed(gate(tmp_path / "in-flight")))
    assert Code.STORE_UNWRITABLE == got.value.code


def test_waiting_for_a_place_is_no_fault_of_the_provider(tmp_path: Path) -> None:
    """A call's deadline stands still while other documents' requests are in flight."""
    busy = gate(tmp_path / "gate")
    with opened(tmp_path) as ledger:
        provider = Priced(said('{"summary": "Fruit."}'))
        with priced(
            ledger, provider, gate=busy, changes={"call_timeout_s": 1}
        ) as caller:

            async def late() -> str:
                async with gate(tmp_path / "gate").place():
                    asking = asyncio.ensure_future(
                        caller.acomplete("summary_leaf", "Say.")
                    )
                    await asyncio.sleep(1.2)
                    assert [] == provider.inner.requests
                reply = await asking
                return str(reply.text)

            assert '{"summary": "Fruit."}' == asyncio.run(late())
