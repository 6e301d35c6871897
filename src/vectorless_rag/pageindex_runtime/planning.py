"""Check and price a call before anything of it is sent."""

import asyncio
import itertools
import re
from collections.abc import Callable

from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.pageindex_runtime.operations import operation_named
from vectorless_rag.pageindex_runtime.plans import Plan, Policy
from vectorless_rag.pageindex_runtime.providers import (
    Message,
    Provider,
    RemoteProvider,
)
from vectorless_rag.prices import OFFLINE_PREFIX, Price, Prices

_MODEL = re.compile(r"[^/\s]+/\S+")
_PARAMS = frozenset({"reasoning_effort"})


class Planner:
    """
    Makes the plans of one run's calls, and opens the provider they need.

    Args:
        policy: What the calls may do.
        prices: What they cost.
        offline: Answers models called ``offline/...``.
        remote: Makes the provider for all others, when the first is asked.
    """

    def __init__(
        self,
        policy: Policy,
        prices: Prices,
        offline: Provider,
        remote: Callable[[], RemoteProvider],
    ) -> None:
        self._policy = policy
        self._calls = policy.attempt_id
        if policy.restarts:
            self._calls += f"-again{policy.restarts}"
        self._prices = prices
        self._offline = offline
        self._remote = remote
        self._opened: RemoteProvider | None = None
        self._opening = asyncio.Lock()
        self._numbers = itertools.count(1)

    async def close(self) -> None:
        """Close the provider, if one was opened."""
        if self._opened is not None:
            opened, self._opened = self._opened, None
            await opened.close()

    async def plan(
        self,
        operation: str,
        messages: tuple[Message, ...],
        model: str,
        params: dict[str, str],
    ) -> Plan:
        """
        Make the plan of a call.

        Raises:
            VectorlessRagError: ``pageindex_bad_request`` for a model or parameter
                that is none, ``pageindex_unpriced_model``, ``internal_error`` for
                an unknown operation. Nothing has been sent then.
        """
        what = operation_named(operation)
        if not _MODEL.fullmatch(model):
            raise VectorlessRagError(Code.BAD_REQUEST, "a model is provider/name")
        if unknown := params.keys() - _PARAMS:
            raise VectorlessRagError(Code.BAD_REQUEST, f"{len(unknown)} parameters")
        batching = self._policy.batching
        if model.startswith(OFFLINE_PREFIX):
            batching = None
        price = self._price(model, by_batch=batching is not None)
        limits = self._policy.limits
        return Plan(
            call_id=f"{self._calls}-{next(self._numbers)}",
            attempt_id=self._policy.attempt_id,
            operation=what,
            model=model,
            messages=tuple(map(_sendable, messages)),
            params=params,
            continues=len(messages) > 1,
            provider=await self._provider(model),
            price=price,
            max_tokens=output_cap(limits.max_output_tokens, price),
            budgets=self._policy.budgets,
            timeout_s=batching.timeout_s if batching else limits.call_timeout_s,
            attempts=limits.call_attempts,
            backoff=self._policy.backoff,
            batched=batching is not None,
        )

    def _price(self, model: str, *, by_batch: bool) -> Price | None:
        return price_of(self._prices, self._policy, model, by_batch=by_batch)

    async def _provider(self, model: str) -> Provider:
        if model.startswith(OFFLINE_PREFIX):
            return self._offline
        async with self._opening:
            if self._opened is None:
                provider = self._remote()
                await provider.open()
                self._opened = provider
            return self._opened


def price_of(
    prices: Prices, policy: Policy, model: str, *, by_batch: bool
) -> Price | None:
    """
    Return the price of *model*; None if none is known and the operator allows that.

    Raises:
        VectorlessRagError: ``pageindex_unpriced_model``.
    """
    price = prices.find(model, by_batch=by_batch)
    if price is None and not policy.allow_unpriced:
        how = f"{model}: batch_input, batch_output" if by_batch else model
        raise VectorlessRagError(Code.UNPRICED_MODEL, how)
    return price


def output_cap(most: int, price: Price | None) -> int:
    """Cap the output: providers refuse a cap above what the model can do."""
    known = None if price is None else price.max_output_tokens
    return most if known is None else min(most, known)


def _sendable(message: Message) -> Message:
    """Replace halves of surrogate pairs: PDF text may hold them, no wire takes them."""
    content = message.content.encode("utf-16-le", "surrogatepass")
    return Message(message.role, content.decode("utf-16-le", "replace"))
