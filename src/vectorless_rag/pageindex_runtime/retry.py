"""When to try again: after how long, how often, and when to give up."""

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


@dataclass(frozen=True, kw_only=True)
class Backoff:
    """How long to wait between tries. All times are in seconds."""

    first_s: float = 0.5
    """Upper end of the first wait; it doubles from try to try."""

    most_s: float = 20.0
    """Upper end of any wait that the provider did not ask for."""

    spread_s: float = 0.25
    """Upper end of what is added to a wait that the provider asked for."""

    def wait_s(
        self, failures: int, retry_after_s: float | None, rng: random.Random
    ) -> float:
        """
        Return how long to wait before the next try.

        Full jitter: anything from nothing to ``first_s * 2 ** (failures - 1)``,
        and not before the provider asked to be tried again.

        Args:
            failures: Tries that have failed so far, from 1.
            retry_after_s: What the provider asked for.
            rng: Source of the jitter.
        """
        ceiling = min(self.first_s * 2 ** min(failures - 1, 30), self.most_s)
        wait = rng.uniform(0, ceiling)
        if retry_after_s is None:
            return wait
        return max(wait, retry_after_s + rng.uniform(0, self.spread_s))


class Allowance:
    """
    How many retries one run may make in all: a storm of failures ends it.

    Five, one for each call that may be in flight, and one for every ten calls.
    """

    def __init__(self, *, concurrency: int) -> None:
        self._base = 5 + concurrency
        self._calls = 0
        self._retries = 0

    def call(self) -> None:
        """Count a call."""
        self._calls += 1

    def take(self) -> bool:
        """Take one retry, if there is one left."""
        if self._retries >= self._base + self._calls // 10:
            return False
        self._retries += 1
        return True


def retry_after_s(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """
    Read how long a provider asks to be left alone, in seconds.

    Args:
        headers: Response headers, names in lower case.
        now: What dates are counted from; aware.

    Returns:
        ``retry-after-ms``, or ``retry-after`` as whole or decimal seconds or as a
        date; 0 for a time gone by, None if neither makes sense.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    raw = headers.get("retry-after")
    seconds = _number(raw)
    return _until(raw, now) if seconds is None else seconds


def _number(raw: str | None) -> float | None:
    try:
        value = float(raw or "")
    except ValueError:
        return None
    return max(value, 0.0) if math.isfinite(value) else None


def _until(raw: str | None, now: datetime) -> float | None:
    try:
        date = parsedate_to_datetime(raw or "")
    except ValueError:
        return None
    # A date without a zone is one with the zone left out: HTTP dates are GMT.
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max((date - now).total_seconds(), 0.0)
