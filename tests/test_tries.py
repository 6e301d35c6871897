"""Failures, retries and money, on a real ledger."""

import asyncio
import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boundary import (
    ASK,
    ATTEMPT,
    BUDGET,
    WORDS,
    YES,
    Priced,
    Scripted,
    ask,
    bench,
    failure,
    opened,
    priced,
)
from strategies_replies import provider_turns
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.ledger.types import Hold
from vectorless_rag.pageindex_runtime.operations import OPERATIONS
from vectorless_rag.pageindex_runtime.providers import (
    Money,
    ProviderReply,
)
from vectorless_rag.pageindex_runtime.retry import Backoff
from vectorless_rag.units import NanoUsd

PATHS = pytest.mark.parametrize("path", ["sync", "async"])


@PATHS
def test_passing_failures_are_retried_each_on_its_own_row(
    path: str, tmp_path: Path
) -> None:
    """What may have been billed stays spent; what was not is given back."""
    provider = Priced(failure(money=Money.UNKNOWN), failure(), YES)
    with opened(tmp_path) as ledger:
        caller = priced(ledger, provider)
        ask(caller, path, ASK, "question")
        caller.close()
        rows = ledger.holds(ATTEMPT)

        assert ["unknown", "voided", "settled"] == [str(row.state) for row in rows]
        assert [rows[0].reserved_nano, 0, 13_000_000] == [r.amount_nano for r in rows]
        assert [1, 2, 3] == [row.try_no for row in rows]
        assert [] == ledger.check()
        spent = ledger.budget(BUDGET).spent
    assert sum(row.amount_nano or 0 for row in rows) == spent
    assert spent == caller.counts.cost_nano_usd
    assert (1, 1) == (provider.opens, provider.closes)


def test_no_more_requests_than_allowed_leave(tmp_path: Path) -> None:
    """Tries are bounded, and the last failure names them."""
    provider = Scripted([failure()])
    with (
        bench(tmp_path, offline=provider, changes={"call_attempts": 4}) as run,
        pytest.raises(VectorlessRagError, match="scripted, try 4"),
    ):
        run.caller.complete(ASK, "question")

    assert 4 == len(provider.requests)


def test_a_storm_of_failures_uses_up_the_runs_retries(tmp_path: Path) -> None:
    """One call cannot retry for ever, whatever each call may do."""
    provider = Scripted([failure()])
    changes = {"call_attempts": 10, "concurrency": 1}
    with (
        bench(tmp_path, offline=provider, changes=changes) as run,
        pytest.raises(VectorlessRagError, match="try 7"),
    ):
        run.caller.complete(ASK, "question")


def test_a_wait_past_the_deadline_is_not_begun(tmp_path: Path) -> None:
    """There is no use in sleeping over a deadline."""
    provider = Scripted([failure(after=31.0)])
    with (
        bench(tmp_path, offline=provider) as run,
        pytest.raises(VectorlessRagError, match="try 1"),
    ):
        run.caller.complete(ASK, "question")


def test_a_provider_that_is_silent_runs_into_the_deadline(tmp_path: Path) -> None:
    """The call ends, and its requests count as if they were billed."""
    provider = Scripted([60.0])
    with bench(tmp_path, offline=provider, changes={"call_timeout_s": 1}) as run:
        with pytest.raises(VectorlessRagError, match="timeout") as caught:
            run.caller.complete(ASK, "question")

        assert Code.TIMEOUT == caught.value.code
        assert {"unknown"} == set(run.states)


@PATHS
def test_a_defect_of_a_provider_tells_nothing(path: str, tmp_path: Path) -> None:
    """Its exception may hold the prompt: neither text nor context of it survive."""
    with bench(tmp_path, offline=Scripted([ValueError(WORDS)])) as run:
        with pytest.raises(VectorlessRagError, match="internal") as caught:
            ask(run.caller, path, ASK, "question")

        assert (Code.INTERNAL_ERROR, ["unknown"]) == (caught.value.code, run.states)
    seen: BaseException | None = caught.value
    while seen is not None:
        assert "CANARY" not in repr(seen)
        seen = seen.__cause__ or seen.__context__


def test_memory_that_runs_out_is_not_hidden(tmp_path: Path) -> None:
    """The child reports it as such; the request counts as billed."""
    with bench(tmp_path, offline=Scripted([MemoryError()])) as run:
        with pytest.raises(MemoryError, match=r"^$"):
            run.caller.complete(ASK, "question")

        assert ["unknown"] == run.states


def test_a_reply_whose_usage_is_not_known_counts_in_full(tmp_path: Path) -> None:
    """The text is used; the money stays spent; the response can be found later."""
    reply = ProviderReply(
        text='{"answer": "no"}', finish_reason="stop", usage=None, response_id="r-1"
    )
    with opened(tmp_path) as ledger:
        caller = priced(ledger, Priced(reply))
        assert {"answer": "no"} == caller.complete(ASK, "question").value
        caller.close()
        (row,) = ledger.holds(ATTEMPT)

    assert ("unknown", row.reserved_nano, "r-1") == (
        str(row.state),
        row.amount_nano,
        row.response_id,
    )
    assert (1, row.reserved_nano) == (
        caller.counts.usage_unknown,
        caller.counts.cost_nano_usd,
    )


# Budgets.


def test_a_budget_of_nothing_sends_nothing(tmp_path: Path) -> None:
    """A refused reservation means no request, and ends the run."""
    provider = Priced(YES)
    with opened(tmp_path, budget=NanoUsd(0)) as ledger:
        caller = priced(ledger, provider)
        with pytest.raises(VectorlessRagError, match="budget") as caught:
            caller.complete(ASK, "question")
        with pytest.raises(VectorlessRagError, match="budget"):
            caller.close()

        assert Code.BUDGET_EXCEEDED == caught.value.code
        assert ([], []) == (provider.inner.requests, ledger.holds(ATTEMPT))


def test_a_free_model_runs_on_a_budget_of_nothing(tmp_path: Path) -> None:
    """Offline models cost nothing, and have their rows all the same."""
    with bench(tmp_path, budget=NanoUsd(0), offline=Scripted([YES])) as run:
        run.caller.complete(ASK, "question")

        assert ["settled"] == run.states


def test_a_budget_is_never_passed_by_many_calls_at_once(tmp_path: Path) -> None:
    """Calls wait for each other's holds, and stop when the money is gone."""
    # A hold is 146,000,000 at most, an answer costs 13,000,000.
    budget = NanoUsd(400_000_000)
    provider = Priced(YES)
    with opened(tmp_path, budget=budget) as ledger:
        caller = priced(ledger, provider, changes={"call_timeout_s": 5})

        async def many() -> list[Any]:
            calls = (caller.acomplete(ASK, f"question {i}") for i in range(40))
            return await asyncio.gather(*calls, return_exceptions=True)

        results = asyncio.run(many())
        with pytest.raises(VectorlessRagError, match="budget"):
            caller.close()
        codes = {r.code for r in results if isinstance(r, VectorlessRagError)}

        assert codes <= {Code.BUDGET_EXCEEDED, Code.BUDGET_CONTENDED}
        assert codes
        assert ledger.budget(BUDGET).spent <= budget
        assert 0 == ledger.budget(BUDGET).reserved
        assert [] == ledger.check()
        spent = 13_000_000 * len(provider.inner.requests)
        assert spent == ledger.budget(BUDGET).spent


def other_hold(amount: int) -> Hold:
    return Hold(
        hold_id="other:1",
        attempt_id=ATTEMPT,
        operation=ASK,
        model="fake/x",
        amount=NanoUsd(amount),
        prompt_tokens=1,
        budgets=(BUDGET,),
        lease_s=60,
        call_id="other",
        try_no=1,
    )


def test_a_budget_held_by_others_is_waited_for(tmp_path: Path) -> None:
    """When the other hold is given back the call goes out."""
    with opened(tmp_path, budget=NanoUsd(200_000_000)) as ledger:
        caller = priced(ledger, Priced(YES))
        ledger.reserve(other_hold(150_000_000))
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(caller.complete, ASK, "question")
            while not caller._tasks:
                time.sleep(0.01)
            ledger.void("other:1", "test")
            reply = waiting.result(20)
        caller.close()

    assert {"answer": "yes"} == reply.value


def test_a_budget_held_for_too_long_fails_as_retryable(tmp_path: Path) -> None:
    """The wait ends with the call's deadline."""
    provider = Priced(YES)
    with opened(tmp_path, budget=NanoUsd(200_000_000)) as ledger:
        ledger.reserve(other_hold(150_000_000))
        caller = priced(ledger, provider, changes={"call_timeout_s": 1})
        with pytest.raises(VectorlessRagError, match=r"Other") as caught:
            caller.complete(ASK, "question")
        with pytest.raises(VectorlessRagError, match=r"Other"):
            caller.close()

    assert (Code.BUDGET_CONTENDED, []) == (caught.value.code, provider.inner.requests)


@settings(max_examples=25, deadline=None)
@given(turns=st.lists(provider_turns, min_size=1, max_size=6))
def test_whatever_a_provider_does_the_account_is_right(
    turns: list[Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Each request is one closed row, and a call is an answer or a failure of ours."""
    provider = Priced(*turns)
    with opened(tmp_path_factory.mktemp("ledger")) as ledger:
        caller = priced(ledger, provider, backoff=Backoff(first_s=0.0))
        for operation in (ASK, "generate_toc_init", "generate_doc_description"):
            try:
                reply = caller.complete(operation, "question")
            except VectorlessRagError:
                continue
            if OPERATIONS[operation].is_data:
                assert reply.value == json.loads(reply.text)
        caller._shut_down()
        rows = ledger.holds(ATTEMPT)

        assert len(provider.inner.requests) == len(rows)
        assert {"settled", "voided", "unknown"} >= {str(row.state) for row in rows}
        assert [] == ledger.check()
        spent = ledger.budget(BUDGET).spent
    assert spent == sum(row.amount_nano or 0 for row in rows)
    assert spent == caller.counts.cost_nano_usd
