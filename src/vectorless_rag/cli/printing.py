"""How commands print for people: one console, one set of marks."""

from shutil import get_terminal_size

from rich.console import Console
from rich.text import Text

_NO_WINDOW = 10_000

MARKS = {
    "ok": ("ok  ", "green"),
    "note": ("note", "yellow"),
    "undecided": ("??  ", "yellow"),
    "fail": ("FAIL", "red"),
}


def console() -> Console:
    """Make a console on standard output that adds and cuts nothing."""
    made = Console(highlight=False)
    if not made.is_terminal:
        # Nobody reads a pipe or a file through a window of 80 columns.
        made.width = get_terminal_size((_NO_WINDOW, 25)).columns
    return made


def marked(state: str, words: str) -> Text:
    """Put the mark of a state before a line."""
    return Text.assemble(MARKS[state], f"  {words}")


def labelled(label: str, words: str, width: int = 9) -> Text:
    """Put a dim label before a line."""
    return Text.assemble((f"{label:<{width}}", "dim"), words)
