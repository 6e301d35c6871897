"""
How long children take to start, and a document that is built already.

The latter twice: read anew from settings and command line, and repeated exactly.

    speed_start.py CHECKOUT RUNS

Prints one JSON object: seconds of each run, by what was started. Each is a program of
its own, from its start to its end. A further document is what it adds to an ingest of
several: all that is done for it, by whichever process.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from pdfs import pdf  # noqa: E402
from simulated_provider import Manner, simulating  # noqa: E402

SAMPLE = ROOT / "tests" / "samples" / "sp-intro.pdf"

COMMAND = "from vectorless_rag.cli import entrypoint; entrypoint()"
CHILD = "import vectorless_rag.run_pageindex"
FLASH = f"import sys; sys.path.insert(0, sys.argv[1]); {CHILD}; import pageindex.flash"
LITELLM = "import litellm"


MODEL = "openai/gpt-4o-mini"
FEW, MANY = 2, 6
"""Documents of the two ingests whose difference is that of further documents."""


def spent(code: str, *arguments: str, **more: str) -> tuple[float, float]:
    """
    Run a program; return seconds of wall time and of processor time.

    Args:
        code: The program.
        arguments: What it is given.
        more: Variables of its environment.
    """
    before = os.times()
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *arguments],
        stdout=subprocess.DEVNULL,
        check=True,
        env={
            "PYTHONPATH": str(ROOT / "src"),
            "PATH": os.defpath,
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "LITELLM_MODE": "PRODUCTION",
            **more,
        },
    )
    wall = time.perf_counter() - start
    after = os.times()
    cpu = (
        after.children_user
        + after.children_system
        - before.children_user
        - before.children_system
    )
    return round(wall, 3), round(cpu, 3)


def a_further_document(base: str, home: Path, *, forked: bool) -> tuple[float, float]:
    """
    Ingest a few documents and then more, none of them built before.

    Args:
        base: Address of a provider that answers at once.
        home: Empty folder.
        forked: Whether children may come from a fork server.

    Returns:
        Seconds of wall time and of processor time for each document more.
    """
    found = []
    for count in (FEW, MANY):
        folder = home / f"{count}-{forked}"
        folder.mkdir()
        for number in range(count):
            lines = [f"Line {n} of {number} tells of fruit." for n in range(20)]
            pages = [f"{page} Part {page}\n" + "\n".join(lines) for page in range(1, 4)]
            pdf(folder / f"{number}.pdf", pages)
        found.append(
            spent(
                COMMAND, "ingest", str(folder), "--data-dir", f"{folder}-data",
                "--mode", "standard", "--model", MODEL, "--api-base", base,
                OPENAI_API_KEY="none", VECTORLESS_RAG_FORK_SERVER=str(forked),
            )
        )  # fmt: skip
    (few, few_cpu), (many, many_cpu) = found
    more = MANY - FEW
    return round((many - few) / more, 3), round((many_cpu - few_cpu) / more, 3)


def main(argv: list[str]) -> int:
    """Time each in turns."""
    checkout, runs = argv[0], int(argv[1])
    with tempfile.TemporaryDirectory() as data:
        ingest = ("ingest", str(SAMPLE), "--data-dir", data)
        spent(COMMAND, *ingest, XDG_CACHE_HOME=f"{data}/cache")
        programs = {
            "Python alone": ("pass",),
            "imports of a child, offline": (CHILD,),
            "imports of a child, flash": (FLASH, checkout),
            "import of LiteLLM": (LITELLM,),
        }
        found: dict[str, list[float]] = {}

        def note(name: str, wall: float, cpu: float) -> None:
            found.setdefault(f"{name}, wall", []).append(wall)
            found.setdefault(f"{name}, processor", []).append(cpu)

        # A provider that never errs: each run does the same.
        with simulating(Manner(misses=0, doubts=0, slips=0, failures=0)) as provider:
            for run in range(runs):
                for name, program in programs.items():
                    note(name, *spent(*program))
                # The first leaves a memo, as any does; the second finds it.
                cache = f"{data}/cache-{run}"
                for name in ("ingest of a built document", "its exact repetition"):
                    note(name, *spent(COMMAND, *ingest, XDG_CACHE_HOME=cache))
                home = Path(data) / str(run)
                home.mkdir()
                for how, forked in (("direct", False), ("fork server", True)):
                    figures = a_further_document(provider.base, home, forked=forked)
                    note(f"a further document of a provider, {how}", *figures)
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
