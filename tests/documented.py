"""
The commands that the documents show, as a reader would type them.

A block ```` ```sh ```` is commands alone; in a block ```` ```console ```` a line that
starts with ``$ `` is one, and what follows it is what it printed. The line
``<!-- not typed: why -->`` just above a block keeps tests from typing it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from conftest import REPOSITORY

DOCUMENTS = (
    *("README.md", "CONTRIBUTING.md", "patches/README.md"),
    *(
        str(path.relative_to(REPOSITORY))
        for path in sorted((REPOSITORY / "docs").rglob("*.md"))
    ),
)

LANGUAGES = frozenset(
    {"sh", "console", "json", "mermaid", "python", "text", "toml", "yaml"}
)

_FENCE = re.compile(
    r"(?:^<!-- not typed: (?P<why>[^\n]+) -->\n)?"
    r"^```(?P<language>\S*)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_SPAN = re.compile(r"`([^`]+)`", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    document: str
    line: int
    """Where its first line stands, from 1."""

    language: str
    body: str
    why_not: str | None
    """Why no test types it; None: one does."""

    def __str__(self) -> str:
        """Name its place."""
        return f"{self.document}:{self.line}"


@dataclass(frozen=True)
class Command:
    """One command line, and what the document says that it prints."""

    document: str
    line: int
    text: str
    output: str | None
    """None where the document does not show it."""

    why_not: str | None
    """Why no test types it, if its block says so."""

    def __str__(self) -> str:
        """Name its place and what is typed."""
        return f"{self.document}:{self.line}: {self.text}"


def blocks(document: str) -> tuple[Block, ...]:
    """Return the fenced blocks of a document, in order."""
    text = (REPOSITORY / document).read_text(encoding="utf-8")
    return tuple(
        Block(
            document=document,
            line=text.count("\n", 0, found.start("body")) + 1,
            language=found["language"],
            body=found["body"],
            why_not=found["why"],
        )
        for found in _FENCE.finditer(text)
    )


def commands(document: str) -> tuple[Command, ...]:
    """Return the command lines of a document, in order."""
    return tuple(
        command
        for block in blocks(document)
        if block.language in {"sh", "console"}
        for command in _commands(block)
    )


def _commands(block: Block) -> Iterator[Command]:
    shown = block.language == "console"
    lines = block.body.replace("\\\n", "\\\0").splitlines()
    at, number = block.line, 0
    while number < len(lines):
        line, start = lines[number], at
        at += 1 + line.count("\0")
        number += 1
        text = line.replace("\0", "\n").removeprefix("$ ").strip()
        if not text or text.startswith("#"):
            continue
        output: list[str] = []
        while shown and number < len(lines) and not lines[number].startswith("$ "):
            output.append(lines[number])
            at += 1
            number += 1
        said = "\n".join(output) if shown else None
        yield Command(block.document, start, text, said, block.why_not)


def spans(document: str) -> tuple[str, ...]:
    """Return what stands between single backticks outside of blocks."""
    text = (REPOSITORY / document).read_text(encoding="utf-8")
    return tuple(
        " ".join(found.split()) for found in _SPAN.findall(_FENCE.sub("", text))
    )
