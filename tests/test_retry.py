"""Waits between tries, and how many there may be."""

import random
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vectorless_rag.pageindex_runtime.retry import Allowance, Backoff, retry_after_s

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        pytest.param({}, None, id="none"),
        pytest.param({"retry-after": "3"}, 3.0, id="seconds"),
        pytest.param({"retry-after": "1.5"}, 1.5, id="decimal"),
        pytest.param({"retry-after": "61"}, 61.0, id="over-a-minute"),
        pytest.param({"retry-after": " 2 "}, 2.0, id="blanks"),
        pytest.param({"retry-after": "-2"}, 0.0, id="negative"),
        pytest.param({"retry-after": "nan"}, None, id="nan"),
        pytest.param({"retry-after": "inf"}, None, id="infinite"),
        pytest.param({"retry-after": "soon"}, None, id="words"),
        pytest.param({"retry-after": ""}, None, id="empty"),
        pytest.param({"retry-after-ms": "250"}, 0.25, id="milliseconds"),
        pytest.param(
            {"retry-after-ms": "250", "retry-after": "3"}, 0.25, id="finer-first"
        ),
        pytest.param({"retry-after-ms": "x", "retry-after": "3"}, 3.0, id="odd-ms"),
        pytest.param({"retry-after": "Mon, 30 Nov 2026 12:00:30 GMT"}, 30.0, id="date"),
        pytest.param(
            {"retry-after": "Mon, 30 Nov 2026 12:00:30"}, 30.0, id="date-without-zone"
        ),
        pytest.param(
            {"retry-after": "Mon, 30 Nov 2026 11:00:00 GMT"}, 0.0, id="past-date"
        ),
    ],
)
def test_retry_after_is_read_in_every_form(
    headers: dict[str, str], seconds: float | None
) -> None:
    """Seconds, decimals, milliseconds and dates; nonsense is no wait."""
    assert seconds == retry_after_s(headers, now=NOW)


@given(st.integers(0, 10**6))
def test_a_date_is_the_seconds_until_it(seconds: int) -> None:
    """Whatever the date, the wait ends then."""
    date = format_datetime(NOW + timedelta(seconds=seconds), usegmt=True)

    assert seconds == retry_after_s({"retry-after": date}, now=NOW)


@given(raw=st.text(max_size=30))
def test_any_header_is_a_wait_or_none(raw: str) -> None:
    """A hostile header is no crash."""
    wait = retry_after_s({"retry-after": raw}, now=NOW)

    assert wait is None or wait >= 0


@given(
    failures=st.integers(1, 2000),
    after=st.none() | st.floats(0, 10**6),
    seed=st.integers(0, 2**32),
)
def test_waits_are_jittered_within_bounds(
    failures: int, after: float | None, seed: int
) -> None:
    """No wait is longer than the cap, unless the provider asked for more."""
    backoff = Backoff()
    wait = backoff.wait_s(failures, after, random.Random(seed))  # noqa: S311

    assert 0 <= wait
    if after is None:
        assert wait <= min(0.5 * 2 ** min(failures - 1, 9), 20.0)
    else:
        assert after <= wait <= max(after + 0.25, 20.0)


def test_waits_differ_between_callers() -> None:
    """Full jitter: calls that fail together do not come back together."""
    waits = {
        Backoff().wait_s(3, None, random.Random(seed))  # noqa: S311
        for seed in range(50)
    }

    assert 50 == len(waits)
    assert min(waits) < 0.3
    assert max(waits) > 1.7


def test_a_run_may_retry_a_little_and_a_share() -> None:
    """Five, one for each call in flight, and a tenth of the calls."""
    allowance = Allowance(concurrency=2)
    for _ in range(29):
        allowance.call()

    assert [True] * 9 + [False] * 2 == [allowance.take() for _ in range(11)]
