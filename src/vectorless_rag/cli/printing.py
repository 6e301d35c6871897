"""How commands print: one console, one spelling of JSON, one set of marks."""

import json
import sys
from collections.abc import Mapping

from rich.console import Console
from rich.text import Text

MARKS = {
    "ok": ("ok  ", "green"),
    "note": ("note", "yellow"),
    "undecided": ("??  ", "yellow"),
    "fail": ("FAIL", "red"),
}


def console() -> Console:
    """Make a console on standard output that adds nothing of its own."""
    return Console(highlight=False)


def print_json(value: Mapping[str, object]) -> None:
    """Print one object on one line."""
    sys.stdout.write(json.dumps(value) + "\n")


def marked(state: str, words: str) -> Text:
    """Put the mark of a state before a line."""
    return Text.assemble(MARKS[state], f"  {words}")


def labelled(label: str, words: str, width: int = 9) -> Text:
    """Put a dim label before a line."""
    return Text.assemble((f"{label:<{width}}", "dim"), words)
