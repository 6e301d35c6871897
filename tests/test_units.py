"""Money is whole nano-dollars, and a fraction is never given away."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from vectorless_rag.units import nano_usd, usd

amounts = st.decimals(0, 10**6, places=12)


def test_a_fraction_of_a_nano_dollar_counts_as_one() -> None:
    """The smallest rate in the price table still costs something."""
    assert 1 == nano_usd(Decimal("0.00000000013"))


@given(amounts)
def test_rounding_is_up_and_by_less_than_one(dollars: Decimal) -> None:
    """The rounded amount covers the exact one."""
    exact = dollars * 10**9

    assert 0 <= nano_usd(dollars) - exact < 1


@given(st.integers(0, 10**15))
def test_whole_nano_dollars_survive_the_round_trip(nano: int) -> None:
    """Turning into dollars and back changes nothing."""
    assert nano == nano_usd(usd(nano))
