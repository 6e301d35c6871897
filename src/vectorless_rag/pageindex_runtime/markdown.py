"""
Headings of a Markdown file, for the upstream's Markdown mode.

The child of this project indexes PDF files only; who uses the patched package
itself may index Markdown.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

Heading = dict[str, Any]
"""``node_title``, ``line_num`` from 1, and ``level``: 1 is the highest."""

THINNING_TOKENS = 5000
"""Nodes with fewer tokens are merged into their parents, where thinning is asked."""

SUMMARY_TOKENS = 200
"""Nodes with fewer tokens are their own summaries."""

_HASHES = re.compile(r"(#{1,6})\s+(.+)")
_CLOSING_HASHES = re.compile(r"\s+#+$")
_BOLD = re.compile(r"\*\*(.+?)\*\*")
_FENCE = re.compile(r"(`{3,}|~{3,})")
_UNDERLINE = re.compile(r"=+|-+")
# What begins another block is no text that an underline makes a heading of.
_OTHER_BLOCK = re.compile(r"[>|]|[-*+]\s|\d+[.)]\s|\*\*.+\*\*$")
_LONGEST_TITLE = 200


def extract_nodes_from_markdown(
    markdown_content: str,
) -> tuple[list[Heading], list[str]]:
    """
    Find the headings, with hashes, underlined or bold, outside code.

    A bold line is a part of the heading before it. Text before the first heading
    is a node that bears its first line as its title.

    Returns:
        The headings in order, and the lines of the file.
    """
    lines = markdown_content.split("\n")
    found = list(_headings(lines))
    opening = _opening(lines, found[0]["line_num"] if found else len(lines) + 1)
    if opening is not None:
        # A neighbour of what follows, so that it takes none of it in.
        level = found[0]["level"] if found else 1
        found.insert(0, {**opening, "level": level})
    return found, lines


def or_default(threshold: int | None, default: int) -> int:
    """Return a threshold in tokens, the default where none was given."""
    return default if threshold is None else threshold


def _headings(lines: Sequence[str]) -> Iterator[Heading]:
    level = 0
    # Text lines in a row above the present one, all of one block.
    block = 0
    for number, line in _outside_code(lines):
        hashes = _HASHES.fullmatch(line)
        bold = _BOLD.fullmatch(line)
        if block and _UNDERLINE.fullmatch(line):
            level = 1 if line[0] == "=" else 2
            title = " ".join(
                part.strip() for part in lines[number - 1 - block : number - 1]
            )
            yield _heading(title, number - block, level)
            block = 0
        elif hashes:
            level = len(hashes[1])
            yield _heading(_CLOSING_HASHES.sub("", hashes[2].strip()), number, level)
            block = 0
        elif bold and bold[1].strip():
            yield _heading(bold[1].strip(), number, level + 1)
            block = 0
        else:
            block = block + 1 if line and not _OTHER_BLOCK.match(line) else 0


def _heading(title: str, line: int, level: int) -> Heading:
    return {"node_title": title, "line_num": line, "level": level}


def _outside_code(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the stripped lines with their numbers; a blank one for a line of code."""
    end = _front_matter(lines)
    fence = ""
    for number, raw in enumerate(lines, 1):
        line = raw.strip()
        opened = _FENCE.match(line)
        if number <= end:
            line = ""
        elif fence:
            if line.startswith(fence) and not line.strip(fence[0]):
                fence = ""
            line = ""
        elif opened:
            fence, line = opened[1], ""
        yield number, line


def _front_matter(lines: Sequence[str]) -> int:
    """Return the last line of the data that a file may open with; 0 for none."""
    if lines[0].rstrip() != "---":
        return 0
    return next(
        (n for n, line in enumerate(lines[1:], 2) if line.rstrip() in {"---", "..."}), 0
    )


def _opening(lines: Sequence[str], before: int) -> Heading | None:
    """Find the text that stands before the first heading."""
    rows = [
        (n, " ".join(line.split())) for n, line in enumerate(lines[: before - 1], 1)
    ]
    rows = [(number, row) for number, row in rows if row]
    if not rows:
        return None
    named = next((row for _, row in rows if any(map(str.isalnum, row))), rows[0][1])
    return {"node_title": named[:_LONGEST_TITLE], "line_num": rows[0][0]}
