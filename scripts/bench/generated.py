"""Documents of any length, whose sections a reader can find in the text alone."""

import random
from pathlib import Path

from reportlab.lib.pagesizes import A4
from reportlab.pdfgen import canvas

_WORDS = [
    "account",
    "archive",
    "balance",
    "border",
    "channel",
    "column",
    "copper",
    "current",
    "delta",
    "engine",
    "filter",
    "gravel",
    "harbour",
    "index",
    "island",
    "junction",
    "kernel",
    "ladder",
    "margin",
    "meadow",
    "needle",
    "orbit",
    "packet",
    "quarry",
    "record",
    "signal",
    "timber",
    "uplift",
    "valley",
    "window",
    "yield",
]

_LINES = 40
_PAGES_PER_CHAPTER = 10
_PAGES_PER_SECTION = 2


def write_document(path: Path, pages: int) -> None:
    """
    Write a document of *pages* pages: a chapter every ten, a section every two.

    A heading stands at the top of its page or in the middle, in turns. The same
    number of pages is the same text.
    """
    rng = random.Random(pages)  # noqa: S311  (words, no secret)
    sheet = canvas.Canvas(str(path), pagesize=A4, invariant=1)
    for number in range(pages):
        chapter, place = divmod(number, _PAGES_PER_CHAPTER)
        lines = [_sentence(rng) for _ in range(_LINES)]
        if place == 0:
            lines.insert(0, f"{chapter + 1} {_title(rng)}")
        elif place % _PAGES_PER_SECTION == 0:
            section = place // _PAGES_PER_SECTION
            at = 0 if section % 2 else _LINES // 2
            lines.insert(at, f"{chapter + 1}.{section} {_title(rng)}")
        _draw(sheet, lines)
    sheet.save()


def _draw(sheet: canvas.Canvas, lines: list[str]) -> None:
    for row, line in enumerate(lines):
        heading = line[0].isdigit()
        sheet.setFont(
            "Helvetica-Bold" if heading else "Helvetica", 14 if heading else 9
        )
        sheet.drawString(56, 790 - row * 18, line)
    sheet.showPage()


def _title(rng: random.Random) -> str:
    return " ".join(rng.choice(_WORDS) for _ in range(4)).capitalize()


def _sentence(rng: random.Random) -> str:
    words = " ".join(rng.choice(_WORDS) for _ in range(12))
    return f"{words.capitalize()}."
