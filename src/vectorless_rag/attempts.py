"""One attempt at one document, from its first ledger row to its last."""

import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from vectorless_rag.artifact import RunRecord, RunUsage
from vectorless_rag.artifact import timestamp as spelled
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.ledger.types import (
    Attempt,
    Outcome,
    day_budget,
    owner_budget,
    run_budget,
)
from vectorless_rag.prices import Prices
from vectorless_rag.recipe import Recipe
from vectorless_rag.results import Spend
from vectorless_rag.settings import Settings


@dataclass(kw_only=True)
class AccountedAttempt:
    """
    Opens an attempt in the ledger, and closes it however its block ends.

    After the block, `spend` says what it cost, also if it failed.

    Args:
        settings: Owner, model, budget and the ledger's address.
        recipe: What is built.
        run_id: The run whose budget it counts towards.
        limits_run: Set the run's budget; else it stands as somebody set it.
    """

    settings: Settings
    recipe: Recipe
    run_id: str
    limits_run: bool = True

    attempt_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    spend: Spend = field(default_factory=Spend)
    _started: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def budgets(self) -> tuple[str, ...]:
        """Every budget that its calls count towards."""
        owner = self.settings.owner
        today = self._started.date()
        return (
            run_budget(self.run_id),
            owner_budget(owner),
            day_budget(owner, today),
        )

    def __enter__(self) -> Self:
        # SQL is imported with the first attempt: to reuse an artifact needs none.
        from vectorless_rag.ledger.book import Ledger  # noqa: PLC0415

        self._ledger = Ledger.open(self.settings.effective_ledger_url)
        try:
            if self.limits_run:
                self._ledger.set_budget(
                    run_budget(self.run_id),
                    self.settings.budget_nano_usd,
                    keep=not self.settings.says_budget,
                )
            self._ledger.start_attempt(self._attempt())
        except BaseException:
            self._ledger.close()
            raise
        return self

    def _attempt(self) -> Attempt:
        prices = Prices(self.settings.prices)
        return Attempt(
            attempt_id=self.attempt_id,
            run_id=self.run_id,
            owner=self.settings.owner,
            document_sha256=self.recipe.document_sha256,
            recipe_hash=self.recipe.recipe_hash,
            model=self.settings.model,
            # An offline model has no price; its table need not be read.
            price_table=None if self.settings.offline else prices.identity,
        )

    def __exit__(
        self,
        _type: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        outcome, code = _outcome(error)
        try:
            self._ledger.end_attempt(self.attempt_id, outcome, code)
            self._sum_up()
        except VectorlessRagError:
            # What went wrong first is the reason; leases close the rows.
            if error is None:
                raise
        finally:
            self._ledger.close()

    def _sum_up(self) -> None:
        self.spend = Spend.of(self._ledger.usage(self.attempt_id))

    def record(self, notes: dict[str, int]) -> RunRecord:
        """
        Make the run record, once the child has ended.

        Args:
            notes: The child's counters.
        """
        # The child is gone: what it still holds counts at the hold.
        self._ledger.expire(self.attempt_id)
        self._sum_up()
        ended = datetime.now(UTC)
        return RunRecord(
            attempt_id=self.attempt_id,
            run_id=self.run_id,
            owner=self.settings.owner,
            recipe_hash=self.recipe.recipe_hash,
            started_at=spelled(self._started),
            ended_at=spelled(ended),
            wall_ms=int((ended - self._started).total_seconds() * 1000),
            usage=RunUsage.of_rows(self._ledger.holds(self.attempt_id)),
            notes=notes,
        )


def _outcome(error: BaseException | None) -> tuple[Outcome, Code | None]:
    match error:
        case None:
            return Outcome.BUILT, None
        case VectorlessRagError(code=Code.CANCELLED):
            return Outcome.CANCELLED, Code.CANCELLED
        case VectorlessRagError():
            return Outcome.FAILED, error.code
        case Exception():
            return Outcome.FAILED, Code.INTERNAL_ERROR
        case _:
            # An interrupt, or the signal to end.
            return Outcome.CANCELLED, Code.CANCELLED
