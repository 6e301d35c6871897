"""
One scripted provider for every tree of the series.

A tree before patch 0010 calls ``litellm.completion`` itself; from 0010 on calls go
through the call boundary. `provider` stands at the far end of both, so a proof says
what the model answers and looks at what comes out, whichever tree it runs on.
"""

import asyncio
import importlib.util
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any, NoReturn

from patches.questions import question_of
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.ledger.types import TokenUsage
from vectorless_rag.pageindex_runtime.calls import Caller, Policy
from vectorless_rag.pageindex_runtime.providers import (
    Money,
    ProviderFailure,
    ProviderReply,
    ProviderRequest,
)
from vectorless_rag.pageindex_runtime.retry import Backoff
from vectorless_rag.pageindex_runtime.text_first import text_in_place
from vectorless_rag.pageindex_runtime.wiring import use
from vectorless_rag.prices import Prices
from vectorless_rag.wire import Limits

MODEL = "offline/extractive"

_SPEC = importlib.util.find_spec("litellm")


@dataclass(frozen=True)
class Asked:
    """One request, as it reached the provider."""

    question: str
    """The operation named by the caller, or else guessed from the prompt."""

    messages: list[dict[str, str]]

    named: bool
    """Whether the request itself said which operation it serves."""

    model: str
    params: dict[str, Any]

    @property
    def prompt(self) -> str:
        """The last turn as its author spelled it, the text where it is spoken of."""
        return text_in_place(self.messages[-1]["content"])

    @property
    def text(self) -> str:
        """Everything sent, as it was sent: the prompt and the turns before it."""
        return "\n".join(message["content"] for message in self.messages)


@dataclass(frozen=True)
class Cut:
    """A reply that stopped at the output limit."""

    text: str


class HttpError(Exception):
    """The provider refused: a status, and its own code where it gives one."""

    def __init__(self, status_code: int, code: str = "") -> None:
        self.status_code = status_code
        self.code = code
        super().__init__(f"HTTP {status_code} {code}")


TOO_LONG = HttpError(400, "context_length_exceeded")
NO_KEY = HttpError(401)

Answer = Any
"""A text, a value to spell as JSON, a `Cut`, or an exception."""


@dataclass
class Script:
    """What the model answers, by question; what it was asked is kept."""

    answers: dict[str, Answer]
    asked: list[Asked] = field(default_factory=list)
    touched: list[str] = field(default_factory=list)
    """Functions of LiteLLM that were called."""

    latency_s: float = 0.0
    """How long every answer takes."""

    answered: list[Asked] = field(default_factory=list)
    """Requests whose answer has come back, in that order."""

    def answer(self, asked: Asked) -> tuple[str, str]:
        """Return text and finish reason, or raise what the script says."""
        self.asked.append(asked)
        if asked.question not in self.answers:
            raise AssertionError(f"the script has no answer to {asked.question}")
        answer = self.answers[asked.question]
        if isinstance(answer, list) and answer and isinstance(answer[0], Turn):
            answer = answer.pop(0).answer if len(answer) > 1 else answer[0].answer
        if callable(answer):
            answer = answer(asked)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Cut):
            return answer.text, "length"
        return answer if isinstance(answer, str) else json.dumps(answer), "stop"

    def to(self, question: str) -> list[Asked]:
        """Return the requests that asked *question*."""
        return [asked for asked in self.asked if asked.question == question]

    @property
    def questions(self) -> list[str]:
        return [asked.question for asked in self.asked]


@dataclass(frozen=True)
class Turn:
    """One of several answers to a question, used up in order; the last one stays."""

    answer: Answer


def turns(*answers: Answer) -> list[Turn]:
    """Answer the first time so, the second time so, and so on."""
    return [Turn(answer) for answer in answers]


class Far:
    """The far end of the call boundary."""

    def __init__(self, script: Script) -> None:
        self.script = script

    async def send(self, request: ProviderRequest) -> ProviderReply:
        asked = Asked(
            question=request.operation,
            messages=[dict(m.as_dict()) for m in request.messages],
            named=True,
            model=request.model,
            params=dict(request.params),
        )
        try:
            text, finish = await _maybe_slow(self.script, asked)
        except HttpError as error:
            raise failure_of(error) from None
        usage = TokenUsage(
            prompt_tokens=len(asked.text) // 4 + 1,
            completion_tokens=len(text) // 4 + 1,
        )
        return ProviderReply(text=text, finish_reason=finish, usage=usage)


async def _maybe_slow(script: Script, asked: Asked) -> tuple[str, str]:
    answer = script.answer(asked)
    await asyncio.sleep(script.latency_s)
    script.answered.append(asked)
    return answer


def failure_of(error: HttpError) -> ProviderFailure:
    """Classify a status as the real provider's adapter does."""
    if error.code == "context_length_exceeded":
        code = Code.CONTEXT_OVERFLOW
    else:
        code = {
            401: Code.AUTH, 402: Code.QUOTA, 429: Code.LLM_RETRY_EXHAUSTED,
            500: Code.LLM_RETRY_EXHAUSTED,
        }.get(error.status_code, Code.BAD_REQUEST)  # fmt: skip
    return ProviderFailure(
        "status",
        code,
        retry=code is Code.LLM_RETRY_EXHAUSTED,
        money=Money.VOID,
        status=error.status_code,
    )


def _litellm(script: Script) -> ModuleType:
    """A LiteLLM that asks the script; light, and without a network."""

    def asked_of(request: dict[str, Any]) -> Asked:
        own = {"model", "messages", "drop_params", "max_retries"}
        return Asked(
            question=question_of(request["messages"]),
            messages=request["messages"],
            named=False,
            model=request["model"],
            params={k: v for k, v in request.items() if k not in own},
        )

    def response(text: str, finish: str) -> SimpleNamespace:
        message = SimpleNamespace(content=text)
        choice = SimpleNamespace(message=message, finish_reason=finish)
        return SimpleNamespace(choices=[choice], usage=None)

    def completion(**request: Any) -> SimpleNamespace:
        asked = asked_of(request)
        answer = script.answer(asked)
        time.sleep(script.latency_s)
        script.answered.append(asked)
        return response(*answer)

    async def acompletion(**request: Any) -> SimpleNamespace:
        return response(*await _maybe_slow(script, asked_of(request)))

    def touching(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            script.touched.append(name)
            return function(*args, **options)

        return call

    module = ModuleType("litellm")
    # Its folder holds the table of prices, which is read without an import.
    module.__spec__ = _SPEC
    functions: dict[str, Callable[..., Any]] = {
        "completion": completion,
        "acompletion": acompletion,
        "token_counter": lambda text="", **_: len(text) // 4 + 1,
        "get_model_info": lambda *_: {},
    }
    for name, function in functions.items():
        setattr(module, name, touching(name, function))
    return module


class Free:
    """An account that refuses nothing and keeps nothing."""

    def reserve(self, hold: Any) -> None:
        """Take any hold."""

    def settle(self, *_: Any) -> None:
        """Forget it."""

    void = unknown = settle
    replay = reserve


def no_remote() -> NoReturn:
    raise AssertionError("a scripted run reaches no other provider")


@contextmanager
def boundary(
    script: Script,
    mode: str,
    *,
    concurrency: int = 64,
    decides: frozenset[str] = frozenset(),
) -> Iterator[None]:
    """Put a call boundary in place that ends at the script."""
    limits = Limits(
        max_output_tokens=4096,
        call_timeout_s=60,
        call_attempts=3,
        concurrency=concurrency,
        provider_concurrency=64,
        max_pages=5000,
        memory_bytes=1 << 30,
    )
    policy = Policy(
        attempt_id="attempt",
        model=MODEL,
        budgets=("budget",),
        limits=limits,
        mode=mode,
        decides=decides,
        backoff=Backoff(first_s=0.0),
    )
    caller = Caller(
        policy=policy,
        account=Free(),
        prices=Prices(),
        offline=Far(script),
        remote=no_remote,
    )
    with use(caller):
        try:
            yield
        finally:
            # The proof looks at what the upstream raised, not at the latch.
            with suppress(VectorlessRagError):
                caller.close()


@contextmanager
def provider(
    mode: str = "standard",
    *,
    latency_s: float = 0.0,
    concurrency: int = 64,
    decides: frozenset[str] = frozenset(),
    **answers: Answer,
) -> Iterator[Script]:
    """
    Let a scripted model answer, on any tree.

    Args:
        mode: What the run was asked for: ``auto``, ``flash`` or ``standard``.
        latency_s: How long every answer takes.
        concurrency: Calls in flight at once, from 0010 on.
        decides: Questions that are not asked where the text answers them; a proof of
            what is done with answers wants every one asked.
        answers: By operation: a text, a value spelled as JSON, a `Cut`, an
            exception, a function of what was asked, or `turns`.
    """
    script = Script(answers, latency_s=latency_s)
    before = sys.modules.get("litellm")
    sys.modules["litellm"] = _litellm(script)
    try:
        with boundary(script, mode, concurrency=concurrency, decides=decides):
            yield script
    finally:
        if before is None:
            del sys.modules["litellm"]
        else:
            sys.modules["litellm"] = before


def outcome(function: Callable[[], Any]) -> Any:
    """Return what *function* returns, or the name of what it raises."""
    try:
        return function()
    except VectorlessRagError as error:
        return str(error.code)
    except Exception as error:  # noqa: BLE001  (any failure is an outcome here)
        return type(error).__name__
