"""
The lines of a batch: requests on the way in, replies and failures on the way out.

A line that cannot be read is no line: its request counts as not answered.
"""

import json
from types import SimpleNamespace
from typing import Any

from vectorless_rag.errors import Code
from vectorless_rag.pageindex_runtime.classify import of_status
from vectorless_rag.pageindex_runtime.litellm_provider import reply_of
from vectorless_rag.pageindex_runtime.providers import (
    Money,
    ProviderFailure,
    ProviderReply,
)

Outcome = ProviderReply | ProviderFailure
"""What became of one request."""

_OK = range(200, 300)
# The provider had no time for them, or was told to end.
_NOT_BEGUN = frozenset({"batch_expired", "batch_cancelled"})
# Why a whole batch is refused; anything else is wrong with the requests.
_REFUSED = {
    "token_limit_exceeded": 429,
    "request_limit_exceeded": 429,
    "insufficient_quota": 402,
    "billing_hard_limit_reached": 402,
    "invalid_api_key": 401,
}

MISSING = ProviderFailure(
    "line_missing", Code.LLM_RETRY_EXHAUSTED, retry=True, money=Money.UNKNOWN
)
"""A request that the replies of its batch do not mention."""

NOT_CREATED = ProviderFailure(
    "batch_not_created", Code.LLM_RETRY_EXHAUSTED, retry=True, money=Money.VOID
)
"""A request whose batch never came to be."""


def line(custom_id: str, endpoint: str, body: dict[str, Any]) -> bytes:
    """Spell one request."""
    value = {"custom_id": custom_id, "method": "POST", "url": endpoint, "body": body}
    return json.dumps(value).encode() + b"\n"


def outcomes(data: bytes, *, billed: frozenset[int]) -> dict[str, Outcome]:
    """
    Read a file of replies or of errors.

    Args:
        data: What the provider wrote.
        billed: HTTP statuses after which a request counts as billed.

    Returns:
        What became of each request that it names; of two lines the first counts.
    """
    found: dict[str, Outcome] = {}
    for each in data.splitlines():
        raw = _parsed(each)
        name = getattr(raw, "custom_id", None)
        if isinstance(name, str) and name not in found:
            found[name] = _outcome(raw, billed)
    return found


def refused(code: str | None) -> ProviderFailure:
    """Say what it means that a whole batch was refused, with *code*."""
    failure = of_status(_REFUSED.get(code or "", 400), None)
    return ProviderFailure(
        f"batch_{failure.kind}", failure.code, retry=failure.retry, money=Money.VOID
    )


def _parsed(text: bytes) -> Any:  # noqa: ANN401  (whatever it says)
    try:
        return json.loads(text, object_hook=_named)
    except (ValueError, RecursionError):
        return None


def _named(fields: dict[str, Any]) -> SimpleNamespace:
    return SimpleNamespace(**fields)


def _outcome(raw: Any, billed: frozenset[int]) -> Outcome:  # noqa: ANN401
    response = getattr(raw, "response", None)
    status, body = (getattr(response, name, None) for name in ("status_code", "body"))
    if not isinstance(status, int):
        return _without_response(getattr(getattr(raw, "error", None), "code", None))
    if status in _OK:
        try:
            return reply_of(body)
        except (AttributeError, TypeError, ValueError, LookupError):
            # It was answered, and nobody knows what.
            return of_status(status, None)
    code = getattr(getattr(body, "error", None), "code", None)
    failure = of_status(status, code if isinstance(code, str) else None)
    return failure.anew(money=Money.UNKNOWN if status in billed else None)


def _without_response(code: object) -> ProviderFailure:
    if code in _NOT_BEGUN:
        return ProviderFailure(str(code), Code.TIMEOUT, retry=True, money=Money.VOID)
    return ProviderFailure(
        "line_failed", Code.LLM_RETRY_EXHAUSTED, retry=True, money=Money.UNKNOWN
    )
