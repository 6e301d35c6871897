"""
Lines: objects for programs on standard output, words for people on standard error.

Words are drawn on a terminal, and plain anywhere else; only what is drawn loads rich.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from vectorless_rag.cli.shown import Shown
from vectorless_rag.environment import wants_drawing

if TYPE_CHECKING:
    from rich.console import Console


def print_json(value: Mapping[str, object]) -> None:
    """Print one object on one line of standard output."""
    sys.stdout.write(json.dumps(value) + "\n")


class Line:
    """
    One line for people.

    Args:
        text: What it begins with.
        style: How that is drawn, in rich's words.
    """

    def __init__(self, text: str, style: str = "") -> None:
        self.parts = [(text, style)]

    def append(self, text: str, style: str = "") -> None:
        """Go on with *text*."""
        self.parts.append((text, style))

    @property
    def plain(self) -> str:
        """Its text."""
        return "".join(text for text, _ in self.parts)


class StandardError:
    """Where lines and progress go."""

    def __init__(self) -> None:
        self._console: Console | None = None

    def print(self, lines: Sequence[Line]) -> None:
        """Print *lines*, in colour where there is any."""
        for line in lines:
            # Rich takes away what a terminal would obey; plain text holds none.
            if not wants_drawing() and line.plain.isprintable():
                sys.stderr.write(line.plain + "\n")
            else:
                self._draw(line)

    @contextmanager
    def shown(self, documents: int, *, quiet: bool) -> Iterator[Shown]:
        """Show progress on a terminal until the block ends; nothing elsewhere."""
        if quiet or not wants_drawing() or not self._rich().is_terminal:
            yield Shown()
            return
        from vectorless_rag.cli.progress import live  # noqa: PLC0415  (draws)

        with live(self._rich(), documents) as bars:
            yield bars

    def _draw(self, line: Line) -> None:
        from rich.text import Text  # noqa: PLC0415  (takes longer than a reuse)

        self._rich().print(Text.assemble(*line.parts), soft_wrap=True)

    def _rich(self) -> "Console":
        from rich.console import Console  # noqa: PLC0415  (takes longer than a reuse)

        if self._console is None:
            self._console = Console(stderr=True, highlight=False)
        return self._console
