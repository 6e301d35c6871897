"""What may still be spent, and whether it is enough for what is planned."""

from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from vectorless_rag.estimates import Tally
from vectorless_rag.ledger.book import Ledger
from vectorless_rag.ledger.types import day_budget, owner_budget, run_budget
from vectorless_rag.settings import Settings
from vectorless_rag.units import NanoUsd


class Allows(StrEnum):
    """Whether a budget is enough."""

    YES = "yes"
    """For the worst case too."""

    LIKELY = "likely"
    """For what is expected; a worse run would be stopped by it."""

    NO = "no"


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What a plan comes to."""

    expected: Tally
    worst: Tally
    slack: NanoUsd

    @property
    def most(self) -> NanoUsd:
        """What is spent and set aside at once, if all goes as expected."""
        return NanoUsd(self.expected.cost + self.slack)


@dataclass(frozen=True, kw_only=True)
class Funds:
    """What may still be spent."""

    left: NanoUsd
    """By the budget that leaves least."""

    budget: str
    """Which one that is."""

    def allow(self, needs: Needs) -> Allows:
        """Say whether that is enough."""
        if needs.worst.cost <= self.left:
            return Allows.YES
        # The last request is set aside in full on top of what was spent before it.
        return Allows.LIKELY if needs.most <= self.left else Allows.NO


def funds(settings: Settings, ledger: Ledger | None, run_id: str, today: date) -> Funds:
    """
    Find the budget that leaves a run the least.

    Args:
        settings: The run's own budget, and its owner.
        ledger: What has been spent; None: nothing.
        run_id: Name of the run, which may have begun before.
        today: The day, in UTC.
    """
    run = run_budget(run_id)
    known = ledger.budget(run) if ledger else None
    limit, spent = settings.budget_nano_usd, known.spent if known else 0
    if known is not None and known.limit is not None and not settings.says_budget:
        limit = known.limit
    found = [(limit - spent, run)]
    owner = settings.owner
    for name in (owner_budget(owner), day_budget(owner, today)):
        budget = ledger.budget(name) if ledger else None
        if budget is not None and budget.limit is not None:
            found.append((budget.limit - budget.spent - budget.reserved, name))
    left, name = min(found)
    return Funds(left=NanoUsd(max(left, 0)), budget=name)
