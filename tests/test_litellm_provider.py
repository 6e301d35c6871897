"""Every misbehaviour of a provider, over a real socket and through real LiteLLM."""

import asyncio
import gc
import logging
import os
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fault_server
from boundary import MODEL, ask, bench
from fault_server import CANARY, Fault, FaultServer, completion, error, serving
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.ledger.types import State, TokenUsage
from vectorless_rag.pageindex_runtime import litellm_provider
from vectorless_rag.pageindex_runtime.litellm_provider import LiteLLMProvider
from vectorless_rag.pageindex_runtime.providers import Message, ProviderRequest

OPERATION = "check_title_appearance"
PROMPT = "private prompt text PROMPT-CANARY"

pytestmark = pytest.mark.loopback

PATHS = pytest.mark.parametrize("path", ["sync", "async"])


@pytest.fixture(scope="module")
def server() -> Iterator[FaultServer]:
    with serving() as play:
        yield play


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", f"key-{CANARY}")


def refused(
    tmp_path: Path, server: FaultServer, path: str, *faults: Fault, **more: Any
) -> tuple[VectorlessRagError, int, list[str]]:
    """The failure of one call, the requests it took, and its rows' states."""
    server.play(*faults)
    before = len(server.requests)
    with bench(tmp_path, api_base=server.base, **more) as run:
        try:
            ask(run.caller, path, OPERATION, PROMPT)
        except VectorlessRagError as failure:
            return failure, len(server.requests) - before, run.states
    pytest.fail("the call succeeded")


REFUSALS = [
    pytest.param(error(400), Code.BAD_REQUEST, 1, ["voided"], id="400"),
    pytest.param(
        fault_server.RATE_LIMIT_WORDS, Code.BAD_REQUEST, 1, ["voided"], id="400-words"
    ),
    pytest.param(
        fault_server.CONTEXT, Code.CONTEXT_OVERFLOW, 1, ["voided"], id="400-context"
    ),
    pytest.param(
        fault_server.POLICY, Code.CONTENT_FILTER, 1, ["voided"], id="400-policy"
    ),
    pytest.param(error(401), Code.AUTH, 1, ["voided"], id="401"),
    pytest.param(error(402), Code.QUOTA, 1, ["voided"], id="402"),
    pytest.param(error(403), Code.AUTH, 1, ["voided"], id="403"),
    pytest.param(fault_server.UNKNOWN_MODEL, Code.BAD_REQUEST, 1, ["voided"], id="404"),
    pytest.param(error(422), Code.BAD_REQUEST, 1, ["voided"], id="422"),
    pytest.param(fault_server.QUOTA, Code.QUOTA, 1, ["voided"], id="429-quota"),
    pytest.param(error(429), Code.LLM_RETRY_EXHAUSTED, 3, ["voided"] * 3, id="429"),
    pytest.param(error(408), Code.LLM_RETRY_EXHAUSTED, 3, ["voided"] * 3, id="408"),
    pytest.param(error(500), Code.LLM_RETRY_EXHAUSTED, 3, ["voided"] * 3, id="500"),
    pytest.param(error(501), Code.BAD_REQUEST, 1, ["voided"], id="501"),
    pytest.param(error(502), Code.LLM_RETRY_EXHAUSTED, 3, ["voided"] * 3, id="502"),
    pytest.param(error(503), Code.LLM_RETRY_EXHAUSTED, 3, ["voided"] * 3, id="503"),
    pytest.param(error(504), Code.TIMEOUT, 3, ["unknown"] * 3, id="504"),
    pytest.param(error(524), Code.LLM_RETRY_EXHAUSTED, 3, ["unknown"] * 3, id="524"),
    pytest.param(error(529), Code.LLM_RETRY_EXHAUSTED, 3, ["voided"] * 3, id="529"),
    pytest.param(
        fault_server.HTML, Code.LLM_RETRY_EXHAUSTED, 3, ["unknown"] * 3, id="html"
    ),
    pytest.param(
        Fault(body=b"{}"), Code.LLM_RETRY_EXHAUSTED, 3, ["unknown"] * 3, id="no-choices"
    ),
    pytest.param(
        fault_server.EMPTY_BODY, Code.LLM_RETRY_EXHAUSTED, 3, ["unknown"] * 3, id="none"
    ),
    pytest.param(
        fault_server.CUT_BODY, Code.LLM_RETRY_EXHAUSTED, 3, ["unknown"] * 3, id="cut"
    ),
    pytest.param(
        completion(choices=[]), Code.EMPTY_RESPONSE, 2, ["settled"] * 2, id="choiceless"
    ),
    pytest.param(
        completion(None), Code.EMPTY_RESPONSE, 2, ["settled"] * 2, id="null-content"
    ),
    pytest.param(
        completion('{"answer":', finish="length"),
        Code.TRUNCATED_RESPONSE,
        2,
        ["settled"] * 2,
        id="length",
    ),
    pytest.param(
        completion(CANARY, finish="content_filter"),
        Code.CONTENT_FILTER,
        1,
        ["settled"],
        id="filtered",
    ),
    pytest.param(
        completion(f"Sure! {CANARY}"), Code.INVALID_JSON, 2, ["settled"] * 2, id="prose"
    ),
    pytest.param(
        completion(f'{{"answer": "{CANARY}"}}'),
        Code.INVALID_JSON,
        2,
        ["settled"] * 2,
        id="wrong-shape",
    ),
]


@PATHS
@pytest.mark.parametrize(("fault", "code", "requests", "states"), REFUSALS)
def test_each_fault_has_its_failure_its_requests_and_its_money(  # noqa: PLR0917
    fault: Fault,
    code: Code,
    requests: int,
    states: list[str],
    path: str,
    server: FaultServer,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The wire decides; every request is one row; no text of anyone gets out."""
    caplog.set_level(logging.DEBUG)
    failure, sent, rows = refused(tmp_path, server, path, fault)

    assert (code, requests, states) == (failure.code, sent, rows)
    told = "".join(traceback.format_exception(failure)) + repr(failure) + caplog.text
    told += "".join(capfd.readouterr())
    for path_in_ledger in tmp_path.iterdir():
        told += path_in_ledger.read_bytes().decode("latin-1")
    assert "CANARY" not in told
    assert failure.__context__ is None


def test_a_provider_may_charge_for_its_failures(
    server: FaultServer, tmp_path: Path
) -> None:
    """Where the operator says so, a status counts at the hold; the others are free."""
    server.play(error(500), error(503), completion())
    with bench(tmp_path, api_base=server.base, billed=frozenset({500})) as run:
        run.caller.complete(OPERATION, PROMPT)

        assert ["unknown", "voided", "settled"] == run.states


@PATHS
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(fault_server.STALLED, id="stalled"),
        pytest.param(fault_server.DRIPPING, id="dripping"),
    ],
)
def test_no_server_stretches_a_deadline(
    fault: Fault, path: str, server: FaultServer, tmp_path: Path
) -> None:
    """A reply that comes too slowly is given up, and counts as if it was billed."""
    failure, sent, rows = refused(
        tmp_path, server, path, fault, changes={"call_timeout_s": 1}
    )

    assert Code.TIMEOUT == failure.code
    assert ["unknown"] * sent == rows


def test_a_stalled_try_leaves_time_for_another(
    server: FaultServer, tmp_path: Path
) -> None:
    """A socket that goes silent costs one try, not the call."""
    server.play(fault_server.STALLED, completion())
    with bench(tmp_path, api_base=server.base, changes={"call_timeout_s": 3}) as run:
        reply = run.caller.complete(OPERATION, PROMPT)

        assert {"answer": "yes"} == reply.value
        assert ["unknown", "settled"] == run.states


@pytest.mark.parametrize(
    ("headers", "requests"),
    [
        pytest.param({"retry_after": "0"}, 3, id="at-once"),
        pytest.param({"retry_after": "0.01"}, 3, id="decimal"),
        pytest.param({"retry_after_ms": "10"}, 3, id="milliseconds"),
        pytest.param({"retry_after": fault_server.in_seconds(-60)}, 3, id="past-date"),
        pytest.param({"retry_after": "soon"}, 3, id="nonsense"),
        pytest.param({"retry_after": "3600"}, 1, id="an-hour"),
        pytest.param({"retry_after": "61.5"}, 1, id="over-a-minute"),
        pytest.param({"retry_after_ms": "3600000"}, 1, id="an-hour-in-ms"),
        pytest.param({"retry_after": fault_server.in_seconds(3600)}, 1, id="date"),
    ],
)
def test_a_wait_asked_for_is_honoured_or_the_call_given_up(
    headers: dict[str, str], requests: int, server: FaultServer, tmp_path: Path
) -> None:
    """A wait past the deadline ends the call before it, not after."""
    failure, sent, _ = refused(
        tmp_path, server, "sync", error(429, **headers), changes={"call_timeout_s": 9}
    )

    assert (Code.LLM_RETRY_EXHAUSTED, requests) == (failure.code, sent)


@PATHS
def test_a_passing_fault_costs_retries_and_no_more(
    path: str, server: FaultServer, tmp_path: Path
) -> None:
    """Each try is a row of its own under one call."""
    server.play(error(503), error(429), completion())
    with bench(tmp_path, api_base=server.base) as run:
        reply = ask(run.caller, path, OPERATION, PROMPT)

        assert ("stop", {"answer": "yes"}) == (reply.finish_reason, reply.value)
        assert ["voided", "voided", "settled"] == run.states
        assert ["attempt-1:1", "attempt-1:2", "attempt-1:3"] == [
            row.hold_id for row in run.rows
        ]
        assert 2 == run.caller.counts.retries


USAGES = [
    pytest.param(completion(), State.SETTLED, 15_000, id="normal"),
    pytest.param(
        completion(
            usage={
                "prompt_tokens": "12",
                "completion_tokens": "3",
                "total_tokens": "15",
            }
        ),
        State.SETTLED,
        3_600,
        id="strings",
    ),
    pytest.param(
        completion(
            usage={"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 999}
        ),
        State.SETTLED,
        3_600,
        id="large-total",
    ),
    pytest.param(completion(usage=None), State.UNKNOWN, None, id="null"),
    pytest.param(fault_server.without_usage(), State.UNKNOWN, None, id="absent"),
    pytest.param(
        completion(
            usage={"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
        ),
        State.UNKNOWN,
        None,
        id="zero",
    ),
    pytest.param(
        completion(
            usage={"prompt_tokens": -5, "completion_tokens": 10, "total_tokens": 5}
        ),
        State.UNKNOWN,
        None,
        id="negative",
    ),
    pytest.param(
        completion(usage={"total_tokens": 15}), State.UNKNOWN, None, id="total-only"
    ),
    pytest.param(
        completion(
            usage={"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 14}
        ),
        State.UNKNOWN,
        None,
        id="small-total",
    ),
    pytest.param(
        completion(
            usage={"prompt_tokens": 12, "completion_tokens": 0, "total_tokens": 12}
        ),
        State.UNKNOWN,
        None,
        id="free-answer",
    ),
    pytest.param(
        completion(
            usage={
                "prompt_tokens": 12,
                "completion_tokens": 3,
                "total_tokens": 15,
                "prompt_tokens_details": {"cached_tokens": 13},
            }
        ),
        State.UNKNOWN,
        None,
        id="more-cached-than-sent",
    ),
    pytest.param(
        completion(
            usage={
                "prompt_tokens": 12,
                "completion_tokens": 3,
                "total_tokens": 20,
                "completion_tokens_details": {"reasoning_tokens": 5},
            }
        ),
        State.SETTLED,
        6_600,
        id="reasoning-beside",
    ),
    pytest.param(
        completion(
            usage={
                "prompt_tokens": 10**8 + 1,
                "completion_tokens": 3,
                "total_tokens": 10**8 + 4,
            }
        ),
        State.UNKNOWN,
        None,
        id="absurd",
    ),
]


@PATHS
@pytest.mark.parametrize(("fault", "state", "cost"), USAGES)
def test_usage_that_is_missing_never_reads_as_free(  # noqa: PLR0917
    fault: Fault,
    state: State,
    cost: int | None,
    path: str,
    server: FaultServer,
    tmp_path: Path,
) -> None:
    """What is not known counts at the most it could have cost."""
    server.play(fault)
    with bench(tmp_path, api_base=server.base) as run:
        ask(run.caller, path, OPERATION, PROMPT)
        (row,) = run.rows

        assert state == row.state
        assert (row.reserved_nano if cost is None else cost) == row.amount_nano
        assert row.amount_nano == run.caller.counts.cost_nano_usd
        assert row.amount_nano == run.ledger.usage("attempt").cost_nano


def test_a_settled_row_tells_what_was_counted(
    server: FaultServer, tmp_path: Path
) -> None:
    """Cached and reasoning tokens, response and finish are in the ledger."""
    server.play(completion())
    with bench(tmp_path, api_base=server.base) as run:
        run.caller.complete(OPERATION, PROMPT)
        (row,) = run.rows

        usage = TokenUsage(
            prompt_tokens=100, completion_tokens=5, cached_tokens=40, reasoning_tokens=2
        )
        assert usage == row.usage
        assert ("chatcmpl-1", "stop") == (row.response_id, row.finish_reason)


@pytest.mark.parametrize("odd", [f"id {CANARY} with blanks", "x" * 300])
def test_a_response_id_that_may_be_text_is_not_kept(
    odd: str, server: FaultServer, tmp_path: Path
) -> None:
    """A provider cannot write prose into the ledger."""
    server.play(completion(id=odd))
    with bench(tmp_path, api_base=server.base) as run:
        run.caller.complete(OPERATION, PROMPT)

        assert [None] == [row.response_id for row in run.rows]


def test_a_finish_reason_that_may_be_text_is_not_kept(
    server: FaultServer, tmp_path: Path
) -> None:
    """An unknown way to end is no ordinary one, and its words are dropped."""
    server.play(completion("a description", finish="tool_calls"))
    with bench(tmp_path, api_base=server.base) as run:
        with pytest.raises(VectorlessRagError, match="bad_finish"):
            run.caller.complete("generate_doc_description", PROMPT)

        assert ["tool_calls"] * 2 == [row.finish_reason for row in run.rows]


def test_exactly_one_cap_and_nothing_unasked_is_sent(
    server: FaultServer, tmp_path: Path
) -> None:
    """The output is capped, and no hidden option rides along."""
    server.play(completion())
    with bench(tmp_path, api_base=server.base) as run:
        run.caller.complete(OPERATION, PROMPT)

    assert {
        "model": "gpt-4o-mini",
        "messages": [{"role": "user", "content": PROMPT}],
        "max_tokens": 64,
    } == server.requests[-1]


def test_a_reasoning_model_gets_the_cap_by_its_own_name(
    server: FaultServer, tmp_path: Path
) -> None:
    """One cap leaves, whatever the model calls it; a parameter is passed on."""
    server.play(completion())
    with bench(tmp_path, api_base=server.base, model="openai/o3-mini") as run:
        run.caller.complete(OPERATION, PROMPT, params={"reasoning_effort": "low"})

    sent = server.requests[-1]
    assert (64, "low") == (sent["max_completion_tokens"], sent["reasoning_effort"])
    assert "max_tokens" not in sent


def test_a_parameter_the_model_does_not_take_is_refused_before_it_is_sent(
    server: FaultServer, tmp_path: Path
) -> None:
    """Nothing is dropped in silence, and nothing is paid for."""
    server.play(completion())
    before = len(server.requests)
    with bench(tmp_path, api_base=server.base) as run:
        with pytest.raises(VectorlessRagError, match="bad_request"):
            run.caller.complete(OPERATION, PROMPT, params={"reasoning_effort": "low"})

        assert (0, ["voided"]) == (len(server.requests) - before, run.states)


def test_a_server_of_ones_own_needs_no_key(
    server: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an address and no key a call goes out all the same."""
    monkeypatch.delenv("OPENAI_API_KEY")
    server.play(completion())
    with bench(tmp_path, api_base=server.base) as run:
        assert {"answer": "yes"} == run.caller.complete(OPERATION, PROMPT).value


@pytest.mark.parametrize("model", [MODEL, "anthropic/claude-sonnet-4-5"])
def test_without_a_key_nothing_is_sent(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing key is a refusal of ours, and costs nothing."""
    monkeypatch.delenv("OPENAI_API_KEY")
    with bench(tmp_path, model=model) as run:
        with pytest.raises(VectorlessRagError, match="auth"):
            run.caller.complete(OPERATION, PROMPT)

        assert ["voided"] == run.states


def test_an_unknown_provider_is_refused_before_anything_is_sent(
    tmp_path: Path,
) -> None:
    """A name that LiteLLM does not route is a bad request at no cost."""
    with bench(tmp_path, model="nobody/x", allow_unpriced=True) as run:
        with pytest.raises(VectorlessRagError, match="unknown_provider"):
            run.caller.complete(OPERATION, PROMPT)

        assert ["voided"] == run.states


def test_nobody_listening_is_told_from_a_failure_of_the_provider(
    tmp_path: Path,
) -> None:
    """A request that could not be sent is retried and costs nothing."""
    with serving() as gone:
        base = gone.base
    with bench(tmp_path, api_base=base) as run:
        with pytest.raises(VectorlessRagError, match="not_sent"):
            run.caller.complete(OPERATION, PROMPT)

        assert ["voided"] * 3 == run.states


def test_loading_it_switches_off_what_talks_or_retries() -> None:
    """No callback, no retry, no print: and loading it again checks that anew."""
    litellm = litellm_provider.load()

    assert (True, True) == (
        litellm.suppress_debug_info,
        litellm.redact_messages_in_exceptions,
    )
    assert litellm_provider.ENVIRONMENT.items() <= os.environ.items()


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        pytest.param("num_retries", 2, "retries by itself", id="retries"),
        pytest.param("success_callback", ["x"], "has callbacks", id="callbacks"),
    ],
)
def test_an_altered_litellm_is_refused(
    name: str, value: Any, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another part of the process switched on would break the account."""
    monkeypatch.setattr(litellm_provider.load(), name, value)
    with pytest.raises(VectorlessRagError, match=why):
        litellm_provider.load()


def test_a_missing_litellm_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation without it says so; collection of garbage stays on."""
    monkeypatch.setitem(sys.modules, "litellm", None)
    with pytest.raises(VectorlessRagError, match="cannot be imported"):
        litellm_provider.load()
    assert gc.isenabled()


def test_garbage_is_not_collected_meanwhile() -> None:
    """The import leaves the collector as it found it, whatever happens."""
    assert not litellm_provider.uncollected(gc.isenabled)
    assert gc.isenabled()
    gc.disable()
    try:
        assert not litellm_provider.uncollected(gc.isenabled)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_reply_without_a_usable_name_or_usage_is_read() -> None:
    """An answer that lacks its parts is an empty answer, not a crash."""

    class Bare:
        choices = ()

    reply = litellm_provider.reply_of(Bare())

    assert (None, "other", None, None) == (
        reply.text,
        reply.finish_reason,
        reply.usage,
        reply.response_id,
    )


def test_no_thread_and_no_warning_is_left_behind(
    server: FaultServer, tmp_path: Path
) -> None:
    """A run that ends gives back its connections and its thread."""
    server.play(completion())
    before = {thread.name for thread in threading.enumerate()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with bench(tmp_path, api_base=server.base) as run:
            run.caller.complete(OPERATION, PROMPT)
        gc.collect()

    after = {thread.name for thread in threading.enumerate()}
    assert {name for name in after if name.startswith("model")} <= before


def test_both_ladders_of_retries_are_always_off() -> None:
    """Either number alone leaves a way to retry behind the boundary's back."""
    request = ProviderRequest(
        operation=OPERATION, model=MODEL, messages=(), max_tokens=8, timeout_s=5.0
    )
    arguments = LiteLLMProvider()._arguments(request)

    assert (0, 0, False) == (
        arguments["max_retries"],
        arguments["num_retries"],
        arguments["drop_params"],
    )


def test_the_provider_can_be_used_by_itself(server: FaultServer) -> None:
    """Open, send, close: the boundary needs no more of it."""
    server.play(completion())
    request = ProviderRequest(
        operation=OPERATION,
        model=MODEL,
        messages=(Message("user", PROMPT),),
        max_tokens=8,
        timeout_s=5.0,
    )

    async def once() -> str | None:
        provider = LiteLLMProvider(api_base=server.base)
        await provider.open()
        try:
            return (await provider.send(request)).text
        finally:
            await provider.close()

    assert '{"answer": "yes"}' == asyncio.run(once())
