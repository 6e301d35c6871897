"""Plots start at zero, have round axes and say every value."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vectorless_rag.reporting.plots import Bar, columns, rows, scale_for
from vectorless_rag.reporting.spelling import lasted, money, rounded, size
from vectorless_rag.reporting.spending import by_time, money_tick

DAYS = [
    Bar(label="2026-11-28", value=30, uncertain=10),
    Bar(label="2026-11-29", value=0),
    Bar(label="2026-11-30", value=100),
]


@pytest.mark.parametrize(
    ("most", "ticks"),
    [
        (0, [0, 1]),
        (1, [0, 1]),
        (5, [0, 1, 2, 3, 4, 5]),
        (6, [0, 2, 4, 6]),
        (23, [0, 5, 10, 15, 20, 25]),
        (1_000_000, [0, 200_000, 400_000, 600_000, 800_000, 1_000_000]),
    ],
)
def test_an_axis_is_round(most: int, ticks: list[int]) -> None:
    """Steps of 1, 2 or 5 times a power of ten, from zero."""
    assert ticks == scale_for(most).ticks


@given(most=st.integers(0, 10**18))
def test_an_axis_holds_its_values(most: int) -> None:
    """From zero to just above the largest, in few steps."""
    scale = scale_for(most)

    assert 0 == scale.ticks[0]
    assert scale.top - scale.step < max(most, 1) <= scale.top
    assert 2 <= len(scale.ticks) <= 6


def sizes(plot: str, name: str) -> list[str]:
    return re.findall(rf'<rect class="bar[^>]*? {name}="([^"]+)"', plot)


def test_columns_stand_on_the_baseline() -> None:
    """Heights are in proportion, and each column ends where the axis is."""
    plot = columns(DAYS, str)
    tops = [float(y) for y in sizes(plot, "y")]
    heights = [float(height) for height in sizes(plot, "height")]

    assert [38.0, 19.0, 190.0] == heights
    # The uncertain part stands on the known one.
    assert [202.0, 202.0 - 38.0, 202.0] == [
        top + height for top, height in zip(tops, heights, strict=True)
    ]
    assert ["2026-11-28: 30", "2026-11-28: 30", "2026-11-30: 100"] == re.findall(
        "<title>(.*?)</title>", plot
    )


def test_dates_are_named_at_both_ends_and_between() -> None:
    """The middle is named only where there is one; one day alone is in the middle."""
    assert ["2026-11-28", "2026-11-30", "2026-11-29"] == re.findall(
        r">(2026-\d\d-\d\d)</text>", columns(DAYS, str)
    )
    assert 2 == columns(DAYS[:2], str).count("</text>") - len(scale_for(30).ticks)
    assert 'x="50%"' in columns(DAYS[:1], str)


def test_rows_say_name_and_value() -> None:
    """A bar's length is its share of the axis; the value stands beside it."""
    plot = rows([Bar(label="expand", value=50, uncertain=25)], str)

    assert ["50.0%", "50.0%"] == sizes(plot, "width")
    assert [">expand</text>", ">50</text>"] == [
        word for word in (">expand</text>", ">50</text>") if word in plot
    ]


@pytest.mark.parametrize(
    ("last", "grain", "bars"),
    [("2026-12-02", "day", 4), ("2027-06-01", "month", 8), ("2036-01-01", "year", 11)],
)
def test_time_has_no_gaps(last: str, grain: str, bars: int) -> None:
    """Days without requests count as zero; many days become months, or years."""
    days = [Bar(label="2026-11-29", value=1, uncertain=1), Bar(label=last, value=2)]
    found, name = by_time(days)

    assert (grain, bars) == (name, len(found))
    assert (3, 1) == (
        sum(bar.value for bar in found),
        sum(bar.uncertain for bar in found),
    )


@pytest.mark.parametrize(
    ("nano", "exact", "near", "tick"),
    [
        (0, "$0.00", "$0.00", "$0"),
        (1, "$0.000000001", "$0.000000001", "$0.000000001"),
        (123_456_789, "$0.123456789", "$0.1235", "$0.123456789"),
        (20_000_000, "$0.02", "$0.02", "$0.02"),
        (1_234_567_890_000, "$1,234.56789", "$1,234.57", "$1,234.56789"),
        (2_000_000_000, "$2.00", "$2.00", "$2"),
    ],
)
def test_amounts_are_exact_or_say_four_digits(
    nano: int, exact: str, near: str, tick: str
) -> None:
    """Tables are exact; a glance gets four digits; an axis as few as it needs."""
    assert (exact, near, tick) == (money(nano), rounded(nano), money_tick(nano))


def test_sizes_and_times_are_for_people() -> None:
    """The unit fits the number."""
    assert ["1 byte", "1,023 bytes", "1.0 KiB", "1.5 MiB"] == [
        size(count) for count in (1, 1023, 1024, 1_572_864)
    ]
    assert ["0.1 s", "2 min 5 s"] == [lasted(100), lasted(125_000)]
