"""
How a model is asked at worst, and what that costs.

What is assumed of the provider is that it keeps to the cap on output tokens.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from vectorless_rag.estimates import Tally
from vectorless_rag.pageindex_runtime import grouping
from vectorless_rag.prices import Price
from vectorless_rag.units import NanoUsd

LEAST_LISTED = 4
LEAST_PLACED = 8
"""Output tokens of one entry at least: punctuation, keys, a title, a page."""

INSTRUCTIONS = 2_000
"""Tokens of a prompt beside the document's text, by a known tokenizer."""

INSTRUCTIONS_BYTES = 8_000
"""The same where nothing but bytes bounds the tokens."""

MARKERS = 64
"""Tokens or bytes that stand around one page."""

RESPELLED = 3
"""How much longer a list gets when it is spelled anew with all its keys."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """How a model is asked."""

    output_tokens: int
    """Cap on the output of one request."""

    attempts: int
    """Requests one call may make."""

    concurrency: int
    """Calls in flight at once: as many retries are free."""

    spread: float
    """Bound of a text's tokens over the count that prompts are cut by."""

    exact: bool
    """Whether the tokenizer is known."""

    @property
    def instructions(self) -> int:
        """Tokens of a prompt beside the text, a second time of asking included."""
        return INSTRUCTIONS if self.exact else INSTRUCTIONS_BYTES

    @property
    def reply(self) -> int:
        """Tokens of a whole reply where it is part of a later prompt."""
        return math.ceil(self.output_tokens * max(self.spread, 1.0)) * (
            1 if self.exact else 2
        )

    @property
    def listed(self) -> int:
        """Entries that one reply can hold where pages are optional."""
        return self.output_tokens // LEAST_LISTED

    @property
    def placed(self) -> int:
        """Entries that one reply can hold where each names its page."""
        return self.output_tokens // LEAST_PLACED

    def bound(self, tokens: int) -> int:
        """Bound the tokens of a text that was cut to *tokens*."""
        return math.ceil(tokens * self.spread)


@dataclass(frozen=True)
class Work:
    """Calls of one kind, at most."""

    operation: str
    calls: int
    prompt_tokens: int
    """Of all these calls together, each asked once."""


def window(asked: Asked) -> int:
    """Tokens of the pages that one prompt shows, at most."""
    return asked.bound(grouping.MAX_TOKENS) + MARKERS


def half() -> int:
    """Tokens that a prompt of cut text holds at least, where it is not the last."""
    return grouping.MAX_TOKENS // 2


def priced(
    works: Iterable[Work], price: Price | None, asked: Asked
) -> tuple[Tally, ...]:
    """
    Price the calls at the most they can cost, every try of each included.

    Args:
        works: Calls, by operation; one may come several times.
        price: None: nothing is charged.
        asked: How the model is asked.
    """
    calls: dict[str, int] = {}
    tokens: dict[str, int] = {}
    for work in works:
        calls[work.operation] = calls.get(work.operation, 0) + work.calls
        tokens[work.operation] = tokens.get(work.operation, 0) + work.prompt_tokens
    every = sum(calls.values())
    # A reply of no use is asked for again once; further tries come out of a run's
    # allowance, and go to whatever is dearest.
    again = min(asked.attempts, 2)
    spare = 5 + asked.concurrency + every // 10
    extra = min(spare, (asked.attempts - 2) * every) if asked.attempts > 2 else 0  # noqa: PLR2004
    # All of a table of contents may stand in one prompt beside its pages.
    longest = window(asked) + asked.instructions
    longest += max((-(-tokens[name] // n) for name, n in calls.items() if n), default=0)
    tallies = [
        _tally(name, again * calls[name], again * tokens[name], price, asked)
        for name in sorted(calls)
        if calls[name]
    ]
    if extra:
        tallies.append(_tally("retries", extra, extra * longest, price, asked))
    return tuple(tallies)


def _tally(
    name: str, calls: int, prompt: int, price: Price | None, asked: Asked
) -> Tally:
    output = calls * asked.output_tokens
    cost = 0
    if price is not None:
        cost = price.most(prompt_tokens=prompt, output_tokens=output)
    if price is not None and cost:
        # Each request has its own fee, where there is one, and is rounded up.
        cost += calls * (price.most(prompt_tokens=0, output_tokens=0) + 1)
    return Tally(
        operation=name,
        calls=calls,
        prompt_tokens=prompt,
        completion_tokens=output,
        cost=NanoUsd(cost),
    )
