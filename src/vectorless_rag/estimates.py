"""
What a document is foreseen to cost, as the child tells its parent.

A rehearsal says what a run would ask; a bound says what no run can exceed.
"""

from dataclasses import dataclass
from typing import Any, Self

from vectorless_rag.units import NanoUsd


@dataclass(frozen=True, kw_only=True)
class Tally:
    """Requests of one kind, summed up."""

    operation: str
    """What is asked: the name that ledger rows carry."""

    calls: int
    """Provider requests."""

    prompt_tokens: int
    completion_tokens: int
    cost: NanoUsd

    def __post_init__(self) -> None:
        if not isinstance(self.operation, str):
            raise TypeError("operation")
        for name in ("calls", "prompt_tokens", "completion_tokens", "cost"):
            _check_count(getattr(self, name))


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """One document's text layer, and what its calls come to."""

    page_tokens: tuple[int, ...]
    """Tokens of every page's text, in order; 0: the page has none."""

    expected: tuple[Tally, ...]
    """What the rehearsal asked, by operation."""

    worst: tuple[Tally, ...]
    """What no run on this route can exceed, by operation."""

    slack: NanoUsd
    """How much more than its cost one request has set aside meanwhile, at most."""

    def __post_init__(self) -> None:
        _check_count(self.slack)

    @classmethod
    def of(cls, raw: dict[str, Any]) -> Self:
        """
        Read back what `dataclasses.asdict` spelled.

        Raises:
            TypeError: Or KeyError, ValueError: it is none of ours.
        """
        tokens = tuple(raw["page_tokens"])
        for count in tokens:
            _check_count(count)
        return cls(
            page_tokens=tokens,
            expected=tuple(Tally(**each) for each in raw["expected"]),
            worst=tuple(Tally(**each) for each in raw["worst"]),
            slack=raw["slack"],
        )


def total(tallies: tuple[Tally, ...]) -> Tally:
    """Sum up *tallies*."""
    return Tally(
        operation="all",
        calls=sum(t.calls for t in tallies),
        prompt_tokens=sum(t.prompt_tokens for t in tallies),
        completion_tokens=sum(t.completion_tokens for t in tallies),
        cost=NanoUsd(sum(t.cost for t in tallies)),
    )


def _check_count(value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError("count")
    if value < 0:
        raise ValueError("count")
