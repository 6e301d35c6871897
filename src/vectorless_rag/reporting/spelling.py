"""How a report spells amounts, times, digests and counts."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal

from vectorless_rag.reporting.markup import Child, Html, h
from vectorless_rag.units import usd

_SHOWN_DIGITS = 12
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_KIB = 1024


def money(nano: int) -> str:
    """Spell nano-dollars exactly, with at least two decimals."""
    return _dollars(usd(nano))


def _dollars(amount: Decimal) -> str:
    whole, _, decimals = f"{amount:,f}".partition(".")
    return f"${whole}.{decimals.rstrip('0').ljust(2, '0')}"


def rounded(nano: int) -> str:
    """Spell nano-dollars for a glance: cents, or four digits of less than a dollar."""
    dollars = usd(nano)
    # The power of ten of the fourth digit, but cents at least.
    last = min(-2, dollars.adjusted() - 3) if 0 < dollars < 1 else -2
    return _dollars(dollars.quantize(Decimal(1).scaleb(last), ROUND_HALF_EVEN))


def plural(count: int, noun: str, nouns: str | None = None) -> str:
    """Spell a count with its noun: ``1 page``, ``2 pages``."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def size(count: int) -> str:
    """Spell a number of bytes for people."""
    if count < _KIB:
        return plural(count, "byte")
    value, unit = float(count), "bytes"
    for unit in ("KiB", "MiB", "GiB", "TiB"):  # noqa: B007  (it is used after)
        value /= _KIB
        if value < _KIB:
            break
    return f"{value:.1f} {unit}"


def when(moment: str) -> Html:
    """Spell a moment such as ``2026-11-30T09:00:00.000Z``, to the minute."""
    return h("time", f"{moment[:10]} {moment[11:16]} UTC", datetime=moment)


def when_us(moment: int) -> Html:
    """Spell microseconds since 1970, to the minute."""
    at = _EPOCH + timedelta(microseconds=moment)
    return when(at.isoformat(timespec="milliseconds"))


def lasted(wall_ms: int) -> str:
    """Spell a duration."""
    seconds = wall_ms / 1000
    if seconds < 60:  # noqa: PLR2004  (seconds of a minute)
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"


def prose(text: str) -> list[Child]:
    """Show what stands between backquotes as code: commands a person may type."""
    parts = text.split("`")
    return [h("code", part) if odd % 2 else part for odd, part in enumerate(parts)]


def digest(value: str) -> Html:
    """Show the start of a digest; the whole is in its tooltip."""
    return h("code", value[:_SHOWN_DIGITS], title=value)


def table(
    heads: Sequence[str],
    lines: Iterable[Sequence[Child]],
    *,
    caption: str,
    numbers: int = 0,
) -> Html:
    """
    Make a table that scrolls in itself where it is wider than the screen.

    Args:
        heads: Names of its columns; the first column names the rows.
        lines: Its rows.
        caption: What it lists, for those who do not see where it stands.
        numbers: How many of the last columns hold numbers.
    """
    first = len(heads) - numbers

    def kind(place: int) -> str | None:
        return "num" if place >= first else None

    head = [h("th", t, scope="col", class_=kind(i)) for i, t in enumerate(heads)]
    body = [
        h(
            "tr",
            h("th", line[0], scope="row"),
            [h("td", cell, class_=kind(i)) for i, cell in enumerate(line[1:], 1)],
        )
        for line in lines
    ]
    whole = h(
        "table",
        h("caption", caption, class_="sr"),
        h("thead", h("tr", head)),
        h("tbody", body),
    )
    # A region that scrolls must be reachable by keyboard.
    return h("div", whole, class_="wide", tabindex=0, role="region", aria_label=caption)


def section(ident: str, title: str, *children: Child) -> Html:
    """Make a part of the page that the table of contents leads to."""
    head = h("h2", title, id=f"{ident}-title")
    return h("section", head, *children, id=ident, aria_labelledby=f"{ident}-title")


def facts(
    pairs: Iterable[tuple[str, Child]], *, class_: str = "facts", long: str = ""
) -> Html:
    """
    Make a list of names and values.

    Args:
        pairs: The names and their values.
        class_: How it looks.
        long: A name whose value gets the whole width.
    """
    items = [
        h("div", h("dt", name), h("dd", value), class_="long" if name == long else None)
        for name, value in pairs
    ]
    return h("dl", items, class_=class_)


def folded(title: Child, *children: Child, class_: str = "fold") -> Html:
    """Make something that opens when it is asked for."""
    return h("details", h("summary", title), *children, class_=class_)
