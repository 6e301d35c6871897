"""
Plots as inline SVG: bars from a baseline of zero, with axes and their values.

Widths are per cent of the space there is and texts have a fixed size, so that a
plot can be read on a phone and on a wall. Every plot carries its values as a table.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from vectorless_rag.reporting.markup import Html, Value, h, joined

Spell = Callable[[int], str]
"""How a value is written: ``$0.02``, ``1,200``."""

_TICKS = 4
_ROW_PX = 40
_BAR_PX = 12
_AXIS_PX = 26
_PLOT_PX = 190
_HEAD_PX = 12
_BASELINE_PX = _HEAD_PX + _PLOT_PX
_GAP = 0.24
"""Share of a column's place that stays empty."""

_WIDEST_COLUMN = 8.0
"""Per cent: one day alone is no wall."""


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One value of a plot."""

    label: str
    value: int

    uncertain: int = 0
    """The part of *value* that is only bounded, not known."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """An axis from zero to a round number."""

    step: int
    top: int

    @property
    def ticks(self) -> list[int]:
        """The values that get a line."""
        return list(range(0, self.top + 1, self.step))

    def percent(self, value: int) -> float:
        """Return where *value* lies, in per cent of the axis."""
        return round(100 * value / self.top, 3)


def scale_for(most: int) -> Scale:
    """
    Find a round scale for values up to *most*.

    Returns:
        A scale of at most five steps of 1, 2 or 5 times a power of ten.
    """
    most = max(most, 1)
    power = 1
    while True:
        for digit in (1, 2, 5):
            step = digit * power
            if most <= step * (_TICKS + 1):
                return Scale(step=step, top=-(-most // step) * step)
        power *= 10


def rows(bars: Sequence[Bar], spell: Spell) -> Html:
    """Draw a bar a row, each under its name and with its value at the right."""
    scale = scale_for(max((bar.value for bar in bars), default=0))
    bottom = _ROW_PX * len(bars)
    parts: list[Html] = []
    for tick in scale.ticks:
        at = f"{scale.percent(tick)}%"
        kind = "base" if tick == 0 else "grid"
        parts.append(h("line", class_=kind, x1=at, x2=at, y1=0, y2=bottom))
        # A text at an end must not leave the plot.
        side = {0: "from", scale.top: "to"}.get(tick, "at")
        parts.append(h("text", spell(tick), class_=f"tick {side}", x=at, y=bottom + 18))
    for number, bar in enumerate(bars):
        parts += _row(bar, number * _ROW_PX, scale, spell)
    return h("svg", *parts, class_="rows", width="100%", height=bottom + _AXIS_PX)


def _row(bar: Bar, top: int, scale: Scale, spell: Spell) -> list[Html]:
    y, known = top + 21, scale.percent(bar.value - bar.uncertain)
    share = scale.percent(bar.uncertain)
    return [
        h("text", bar.label, class_="name", x=6, y=top + 15),
        h("text", spell(bar.value), class_="value to", x="100%", y=top + 15),
        *_drawn(
            bar,
            spell,
            known={"x": 0, "y": y, "width": f"{known}%", "height": _BAR_PX},
            unsure={"x": f"{known}%", "y": y, "width": f"{share}%", "height": _BAR_PX},
        ),
    ]


def columns(bars: Sequence[Bar], spell: Spell) -> Html:
    """Draw a column for each point of time, from the left."""
    scale = scale_for(max((bar.value for bar in bars), default=0))
    axis: list[Html] = []
    parts: list[Html] = []
    for tick in scale.ticks:
        y = _BASELINE_PX - _height(tick, scale)
        kind = "base" if tick == 0 else "grid"
        parts.append(h("line", class_=kind, x1="0", x2="100%", y1=y, y2=y))
        axis.append(h("text", spell(tick), class_="tick to", x="100%", y=y + 4))
    for number, bar in enumerate(bars):
        parts += _column(bar, number, len(bars), scale, spell)
    parts += _dates(bars)
    height = _BASELINE_PX + _AXIS_PX
    longest = max(len(spell(tick)) for tick in scale.ticks)
    return joined(
        [
            h("svg", *axis, class_="axis", width=longest * 7 + 8, height=height),
            h("svg", *parts, class_="columns", width="100%", height=height),
        ]
    )


def _column(bar: Bar, number: int, of: int, scale: Scale, spell: Spell) -> list[Html]:
    place = 100 / of
    width = min(place * (1 - _GAP), _WIDEST_COLUMN)
    x = f"{number * place + (place - width) / 2:.3f}%"
    whole, unsure = _height(bar.value, scale), _height(bar.uncertain, scale)
    across: dict[str, Value] = {"x": x, "width": f"{width:.3f}%"}
    known = round(whole - unsure, 2)
    return _drawn(
        bar,
        spell,
        known=across | {"y": _BASELINE_PX - known, "height": known},
        unsure=across | {"y": round(_BASELINE_PX - whole, 2), "height": unsure},
    )


def _drawn(
    bar: Bar, spell: Spell, *, known: dict[str, Value], unsure: dict[str, Value]
) -> list[Html]:
    """Draw the known part of a bar, and the part that is only bounded."""
    said = f"{bar.label}: {spell(bar.value)}"
    drawn = []
    if bar.value > bar.uncertain:
        drawn.append(h("rect", h("title", said), class_="bar", **known))
    if bar.uncertain:
        drawn.append(h("rect", h("title", said), class_="bar unsure", **unsure))
    return drawn


def _height(value: int, scale: Scale) -> float:
    return round(_PLOT_PX * value / scale.top, 2)


def _dates(bars: Sequence[Bar]) -> list[Html]:
    """Name the first point of time, the last, and one between them."""
    last = len(bars) - 1
    # Where points are few, a name stands under its own column.
    place = 100 / max(len(bars), 1)
    if last == 0:
        return [_date(bars[0].label, "50%", "at")]
    named = [_date(bars[0].label, "0", "from"), _date(bars[last].label, "100%", "to")]
    if last >= 2 and last % 2 == 0:  # noqa: PLR2004  (there is a middle)
        middle = last // 2
        at = f"{(middle + 0.5) * place:.3f}%"
        named.append(_date(bars[middle].label, at, "at"))
    return named


def _date(label: str, x: str, side: str) -> Html:
    return h("text", label, class_=f"tick {side}", x=x, y=_BASELINE_PX + 18)
