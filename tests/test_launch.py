"""However a child ends, the parent has a classified answer."""

import dataclasses
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from vectorless_rag import launch
from vectorless_rag.child_settings import batching_of
from vectorless_rag.errors import Code, Failure, VectorlessRagError
from vectorless_rag.settings import Settings
from vectorless_rag.units import Sha256
from vectorless_rag.wire import Answer, Found, Limits, Parser, Progress, Request

FOUND = Found(
    route="flash", tree=(), pages=("text",), parser=Parser(name="pypdf", version="7")
)


def request() -> Request:
    return Request(
        attempt_id="a",
        parent_pid=os.getpid(),
        document_path="document.pdf",
        document_sha256=Sha256("0" * 64),
        checkout="checkout",
        mode="auto",
        model="offline/extractive",
        ledger_url="sqlite:///ledger.sqlite3",
        gate_dir="in-flight",
        budgets=("run:1",),
        limits=Limits(
            max_output_tokens=64,
            call_timeout_s=1,
            call_attempts=1,
            concurrency=1,
            provider_concurrency=1,
            max_pages=1,
            memory_bytes=2**30,
        ),
    )


def start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, **settings: object
) -> tuple[Found, dict[str, int]]:
    """Let a scripted program stand where the interpreter of the child is."""
    program = tmp_path / "python"
    program.write_text(f"#!{sys.executable}\n{script}", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(launch, "python_executable", lambda: str(program))
    reports: list[Progress] = []
    return launch.run_document(
        request(),
        Settings.load(**settings),
        upstream=launch.Upstream(copy_to=lambda _: None, code=()),
        work=tmp_path,
        on_progress=reports.append,
        check=lambda: None,
    )


def answering(answer: Answer) -> str:
    return f"import os, sys; os.write(int(sys.argv[-2]), {answer.encode()!r})"


def test_what_was_found_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole answer is handed on with its notes."""
    answer = Answer(found=FOUND, notes={"retries": 2})

    assert (FOUND, {"retries": 2}) == start(tmp_path, monkeypatch, answering(answer))


WAITING = (
    "import os, sys, time\n"
    "os.write(int(sys.argv[-1]), {line!r})\n"
    "time.sleep(2); os.write(int(sys.argv[-2]), {answer!r})"
)


@pytest.mark.parametrize(
    ("model", "believed"), [("openai/gpt-4o-mini", True), ("offline/extractive", False)]
)
def test_the_time_that_batches_take_is_no_part_of_a_childs_life(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, *, believed: bool
) -> None:
    """It says how long it waited, and is believed only where it asks by batch."""
    line = Progress(stage="waiting for a batch", waited_s=3600).encode()
    script = WAITING.format(line=line, answer=Answer(found=FOUND).encode())
    settings = {"child_timeout_s": 1, "grace_s": 0, "batch": True, "model": model}
    if believed:
        assert (FOUND, {}) == start(tmp_path, monkeypatch, script, **settings)
        return
    with pytest.raises(VectorlessRagError, match="1 s") as error:
        start(tmp_path, monkeypatch, script, **settings)
    assert Code.CHILD_TIMEOUT == error.value.code


def test_what_a_child_says_of_its_waiting_has_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child that was taken over could say anything."""
    line = Progress(stage="waiting for a batch", waited_s=10**9).encode()
    script = WAITING.format(line=line, answer=Answer(found=FOUND).encode())
    script = script.replace("time.sleep(2)", "time.sleep(60)")
    monkeypatch.setattr(launch, "_MOST_ROUNDS", 1)

    with pytest.raises(VectorlessRagError, match="1 s") as error:
        start(
            tmp_path, monkeypatch, script, child_timeout_s=1, grace_s=0,
            batch=True, batch_timeout_s=1, model="openai/gpt-4o-mini",
        )  # fmt: skip
    assert Code.CHILD_TIMEOUT == error.value.code


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"model": "mistral/mistral-small"}, "for models of openai alone"),
        ({"journal": False}, "needs VECTORLESS_RAG_JOURNAL"),
    ],
)
def test_what_cannot_be_batched_is_refused(more: dict[str, Any], why: str) -> None:
    """By the name of the setting, before there is a child."""
    settings = Settings.load(**({"batch": True, "model": "openai/x"} | more))

    with pytest.raises(VectorlessRagError, match=why) as error:
        batching_of(settings)
    assert Code.SETTINGS_INVALID == error.value.code


@pytest.mark.parametrize(
    "settings", [{}, {"model": "openai/x"}, {"batch": True}], ids=["", "off", "offline"]
)
def test_calls_are_not_batched_unless_somebody_says_so(
    settings: dict[str, Any],
) -> None:
    """And an offline model's never are: it answers at once, for nothing."""
    assert batching_of(Settings.load(**settings)) is None


def test_the_child_stops_waiting_before_it_is_killed() -> None:
    """Of the grace it has, two seconds are for the rest."""
    settings = Settings.load(batch=True, model="openai/x", grace_s=5)
    batching = batching_of(settings)

    assert batching is not None
    assert (2, 1000, 86_400, 30, 3) == (
        batching.window_s,
        batching.requests,
        batching.timeout_s,
        batching.poll_s,
        batching.stop_s,
    )


def test_a_reported_failure_is_raised_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code and detail are the child's own."""
    failure = Failure(code=Code.AUTH, detail="HTTP 401")

    with pytest.raises(VectorlessRagError, match="HTTP 401") as error:
        start(tmp_path, monkeypatch, answering(Answer(failure=failure)))
    assert failure == error.value.failure


@pytest.mark.parametrize(
    ("script", "code", "why"),
    [
        pytest.param("", Code.CHILD_PROTOCOL, "exit status 0, no answer", id="silent"),
        pytest.param(
            "raise SystemExit(7)", Code.CHILD_PROTOCOL, "exit status 7", id="status"
        ),
        pytest.param(
            "import os; os.kill(os.getpid(), 9)", Code.CHILD_KILLED, "SIGKILL", id="9"
        ),
        pytest.param("import os; os.abort()", Code.CHILD_KILLED, "SIGABRT", id="abort"),
        pytest.param(
            "import os; os.kill(os.getpid(), 40)", Code.CHILD_KILLED, "40", id="unnamed"
        ),
        pytest.param(
            "import os; os.kill(os.getpid(), 24)", Code.CHILD_TIMEOUT, "CPU", id="cpu"
        ),
        pytest.param(
            "import os, signal; signal.signal(25, signal.SIG_DFL)\n"
            "os.kill(os.getpid(), 25)",
            Code.CHILD_LIMIT,
            "CHILD_FILE_BYTES",
            id="size",
        ),
        pytest.param(
            answering(Answer()), Code.CHILD_PROTOCOL, "empty answer", id="empty"
        ),
        pytest.param(
            "import os, sys; os.write(int(sys.argv[-2]), b'x' * 99)",
            Code.CHILD_PROTOCOL,
            "half an answer",
            id="noise",
        ),
        pytest.param(
            "import os, sys; os.write(int(sys.argv[-1]), b'noise\\n')",
            Code.CHILD_PROTOCOL,
            "progress line",
            id="progress-noise",
        ),
    ],
)
def test_no_whole_answer_is_classified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, code: Code, why: str
) -> None:
    """Each way to end without an answer has its code."""
    with pytest.raises(VectorlessRagError, match=why) as error:
        start(tmp_path, monkeypatch, script)
    assert code == error.value.code


def test_a_child_that_runs_on_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it answers after its time is not taken."""
    script = "import time; time.sleep(60)"

    with pytest.raises(VectorlessRagError, match="1 s") as error:
        start(tmp_path, monkeypatch, script, child_timeout_s=1, grace_s=0)
    assert Code.CHILD_TIMEOUT == error.value.code


def test_the_child_is_given_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys of other providers, proxies and the home stay with the parent."""
    monkeypatch.setenv("OPENAI_API_KEY", "canary")
    monkeypatch.setenv("HTTPS_PROXY", "canary")
    script = (
        "import os; open('seen', 'w').write('\\n'.join(f'{k}={v}'"
        " for k, v in os.environ.items()))\n"
        + answering(dataclasses.replace(Answer(), found=FOUND))
    )
    start(tmp_path, monkeypatch, script)
    seen = (tmp_path / "seen").read_text(encoding="utf-8")

    assert "canary" not in seen
    assert f"HOME={tmp_path}" in seen.splitlines()
