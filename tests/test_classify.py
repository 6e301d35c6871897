"""What a failed request means, from the chain of causes alone."""

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import httpx
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vectorless_rag.errors import Code
from vectorless_rag.pageindex_runtime.classify import classify
from vectorless_rag.pageindex_runtime.providers import Money, ProviderFailure

NOW = datetime(2026, 11, 30, tzinfo=UTC)
REQUEST = httpx.Request("POST", "http://127.0.0.1/v1")


def named(name: str, module: str = "litellm.exceptions", **fields: Any) -> Exception:
    """An exception as a library that is not imported here would raise it."""
    kind = type(name, (Exception,), {"__module__": module})
    error: Exception = kind("text that says rate limit, quota, timeout, 429")
    for field, value in fields.items():
        setattr(error, field, value)
    return error


def caused(*links: Exception) -> Exception:
    """The first, caused by the second, and so on."""
    for outer, inner in pairwise(links):
        outer.__cause__ = inner
    return links[0]


def http(status: int, headers: dict[str, str] | None = None) -> httpx.HTTPStatusError:
    response = httpx.Response(status, request=REQUEST, headers=headers)
    return httpx.HTTPStatusError("rate limit", request=REQUEST, response=response)


def judged(*links: Exception) -> ProviderFailure:
    return classify(caused(*links), now=NOW)


TRANSIENT = (Code.LLM_RETRY_EXHAUSTED, True)


@pytest.mark.parametrize(
    ("status", "code", "retry", "money"),
    [
        (400, Code.BAD_REQUEST, False, Money.VOID),
        (401, Code.AUTH, False, Money.VOID),
        (402, Code.QUOTA, False, Money.VOID),
        (403, Code.AUTH, False, Money.VOID),
        (404, Code.BAD_REQUEST, False, Money.VOID),
        (405, Code.BAD_REQUEST, False, Money.VOID),
        (408, *TRANSIENT, Money.VOID),
        (409, *TRANSIENT, Money.VOID),
        (413, Code.BAD_REQUEST, False, Money.VOID),
        (418, Code.BAD_REQUEST, False, Money.VOID),
        (422, Code.BAD_REQUEST, False, Money.VOID),
        (425, *TRANSIENT, Money.VOID),
        (429, *TRANSIENT, Money.VOID),
        (500, *TRANSIENT, Money.VOID),
        (501, Code.BAD_REQUEST, False, Money.VOID),
        (502, *TRANSIENT, Money.VOID),
        (503, *TRANSIENT, Money.VOID),
        (504, Code.TIMEOUT, True, Money.UNKNOWN),
        (520, *TRANSIENT, Money.UNKNOWN),
        (529, *TRANSIENT, Money.VOID),
        (200, *TRANSIENT, Money.UNKNOWN),
    ],
)
def test_the_status_on_the_wire_decides(
    status: int,
    code: Code,
    retry: bool,  # noqa: FBT001  (a column of the table above)
    money: Money,
) -> None:
    """Not the class the library raises, nor the status that carries, nor any text."""
    outer = named("RateLimitError", status_code=429, response=httpx.Response(429))
    got = judged(outer, named("OpenAIError", "litellm.llms.openai"), http(status))

    assert (code, retry, money, status) == (got.code, got.retry, got.money, got.status)
    assert f"HTTP {status}" in got.detail


@pytest.mark.parametrize(
    ("status", "body_code", "code"),
    [
        (429, "insufficient_quota", Code.QUOTA),
        (429, "billing_not_active", Code.QUOTA),
        (400, "billing_hard_limit_reached", Code.QUOTA),
        (400, "context_length_exceeded", Code.CONTEXT_OVERFLOW),
        (400, "content_policy_violation", Code.CONTENT_FILTER),
        (400, "content_filter", Code.CONTENT_FILTER),
        (400, "rate_limit_exceeded", Code.BAD_REQUEST),
        (500, "context_length_exceeded", Code.LLM_RETRY_EXHAUSTED),
    ],
)
def test_the_code_in_the_body_refines_it(
    status: int, body_code: str, code: Code
) -> None:
    """Two failures with one status are told apart wherever in the chain the body is."""
    body = {"code": body_code}
    inner = openai.APIStatusError("x", response=http(status).response, body=body)

    assert code == judged(named("APIError", body=None), inner).code


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("ContextWindowExceededError", Code.CONTEXT_OVERFLOW),
        ("ContentPolicyViolationError", Code.CONTENT_FILTER),
    ],
)
def test_providers_without_codes_are_read_by_the_librarys_class(
    name: str, code: Code
) -> None:
    """Where the body has no code, LiteLLM's reading of a 400 is used."""
    assert code == judged(named(name), http(400)).code
    assert Code.AUTH == judged(named(name), http(401)).code


@pytest.mark.parametrize(
    ("inner", "kind", "money"),
    [
        (httpx.ConnectError("x"), "not_sent", Money.VOID),
        (httpx.ConnectTimeout("x"), "not_sent", Money.VOID),
        (httpx.PoolTimeout("x"), "not_sent", Money.VOID),
        (httpx.ReadTimeout("x"), "timeout", Money.UNKNOWN),
        (httpx.WriteTimeout("x"), "timeout", Money.UNKNOWN),
        (TimeoutError("x"), "timeout", Money.UNKNOWN),
        (httpx.RemoteProtocolError("x"), "broken_reply", Money.UNKNOWN),
        (httpx.ReadError("x"), "broken_reply", Money.UNKNOWN),
        (named("JSONDecodeError", "json"), "unparseable_reply", Money.UNKNOWN),
        (
            named("OpenAIError", "litellm.llms.openai.common_utils"),
            "unparseable_reply",
            Money.UNKNOWN,
        ),
    ],
)
def test_without_a_status_the_network_error_decides(
    inner: Exception, kind: str, money: Money
) -> None:
    """Only what certainly did not leave is given back."""
    got = judged(named("InternalServerError", status_code=500), inner)

    assert (kind, True, money, None) == (got.kind, got.retry, got.money, got.status)
    assert kind == got.detail


@pytest.mark.parametrize(
    ("links", "code", "money"),
    [
        ([named("UnsupportedParamsError")], Code.BAD_REQUEST, Money.VOID),
        ([named("BadRequestError")], Code.BAD_REQUEST, Money.VOID),
        ([named("NotFoundError")], Code.BAD_REQUEST, Money.VOID),
        ([named("AuthenticationError")], Code.AUTH, Money.VOID),
        (
            [named("InternalServerError"), openai.OpenAIError("no key")],
            Code.AUTH,
            Money.VOID,
        ),
        (
            [named("BadRequestError"), KeyError("x")],
            Code.INTERNAL_ERROR,
            Money.UNKNOWN,
        ),
        ([ValueError("x")], Code.INTERNAL_ERROR, Money.UNKNOWN),
    ],
)
def test_what_the_library_raises_by_itself_is_not_retried(
    links: list[Exception], code: Code, money: Money
) -> None:
    """A refusal before sending is free; a defect may have been paid for."""
    got = judged(*links)

    assert (code, False, money) == (got.code, got.retry, got.money)


def test_an_in_process_provider_names_its_status() -> None:
    """Providers without a wire say what it would have been."""
    assert Code.QUOTA == judged(named("CustomLLMError", status_code=402)).code


@pytest.mark.parametrize(
    "module", ["litellm.llms.custom_httpx.http_handler", "httpx", "somewhere.else"]
)
def test_a_masked_copy_of_the_wires_error_counts(module: str) -> None:
    """LiteLLM raises its own copy on routes without a client library."""
    masked = named("MaskedHTTPStatusError", module, response=httpx.Response(402))

    assert 402 == judged(named("APIError"), masked).status


def test_a_response_that_was_made_up_does_not_count() -> None:
    """LiteLLM invents responses for its own classes."""
    assert judged(named("Timeout", response=httpx.Response(408))).status is None


@pytest.mark.parametrize(
    ("links", "wait"),
    [
        ([named("X", litellm_response_headers={"Retry-After": "7"}), http(429)], 7.0),
        ([named("X"), http(429, {"retry-after": "8"})], 8.0),
        ([named("X", litellm_response_headers={"a": "b"}), http(429)], None),
    ],
)
def test_the_wait_is_found_wherever_it_is(
    links: list[Exception], wait: float | None
) -> None:
    """The headers are on one link or another."""
    assert wait == judged(*links).retry_after_s


def test_a_circle_of_causes_ends() -> None:
    """An exception may be its own cause, by a roundabout way."""
    first, second = named("A"), named("B")
    first.__cause__, second.__cause__ = second, first

    assert "internal" == classify(first, now=NOW).kind


@given(status=st.integers(100, 599), text=st.text(max_size=40))
def test_no_text_decides_and_none_gets_out(status: int, text: str) -> None:
    """Two errors that differ in their words alone are one failure."""
    plain, odd = named("APIError"), named("APIError")
    odd.args = (f"{text} rate limit content_policy context length",)
    one, other = judged(plain, http(status)), judged(odd, http(status))

    assert (one.kind, one.code, one.detail) == (other.kind, other.code, other.detail)
    assert "rate limit" not in repr(other) + other.detail
