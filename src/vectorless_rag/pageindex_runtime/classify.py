"""
Tell what happened to a failed request by what happened on the wire.

The class that LiteLLM raises and the status it carries often disagree with the
wire, so the chain of causes decides: a status, else the name of the network error.
The text of a message is never looked at: it may quote the document.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from vectorless_rag.errors import Code
from vectorless_rag.pageindex_runtime.providers import Money, ProviderFailure
from vectorless_rag.pageindex_runtime.retry import retry_after_s

_NOT_SENT = frozenset({
    "ConnectError", "ConnectTimeout", "PoolTimeout", "UnsupportedProtocol",
    "InvalidURL", "ConnectionRefusedError",
})  # fmt: skip
_TIMED_OUT = frozenset(
    {"ReadTimeout", "WriteTimeout", "APITimeoutError", "TimeoutError"}
)
_BROKEN = frozenset({"RemoteProtocolError", "ReadError", "WriteError"})
_UNPARSEABLE = frozenset({"JSONDecodeError"})

_QUOTA_CODES = frozenset({
    "insufficient_quota", "billing_not_active", "billing_hard_limit_reached",
})  # fmt: skip
_POLICY_CODES = frozenset({"content_policy_violation", "content_filter"})


@dataclass(frozen=True)
class _Verdict:
    kind: str
    code: Code
    retry: bool
    money: Money


def _transient(kind: str, money: Money) -> _Verdict:
    return _Verdict(kind, Code.LLM_RETRY_EXHAUSTED, retry=True, money=money)


def _final(kind: str, code: Code) -> _Verdict:
    return _Verdict(kind, code, retry=False, money=Money.VOID)


_BAD_REQUEST = _final("bad_request", Code.BAD_REQUEST)
_AUTH = _final("auth", Code.AUTH)
_QUOTA = _final("provider_quota", Code.QUOTA)
_CONTEXT = _final("context_overflow", Code.CONTEXT_OVERFLOW)
_POLICY = _final("content_policy", Code.CONTENT_FILTER)
_SENT_NOTHING = _transient("not_sent", Money.VOID)
_BROKEN_REPLY = _transient("broken_reply", Money.UNKNOWN)
_BAD_ENVELOPE = _transient("unparseable_reply", Money.UNKNOWN)
_TIMEOUT = _Verdict("timeout", Code.TIMEOUT, retry=True, money=Money.UNKNOWN)
# A defect of the client library or of ours: the request may have left all the same.
_INTERNAL = _Verdict("internal", Code.INTERNAL_ERROR, retry=False, money=Money.UNKNOWN)

_BY_STATUS = {
    401: _AUTH,
    402: _QUOTA,
    403: _AUTH,
    408: _transient("transient", Money.VOID),
    409: _transient("transient", Money.VOID),
    425: _transient("transient", Money.VOID),
    429: _transient("rate_limited", Money.VOID),
    500: _transient("provider_error", Money.VOID),
    501: _BAD_REQUEST,
    502: _transient("provider_error", Money.VOID),
    503: _transient("unavailable", Money.VOID),
    504: _Verdict("gateway_timeout", Code.TIMEOUT, retry=True, money=Money.UNKNOWN),
    529: _transient("provider_error", Money.VOID),
}
_REFINED = frozenset({400, 404, 405, 413, 422})
_OK = range(200, 300)
_SERVER = range(500, 600)


def classify(error: BaseException, *, now: datetime) -> ProviderFailure:
    """
    Say what a failed request means.

    Args:
        error: What the client library raised.
        now: What a Retry-After date is counted from.

    Returns:
        A failure that holds nothing of *error* but the status and the wait.
    """
    chain = tuple(_chain(error))
    status = _wire_status(chain)
    if status is None:
        verdict = _without_status(chain)
    else:
        verdict = _with_status(status, _body_code(chain), _names(chain))
    return ProviderFailure(
        verdict.kind,
        verdict.code,
        retry=verdict.retry,
        money=verdict.money,
        retry_after_s=_wait(chain, now),
        status=status,
    )


def of_status(status: int, code: str | None) -> ProviderFailure:
    """
    Say what a line of a batch means that has no reply.

    Args:
        status: HTTP status, as for a request of its own.
        code: The error's own code, if it has one.
    """
    verdict = _with_status(status, code, set())
    return ProviderFailure(
        verdict.kind,
        verdict.code,
        retry=verdict.retry,
        money=verdict.money,
        status=status,
    )


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _names(chain: tuple[BaseException, ...]) -> set[str]:
    return {type(link).__name__ for link in chain}


def _package(link: BaseException) -> str:
    return type(link).__module__.partition(".")[0]


def _response(link: BaseException) -> Any:  # noqa: ANN401  (httpx is not imported here)
    """Return the response that came over the wire, not one that LiteLLM made up."""
    # Or LiteLLM's masked copy of it, on routes without a client library.
    masked = type(link).__name__ == "MaskedHTTPStatusError"
    if masked or _package(link) in {"httpx", "openai"}:
        return getattr(link, "response", None)
    return None


def _wire_status(chain: tuple[BaseException, ...]) -> int | None:
    for link in chain:
        status = getattr(_response(link), "status_code", None)
        if type(link).__name__ == "CustomLLMError":  # an in-process provider
            status = getattr(link, "status_code", None)
        if isinstance(status, int):
            return status
    return None


def _body_code(chain: tuple[BaseException, ...]) -> str | None:
    """Return the code in the error's body; LiteLLM drops the body here and there."""
    for link in chain:
        body = getattr(link, "body", None)
        code = body.get("code") if isinstance(body, Mapping) else None
        if isinstance(code, str):
            return code
    return None


def _with_status(status: int, code: str | None, names: set[str]) -> _Verdict:
    if code in _QUOTA_CODES:
        return _QUOTA
    if status in _REFINED:
        return _refined(code, names)
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status in _OK:
        return _BAD_ENVELOPE
    # A gateway's own 5xx says nothing about what happened behind it.
    if status in _SERVER:
        return _transient("provider_error", Money.UNKNOWN)
    return _BAD_REQUEST


def _refined(code: str | None, names: set[str]) -> _Verdict:
    if code == "context_length_exceeded" or "ContextWindowExceededError" in names:
        return _CONTEXT
    if code in _POLICY_CODES or "ContentPolicyViolationError" in names:
        return _POLICY
    return _BAD_REQUEST


def _without_status(chain: tuple[BaseException, ...]) -> _Verdict:
    names = _names(chain)
    for wanted, verdict in (
        (_NOT_SENT, _SENT_NOTHING),
        (_TIMED_OUT, _TIMEOUT),
        (_BROKEN, _BROKEN_REPLY),
        (_UNPARSEABLE, _BAD_ENVELOPE),
    ):
        if names & wanted:
            return verdict
    return _raised_here(chain)


def _raised_here(chain: tuple[BaseException, ...]) -> _Verdict:
    """Judge what the client library raised by itself, before or after the request."""
    first, last = type(chain[0]).__name__, chain[-1]
    # The OpenAI client without a key raises its base class, and nothing below it.
    keyless = _package(last) == "openai" and type(last).__name__ == "OpenAIError"
    if keyless or first == "AuthenticationError":
        return _AUTH
    if first == "UnsupportedParamsError":
        return _BAD_REQUEST
    if len(chain) == 1 and first in {"BadRequestError", "NotFoundError"}:
        return _BAD_REQUEST
    # Raised by LiteLLM's own reader of a reply: JSON or HTML that is no completion.
    if any(type(link).__module__.startswith("litellm.llms.") for link in chain):
        return _BAD_ENVELOPE
    return _INTERNAL


def _wait(chain: tuple[BaseException, ...], now: datetime) -> float | None:
    for link in chain:
        headers = getattr(link, "litellm_response_headers", None)
        headers = headers or getattr(_response(link), "headers", None)
        if headers:
            lower = {str(k).lower(): str(v) for k, v in headers.items()}
            if (wait := retry_after_s(lower, now=now)) is not None:
                return wait
    return None
