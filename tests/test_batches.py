"""Calls by batch: real LiteLLM, real HTTP, a real ledger and journal."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from batched import ASK, Batched, batched, came_of
from boundary import MODEL, opened
from fault_server import (
    CANARY,
    CONTEXT,
    EMPTY_BODY,
    HTML,
    QUOTA,
    Fault,
    FaultServer,
    completion,
    error,
    serving,
    without_usage,
)
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.ledger.types import Attempt, Hold, State
from vectorless_rag.pageindex_runtime import batch_lines, batch_rounds
from vectorless_rag.pageindex_runtime.batch_records import FOLDER, Line, Record
from vectorless_rag.pageindex_runtime.calls import Reply
from vectorless_rag.pageindex_runtime.litellm_batches import ENDPOINT
from vectorless_rag.pageindex_runtime.providers import Message, ProviderRequest
from vectorless_rag.units import NanoUsd, Sha256

pytestmark = pytest.mark.loopback

PROMPTS = ("one", "two", "three")
PAID = 9_000
"""100 prompt tokens at 0.075 and 5 of output at 0.30 $ a million, by batch."""


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with serving() as play:
        yield play


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setattr(batch_rounds, "FIRST_POLL_S", 0.02)


def by_prompt(**faults: list[Fault]) -> Callable[[int, dict[str, Any]], Fault]:
    """Answer a prompt's requests in turn, and any other request as usual."""

    def script(_number: int, body: dict[str, Any]) -> Fault:
        planned = faults.get(body["messages"][-1]["content"], [])
        return planned.pop(0) if planned else completion()

    return script


def amounts(bench: Batched) -> list[int | None]:
    return [row.amount_nano for row in bench.rows]


def codes(came: list[Any]) -> list[Code | None]:
    return [
        each.code if isinstance(each, VectorlessRagError) else None for each in came
    ]


def until(what: Callable[[], object]) -> None:
    """Wait until *what* is true."""
    end = time.monotonic() + 60
    while not what():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_calls_in_flight_are_one_batch_at_its_price(
    tmp_path: Path, server: FaultServer
) -> None:
    """One file, one batch; each line settles its own hold; nothing is left behind."""
    with batched(tmp_path, server) as bench:
        came = bench.ask(*PROMPTS)
        rows, sizes = bench.rows, bench.sizes
        bench.caller.close()

    assert [None] * 3 == codes(came)
    assert ([3], 1) == (sizes, server.desk.asked.count("GET files content"))
    assert [("settled", PAID, "chatcmpl-1", "stop")] * 3 == [
        (str(r.state), r.amount_nano, r.response_id, r.finish_reason) for r in rows
    ]
    # The worst case is held at the same price: 64 tokens of output and the prompt.
    assert [64 * 300 + row.held_prompt_tokens * 75 for row in rows] == [
        row.reserved_nano for row in rows
    ]
    assert [] == list((tmp_path / "journal" / FOLDER).iterdir())


def test_a_line_is_what_would_be_sent_by_itself(
    tmp_path: Path, server: FaultServer
) -> None:
    """The same body: a batch changes the price, and no answer."""
    with batched(tmp_path, server, requests=1) as bench:
        bench.caller.complete(ASK, "one", model="openai/gpt-5")
        bench.caller.complete(ASK, "two")
    gpt5, gpt4 = server.requests

    assert {
        "model": "gpt-5",
        "messages": [{"role": "user", "content": "one"}],
        "max_completion_tokens": 64,
    } == gpt5
    assert {
        "model": "gpt-4o-mini",
        "messages": [{"role": "user", "content": "two"}],
        "max_tokens": 64,
    } == gpt4


def test_a_full_batch_does_not_wait(tmp_path: Path, server: FaultServer) -> None:
    """The window is an hour, and two are enough."""
    with batched(tmp_path, server, requests=2, window_s=3600) as bench:
        came = bench.ask("one", "two")
        sizes = bench.sizes

    assert ([None] * 2, [2]) == (codes(came), sizes)


def test_a_batch_is_for_one_model(tmp_path: Path, server: FaultServer) -> None:
    """Calls for two models are two batches."""
    with batched(tmp_path, server, requests=2, window_s=3600) as bench:
        other = bench.pool.submit(
            bench.caller.complete, ASK, "two", model="openai/gpt-4o"
        )
        came = [*bench.ask("one"), came_of(other)]
        models = {b["body"]["model"] for batch in server.desk.batches.values()
                  for b in server.desk.lines_of(batch)}  # fmt: skip
        sizes = bench.sizes

    assert ([None] * 2, [1, 1]) == (codes(came), sizes)
    assert {"gpt-4o", "gpt-4o-mini"} == models


def test_a_line_that_failed_is_tried_again_on_its_own_row(
    tmp_path: Path, server: FaultServer
) -> None:
    """By the same retries as any request; what was answered is not asked again."""
    server.script = by_prompt(two=[error(429), error(500)])
    with batched(tmp_path, server) as bench:
        came = bench.ask(*PROMPTS)
        states, sizes, counts = bench.states, bench.sizes, bench.caller.counts

    assert [None] * 3 == codes(came)
    assert [3, 1, 1] == sizes
    assert ["settled"] * 3 + ["voided"] * 2 == states
    assert (2, 5) == (counts.retries, counts.requests)


@pytest.mark.parametrize(
    ("fault", "code"),
    [(CONTEXT, Code.CONTEXT_OVERFLOW), (QUOTA, Code.QUOTA), (error(401), Code.AUTH)],
)
def test_a_line_that_cannot_be_answered_is_classified(
    tmp_path: Path, server: FaultServer, fault: Fault, code: Code
) -> None:
    """As a request of its own would be, and it costs nothing."""
    server.script = by_prompt(two=[fault])
    with batched(tmp_path, server) as bench:
        came = bench.ask(*PROMPTS)
        states = bench.states
    (failed,) = [each for each in came if isinstance(each, VectorlessRagError)]

    assert (code, ["settled", "settled", "voided"]) == (failed.code, states)
    assert CANARY not in str(failed)


def cut(lines: list[bytes]) -> list[bytes]:
    return [lines[0][:-9], *lines[1:]]


def gone(lines: list[bytes]) -> list[bytes]:
    return lines[1:]


def strange(lines: list[bytes]) -> list[bytes]:
    line = json.loads(lines[0])
    line["response"]["body"] = ["no", "reply"]
    return [
        json.dumps(line).encode(),
        b'"text"',
        b"{}",
        b'{"custom_id": 1}',
        *lines[1:],
    ]


def headless(lines: list[bytes]) -> list[bytes]:
    line = json.loads(lines[0])
    return [json.dumps(line | {"response": None}).encode(), *lines[1:]]


@pytest.mark.parametrize("spoil", [cut, gone, strange, headless])
def test_a_line_without_a_usable_reply_may_have_been_billed(
    tmp_path: Path, server: FaultServer, spoil: Callable[[list[bytes]], list[bytes]]
) -> None:
    """Its hold stays spent, and it is asked again on another."""
    turns = [spoil]
    server.desk.spoil = lambda lines: turns.pop()(lines) if turns else lines
    with batched(tmp_path, server) as bench:
        came = bench.ask(*PROMPTS)
        states, sizes = bench.states, bench.sizes

    assert ([None] * 3, [3, 1]) == (codes(came), sizes)
    assert ["settled"] * 3 + ["unknown"] == states


def test_usage_that_is_missing_counts_at_the_hold(
    tmp_path: Path, server: FaultServer
) -> None:
    """A reply without usage is used, and its price is not guessed."""
    server.script = by_prompt(two=[without_usage()])
    with batched(tmp_path, server) as bench:
        came = bench.ask(*PROMPTS)
        (row,) = [row for row in bench.rows if row.state is State.UNKNOWN]

    assert [None] * 3 == codes(came)
    assert row.reserved_nano == row.amount_nano


@pytest.mark.parametrize("status", ["expired", "cancelled"])
def test_what_a_batch_did_not_begin_is_sent_in_another(
    tmp_path: Path, server: FaultServer, status: str
) -> None:
    """What it did stays; the rest cost nothing and is no storm of failures."""
    server.desk.ends = [status]
    with batched(tmp_path, server, requests=12) as bench:
        came = bench.ask(*map(str, range(12)))
        states, sizes = bench.states, bench.sizes

    assert ([None] * 12, [12, 11]) == (codes(came), sizes)
    assert ["settled"] * 12 + ["voided"] * 11 == states


def test_a_batch_that_is_one_too_many_is_ordered_again_later(
    tmp_path: Path, server: FaultServer
) -> None:
    """The file is handed in once, and no call has a second hold."""
    server.desk.ends = ["failed:token_limit_exceeded"]
    server.desk.faults["POST batches"] = [error(429, retry_after="0")]
    with batched(tmp_path, server) as bench:
        came = bench.ask(*PROMPTS)
        states = bench.states

    assert ([None] * 3, ["settled"] * 3) == (codes(came), states)
    asked = server.desk.asked
    assert (1, 3) == (asked.count("POST files"), asked.count("POST batches"))


def test_a_batch_that_is_ordered_again_is_not_the_one_of_before(
    tmp_path: Path, server: FaultServer
) -> None:
    """Where the answer is lost, the latest of the name is looked for."""
    server.desk.ends = ["failed:token_limit_exceeded"]
    server.desk.faults["POST batches"] = [None, EMPTY_BODY]
    server.desk.lost = True
    with batched(tmp_path, server) as bench:
        came = bench.ask(*PROMPTS)
        states, sizes = bench.states, bench.sizes

    assert ([None] * 3, ["settled"] * 3, [3, 3]) == (codes(came), states, sizes)


@pytest.mark.parametrize(
    ("why", "code"),
    [
        ("invalid_json_line", Code.BAD_REQUEST),
        ("billing_hard_limit_reached", Code.QUOTA),
        ("", Code.BAD_REQUEST),
    ],
)
def test_a_batch_that_is_refused_ends_the_run_at_no_cost(
    tmp_path: Path, server: FaultServer, why: str, code: Code
) -> None:
    """Nothing of it was carried out."""
    server.desk.ends = [f"failed:{why}"]
    with batched(tmp_path, server) as bench:
        came = bench.ask(*PROMPTS)
        states = bench.states

    assert ({code}, ["voided"] * 3) == (set(codes(came)), states)


@pytest.mark.parametrize("place", ["POST files", "POST batches"])
def test_a_key_that_is_refused_is_told(
    tmp_path: Path, server: FaultServer, place: str
) -> None:
    """At the first step or the second, and nothing is held for it."""
    server.desk.faults[place] = [error(401)]
    with batched(tmp_path, server) as bench:
        came = bench.ask(*PROMPTS)
        states = bench.states

    assert ({Code.AUTH}, ["voided"] * 3) == (set(codes(came)), states)
    assert {} == server.desk.batches


@pytest.mark.parametrize("lost", [True, False])
@pytest.mark.parametrize("fault", [EMPTY_BODY, HTML, error(500)])
def test_a_batch_whose_answer_was_lost_is_looked_for(
    tmp_path: Path, server: FaultServer, fault: Fault, *, lost: bool
) -> None:
    """It is found by its name, or was never there: one is carried out."""
    server.desk.faults["POST batches"] = [fault]
    server.desk.lost = lost
    with batched(tmp_path, server) as bench:
        came = bench.ask(*PROMPTS)
        states, sizes = bench.states, bench.sizes

    assert ([None] * 3, [3], ["settled"] * 3) == (codes(came), sizes, states)


def test_a_batch_is_looked_for_among_many(tmp_path: Path, server: FaultServer) -> None:
    """Others of the same account are in the list, some with no name at all."""
    server.desk.faults["POST batches"] = [EMPTY_BODY]
    server.desk.lost, server.desk.others = True, 2
    with batched(tmp_path, server) as bench:
        came = bench.ask(*PROMPTS)

    assert [None] * 3 == codes(came)
    assert 1 == server.desk.asked.count("POST batches")


def test_a_parameter_that_the_model_does_not_take_is_refused_unsent(
    tmp_path: Path, server: FaultServer
) -> None:
    """As it is call by call; what waited for the same batch goes on."""
    effort = {"reasoning_effort": "low"}
    with batched(tmp_path, server) as bench:
        with pytest.raises(VectorlessRagError, match="bad_request") as refused:
            bench.caller.complete(ASK, "one", params=effort)
        states = bench.states

    assert (Code.BAD_REQUEST, ["voided"]) == (refused.value.code, states)
    assert [] == server.desk.asked


def test_a_server_of_ones_own_needs_no_key(
    tmp_path: Path, server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client insists on one, so that it sends what is none."""
    monkeypatch.delenv("OPENAI_API_KEY")
    with batched(tmp_path, server) as bench:
        came = bench.ask(*PROMPTS)

    assert [None] * 3 == codes(came)
    assert {"Bearer not-needed"} == {h["Authorization"] for h in server.desk.headers}


def test_another_ledger_stays_as_it_is(tmp_path: Path, server: FaultServer) -> None:
    """The journal knows of a killed run that this ledger has never heard of."""
    with opened(tmp_path) as ledger:
        begin(ledger, "killed")
        with batched(tmp_path, server, ledger=ledger, attempt_id="killed") as killed:
            leave(killed, reached="known")
    with batched(tmp_path, server) as bench:
        came = bench.ask(*PROMPTS)
        rows = bench.rows

    assert [None] * 3 == codes(came)
    assert [(True, 0)] * 3 == [(row.replayed, row.amount_nano) for row in rows]


def test_passing_failures_of_looking_and_fetching_are_waited_out(
    tmp_path: Path, server: FaultServer
) -> None:
    """They cost nothing and are no tries of any call."""
    faults = [error(500), HTML, error(429, retry_after="0"), EMPTY_BODY]
    server.desk.faults |= {
        "GET batches one": [*faults], "GET files content": [error(500)],
        "POST files": [error(503)],
    }  # fmt: skip
    with batched(tmp_path, server) as bench:
        came = bench.ask(*PROMPTS)
        sizes, retries = bench.sizes, bench.caller.counts.retries

    assert ([None] * 3, [3], 0) == (codes(came), sizes, retries)


def test_a_batch_that_can_no_longer_be_followed_is_left_to_the_next_run(
    tmp_path: Path, server: FaultServer
) -> None:
    """Nothing is sent again: it may be carried out, and the next run looks."""
    server.desk.faults["GET batches one"] = [error(403)]
    with opened(tmp_path) as ledger:
        with batched(tmp_path, server, ledger=ledger) as bench:
            came = bench.ask(*PROMPTS)
            states = bench.states
        begin(ledger, "later")
        with batched(tmp_path, server, ledger=ledger, attempt_id="later") as later:
            again = later.ask(*PROMPTS)
            sizes, rows = later.sizes, ledger.holds("later")
        before = amounts(bench)

    assert ({Code.AUTH}, ["unknown"] * 3) == (set(codes(came)), states)
    assert ([None] * 3, [3]) == (codes(again), sizes)
    assert [(True, 0)] * 3 == [(row.replayed, row.amount_nano) for row in rows]
    assert [PAID] * 3 == before


def begin(ledger: Any, attempt: str) -> None:
    """Start another attempt at the same document."""
    digest = Sha256("0" * 64)
    ledger.start_attempt(
        Attempt(
            attempt_id=attempt, run_id="run", owner="local", document_sha256=digest,
            recipe_hash=digest, model=MODEL,
        )
    )  # fmt: skip


# A run that was killed.


def leave(bench: Batched, *, reached: str, close: str | None = None) -> Record:
    """Do what a run has done that was killed when it had *reached* a step."""
    journal = bench.caller._shared.journal
    lines, spelled = [], []
    for number, prompt in enumerate(PROMPTS):
        request = ProviderRequest(
            operation=ASK, model=MODEL, messages=(Message("user", prompt),),
            max_tokens=64, timeout_s=1, hold_id=f"killed-{number}:1",
        )  # fmt: skip
        bench.ledger.reserve(
            Hold(
                hold_id=request.hold_id, attempt_id="killed", operation=ASK,
                model=MODEL, amount=NanoUsd(50_000), prompt_tokens=9,
                budgets=("run:test",), lease_s=60, call_id=f"killed-{number}", try_no=1,
            )
        )  # fmt: skip
        lines.append(Line(hold_id=request.hold_id, key=journal.key(request)))
        spelled.append(request)
    record = bench.records.add(MODEL, time.time() + 60, tuple(lines))
    if reached != "recorded":
        data = b"".join(
            batch_lines.line(
                request.hold_id,
                ENDPOINT,
                {
                    "model": "gpt-4o-mini",
                    "messages": [turn.as_dict() for turn in request.messages],
                },
            )
            for request in spelled
        )
        file = bench.server.desk._file(data)
        batch = bench.server.desk._create({
            "input_file_id": file["id"], "completion_window": "24h",
            "endpoint": ENDPOINT,
            "metadata": {"vectorless_rag": record.name},
        })  # fmt: skip
        if reached == "known":
            record.created(batch["id"])
    record.leave()
    if close == "ended":
        bench.ledger.end_attempt("killed", "cancelled", Code.CANCELLED)
    elif close == "unknown":
        for line in lines:
            bench.ledger.unknown(line.hold_id, "interrupted", Code.CANCELLED)
    return record


@pytest.mark.parametrize("close", [None, "ended", "unknown"])
@pytest.mark.parametrize("reached", ["created", "known"])
@pytest.mark.parametrize("replay", [True, False])
def test_a_batch_of_a_killed_run_is_taken_up(
    tmp_path: Path,
    server: FaultServer,
    reached: str,
    close: str | None,
    *,
    replay: bool,
) -> None:
    """Its replies are used, the holds it was sent on are settled, no other is sent."""
    with opened(tmp_path) as ledger:
        begin(ledger, "killed")
        with batched(tmp_path, server, ledger=ledger, attempt_id="killed") as killed:
            leave(killed, reached=reached, close=close)
        with batched(tmp_path, server, ledger=ledger, replay=replay) as bench:
            came = bench.ask(*PROMPTS)
            sizes, rows = bench.sizes, bench.rows
        before = ledger.holds("killed")

    assert ([None] * 3, [3]) == (codes(came), sizes)
    assert [(True, 0)] * 3 == [(row.replayed, row.amount_nano) for row in rows]
    assert [("settled", PAID)] * 3 == [(str(r.state), r.amount_nano) for r in before]
    assert [] == list((tmp_path / "journal" / FOLDER).iterdir())


def test_a_run_killed_before_its_batch_was_created_sends_another(
    tmp_path: Path, server: FaultServer
) -> None:
    """The provider knows of none, so its holds come to nothing."""
    with opened(tmp_path) as ledger:
        begin(ledger, "killed")
        with batched(tmp_path, server, ledger=ledger, attempt_id="killed") as killed:
            leave(killed, reached="recorded", close="ended")
        with batched(tmp_path, server, ledger=ledger) as bench:
            came = bench.ask(*PROMPTS)
            sizes, states = bench.sizes, bench.states
        before = [row.amount_nano for row in ledger.holds("killed")]

    assert ([None] * 3, [3], ["settled"] * 3) == (codes(came), sizes, states)
    assert [0] * 3 == before


def test_lines_of_a_killed_run_that_failed_are_asked_again(
    tmp_path: Path, server: FaultServer
) -> None:
    """Billed or not is told apart, also for a run that is gone."""
    server.script = by_prompt(one=[error(429)], two=[without_usage()])
    server.desk.spoil = lambda lines: lines[:1]
    with opened(tmp_path) as ledger:
        begin(ledger, "killed")
        with batched(tmp_path, server, ledger=ledger, attempt_id="killed") as killed:
            leave(killed, reached="known")
        with batched(tmp_path, server, ledger=ledger) as bench:
            bench.caller.complete(ASK, "one")
            server.desk.spoil = lambda lines: lines
        before = {
            r.hold_id: (str(r.state), r.amount_nano) for r in ledger.holds("killed")
        }

    assert {
        "killed-0:1": ("settled", 0),
        "killed-1:1": ("unknown", 50_000),
        "killed-2:1": ("unknown", 50_000),
    } == before


def test_a_batch_that_the_provider_has_forgotten_is_given_up(
    tmp_path: Path, server: FaultServer
) -> None:
    """Its rows stay as they are, and the calls are sent anew."""
    with opened(tmp_path) as ledger:
        begin(ledger, "killed")
        with batched(tmp_path, server, ledger=ledger, attempt_id="killed") as killed:
            leave(killed, reached="known", close="ended")
            server.desk.batches.clear()
        with batched(tmp_path, server, ledger=ledger) as bench:
            came = bench.ask(*PROMPTS)
            states = bench.states
        before = [str(row.state) for row in ledger.holds("killed")]

    assert ([None] * 3, ["settled"] * 3) == (codes(came), states)
    assert ["expired"] * 3 == before
    assert [] == list((tmp_path / "journal" / FOLDER).iterdir())


def test_nothing_is_sent_while_an_earlier_batch_cannot_be_looked_at(
    tmp_path: Path, server: FaultServer
) -> None:
    """The run fails, and the batch is there for the next one."""
    server.desk.faults["GET batches one"] = [error(401)] * 9
    with opened(tmp_path) as ledger:
        begin(ledger, "killed")
        with batched(tmp_path, server, ledger=ledger, attempt_id="killed") as killed:
            leave(killed, reached="known")
        with batched(tmp_path, server, ledger=ledger) as bench:
            (came,) = bench.ask("one")
            sizes, rows = bench.sizes, bench.rows
        kept = len(list((tmp_path / "journal" / FOLDER).iterdir()))

    assert isinstance(came, VectorlessRagError)
    assert (Code.AUTH, "earlier batch: auth, HTTP 401") == (came.code, came.detail)
    assert ([3], [], 1) == (sizes, rows, kept)


def test_records_of_others_and_of_nothing_are_passed_over(
    tmp_path: Path, server: FaultServer
) -> None:
    """One that another process holds, and one that was cut off while written."""
    with opened(tmp_path) as ledger, batched(tmp_path, server, ledger=ledger) as bench:
        held = bench.records.add(MODEL, time.time() + 60, ())
        half = bench.records.add(MODEL, time.time() + 60, ())
        half.leave()
        path = tmp_path / "journal" / FOLDER / half.name
        path.write_bytes(b'{"model": "openai/gp')

        assert [] == bench.records.left()
        assert [held.name] == [p.name for p in path.parent.iterdir()]
        assert {0o600, 0o700} == {
            p.stat().st_mode & 0o777 for p in (path.parent, path.parent / held.name)
        }
        held.leave()
        assert [held.name] == [record.name for record in bench.records.left()]


@pytest.mark.parametrize("cut_off", [b"", b"batch_", b"\nbatch_"])
def test_an_id_that_was_cut_off_is_none(
    tmp_path: Path, server: FaultServer, cut_off: bytes
) -> None:
    """The batch is then found by its name."""
    with batched(tmp_path, server) as bench:
        record = bench.records.add(MODEL, 1.0, ())
        record.created("batch_of_before")
        record.creating()
        record.leave()
        path = tmp_path / "journal" / FOLDER / record.name
        path.write_bytes(path.read_bytes() + cut_off)
        (found,) = bench.records.left()

    assert (None, record.name) == (found.batch_id, found.name)


# A run that ends while a batch is out.


def held(server: FaultServer) -> threading.Event:
    server.desk.held = threading.Event()
    return server.desk.held


def test_a_run_that_is_stopped_cancels_its_batch(
    tmp_path: Path, server: FaultServer
) -> None:
    """What it had done is settled and kept, and the rest costs nothing."""
    held(server)
    with batched(tmp_path, server) as bench:
        futures = bench.begin(*PROMPTS)
        until(lambda: "GET batches one" in server.desk.asked)
        bench.caller.cancel()
        came = [came_of(future) for future in futures]
        states = bench.states

    assert 1 == len(server.desk.cancelled)
    assert ["settled", "voided", "voided"] == states
    assert 2 == codes(came).count(Code.CANCELLED)
    assert [] == list((tmp_path / "journal" / FOLDER).iterdir())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_batch_that_takes_long_to_cancel_is_settled_by_the_next_run(
    tmp_path: Path, server: FaultServer
) -> None:
    """The rows count at their holds until then."""
    go = held(server)
    with opened(tmp_path) as ledger:
        with batched(tmp_path, server, ledger=ledger, stop_s=0) as bench:
            futures = bench.begin(*PROMPTS)
            until(lambda: "GET batches one" in server.desk.asked)
            bench.caller.cancel()
            came = [came_of(future) for future in futures]
            states = bench.states
        begin(ledger, "later")
        (batch,) = server.desk.batches.values()
        batch["status"] = "cancelling"
        go.set()
        with batched(tmp_path, server, ledger=ledger, attempt_id="later") as later:
            again = later.ask(*PROMPTS)
            sizes = later.sizes
        after = sorted((str(row.state), row.amount_nano) for row in bench.rows)

    assert ([Code.CANCELLED] * 3, ["unknown"] * 3) == (codes(came), states)
    assert ([None] * 3, [3, 2]) == (codes(again), sizes)
    assert [("settled", 0), ("settled", 0), ("settled", PAID)] == after


def test_what_is_gathered_when_a_run_stops_is_not_sent(
    tmp_path: Path, server: FaultServer
) -> None:
    """Nothing has left, so nothing is held."""
    with batched(tmp_path, server, window_s=3600, requests=9) as bench:
        futures = bench.begin(*PROMPTS)
        until(lambda: len(bench.rows) == len(PROMPTS))
        bench.caller.cancel()
        came = [came_of(future) for future in futures]
        states = bench.states

    assert ([Code.CANCELLED] * 3, ["voided"] * 3) == (codes(came), states)
    assert [] == server.desk.asked


def test_a_stop_while_an_earlier_batch_is_waited_for_cancels_it(
    tmp_path: Path, server: FaultServer
) -> None:
    """What it had done is settled on the rows of its own run."""
    held(server)
    with opened(tmp_path) as ledger:
        begin(ledger, "killed")
        with batched(tmp_path, server, ledger=ledger, attempt_id="killed") as killed:
            leave(killed, reached="known")
        with batched(tmp_path, server, ledger=ledger) as bench:
            futures = bench.begin("one")
            until(lambda: "GET batches one" in server.desk.asked)
            bench.caller.cancel()
            came = [came_of(future) for future in futures]
        before = sorted(row.amount_nano or 0 for row in ledger.holds("killed"))

    assert ([Code.CANCELLED], 1) == (codes(came), len(server.desk.cancelled))
    assert [0, 0, PAID] == before


def test_a_call_that_is_given_up_leaves_the_others_alone(
    tmp_path: Path, server: FaultServer
) -> None:
    """Its row gets its real price when the batch has ended."""
    go = held(server)
    with batched(tmp_path, server, stop_s=0) as bench:
        others = bench.begin("one", "two")
        given_up = bench.caller._background.submit(
            bench.caller._guarded(ASK, "three", (), None, None)
        )
        until(lambda: "GET batches one" in server.desk.asked)
        given_up.cancel()
        until(lambda: "unknown" in bench.states)
        go.set()
        came = [came_of(future) for future in others]
        states, paid = bench.states, amounts(bench)

    assert ([None] * 2, []) == (codes(came), server.desk.cancelled)
    assert (["settled"] * 3, [PAID] * 3) == (states, paid)


def test_the_end_of_the_run_cancels_what_others_wait_for(
    tmp_path: Path, server: FaultServer
) -> None:
    """One call fails for all: nobody needs the replies that are hours away."""
    held(server)
    with batched(tmp_path, server, stop_s=60, requests=9, timeout_s=3600) as bench:
        waiting = bench.begin(*PROMPTS)
        until(lambda: "GET batches one" in server.desk.asked)
        with pytest.raises(VectorlessRagError, match="no-price") as refused:
            bench.caller.complete(ASK, "four", model="openai/no-price")
        # As the run's end does, while what was done is still asked for.
        bench.caller._shut_down()
        came = [came_of(future) for future in waiting]
        states = bench.states

    assert Code.UNPRICED_MODEL == refused.value.code
    assert (1, ["settled", "voided", "voided"]) == (len(server.desk.cancelled), states)
    assert 3 == len(came)


def test_a_batch_past_its_deadline_is_cancelled(
    tmp_path: Path, server: FaultServer
) -> None:
    """What it had done is used; the rest ran out of time, at no cost."""
    held(server)
    with batched(tmp_path, server, timeout_s=2) as bench:
        came = bench.ask(*PROMPTS)
        states = bench.states

    assert 1 == len(server.desk.cancelled)
    assert [Code.TIMEOUT, Code.TIMEOUT, None] == sorted(codes(came), key=str)[::-1]
    assert ["settled", "voided", "voided"] == states


def test_a_batch_that_never_ends_is_given_up(
    tmp_path: Path, server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not tried again: it may still be carried out, and the next run looks."""
    monkeypatch.setattr(batch_rounds, "_CANCELLING_S", 0.1)
    held(server)
    server.desk.faults["POST batches cancel"] = [error(500)] * 999
    with batched(tmp_path, server, timeout_s=1) as bench:
        came = bench.ask(*PROMPTS)
        states = bench.states
        left = len(list((tmp_path / "journal" / FOLDER).iterdir()))

    assert ({Code.TIMEOUT}, ["unknown"] * 3, 1) == (set(codes(came)), states, left)


def test_signs_of_life_are_given_while_a_batch_is_out(
    tmp_path: Path, server: FaultServer
) -> None:
    """They put off the leases of what it holds, and tell for how long it waited."""
    go = held(server)
    with batched(tmp_path, server) as bench:
        futures = bench.begin(*PROMPTS)
        until(lambda: bench.rows)
        first = bench.rows[0].lease_until_us
        until(lambda: bench.beats and bench.beats[-1] >= 1)
        later = bench.rows[0].lease_until_us
        go.set()
        came = [came_of(future) for future in futures]
        beats = bench.beats

    assert [None] * 3 == codes(came)
    assert first + 900_000 < later
    assert sorted(beats) == beats


def test_a_journal_that_cannot_be_written_sends_nothing(
    tmp_path: Path, server: FaultServer
) -> None:
    """Without a record a killed run would pay twice."""
    (tmp_path / "journal").write_text("no folder")
    with batched(tmp_path, server) as bench:
        came = bench.ask(*PROMPTS)
        states = bench.states

    assert ({Code.STORE_UNWRITABLE}, ["voided"] * 3) == (set(codes(came)), states)
    assert [] == server.desk.asked


def test_a_model_with_no_price_by_batch_is_refused(
    tmp_path: Path, server: FaultServer
) -> None:
    """Half of its usual price would be a guess."""
    with batched(tmp_path, server) as bench:
        with pytest.raises(VectorlessRagError, match="batch_input") as refused:
            bench.caller.complete(ASK, "one", model="openai/gpt-3.5-turbo")
        rows = bench.rows

    assert (Code.UNPRICED_MODEL, [], []) == (
        refused.value.code,
        rows,
        server.desk.asked,
    )


def test_an_unusable_reply_is_asked_for_again_by_batch(
    tmp_path: Path, server: FaultServer
) -> None:
    """The second request is in a batch of its own."""
    server.script = by_prompt(two=[completion("no JSON")])
    with batched(tmp_path, server) as bench:
        came = bench.ask(*PROMPTS)
        sizes = bench.sizes

    assert ([None] * 3, [3, 1]) == (codes(came), sizes)
    assert all(isinstance(each, Reply) for each in came)
