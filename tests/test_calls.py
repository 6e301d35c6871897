"""The call boundary from its first call to the end of a run."""

import asyncio
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NoReturn

import pytest

from boundary import (
    ASK,
    ATTEMPT,
    BUDGET,
    FAST,
    MODEL,
    WORDS,
    YES,
    Bench,
    Priced,
    Scripted,
    ask,
    bench,
    caller_for,
    failure,
    opened,
    said,
)
from conftest import REPOSITORY
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.ledger.types import Hold, TokenUsage
from vectorless_rag.pageindex_runtime.calls import Caller
from vectorless_rag.pageindex_runtime.providers import (
    Message,
    ProviderReply,
    ProviderRequest,
)
from vectorless_rag.pageindex_runtime.retry import Backoff

PATHS = pytest.mark.parametrize("path", ["sync", "async"])


@PATHS
def test_a_call_is_reserved_sent_settled_and_read(path: str, tmp_path: Path) -> None:
    """One request, one row, one answer in the upstream's spelling."""
    provider = Scripted([said('```json\n{"answer": "Yes.", "thinking": "x"}\n```')])
    with bench(tmp_path, offline=provider) as run:
        reply = ask(run.caller, path, ASK, "question")

        assert ('{"answer": "yes"}', "stop", {"answer": "yes"}) == (
            reply.text,
            reply.finish_reason,
            reply.value,
        )
        (row,) = run.rows
        assert ("settled", 0, ASK, "offline/scripted", "attempt-1", 1) == (
            str(row.state),
            row.amount_nano,
            row.operation,
            row.model,
            row.call_id,
            row.try_no,
        )
        assert TokenUsage(prompt_tokens=7, completion_tokens=3) == row.usage


def test_the_provider_is_told_what_it_may_do(tmp_path: Path) -> None:
    """Operation, conversation, cap and time go with each request."""
    provider = Scripted([YES])
    history = (Message("user", "first"), Message("assistant", "second"))
    with bench(tmp_path, offline=provider) as run:
        run.caller.complete(ASK, "third", history=history)

    (request,) = provider.requests
    assert (ASK, 64) == (request.operation, request.max_tokens)
    assert ["first", "second", "third"] == [m.content for m in request.messages]
    assert 0 < request.timeout_s <= 30


def test_a_call_works_while_its_thread_runs_an_event_loop(tmp_path: Path) -> None:
    """Upstream asks from inside coroutines, without awaiting."""
    with bench(tmp_path, offline=Scripted([YES])) as run:

        async def inside() -> str:
            return run.caller.complete(ASK, "question").text

        assert '{"answer": "yes"}' == asyncio.run(inside())


def test_text_that_no_wire_takes_is_sent_without_it(tmp_path: Path) -> None:
    """Half a surrogate pair from a PDF becomes the replacement character."""
    provider = Scripted([YES])
    with bench(tmp_path, offline=provider) as run:
        run.caller.complete(ASK, "a \ud800 b é 漢 \ud83d\ude00")

    assert "a \ufffd b é 漢 😀" == provider.requests[0].messages[0].content


# Refusals before anything is sent.


def test_a_model_without_a_price_is_refused(tmp_path: Path) -> None:
    """Its cost could not be bounded; nothing is opened, reserved or sent."""
    provider = Priced(YES)
    with opened(tmp_path) as ledger:
        caller = caller_for(ledger, model="fake/unheard-of")
        caller._planner._remote = lambda: provider
        with pytest.raises(VectorlessRagError, match="fake/unheard-of") as caught:
            caller.complete(ASK, "question")

        assert (Code.UNPRICED_MODEL, 0, []) == (
            caught.value.code,
            provider.opens,
            ledger.holds(ATTEMPT),
        )


def test_a_model_without_a_price_is_called_where_that_is_allowed(
    tmp_path: Path,
) -> None:
    """It counts as free, and the run says how often that was so."""
    with opened(tmp_path) as ledger:
        caller = caller_for(ledger, model="fake/unheard-of", allow_unpriced=True)
        caller._planner._remote = lambda: Priced(YES)
        caller.complete(ASK, "question")
        caller.close()

        assert (1, 0) == (caller.counts.unpriced, ledger.budget(BUDGET).spent)


@pytest.mark.parametrize(
    ("call", "code"),
    [
        pytest.param({"model": "nameless"}, Code.BAD_REQUEST, id="model"),
        pytest.param({"model": "a/b c"}, Code.BAD_REQUEST, id="blank-in-model"),
        pytest.param({"params": {"tools": "x"}}, Code.BAD_REQUEST, id="parameter"),
        pytest.param({"operation": "chat"}, Code.INTERNAL_ERROR, id="operation"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    call: dict[str, Any], code: Code, tmp_path: Path
) -> None:
    """A call that makes no sense reaches neither ledger nor provider."""
    provider = Scripted([YES])
    arguments = {"operation": ASK, "prompt": "question"} | call
    with bench(tmp_path, offline=provider) as run:
        with pytest.raises(VectorlessRagError, match=r"\w") as caught:
            run.caller.complete(**arguments)

        assert (code, []) == (caught.value.code, run.rows)
    assert [] == provider.requests


def test_a_cap_above_what_the_model_can_do_is_lowered(tmp_path: Path) -> None:
    """Providers refuse a cap that is too large."""
    provider = Priced(YES)
    with opened(tmp_path) as ledger:
        caller = caller_for(
            ledger, model="openai/gpt-4o-mini", changes={"max_output_tokens": 131_072}
        )
        caller._planner._remote = lambda: provider
        caller.complete(ASK, "question")
        caller.close()

    assert [16_384] == [r.max_tokens for r in provider.inner.requests]


# The end of a run.


ENDING = [c for c in Code if c.startswith("pageindex_") or c is Code.INTERNAL_ERROR]
ONE_PROMPT = {
    Code.CONTEXT_OVERFLOW,
    Code.CONTENT_FILTER,
    Code.EMPTY_RESPONSE,
    Code.TRUNCATED_RESPONSE,
    Code.INVALID_JSON,
}


@pytest.mark.parametrize("code", ENDING)
def test_a_refusal_latches_and_a_bad_prompt_does_not(
    code: Code, tmp_path: Path
) -> None:
    """After a failure that ends the run nothing leaves, and closing says why."""
    provider = Scripted([failure(code, retry=False), YES])
    with bench(tmp_path, offline=provider) as run:
        with pytest.raises(VectorlessRagError, match="scripted"):
            run.caller.complete(ASK, "question")

        if code in ONE_PROMPT:
            assert {"answer": "yes"} == run.caller.complete(ASK, "question").value
            run.caller.close()
            return
        for again in (lambda: run.caller.complete(ASK, "question"), run.caller.close):
            with pytest.raises(VectorlessRagError, match="scripted") as caught:
                again()
            assert code == caught.value.code
        assert 1 == len(provider.requests)


def test_the_first_refusal_is_the_reason(tmp_path: Path) -> None:
    """A failure that comes later follows from it, or does not matter any more."""

    class TwoWays(Scripted):
        async def send(self, request: ProviderRequest) -> ProviderReply:
            self.requests.append(request)
            if request.operation == ASK:
                raise failure(Code.AUTH, retry=False)
            await asyncio.sleep(0.1)
            raise failure(Code.QUOTA, retry=False)

    with bench(tmp_path, offline=TwoWays([])) as run:

        async def two() -> list[Any]:
            calls = (run.caller.acomplete(o, "q") for o in ("expand", ASK))
            return await asyncio.gather(*calls, return_exceptions=True)

        assert [Code.QUOTA, Code.AUTH] == [e.code for e in asyncio.run(two())]
        with pytest.raises(VectorlessRagError, match="credentials"):
            run.caller.close()


def test_a_refusal_wakes_those_who_wait(tmp_path: Path) -> None:
    """A call that is about to try again learns that the run is over."""
    provider = Scripted([failure(after=25.0), failure(Code.AUTH, retry=False)])
    with bench(tmp_path, offline=provider) as run:

        async def two() -> list[Any]:
            calls = (run.caller.acomplete(ASK, "question") for _ in range(2))
            return await asyncio.gather(*calls, return_exceptions=True)

        results = asyncio.run(asyncio.wait_for(two(), 20))

    assert [Code.AUTH, Code.AUTH] == [error.code for error in results]
    assert 2 == len(provider.requests)


def leave_with(caller: Caller, error: BaseException) -> None:
    """Be refused, and then fail with something else."""
    with caller:
        with pytest.raises(VectorlessRagError, match="scripted"):
            caller.complete(ASK, "question")
        raise error


def test_leaving_a_run_raises_what_the_upstream_swallowed(tmp_path: Path) -> None:
    """Whatever came of it, a refused run is no success."""
    with (
        opened(tmp_path) as ledger,
        pytest.raises(VectorlessRagError, match="credentials"),
        caller_for(
            ledger, offline=Scripted([failure(Code.AUTH, retry=False)])
        ) as caller,
        pytest.raises(VectorlessRagError, match="scripted"),
    ):
        caller.complete(ASK, "question")


def test_leaving_a_run_raises_the_refusal_over_what_followed_from_it(
    tmp_path: Path,
) -> None:
    """The upstream's own error is the consequence, and may quote anything."""
    with opened(tmp_path) as ledger:
        caller = caller_for(ledger, offline=Scripted([failure(Code.AUTH, retry=False)]))
        with pytest.raises(VectorlessRagError, match="credentials") as caught:
            leave_with(caller, RuntimeError(WORDS))

    assert caught.value.__suppress_context__


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_leaving_a_run_lets_a_signal_through(
    error: type[BaseException], tmp_path: Path
) -> None:
    """Ctrl-C is not turned into a failure of the run."""
    with opened(tmp_path) as ledger:
        caller = caller_for(ledger, offline=Scripted([failure(Code.AUTH, retry=False)]))
        with pytest.raises(error, match="stop"):
            leave_with(caller, error("stop"))


def test_leaving_a_run_in_order_raises_nothing(tmp_path: Path) -> None:
    """And an error of somebody else's stays what it is."""
    with opened(tmp_path) as ledger:
        with caller_for(ledger, offline=Scripted([YES])) as caller:
            caller.complete(ASK, "question")
        with (
            pytest.raises(RuntimeError, match="theirs"),
            caller_for(ledger, offline=Scripted([YES])),
        ):
            raise RuntimeError("theirs")


def test_closing_twice_says_the_same(tmp_path: Path) -> None:
    """A refusal is not used up, and a closed run stays closed."""
    with bench(tmp_path, offline=Scripted([YES])) as run:
        run.caller.complete(ASK, "question")
        run.caller.close()
        run.caller.close()
        with pytest.raises(VectorlessRagError, match="the run is over"):
            run.caller.complete(ASK, "question")
        with pytest.raises(VectorlessRagError, match="the run is over"):
            asyncio.run(run.caller.acomplete(ASK, "question"))


def test_a_call_that_comes_as_the_run_ends_is_refused(tmp_path: Path) -> None:
    """Between the last call and the end of the thread nothing slips out."""
    provider = Scripted([YES])
    with bench(tmp_path, offline=provider) as run:
        run.caller._background.call(run.caller._stop(None))
        with pytest.raises(VectorlessRagError, match="the run is over"):
            run.caller.complete(ASK, "question")
        run.caller.close()

    assert [] == provider.requests


def in_flight(run: Bench, start: Callable[[], Any]) -> Any:
    """Start a call on another thread and return its future once it was sent."""
    outcome: Future[Any] = Future()

    def body() -> None:
        try:
            outcome.set_result(start())
        except BaseException as error:  # noqa: BLE001  (handed to the test)
            outcome.set_exception(error)

    thread = threading.Thread(target=body, daemon=True)
    thread.start()
    while not run.states:
        time.sleep(0.01)
    return outcome


def test_cancelling_ends_calls_in_flight_and_the_run(tmp_path: Path) -> None:
    """What had been sent counts as billed; nobody waits for it any longer."""
    with bench(tmp_path, offline=Scripted([60.0])) as run:
        waiting = in_flight(run, lambda: run.caller.complete(ASK, "question"))
        run.caller.cancel()
        with pytest.raises(
            VectorlessRagError, match=r"cancelled|run is over"
        ) as caught:
            waiting.result(20)
        with pytest.raises(VectorlessRagError, match="cancelled"):
            run.caller.close()

        assert (Code.CANCELLED, ["unknown"]) == (caught.value.code, run.states)


def test_a_wait_that_is_interrupted_ends_its_call(tmp_path: Path) -> None:
    """A signal in the waiting thread leaves no request running behind it."""

    def interrupt(_number: int, _frame: Any) -> NoReturn:
        raise InterruptedError

    before = signal.signal(signal.SIGALRM, interrupt)
    with bench(tmp_path, offline=Scripted([60.0])) as run:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with pytest.raises(InterruptedError, match=r"^$"):
            run.caller.complete(ASK, "question")
        signal.signal(signal.SIGALRM, before)
        for _ in range(200):
            if run.states == ["unknown"]:
                break
            time.sleep(0.05)

        assert ["unknown"] == run.states


def test_a_signal_ends_what_other_threads_wait_for(tmp_path: Path) -> None:
    """The thread that it meets may itself wait for those, and could not end them."""

    def interrupt(_number: int, _frame: Any) -> NoReturn:
        run.caller.interrupt()
        raise InterruptedError

    before = signal.signal(signal.SIGALRM, interrupt)
    with bench(tmp_path, offline=Scripted([60.0])) as run:
        waiting = in_flight(run, lambda: run.caller.complete(ASK, "question"))
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(InterruptedError, match=r"^$"):
            time.sleep(60)
        with pytest.raises(VectorlessRagError, match=r"over|cancelled"):
            waiting.result(20)
        with pytest.raises(VectorlessRagError, match="cancelled"):
            run.caller.close()
        signal.signal(signal.SIGALRM, before)

        assert ["unknown"] == run.states


def test_an_interrupt_before_the_first_call_sends_nothing(tmp_path: Path) -> None:
    """A run may be told to end while it reads."""
    with bench(tmp_path, offline=Scripted([YES])) as run:
        run.caller.interrupt()
        with pytest.raises(VectorlessRagError, match="cancelled"):
            run.caller.complete(ASK, "question")

        assert [] == run.rows


def test_cancelling_before_the_first_call_sends_nothing(tmp_path: Path) -> None:
    """A run may be over before it asked anything."""
    with bench(tmp_path, offline=Scripted([YES])) as run:
        run.caller.cancel()
        with pytest.raises(VectorlessRagError, match="cancelled"):
            run.caller.complete(ASK, "question")
        with pytest.raises(VectorlessRagError, match="cancelled"):
            run.caller.close()

        assert [] == run.rows


def test_closing_with_a_call_in_flight_records_it(tmp_path: Path) -> None:
    """The upstream may end while another of its threads still waits."""
    with bench(tmp_path, offline=Scripted([60.0])) as run:
        waiting = in_flight(run, lambda: run.caller.complete(ASK, "question"))
        run.caller.close()
        with pytest.raises(VectorlessRagError, match="run is over"):
            waiting.result(20)

        assert ["unknown"] == run.states


def test_a_cancelled_task_leaves_a_closed_row(tmp_path: Path) -> None:
    """Upstream may cancel one of its own tasks: the run goes on."""
    with bench(tmp_path, offline=Scripted([60.0, YES])) as run:

        async def cancelled() -> None:
            task = asyncio.ensure_future(run.caller.acomplete(ASK, "question"))
            while not run.states:  # noqa: ASYNC110  (the ledger has no event)
                await asyncio.sleep(0.01)
            task.cancel()
            await task

        with pytest.raises(asyncio.CancelledError, match=r"^$"):
            asyncio.run(cancelled())
        assert {"answer": "yes"} == run.caller.complete(ASK, "question").value
        assert ["unknown", "settled"] == run.states
        run.caller.close()


def test_no_more_calls_run_at_once_than_allowed(tmp_path: Path) -> None:
    """The others wait for a place, and their deadline does not run meanwhile."""

    class Crowd:
        now = most = 0

        async def send(self, _request: ProviderRequest) -> ProviderReply:
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(0.05)
            self.now -= 1
            return YES

    crowd = Crowd()
    changes = {"concurrency": 3, "call_timeout_s": 1}
    with bench(tmp_path, offline=crowd, changes=changes) as run:

        async def many() -> list[Any]:
            calls = (run.caller.acomplete(ASK, "question") for _ in range(12))
            return await asyncio.gather(*calls)

        assert 12 == len(asyncio.run(many()))
    assert 3 == crowd.most


def test_every_call_is_reported(tmp_path: Path) -> None:
    """Progress hears of each call before and after, failed ones included."""
    heard: list[tuple[int, int]] = []
    with opened(tmp_path) as ledger:
        caller = caller_for(
            ledger, offline=Scripted([YES, failure(Code.QUOTA, retry=False)])
        )
        caller._on_call = lambda counts: heard.append((counts.calls, counts.in_flight))
        caller.complete(ASK, "question")
        with pytest.raises(VectorlessRagError, match="scripted"):
            caller.complete(ASK, "question")
        caller._shut_down()

    assert [(0, 1), (1, 0), (1, 1), (2, 0)] == heard
    assert (2, 2) == (caller.counts.calls, caller.counts.requests)


def test_a_ledger_that_cannot_be_written_ends_the_run() -> None:
    """Without a record nothing more is spent."""

    class Broken:
        def reserve(self, _hold: Hold) -> NoReturn:
            raise VectorlessRagError(Code.LEDGER_UNAVAILABLE)

    provider = Scripted([YES])
    caller = caller_for(Broken(), offline=provider)
    for again in (lambda: caller.complete(ASK, "question"), caller.close):
        with pytest.raises(VectorlessRagError, match="ledger"):
            again()
    assert [] == provider.requests


def test_nothing_a_model_said_is_in_a_representation() -> None:
    """A traceback with locals, or a debugger's log, shows no text."""
    reply, message = said(WORDS), Message("user", WORDS)

    assert "CANARY" not in repr(reply) + repr(message) + repr([message])


def test_importing_the_boundary_is_light() -> None:
    """Offline runs pay neither for LiteLLM nor for what it brings along."""
    code = (
        "import sys; import vectorless_rag.pageindex_runtime.wiring;"
        "import vectorless_rag.pageindex_runtime.litellm_provider;"
        "heavy = {'litellm', 'langfuse', 'openai', 'tiktoken', 'httpx', 'sqlalchemy'};"
        "print(sorted(heavy & {m.split('.')[0] for m in sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(REPOSITORY / "src")},
        capture_output=True,
        check=True,
        timeout=60,
    )

    assert b"[]\n" == done.stdout


def test_defaults_are_those_of_the_settings() -> None:
    """Waits are short at first and bounded."""
    assert (0.5, 20.0) == (Backoff().first_s, Backoff().most_s)
    assert FAST.first_s < Backoff().first_s
    assert MODEL.startswith("openai/")
