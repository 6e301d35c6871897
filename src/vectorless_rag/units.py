"""Names for numbers and texts that must not be mixed up."""

from decimal import ROUND_CEILING, Decimal
from typing import NewType

Sha256 = NewType("Sha256", str)
"""64 lower-case hexadecimal digits."""

NanoUsd = NewType("NanoUsd", int)
"""Billionths of a US dollar. Money is never a float here."""

PageNo = NewType("PageNo", int)
"""A physical page of a document, counted from 1."""

NANO_PER_USD = 1_000_000_000

OFFLINE_PREFIX = "offline/"
"""Models that answer in the process, without a key and without a network."""


def nano_usd(dollars: Decimal) -> NanoUsd:
    """Turn *dollars* into whole nano-dollars, rounded up: never undercharged."""
    nano = (dollars * NANO_PER_USD).to_integral_value(rounding=ROUND_CEILING)
    return NanoUsd(int(nano))


def usd(nano: int) -> Decimal:
    """Turn nano-dollars into exact dollars."""
    return Decimal(nano) / NANO_PER_USD
