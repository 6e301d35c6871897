"""What a worker tells those who watch it, and what it does not."""

import http.client
import json
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import pytest

from strategies_jobs import claim, job, worker
from strategies_ledger import attempt, hold, used
from vectorless_rag.engine.answering import Answers, answering
from vectorless_rag.engine.figures import (
    HELP,
    Counts,
    Ended,
    Figure,
    figures,
    prometheus,
)
from vectorless_rag.errors import Code, Failure, VectorlessRagError
from vectorless_rag.ledger.board import Board
from vectorless_rag.ledger.book import Ledger, now_us
from vectorless_rag.ledger.job_types import End, JobState
from vectorless_rag.results import Spend
from vectorless_rag.units import NanoUsd

FAILED = End(state=JobState.FAILED, failure=Failure(code=Code.TIMEOUT))


def ended(url: str, how: str) -> Ended:
    with Board.open(url) as board:
        row, _ = board.add(job())
    return Ended(
        job=row, attempt_id="a", how=how, code=None, spend=Spend(), began_ns=10**9,
        ended_ns=3 * 10**9,
    )  # fmt: skip


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/ledger.sqlite3"


def test_the_fleet_is_told_in_numbers(url: str) -> None:
    """Jobs, the age of the queue, failures by code, workers, money by owner."""
    with Board.open(url) as board, Ledger.open(url) as ledger:
        for name in "ab":
            board.add(job(name * 64))
        board.claim(claim("a", recipe_hash="a" * 64))
        board.finish("a" * 64, "a", FAILED)
        now = now_us()
        board.enter(worker(seen_us=now))
        board.enter(worker("worker-2", seen_us=now - 61_000_000, slots=4))
        ledger.start_attempt(attempt())
        ledger.reserve(hold("call-1:1", 10, budgets=("owner:ann", "run:night")))
        ledger.settle("call-1:1", NanoUsd(1_500_000_000), used())
    counts = Counts()
    for how in ("built", "built", "lost"):
        counts.add(ended(url, how))
    text = prometheus(figures(url, counts, 2, dead_after_s=60))
    lines = text.splitlines()

    assert {
        "vectorless_rag_database_up 1",
        'vectorless_rag_jobs{state="queued"} 2',
        'vectorless_rag_jobs{state="failed"} 1',
        'vectorless_rag_job_failures{code="pageindex_timeout"} 1',
        'vectorless_rag_spent_usd{owner="ann"} 1.5',
        "vectorless_rag_workers 1",
        "vectorless_rag_workers_silent 1",
        "vectorless_rag_slots 2",
        "vectorless_rag_worker_running 2",
        'vectorless_rag_worker_turns_total{how="built"} 2',
        'vectorless_rag_worker_turn_seconds_total{how="built"} 4.0',
        "# TYPE vectorless_rag_worker_turns_total counter",
        "# TYPE vectorless_rag_jobs gauge",
    } <= set(lines)
    (age,) = [line for line in lines if line.startswith("vectorless_rag_queue_age")]
    assert 0 <= float(age.split()[1]) < 3600
    assert "night" not in text
    assert "a.pdf" not in text


def test_without_its_database_a_worker_tells_of_itself(tmp_path: Path) -> None:
    """And says that the database is away."""
    (tmp_path / "file").touch()
    found = figures(
        f"sqlite:///{tmp_path}/file/ledger.sqlite3", Counts(), 1, dead_after_s=60
    )

    assert [
        ("vectorless_rag_database_up", 0),
        ("vectorless_rag_worker_running", 1),
    ] == [(figure.name, figure.value) for figure in found]


def test_a_label_cannot_break_a_line() -> None:
    """Quotes, backslashes and line ends are escaped."""
    name = "vectorless_rag_spent_usd"
    figure = Figure(name=name, value=Decimal("0.1"), labels=(("owner", 'a"\\\n'),))

    assert f'{name}{{owner="a\\"\\\\\\n"}} 0.1' == prometheus([figure]).splitlines()[2]
    assert f"# HELP {name} {HELP[name]}" == prometheus([figure]).splitlines()[0]


@dataclass
class Told:
    """A worker that says what it is told to."""

    healthy: bool = True
    ready: bool = False
    answers: Answers = field(init=False)

    def __post_init__(self) -> None:
        self.answers = Answers(
            healthy=lambda: self.healthy,
            ready=lambda: self.ready,
            metrics=lambda: "figures\n",
        )


@pytest.fixture
def get() -> Iterator[Callable[[str, str], tuple[int, str]]]:
    """Ask a worker that is healthy and not ready."""
    with answering("127.0.0.1:0", Told().answers) as port:

        def ask(path: str, method: str = "GET") -> tuple[int, str]:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request(method, path)
            response = connection.getresponse()
            body = response.read().decode()
            connection.close()
            return response.status, body

        yield ask


@pytest.mark.loopback
def test_each_page_has_its_status(get: Callable[..., tuple[int, str]]) -> None:
    """A probe reads the status alone; only GET is answered."""
    assert (200, {"ok": True}) == (get("/healthz")[0], json.loads(get("/healthz")[1]))
    assert (503, {"ok": False}) == (get("/readyz")[0], json.loads(get("/readyz")[1]))
    assert (200, "figures\n") == get("/metrics?x=1")
    assert 404 == get("/etc/passwd")[0]
    assert 501 == get("/metrics", "POST")[0]


@pytest.mark.loopback
def test_who_hangs_up_stops_nothing(get: Callable[..., tuple[int, str]]) -> None:
    """The next one is answered."""
    with answering("127.0.0.1:0", Told().answers) as port:
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", port), timeout=60) as hasty:
                hasty.sendall(b"GET /metrics")
        assert 200 == get("/healthz")[0]


@pytest.mark.loopback
@pytest.mark.parametrize("address", ["127.0.0.1:{taken}", "127.0.0.1:99999"])
def test_an_address_that_cannot_be_had_is_refused(address: str) -> None:
    """Before any job is begun."""
    with (
        answering("127.0.0.1:0", Told().answers) as port,
        pytest.raises(VectorlessRagError, match="VECTORLESS_RAG_LISTEN"),
        answering(address.format(taken=port), Told().answers),
    ):
        pass
