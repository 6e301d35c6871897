"""
Rates, and what a request comes to at them.

Rates are exact; only the amount of a request is rounded, up, to a whole nano-dollar.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, localcontext

from vectorless_rag.units import NanoUsd, nano_usd

DIGITS = 60
"""Enough for any rate times any count of tokens: the product stays exact."""


@dataclass(frozen=True, kw_only=True)
class Rate:
    """Dollars per token, and from how long a prompt on it applies."""

    dollars: Decimal

    above_tokens: int = 0
    """It applies to prompts longer than this, in tokens."""


@dataclass(frozen=True, kw_only=True)
class Price:
    """The rates of one model."""

    input: tuple[Rate, ...]
    output: tuple[Rate, ...]

    cached_input: tuple[Rate, ...] = ()
    """For prompt tokens found in the provider's cache. Empty: as other input."""

    cache_write: tuple[Rate, ...] = ()
    """For prompt tokens written to the cache. Empty: as other input."""

    reasoning: tuple[Rate, ...] = ()
    """For output tokens spent on reasoning. Empty: as other output."""

    per_request: Decimal = Decimal(0)
    """Dollars, whatever its length."""

    max_output_tokens: int | None = None
    """The most the model can answer with, where known."""

    batch: "Price | None" = None
    """What the same costs by batch; None: not known."""

    def most(self, *, prompt_tokens: int, output_tokens: int) -> NanoUsd:
        """
        Return the most a request can cost, in nano-dollars.

        Args:
            prompt_tokens: Upper bound of the prompt.
            output_tokens: Cap on the output.
        """
        inputs = (*self.input, *self.cached_input, *self.cache_write)
        outputs = (*self.output, *self.reasoning)
        return self._sum(
            (prompt_tokens, _dearest(inputs, prompt_tokens)),
            (output_tokens, _dearest(outputs, prompt_tokens)),
        )

    def actual(
        self,
        *,
        prompt_tokens: int,
        completion_tokens: int,
        cached_tokens: int = 0,
        reasoning_tokens: int = 0,
        cache_write_tokens: int = 0,
    ) -> NanoUsd:
        """
        Return what a request cost, in nano-dollars.

        Cached and written tokens are part of the prompt's, reasoning tokens part
        of the completion's.
        """
        cached = min(cached_tokens, prompt_tokens)
        written = min(cache_write_tokens, prompt_tokens - cached)
        reasoning = min(reasoning_tokens, completion_tokens)

        def rate(own: tuple[Rate, ...], otherwise: tuple[Rate, ...]) -> Decimal:
            return _applying(own or otherwise, prompt_tokens)

        return self._sum(
            (prompt_tokens - cached - written, rate(self.input, ())),
            (cached, rate(self.cached_input, self.input)),
            (written, rate(self.cache_write, self.input)),
            (completion_tokens - reasoning, rate(self.output, ())),
            (reasoning, rate(self.reasoning, self.output)),
        )

    def _sum(self, *parts: tuple[int, Decimal]) -> NanoUsd:
        with localcontext(prec=DIGITS):
            total = sum((n * rate for n, rate in parts), self.per_request)
            return nano_usd(total)


FREE = Price(input=(Rate(dollars=Decimal(0)),), output=(Rate(dollars=Decimal(0)),))
"""The price of a model that costs nothing, or whose price nobody knows."""


def _dearest(rates: Iterable[Rate], prompt_tokens: int) -> Decimal:
    """Return the highest of the rates that the prompt may reach."""
    return max(r.dollars for r in rates if r.above_tokens <= prompt_tokens)


def _applying(rates: tuple[Rate, ...], prompt_tokens: int) -> Decimal:
    """Return the rate of the longest tier that the prompt is in."""
    reached = [r for r in rates if r.above_tokens < max(prompt_tokens, 1)]
    return max(reached, key=lambda r: r.above_tokens).dollars
