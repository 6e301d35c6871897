"""How a ledger row is closed: charged, counted, and told to the observer."""

import time
from dataclasses import dataclass

from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.ledger.types import Hold, TokenUsage
from vectorless_rag.pageindex_runtime.observations import Observation
from vectorless_rag.pageindex_runtime.plans import Account, Plan, Shared
from vectorless_rag.pageindex_runtime.providers import (
    Message,
    Money,
    ProviderFailure,
    ProviderReply,
)
from vectorless_rag.prices import Price, Prices
from vectorless_rag.units import NanoUsd


def now_us() -> int:
    """Return the time in microseconds since 1970, UTC."""
    return time.time_ns() // 1000


@dataclass(frozen=True, kw_only=True)
class Sent:
    """A request that was held for and sent, and is not closed yet."""

    hold: Hold
    messages: tuple[Message, ...]
    started_us: int


class Closer:
    """
    Closes the rows of one call.

    Every method is a plain call without an await inside, so that no cancellation
    can come between a request and its record.
    """

    def __init__(self, plan: Plan, shared: Shared) -> None:
        self._plan = plan
        self._shared = shared

    def settle(self, sent: Sent, reply: ProviderReply) -> None:
        """Charge what a reply cost; its hold, if its usage is not known."""
        account, usage, hold_id = self._shared.account, reply.usage, sent.hold.hold_id
        if usage is None:
            account.unknown(hold_id, "usage_unknown", None, reply.response_id)
            self._unknown(sent, None, reply)
            return
        amount = _cost(self._plan.price, reply, usage)
        account.settle(hold_id, amount, usage, reply.response_id, reply.finish_reason)
        self._close(sent, "settled", amount, reply=reply)

    def fail(self, sent: Sent, failure: ProviderFailure) -> None:
        """Close the row of a request that brought no reply."""
        account, hold_id = self._shared.account, sent.hold.hold_id
        if failure.money is Money.VOID:
            account.void(hold_id, failure.kind, failure.code)
            self._close(sent, "voided", NanoUsd(0), code=failure.code)
            return
        account.unknown(hold_id, failure.kind, failure.code)
        self._unknown(sent, failure.code)

    def interrupt(self, sent: Sent) -> None:
        """Close the row of a request that may have left, and was not awaited."""
        hold_id = sent.hold.hold_id
        self._shared.account.unknown(hold_id, "interrupted", Code.CANCELLED)
        self._unknown(sent, Code.CANCELLED)

    def replay(self, sent: Sent, reply: ProviderReply) -> None:
        """Record a reply that the journal had: it costs nothing."""
        self._shared.account.replay(sent.hold)
        self._shared.counts.replayed += 1
        self._close(sent, "replayed", NanoUsd(0), reply=reply)

    def _unknown(
        self, sent: Sent, code: Code | None, reply: ProviderReply | None = None
    ) -> None:
        self._shared.counts.usage_unknown += 1
        self._close(sent, "unknown", sent.hold.amount, code=code, reply=reply)

    def _close(
        self,
        sent: Sent,
        state: str,
        amount: NanoUsd,
        *,
        code: Code | None = None,
        reply: ProviderReply | None = None,
    ) -> None:
        counts, content = self._shared.counts, self._shared.content
        counts.cost_nano_usd = NanoUsd(counts.cost_nano_usd + amount)
        self._shared.observer.observe(
            Observation(
                attempt_id=sent.hold.attempt_id,
                call_id=sent.hold.call_id,
                hold_id=sent.hold.hold_id,
                try_no=sent.hold.try_no,
                operation=sent.hold.operation,
                model=sent.hold.model,
                state=state,
                code=code,
                usage=reply.usage if reply else None,
                amount=amount,
                finish_reason=reply.finish_reason if reply else None,
                max_tokens=self._plan.max_tokens,
                started_us=sent.started_us,
                ended_us=now_us(),
                prompt=sent.messages if content else None,
                reply=reply.text if reply and content else None,
            )
        )


class Late:
    """
    Closes rows of requests that nobody waits for any more, once it is known how.

    Args:
        account: Where they are charged.
        prices: What they cost by batch.
    """

    def __init__(self, account: Account, prices: Prices) -> None:
        self._account = account
        self._prices = prices

    def close(
        self, hold_id: str, model: str, outcome: ProviderReply | ProviderFailure
    ) -> None:
        """Close a row, or correct what it was closed as."""
        try:
            self._close(hold_id, model, outcome)
        except VectorlessRagError as error:
            # Another ledger, or closed by somebody who knew more: it stays as it is.
            if error.code is not Code.LEDGER_CONFLICT:
                raise

    def _close(
        self, hold_id: str, model: str, outcome: ProviderReply | ProviderFailure
    ) -> None:
        account = self._account
        if isinstance(outcome, ProviderFailure):
            if outcome.money is Money.UNKNOWN:
                account.unknown(hold_id, outcome.kind, outcome.code)
            else:
                # A row that counts at its hold takes no other word for nothing.
                account.settle(hold_id, NanoUsd(0), _NOTHING, None, None)
        elif outcome.usage is None:
            account.unknown(hold_id, "usage_unknown", None, outcome.response_id)
        else:
            price = self._prices.find(model, by_batch=True)
            amount = _cost(price, outcome, outcome.usage)
            account.settle(
                hold_id,
                amount,
                outcome.usage,
                outcome.response_id,
                outcome.finish_reason,
            )


_NOTHING = TokenUsage(prompt_tokens=0, completion_tokens=0)


def _cost(price: Price | None, reply: ProviderReply, usage: TokenUsage) -> NanoUsd:
    if price is None:
        return NanoUsd(0)
    return price.actual(
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        cached_tokens=usage.cached_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        cache_write_tokens=reply.cache_write_tokens,
    )
