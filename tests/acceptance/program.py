"""Runs the installed program the way a person does, and reads what it says."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# The child and the program under test are measured too.
_KEPT = ("COVERAGE_", "PATH", "LANG", "LC_")


@dataclass(frozen=True)
class Done:
    """A command that ended."""

    status: int
    out: str
    err: str

    @property
    def objects(self) -> list[dict[str, Any]]:
        """The JSON objects on standard output, one a line."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def object(self) -> dict[str, Any]:
        """The one JSON object on standard output."""
        (only,) = self.objects
        return only


def environment(home: Path, **more: str) -> dict[str, str]:
    """An environment with nothing of this shell's but its path."""
    kept = {k: v for k, v in os.environ.items() if k.startswith(_KEPT)}
    # This tree, not whatever happens to be installed.
    source = {"PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    return {**kept, **source, "HOME": str(home), **more}


def command(*args: str | Path | bytes) -> list[str | bytes]:
    """The program's command line."""
    start = "from vectorless_rag.cli import entrypoint; entrypoint()"
    given = [a if isinstance(a, bytes) else str(a) for a in args]
    return [sys.executable, "-c", start, *given]


def run(*args: str | Path | bytes, home: Path, **more: str) -> Done:
    """Run the program in *home* and wait for it, for two minutes."""
    return run_long(120, *args, home=home, **more)


def run_long(wait_s: int, *args: str | Path | bytes, home: Path, **more: str) -> Done:
    """Run the program in *home* and wait for it."""
    done = subprocess.run(
        command(*args),
        cwd=home,
        env=environment(home, **more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=wait_s,
        check=False,
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())
