"""
How long children take to start, and a document that is built already.

    speed_start.py CHECKOUT RUNS

Prints one JSON object: seconds of each run, by what was started. Each is a program of
its own, from its start to its end.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "tests" / "samples" / "sp-intro.pdf"

COMMAND = "from vectorless_rag.cli import entrypoint; entrypoint()"
CHILD = "import vectorless_rag.run_pageindex"
FLASH = f"import sys; sys.path.insert(0, sys.argv[1]); {CHILD}; import pageindex.flash"
LITELLM = "import litellm"


def spent(code: str, *arguments: str) -> tuple[float, float]:
    """Run a program; return seconds of wall time and of processor time."""
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


def main(argv: list[str]) -> int:
    """Time each in turns."""
    checkout, runs = argv[0], int(argv[1])
    with tempfile.TemporaryDirectory() as data:
        ingest = ("ingest", str(SAMPLE), "--data-dir", data)
        spent(COMMAND, *ingest)
        programs = {
            "Python alone": ("pass",),
            "imports of a child, offline": (CHILD,),
            "imports of a child, flash": (FLASH, checkout),
            "import of LiteLLM": (LITELLM,),
            "ingest of a built document": (COMMAND, *ingest),
        }
        found: dict[str, list[float]] = {}
        for _ in range(runs):
            for name, program in programs.items():
                wall, cpu = spent(*program)
                found.setdefault(f"{name}, wall", []).append(wall)
                found.setdefault(f"{name}, processor", []).append(cpu)
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
