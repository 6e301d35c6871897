"""Fixtures: every test that asks for a ledger runs on both databases."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from strategies_ledger import Clock, NewUrl
from vectorless_rag.ledger.book import Ledger

pytest_plugins = ["postgres_server"]


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("postgresql", marks=pytest.mark.loopback),
    ]
)
def new_url(request: pytest.FixtureRequest, tmp_path: Path) -> NewUrl:
    """Make addresses of empty databases of either kind."""
    if request.param == "postgresql":
        new: NewUrl = request.getfixturevalue("new_postgres")
        return new
    names = iter(range(10**6))
    return lambda: f"sqlite:///{tmp_path}/ledger-{next(names)}.sqlite3"


@pytest.fixture
def clock() -> Clock:
    """A clock that stands still."""
    return Clock()


@pytest.fixture
def url(new_url: NewUrl) -> str:
    """Address of one empty database."""
    return new_url()


@pytest.fixture
def ledger(url: str, clock: Clock) -> Iterator[Ledger]:
    """An open ledger."""
    with Ledger.open(url, clock=clock) as opened:
        yield opened
