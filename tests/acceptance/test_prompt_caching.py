"""What a provider keeps of the prompts, in the ledger of a real run."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import combinations
from typing import Any

import pytest

from acceptance.program import run
from pdfs import pdf
from prefix_cache import PrefixCache
from simulated_provider import FAULTLESS, question_of, simulating
from vectorless_rag.pageindex_runtime.framing import CLOSE, OPEN
from vectorless_rag.pageindex_runtime.providers import Message
from vectorless_rag.pageindex_runtime.text_first import LEADS

pytestmark = pytest.mark.loopback

TITLES = ["Apples", "Pears", "Plums"]


@dataclass
class Remembering(PrefixCache):
    """Also knows the prompts, in the order in which they were answered."""

    prompts: list[tuple[str, str]] = field(default_factory=list)
    """Question and first turn of each."""

    def keep(self, messages: Sequence[dict[str, Any]]) -> None:
        super().keep(messages)
        first = messages[0]["content"]
        self.prompts.append((question_of((Message("user", first),)), first))


@dataclass(frozen=True)
class Ingested:
    """A document's run, its prompts, and what the ledger says of it."""

    prompts: list[tuple[str, str]]
    usage: dict[str, Any]
    ledger: list[dict[str, Any]]


def long_page(number: int, title: str) -> str:
    """A page of 1,200 tokens whose heading stands twice, so that it is asked about."""
    words = f"The {title.lower()} of orchard {number} ripen late in a cold summer, "
    lines = [f"{n} {words * 3}" for n in range(24)]
    return "\n".join([f"{number} {title}", *lines, f"{number} {title}"])


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> Ingested:
    """One run, one call at a time."""
    home, cache = tmp_path_factory.mktemp("home"), Remembering()
    paper = pdf(home / "a.pdf", [long_page(n, t) for n, t in enumerate(TITLES, 1)])
    with simulating(FAULTLESS, cache=cache) as server:
        done = run(
            "ingest", paper, "--json", "--model", "openai/gpt-4o-mini", "--api-base",
            server.base, "--mode", "standard", home=home, OPENAI_API_KEY="sk-test",
            VECTORLESS_RAG_CONCURRENCY="1",
        )  # fmt: skip
    assert 0 == done.status, done.err
    told = run("ledger", "report", "--json", home=home)
    return Ingested(cache.prompts, done.object["usage"], told.objects)


def test_the_ledger_prices_what_the_provider_had(ingested: Ingested) -> None:
    """A later question about a long page finds the page there, at half the price."""
    prompt, cached, output = (
        sum(row[f"{name}_tokens"] for row in ingested.ledger)
        for name in ("prompt", "cached", "completion")
    )
    # 0.15, 0.075 and 0.60 $ a million.
    micros = (prompt - cached) * Decimal("0.15") + cached * Decimal("0.075")
    cost = (micros + output * Decimal("0.60")) / 10**6

    assert prompt // 5 < cached < prompt
    assert cost == Decimal(ingested.usage["cost_usd"])


def test_what_comes_back_stands_first(ingested: Ingested) -> None:
    """
    Two prompts with the same text share it from their first byte on.

    Those that are no such question share their instructions.
    """
    asked = {question for question, _ in ingested.prompts}
    for (one, first), (other, second) in combinations(ingested.prompts, 2):
        if {one, other} <= LEADS.keys():
            lead = first[: first.index(CLOSE)]
            assert (lead in second) == second.startswith(lead)
        elif one == other:
            assert second.startswith(first[: first.index(OPEN)])

    assert {"check_title_appearance", "summary_leaf", "generate_toc_init"} <= asked
    assert all(prompt.startswith(OPEN) for q, prompt in ingested.prompts if q in LEADS)
