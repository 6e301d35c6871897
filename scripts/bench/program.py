"""The program, started by a bench as a user starts it, in a home of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def command(arguments: Sequence[str]) -> list[str]:
    """Spell a command line of the program."""
    return [sys.executable, "-m", "vectorless_rag", *arguments]


def environment(home: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Build its environment from nothing; the key is of no provider."""
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT / "src"),
        "HOME": str(home),
        "OPENAI_API_KEY": "of-a-simulated-provider",
        **(more or {}),
    }


def said(
    arguments: Sequence[str], home: Path, more: Mapping[str, str] | None = None
) -> list[Any]:
    """
    Run the program and return the objects that it printed, one a line.

    Raises:
        SystemExit: It printed none; with what it said of that.
    """
    done = subprocess.run(
        command(arguments),
        env=environment(home, more),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if not done.stdout:
        raise SystemExit(done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]
