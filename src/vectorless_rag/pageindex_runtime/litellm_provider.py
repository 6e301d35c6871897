"""
The only door to LiteLLM: it is imported here, late, and nowhere else.

Importing this module imports neither LiteLLM nor anything below it.
"""

import asyncio
import gc
import importlib
import logging
import os
import re
import threading
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.ledger.types import TokenUsage
from vectorless_rag.pageindex_runtime.classify import classify
from vectorless_rag.pageindex_runtime.providers import (
    Money,
    ProviderFailure,
    ProviderReply,
    ProviderRequest,
)

T = TypeVar("T")

ENVIRONMENT = {
    # Otherwise the import downloads a table of prices.
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    # Otherwise the import reads a .env file of the working folder.
    "LITELLM_MODE": "PRODUCTION",
    # Plain httpx: its errors say on the wire what went wrong.
    "DISABLE_AIOHTTP_TRANSPORT": "True",
}
"""What LiteLLM must find in the environment of its process when it is imported."""

_CALLBACKS = (
    "callbacks",
    "input_callback",
    "success_callback",
    "failure_callback",
    "service_callback",
    "_async_input_callback",
    "_async_success_callback",
    "_async_failure_callback",
)
_LOGGERS = (
    "LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "litellm",
    "openai", "httpx", "httpcore",
)  # fmt: skip
_FINISHES = frozenset({"stop", "length", "content_filter", "tool_calls"})
# No request is that long: such a count is a defect, and not what was billed.
_MOST_TOKENS = 10**8
_RESPONSE_ID = re.compile(r"[\w.:/=+-]{1,200}")

# No key is asked of a server of one's own, but the OpenAI client insists on one.
KEYLESS = "not-needed"
"""What is sent to a server of one's own where there is no key."""


class LiteLLMProvider:
    """
    Sends requests through LiteLLM, each exactly once.

    Args:
        api_base: Address of an OpenAI-compatible server; None: the provider's own.
        billed: HTTP statuses after which a request counts as billed.
    """

    def __init__(
        self, *, api_base: str | None = None, billed: frozenset[int] = frozenset()
    ) -> None:
        self._api_base = api_base
        self._billed = billed
        self._litellm: Any = None

    async def open(self) -> None:
        """
        Import and silence LiteLLM. It takes seconds, so other calls go on meanwhile.

        Raises:
            VectorlessRagError: ``internal_error``, if it cannot be imported.
        """
        loop = asyncio.get_running_loop()
        self._litellm = await loop.run_in_executor(None, load)

    async def close(self) -> None:
        """Close the connections that LiteLLM keeps."""
        await self._litellm.close_litellm_async_clients()

    async def send(self, request: ProviderRequest) -> ProviderReply:
        """
        Send one request, once.

        Raises:
            ProviderFailure: There is no reply.
        """
        provider, _, _ = request.model.partition("/")
        if provider not in self._litellm.provider_list:
            raise ProviderFailure(
                "unknown_provider", Code.BAD_REQUEST, retry=False, money=Money.VOID
            )
        try:
            response = await self._litellm.acompletion(**self._arguments(request))
        except Exception as error:  # noqa: BLE001  (judged by its cause, then dropped)
            failure = classify(error, now=datetime.now(UTC))
            if failure.status in self._billed:
                failure.money = Money.UNKNOWN
        else:
            return reply_of(response)
        # Outside the clause: what was caught may quote prompt, reply and key.
        raise failure

    def _arguments(self, request: ProviderRequest) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            "model": request.model,
            "messages": [message.as_dict() for message in request.messages],
            "max_tokens": request.max_tokens,
            "timeout": request.timeout_s,
            # Both, and always: either alone, or neither, retries behind our back,
            # and each request is one row of the ledger.
            "max_retries": 0,
            "num_retries": 0,
            # An argument the model does not take is an error, not a silent gap.
            "drop_params": False,
            "stream": False,
            **request.params,
        }
        if self._api_base is not None:
            arguments["api_base"] = self._api_base
            if request.model.startswith("openai/") and not has_key():
                arguments["api_key"] = KEYLESS
        return arguments


_LOADING = threading.Lock()


def load() -> Any:  # noqa: ANN401  (an untyped module)
    """
    Import LiteLLM so that it neither fetches, prints, retries nor calls back.

    Raises:
        VectorlessRagError: ``internal_error``, if it cannot be imported or has
            retries or callbacks switched on.
    """
    with _LOADING:
        os.environ.update(ENVIRONMENT)
        try:
            litellm = uncollected(lambda: importlib.import_module("litellm"))
        except ImportError:
            litellm = None
    if litellm is None:
        raise VectorlessRagError(Code.INTERNAL_ERROR, "litellm cannot be imported")
    _silence(litellm)
    _check(litellm)
    return litellm


def uncollected(make: Callable[[], T]) -> T:
    """
    Make something that lives as long as the process, with garbage collection off.

    LiteLLM's import makes a million objects; looking through them again and again
    takes a third of its time, and once more at exit.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        return make()
    finally:
        gc.freeze()
        if collecting:
            gc.enable()


def _silence(litellm: Any) -> None:  # noqa: ANN401
    litellm.suppress_debug_info = True
    litellm.redact_messages_in_exceptions = True
    litellm.turn_off_message_logging = True
    litellm.telemetry = False
    litellm.drop_params = False
    # Their messages quote requests and replies.
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    # Its message shows the values of the reply that surprised it.
    warnings.filterwarnings("ignore", message="Pydantic serializer warnings")
    # Of classes that it builds at the first call.
    warnings.filterwarnings("ignore", message="Item .* on TypedDict class")


def _check(litellm: Any) -> None:  # noqa: ANN401
    if litellm.num_retries is not None:
        raise VectorlessRagError(Code.INTERNAL_ERROR, "litellm retries by itself")
    if any(getattr(litellm, name, None) for name in _CALLBACKS):
        raise VectorlessRagError(Code.INTERNAL_ERROR, "litellm has callbacks")


def has_key() -> bool:
    """Say whether the OpenAI client finds a key."""
    return bool(os.environ.get("OPENAI_API_KEY"))


def reply_of(response: Any) -> ProviderReply:  # noqa: ANN401
    """
    Read a reply as OpenAI spells it.

    Args:
        response: LiteLLM's ``ModelResponse``, or whatever has the same attributes.

    Raises:
        ValueError: Or AttributeError, TypeError, LookupError: it is none.
    """
    choice = response.choices[0] if response.choices else None
    finish = getattr(choice, "finish_reason", None)
    text = getattr(getattr(choice, "message", None), "content", None)
    identity = str(getattr(response, "id", None) or "")
    usage, written = _usage(getattr(response, "usage", None), answered=bool(text))
    return ProviderReply(
        text=text if isinstance(text, str) else None,
        # A provider may write anything here, and the ledger keeps it.
        finish_reason=finish if finish in _FINISHES else "other",
        usage=usage,
        response_id=identity if _RESPONSE_ID.fullmatch(identity) else None,
        cache_write_tokens=written,
    )


def _usage(
    raw: Any,  # noqa: ANN401  (LiteLLM's Usage, or None)
    *,
    answered: bool,
) -> tuple[TokenUsage | None, int]:
    """
    Read what a provider says it counted, and the tokens it wrote to its cache.

    LiteLLM turns missing usage into zeros, which would read as free. No tokens for
    a prompt or an answer, a negative count, or a total below the sum of its parts
    therefore mean that the usage is not known.
    """
    prompt, completion = _count(raw, "prompt_tokens"), _count(raw, "completion_tokens")
    total = _count(raw, "total_tokens")
    if prompt <= 0 or completion < answered or total < prompt + completion:
        return None, 0
    prompt_details = getattr(raw, "prompt_tokens_details", None)
    cached = _count(prompt_details, "cached_tokens")
    written = _count(prompt_details, "cache_creation_tokens")
    written = written or _count(prompt_details, "cache_write_tokens")
    reasoning = _count(
        getattr(raw, "completion_tokens_details", None), "reasoning_tokens"
    )
    if min(cached, written, reasoning) < 0 or cached + written > prompt:
        return None, 0
    if reasoning > completion:
        # Some providers count reasoning beside the answer, not as part of it.
        completion += reasoning
    if max(prompt, completion, total) > _MOST_TOKENS:
        return None, 0
    usage = TokenUsage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=cached,
        reasoning_tokens=reasoning,
    )
    return usage, written


def _count(counts: Any, name: str) -> int:  # noqa: ANN401
    value = getattr(counts, name, None)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
