"""How attempts ended and which requests failed, on both databases."""

from strategies_ledger import Clock, attempt, hold, used
from vectorless_rag.errors import Code
from vectorless_rag.ledger.book import Ledger
from vectorless_rag.ledger.outcomes import EndRow, FailedRequests
from vectorless_rag.ledger.types import Outcome
from vectorless_rag.units import NanoUsd

pytest_plugins = ["ledger_databases"]


def test_an_empty_ledger_ended_nothing(ledger: Ledger) -> None:
    """No attempts, no rows."""
    assert ([], []) == (ledger.ends(), ledger.failed_requests())


def test_attempts_are_counted_by_their_end(ledger: Ledger, clock: Clock) -> None:
    """Alike ends are one row with the last moment."""
    started = clock.now
    for number in range(1, 5):
        ledger.start_attempt(attempt(f"attempt-{number}"))
        clock.advance(1)
    ledger.end_attempt("attempt-1", "failed", Code.TIMEOUT)
    ledger.end_attempt("attempt-2", "failed", Code.TIMEOUT)
    ledger.end_attempt("attempt-3", "built")
    ended, last = clock.now, started + 3_000_000

    assert [
        EndRow(outcome=Outcome.BUILT, code=None, attempts=1, last_us=ended),
        EndRow(outcome=Outcome.FAILED, code=Code.TIMEOUT, attempts=2, last_us=ended),
        EndRow(outcome=None, code=None, attempts=1, last_us=last),
    ] == ledger.ends()


def test_failed_requests_are_counted_by_code(ledger: Ledger, clock: Clock) -> None:
    """Those that went well do not count."""
    ledger.start_attempt(attempt())
    for name in ("call-1:1", "call-1:2", "call-2:1"):
        clock.advance(1)
        ledger.reserve(hold(name, 100))
    last = clock.now
    ledger.void("call-1:1", "rate limit", Code.LLM_RETRY_EXHAUSTED)
    ledger.settle("call-1:2", NanoUsd(70), used())
    ledger.unknown("call-2:1", "cut off", Code.TIMEOUT)

    assert [
        FailedRequests(
            code=Code.LLM_RETRY_EXHAUSTED, requests=1, last_us=last - 2_000_000
        ),
        FailedRequests(code=Code.TIMEOUT, requests=1, last_us=last),
    ] == ledger.failed_requests()
