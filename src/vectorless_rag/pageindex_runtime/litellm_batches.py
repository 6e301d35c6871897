"""LiteLLM's files and batches: one request each, sent once."""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ParamSpec, TypeVar

from vectorless_rag.errors import Code
from vectorless_rag.pageindex_runtime.classify import classify
from vectorless_rag.pageindex_runtime.litellm_provider import KEYLESS, has_key, load
from vectorless_rag.pageindex_runtime.providers import (
    Money,
    ProviderFailure,
    ProviderRequest,
)

P = ParamSpec("P")
T = TypeVar("T")

ENDPOINT = "/v1/chat/completions"

NAME = "vectorless_rag"
"""Under which a batch carries the name that we gave it."""

_TIMEOUT_S = 60.0

# The provider keeps no text for longer, whatever becomes of the run.
_EXPIRES = {"anchor": "created_at", "seconds": 7 * 86_400}

_ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
_LISTED = 100
_MOST_PAGES = 20


@dataclass(frozen=True, kw_only=True)
class Batch:
    """A batch, as its provider tells of it."""

    batch_id: str
    status: str
    output_file: str | None
    """Lines with a reply."""

    error_file: str | None
    """Lines without one."""

    error_code: str | None
    """Why none of it was carried out."""

    @property
    def ended(self) -> bool:
        """Whether nothing more will come of it."""
        return self.status in _ENDED


def _failure(error: Exception) -> ProviderFailure:
    failure = classify(error, now=datetime.now(UTC))
    if failure.code is not Code.INTERNAL_ERROR:
        return failure
    # What LiteLLM makes of a page of HTML, or of a status that it does not know.
    return ProviderFailure(
        "unparseable_reply", Code.LLM_RETRY_EXHAUSTED, retry=True, money=Money.UNKNOWN
    )


def _judged(
    ask: Callable[P, Coroutine[Any, Any, T]],
) -> Callable[P, Coroutine[Any, Any, T]]:
    """Have *ask* raise nothing but `ProviderFailure`."""

    @functools.wraps(ask)
    async def judged(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await ask(*args, **kwargs)
        except Exception as error:  # noqa: BLE001  (judged by its cause, then dropped)
            failure = _failure(error)
        # Outside the clause: what was caught may quote prompt, reply and key.
        raise failure

    return judged


class LiteLLMBatches:
    """
    Hands in files and batches of one provider, and asks for them.

    Every method but `open` raises `ProviderFailure`; nothing of a prompt, a reply or
    the provider's own message is in it or in its context.

    Args:
        provider: Whose batches.
        api_base: Address of an OpenAI-compatible server; None: the provider's own.
    """

    def __init__(self, provider: str, *, api_base: str | None = None) -> None:
        self._provider = provider
        self._api_base = api_base
        self._litellm: Any = None

    async def open(self) -> None:
        """Import and silence LiteLLM."""
        loop = asyncio.get_running_loop()
        self._litellm = await loop.run_in_executor(None, load)

    async def close(self) -> None:
        """Close the connections that LiteLLM keeps."""
        await self._litellm.close_litellm_async_clients()

    def body(self, request: ProviderRequest) -> dict[str, Any]:
        """Spell a request as LiteLLM would send it by itself."""
        _, _, name = request.model.partition("/")

        try:
            given = self._litellm.utils.get_optional_params(
                model=name,
                custom_llm_provider=self._provider,
                max_tokens=request.max_tokens,
                drop_params=False,
                **request.params,
            )
        except Exception as error:  # noqa: BLE001  (dropped, as in `_judged`)
            failure = _failure(error).anew(money=Money.VOID, retry=False)
        else:
            given.pop("stream", None)
            extra = given.pop("extra_body", None) or {}
            messages = [message.as_dict() for message in request.messages]
            return {"model": name, "messages": messages, **given, **extra}
        raise failure

    @_judged
    async def upload(self, name: str, data: bytes) -> str:
        """Hand in a file of requests; return its id."""
        file = (f"{name}.jsonl", data)
        made = await self._ask(
            "acreate_file", file=file, purpose="batch", expires_after=_EXPIRES
        )
        return str(made.id)

    @_judged
    async def create(self, file_id: str, name: str) -> str:
        """Order what is in a file to be carried out, under *name*; return its id."""
        made = await self._ask(
            "acreate_batch",
            completion_window="24h",
            endpoint=ENDPOINT,
            input_file_id=file_id,
            metadata={NAME: name},
            output_expires_after=_EXPIRES,
        )
        return str(made.id)

    @_judged
    async def look(self, batch_id: str) -> Batch:
        """Ask how far a batch is."""
        return _batch(await self._ask("aretrieve_batch", batch_id=batch_id))

    @_judged
    async def find(self, name: str) -> Batch | None:
        """Look among the latest batches for the one of that name."""
        after: str | None = None
        for _ in range(_MOST_PAGES):
            page = await self._ask("alist_batches", limit=_LISTED, after=after)
            # This one takes no header.
            await page._client.close()  # noqa: SLF001
            for raw in page.data:
                if (raw.metadata or {}).get(NAME) == name:
                    return _batch(raw)
                after = str(raw.id)
            if not (page.data and getattr(page, "has_more", False)):
                break
        return None

    @_judged
    async def cancel(self, batch_id: str) -> None:
        """Ask for a batch to be ended; what it has done stays."""
        await self._ask("acancel_batch", batch_id=batch_id)

    @_judged
    async def content(self, file_id: str) -> bytes:
        """Fetch a file."""
        return bytes((await self._ask("afile_content", file_id=file_id)).content)

    async def _ask(self, name: str, **arguments: Any) -> Any:  # noqa: ANN401
        arguments |= {
            "custom_llm_provider": self._provider,
            "timeout": _TIMEOUT_S,
            "max_retries": 0,
            "num_retries": 0,
            # Otherwise each look at an ended batch fetches its replies, to price them.
            "litellm_metadata": {"batch_ignore_default_logging": True},
            # LiteLLM makes a client for each request, and closes none.
            "extra_headers": {"Connection": "close"},
        }
        if self._api_base is not None:
            arguments["api_base"] = self._api_base
            if not has_key():
                arguments["api_key"] = KEYLESS
        async with asyncio.timeout(2 * _TIMEOUT_S):
            return await getattr(self._litellm, name)(**arguments)


def _batch(raw: Any) -> Batch:  # noqa: ANN401  (OpenAI's Batch)
    errors = getattr(getattr(raw, "errors", None), "data", None) or ()
    codes = [str(error.code) for error in errors if getattr(error, "code", None)]
    return Batch(
        batch_id=str(raw.id),
        status=str(raw.status),
        output_file=getattr(raw, "output_file_id", None),
        error_file=getattr(raw, "error_file_id", None),
        error_code=codes[0] if codes else None,
    )
