"""A call boundary with a real ledger, for tests."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from vectorless_rag.errors import Code
from vectorless_rag.ledger.book import Ledger
from vectorless_rag.ledger.types import Attempt, HoldRow, TokenUsage
from vectorless_rag.pageindex_runtime.calls import Caller, Policy, Reply
from vectorless_rag.pageindex_runtime.litellm_provider import LiteLLMProvider
from vectorless_rag.pageindex_runtime.providers import (
    Money,
    ProviderFailure,
    ProviderReply,
    ProviderRequest,
)
from vectorless_rag.pageindex_runtime.retry import Backoff
from vectorless_rag.prices import Prices
from vectorless_rag.units import NanoUsd, Sha256
from vectorless_rag.wire import Limits

BUDGET = "run:test"
ATTEMPT = "attempt"
MODEL = "openai/gpt-4o-mini"
ENOUGH = NanoUsd(10**12)

ASK = "check_title_appearance"
WORDS = "the document says CANARY"
PRICED = '{"fake/x": {"input": "0.001", "output": "0.002"}}'

FAST = Backoff(first_s=0.01, most_s=0.02, spread_s=0.0)


def limits(**changes: int) -> Limits:
    usual = {
        "max_output_tokens": 64,
        "call_timeout_s": 30,
        "call_attempts": 3,
        "concurrency": 8,
        "provider_concurrency": 32,
        "max_pages": 10,
        "memory_bytes": 2**30,
    }
    return Limits(**(usual | changes))


Turn = ProviderReply | ProviderFailure | Exception | float
"""A reply, an error to raise, or seconds to be silent."""


@dataclass
class Scripted:
    """An in-process provider that answers in turn, and the last way from then on."""

    turns: list[Turn]

    def __post_init__(self) -> None:
        self.requests: list[ProviderRequest] = []

    async def send(self, request: ProviderRequest) -> ProviderReply:
        turn = self.turns[min(len(self.requests), len(self.turns) - 1)]
        self.requests.append(request)
        if isinstance(turn, float):
            await asyncio.sleep(turn)
            return said("late")
        if isinstance(turn, Exception):
            raise turn
        return turn


def said(
    text: str | None, finish: str | None = "stop", usage: TokenUsage | None = None
) -> ProviderReply:
    """What an in-process provider answers."""
    counted = usage or TokenUsage(prompt_tokens=7, completion_tokens=3)
    return ProviderReply(text=text, finish_reason=finish, usage=counted)


YES = said('{"answer": "yes"}')


@dataclass
class Bench:
    """A caller and the ledger it is charged to."""

    caller: Caller
    ledger: Ledger

    @property
    def rows(self) -> list[HoldRow]:
        return self.ledger.holds(ATTEMPT)

    @property
    def states(self) -> list[str]:
        return [str(row.state) for row in self.rows]


@cache
def _fresh_ledger() -> bytes:
    """The file of a ledger with one budget and one running attempt."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "ledger.sqlite3")
        with Ledger.open(f"sqlite:///{path}") as ledger:
            ledger.set_budget(BUDGET, ENOUGH)
            ledger.start_attempt(
                Attempt(
                    attempt_id=ATTEMPT,
                    run_id="run",
                    owner="local",
                    document_sha256=Sha256("0" * 64),
                    recipe_hash=Sha256("1" * 64),
                    model=MODEL,
                )
            )
        return path.read_bytes()


@contextmanager
def opened(folder: Path, budget: NanoUsd = ENOUGH) -> Iterator[Ledger]:
    """A ledger with one budget and one running attempt."""
    path = folder / "ledger.sqlite3"
    # Copied: a hundred migrations are half of the suite's time.
    path.write_bytes(_fresh_ledger())
    with Ledger.open(f"sqlite:///{path}") as ledger:
        if budget != ENOUGH:
            ledger.set_budget(BUDGET, budget)
        yield ledger


def caller_for(
    ledger: Any,
    *,
    api_base: str | None = None,
    billed: frozenset[int] = frozenset(),
    offline: Any = None,
    prices: str = "{}",
    changes: dict[str, int] | None = None,
    journal: Any = None,
    gate: Any = None,
    observer: Any = None,
    content: bool = False,
    remote: Any = None,
    **policy: Any,
) -> Caller:
    usual: dict[str, Any] = {
        "attempt_id": ATTEMPT,
        "model": MODEL if offline is None else "offline/scripted",
        "budgets": (BUDGET,),
        "limits": limits(**(changes or {})),
        "backoff": FAST,
    }
    return Caller(
        policy=Policy(**(usual | policy)),
        account=ledger,
        prices=Prices(prices),
        offline=offline or Scripted([said("unused")]),
        remote=remote or partial(LiteLLMProvider, api_base=api_base, billed=billed),
        journal=journal,
        gate=gate,
        observer=observer,
        content=content,
    )


@contextmanager
def bench(folder: Path, *, budget: NanoUsd = ENOUGH, **more: Any) -> Iterator[Bench]:
    """A caller on a real ledger; closing it checks that the ledger is sound."""
    with opened(folder, budget) as ledger:
        caller = caller_for(ledger, **more)
        try:
            yield Bench(caller, ledger)
        finally:
            caller._shut_down()
            _forget_clients()
            assert [] == ledger.check()


def _forget_clients() -> None:
    # The library keeps them, closed as they are, by the address of their loop. The
    # loop of the next bench may lie there; a child has one loop in its life.
    if (library := sys.modules.get("litellm")) is not None:
        library.in_memory_llm_clients_cache.flush_cache()


def ask(caller: Caller, path: str, operation: str, prompt: str, **more: Any) -> Reply:
    """Ask by one of the two paths."""
    if path == "sync":
        return caller.complete(operation, prompt, **more)
    return asyncio.run(caller.acomplete(operation, prompt, **more))


def failure(
    code: Code = Code.LLM_RETRY_EXHAUSTED,
    *,
    retry: bool = True,
    money: Money = Money.VOID,
    after: float | None = None,
) -> ProviderFailure:
    return ProviderFailure(
        "scripted", code, retry=retry, money=money, retry_after_s=after
    )


class Priced:
    """An in-process provider behind a model that costs money."""

    def __init__(self, *turns: Any) -> None:
        self.inner = Scripted(list(turns))
        self.opens = self.closes = 0

    async def open(self) -> None:
        self.opens += 1

    async def close(self) -> None:
        self.closes += 1

    async def send(self, request: ProviderRequest) -> ProviderReply:
        return await self.inner.send(request)


def priced(ledger: Any, provider: Priced, **more: Any) -> Any:
    """A caller whose model ``fake/x`` is answered by *provider*."""
    caller = caller_for(ledger, model="fake/x", prices=PRICED, **more)
    caller._planner._remote = lambda: provider
    return caller
