"""What Langfuse is told, byte by byte, and what a bad endpoint may not do."""

import json
import sys
import threading
from base64 import b64decode
from collections.abc import Iterator
from subprocess import run
from typing import Any, cast
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otlp_receiver import PATH, Generation, Receiver, dead_url, receiving
from vectorless_rag.errors import Code
from vectorless_rag.ledger.types import TokenUsage
from vectorless_rag.pageindex_runtime.observations import NoObserver, Observation
from vectorless_rag.pageindex_runtime.providers import Message
from vectorless_rag.pageindex_runtime.tracing import LangfuseTracer, observer_from
from vectorless_rag.tracing_ids import span_id, trace_id
from vectorless_rag.units import NanoUsd

ATTEMPT = "attempt-123"
CANARY = "CANARY-5f1d7c"
SECRET = f"sk-lf-{CANARY}"
USAGE = TokenUsage(
    prompt_tokens=100, completion_tokens=7, cached_tokens=40, reasoning_tokens=2
)
PROMPT = (Message("system", "be brief"), Message("user", f"page one, {CANARY}"))

# Long enough for any machine, for deliveries that come to an end on their own.
PATIENT_S = 60.0
IMPATIENT_S = 0.2


def row(**changes: Any) -> Observation:
    usual: dict[str, Any] = {
        "attempt_id": ATTEMPT,
        "call_id": "call-1",
        "hold_id": "hold-1",
        "try_no": 1,
        "operation": "summary_leaf",
        "model": "openai/gpt-4o-mini",
        "state": "settled",
        "code": None,
        "usage": USAGE,
        "amount": NanoUsd(13_650),
        "finish_reason": "stop",
        "max_tokens": 4096,
        "started_us": 1_700_000_000_000_001,
        "ended_us": 1_700_000_002_500_003,
    }
    return Observation(**(usual | changes))


def environ(url: str, **more: str) -> dict[str, str]:
    """Variables with a key of their own: Langfuse keeps one client per key."""
    return {
        "LANGFUSE_PUBLIC_KEY": f"pk-lf-{uuid4()}",
        "LANGFUSE_SECRET_KEY": SECRET,
        "LANGFUSE_BASE_URL": url,
    } | more


def tracer(variables: dict[str, str], *, flush_s: float = PATIENT_S) -> LangfuseTracer:
    return LangfuseTracer(ATTEMPT, environ=variables, flush_s=flush_s)


def traced(url: str, *rows: Observation, flush_s: float = PATIENT_S) -> dict[str, int]:
    """Tell of the rows, close, and return what was noted."""
    observer = tracer(environ(url), flush_s=flush_s)
    for each in rows:
        observer.observe(each)
    observer.close()
    return observer.notes


def notes(*, delivered: int, dropped: int) -> dict[str, int]:
    return {"traces_delivered": delivered, "traces_dropped": dropped}


def fresh(code: str, *arguments: str) -> str:
    """Run code in a process of its own, silent but for what it returns."""
    command = [sys.executable, "-c", code, *arguments]
    env = {"PYTHONPATH": ":".join(sys.path)}
    done = run(
        command, capture_output=True, check=True, env=env, text=True, timeout=120
    )
    assert "" == done.stderr
    return done.stdout


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


def only(receiver: Receiver) -> Generation:
    (generation,) = receiver.generations
    return generation


@pytest.mark.loopback
def test_a_row_becomes_a_generation_of_its_attempt(receiver: Receiver) -> None:
    """Everything the row says in clear arrives, in the attempt's trace."""
    assert notes(delivered=1, dropped=0) == traced(receiver.url, row())

    sent = only(receiver)
    assert (trace_id(ATTEMPT), span_id(ATTEMPT)) == (sent.trace_id, sent.parent_id)
    assert "summary_leaf" == sent.name
    assert "generation" == sent.text("type")
    assert "openai/gpt-4o-mini" == sent.text("model.name")
    assert {"max_tokens": 4096} == sent.value("model.parameters")
    assert {
        "input": 60,
        "input_cached_tokens": 40,
        "output": 5,
        "output_reasoning_tokens": 2,
        "total": 107,
    } == sent.value("usage_details")
    assert {"total": 1.365e-05} == sent.value("cost_details")
    assert "DEFAULT" == sent.text("level")
    assert {
        "attempt_id": ATTEMPT,
        "call_id": "call-1",
        "hold_id": "hold-1",
        "try_no": 1,
        "state": "settled",
        "finish_reason": "stop",
        "nano_usd": 13_650,
    } == sent.metadata


@pytest.mark.loopback
def test_a_generation_lasts_as_long_as_the_request(receiver: Receiver) -> None:
    """Its times are those of the row, not of the telling."""
    traced(receiver.url, row())

    sent = only(receiver)
    times = (sent.started_us, sent.ended_us)
    assert (1_700_000_000_000_001, 1_700_000_002_500_003) == times


@pytest.mark.loopback
def test_a_failure_is_told_by_its_code_alone(receiver: Receiver) -> None:
    """A failed request is an error named by its code, at the price it counts as."""
    failed = row(state="unknown", code=Code.TIMEOUT, usage=None, amount=NanoUsd(5))

    traced(receiver.url, failed)

    sent = only(receiver)
    assert "ERROR" == sent.text("level")
    assert Code.TIMEOUT == sent.text("status_message") == sent.status
    assert (Code.TIMEOUT, "unknown") == (sent.metadata["code"], sent.metadata["state"])
    assert {"total": 5e-09} == sent.value("cost_details")
    assert sent.text("usage_details") is None
    assert 0 == sent.events


@pytest.mark.loopback
def test_rows_arrive_each_once(receiver: Receiver) -> None:
    """Many rows of many calls make as many generations, in one trace."""
    told = [row(call_id=f"call-{i % 7}", hold_id=f"hold-{i}") for i in range(500)]

    assert notes(delivered=500, dropped=0) == traced(receiver.url, *told)

    sent = receiver.generations
    expected = sorted((r.hold_id, r.call_id) for r in told)
    assert expected == sorted(
        (g.metadata["hold_id"], g.metadata["call_id"]) for g in sent
    )
    assert {trace_id(ATTEMPT)} == {g.trace_id for g in sent}


@pytest.mark.loopback
def test_no_content_means_no_field_for_it(receiver: Receiver) -> None:
    """Without content in the row there is no input and no output, not even empty."""
    traced(receiver.url, row())

    assert (None, None) == (only(receiver).text("input"), only(receiver).text("output"))
    assert CANARY.encode() not in receiver.raw


@pytest.mark.loopback
def test_content_arrives_when_it_is_given(receiver: Receiver) -> None:
    """An operator who switched content on finds prompt and reply, pictures inline."""
    picture = "data:image/png;base64,iVBORw0KGgo="

    traced(receiver.url, row(prompt=PROMPT, reply=picture))

    assert [turn.as_dict() for turn in PROMPT] == only(receiver).value("input")
    assert picture == only(receiver).text("output")
    assert {PATH} == {post.path for post in receiver.posts}


@pytest.mark.loopback
def test_half_a_character_loses_nothing_else(receiver: Receiver) -> None:
    """A reply that is no Unicode text is told, its odd half spelled out."""
    odd = row(prompt=(Message("user", "a\ud800b"),), reply="a\ud800b")

    assert notes(delivered=1, dropped=0) == traced(receiver.url, odd)
    assert "a\\ud800b" == only(receiver).text("output")
    assert [{"role": "user", "content": "a\ud800b"}] == only(receiver).value("input")


@pytest.mark.loopback
def test_the_secret_key_is_in_its_header_alone(receiver: Receiver) -> None:
    """The keys open the endpoint, and are in no span."""
    traced(receiver.url, row(code=Code.AUTH, state="voided"))

    (post,) = receiver.posts
    kind, token = post.headers["authorization"].split()
    assert (PATH, "Basic") == (post.path, kind)
    assert SECRET == b64decode(token).decode().partition(":")[2]
    assert "4" == post.headers["x-langfuse-ingestion-version"]
    assert SECRET.encode() not in receiver.raw


@pytest.mark.loopback
def test_the_operators_labels_are_told(receiver: Receiver) -> None:
    """Environment and release come along; the address has an older name, too."""
    variables = environ(
        "",
        LANGFUSE_HOST=receiver.url + "/",
        LANGFUSE_TRACING_ENVIRONMENT="staging",
        LANGFUSE_RELEASE="r7",
    )
    observer = tracer(variables)
    observer.observe(row())
    observer.close()

    attributes = only(receiver).attributes
    told = (attributes["langfuse.environment"], attributes["langfuse.release"])
    assert ("staging", "r7") == told


@pytest.mark.loopback
@pytest.mark.parametrize("status", [401, 500, 503])
def test_a_refusing_endpoint_is_counted(
    status: int,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What the endpoint turned away is dropped, counted and not talked about."""
    with receiving(status=status) as refusing:
        assert notes(delivered=0, dropped=3) == traced(refusing.url, *[row()] * 3)
        assert refusing.posts

    assert ("", "") == capfd.readouterr()
    assert [] == caplog.records


@pytest.mark.loopback
def test_a_dead_endpoint_is_counted(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Where nobody listens, everything is dropped, and nothing is printed."""
    assert notes(delivered=0, dropped=3) == traced(dead_url(), *[row()] * 3)
    assert ("", "") == capfd.readouterr()
    assert [] == caplog.records


@pytest.mark.parametrize("url", ["nonsense", "http://[", "file:///etc/passwd"])
def test_an_address_that_is_none_is_counted(url: str) -> None:
    """A mistyped address costs the traces and nothing else."""
    assert notes(delivered=0, dropped=1) == traced(url, row())


@pytest.mark.loopback
def test_a_silent_endpoint_is_left_behind() -> None:
    """Closing does not wait for the answer, and what comes late stays dropped."""
    with receiving(held=True) as silent:
        observer = tracer(environ(silent.url), flush_s=IMPATIENT_S)
        before = set(threading.enumerate())
        observer.observe(row())
        new = set(threading.enumerate()) - before
        (delivering,) = [thread for thread in new if thread.name == "tracing"]
        observer.close()

        assert delivering.is_alive()
        assert notes(delivered=0, dropped=1) == observer.notes

        silent.release()
        delivering.join()
        assert notes(delivered=0, dropped=1) == observer.notes


LEAVES = """
import http.client, sys, threading
from test_tracing import environ, row, tracer
from vectorless_rag.pageindex_runtime import tracing
tracing._POST_S = 3600
asked, wait = threading.Event(), http.client.HTTPConnection.getresponse
http.client.HTTPConnection.getresponse = lambda *a, **k: asked.set() or wait(*a, **k)
observer = tracer(environ(sys.argv[1]), flush_s=1.0)
observer.observe(row())
assert asked.wait(60)
observer.close()
print(observer.notes)
"""


@pytest.mark.loopback
def test_a_silent_endpoint_does_not_keep_the_process() -> None:
    """After closing, the process ends, whatever Langfuse still waits for."""
    with receiving(held=True) as silent:
        done = fresh(LEAVES, silent.url)

        assert silent.posts

    assert f"{notes(delivered=0, dropped=1)}\n" == done


@pytest.mark.loopback
def test_a_queue_that_overflows_is_counted() -> None:
    """Rows beyond what may wait are dropped; the rest arrives, and the sum is right."""
    told = 6000
    with receiving(held=True) as slow:
        observer = tracer(environ(slow.url))
        for _ in range(told):
            observer.observe(row())
        slow.release()
        observer.close()

        delivered = observer.notes["traces_delivered"]
        assert notes(delivered=delivered, dropped=told - delivered) == observer.notes
        # More arrived than was accepted in time, if the first answer came too late.
        assert 0 < delivered <= len(slow.generations) < told


@pytest.mark.loopback
def test_a_row_that_cannot_be_told_is_counted(receiver: Receiver) -> None:
    """One row that breaks its telling takes no other with it."""
    broken = row(amount=cast("NanoUsd", None))

    assert notes(delivered=2, dropped=1) == traced(receiver.url, row(), broken, row())


def test_without_langfuse_a_run_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it cannot be imported, everything is dropped, and closing comes back."""
    monkeypatch.setitem(sys.modules, "langfuse", None)

    assert notes(delivered=0, dropped=2) == traced("http://127.0.0.1", row(), row())


def test_without_a_thread_a_run_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Out of threads, everything is dropped, however much there is."""

    def refuse(_self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)

    told = [row()] * 3000
    assert notes(delivered=0, dropped=3000) == traced("http://127.0.0.1", *told)


def test_closing_is_for_good() -> None:
    """A row after the end is dropped and counted; closing again changes nothing."""
    observer = tracer(environ("http://127.0.0.1"))
    observer.close()
    observer.observe(row())
    observer.close()

    assert notes(delivered=0, dropped=1) == observer.notes


@pytest.mark.parametrize(
    "off",
    [
        {"LANGFUSE_PUBLIC_KEY": ""},
        {"LANGFUSE_SECRET_KEY": ""},
        {"LANGFUSE_TRACING_ENABLED": "False"},
        {"LANGFUSE_TRACING_ENABLED": "0"},
    ],
)
def test_tracing_is_off(off: dict[str, str]) -> None:
    """Without both keys, or switched off, nobody is told and nothing is noted."""
    observer = observer_from(ATTEMPT, environ("http://127.0.0.1") | off)
    observer.observe(row())
    observer.close()

    assert isinstance(observer, NoObserver)
    assert {} == observer.notes


@pytest.mark.loopback
def test_tracing_is_on(receiver: Receiver) -> None:
    """Both keys switch it on."""
    observer = observer_from(ATTEMPT, environ(receiver.url))
    observer.observe(row())
    observer.close()

    assert 1 == sum(observer.notes.values())


IMPORTS = """
import json, sys
from vectorless_rag.pageindex_runtime.tracing import LangfuseTracer, observer_from
observer_from("a", {}).close()
LangfuseTracer("a", environ={}).close()
print(json.dumps([n for n in ("langfuse", "opentelemetry") if n in sys.modules]))
"""


def test_the_door_is_light() -> None:
    """Neither importing it nor tracing nothing loads Langfuse."""
    assert [] == json.loads(fresh(IMPORTS))


def test_the_trace_of_an_attempt_is_known_to_both_sides() -> None:
    """The ids are those that Langfuse derives from a seed, spelled for W3C."""
    from langfuse import Langfuse  # noqa: PLC0415  (slow, and for this test alone)

    assert Langfuse.create_trace_id(seed=ATTEMPT) == trace_id(ATTEMPT)
    assert "fde20d2fe65ebaa1c1aa6c6d938d049f" == trace_id(ATTEMPT)


@given(st.text(st.characters(codec="utf-8")))
def test_ids_are_well_formed(attempt: str) -> None:
    """Any attempt has a trace and a span that the protocol takes."""
    assert 32 == len(trace_id(attempt))
    assert 16 == len(span_id(attempt))
    assert 0 < int(trace_id(attempt), 16)
    assert 0 < int(span_id(attempt), 16)
