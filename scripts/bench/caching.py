"""
What share of the prompt tokens a provider's prefix cache holds, by the ledger.

Every document is ingested by the standard algorithm, each time into a folder of its
own, by the program as a user runs it, at a provider on this machine that keeps the
starts of prompts (`tests/prefix_cache.py`). Tokens and dollars are what the ledger
says of them.
"""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT), str(ROOT / "tests")]

from scripts.bench.program import said  # noqa: E402

from prefix_cache import PrefixCache  # noqa: E402
from simulated_provider import FAULTLESS, simulating  # noqa: E402

MODEL = "openai/gpt-4o-mini"

RULES = ((1024, 128), (16, 16))
"""Least tokens that are kept, and in what steps: OpenAI's, and vLLM's."""


@dataclass(frozen=True, kw_only=True)
class Cached:
    """What the ledger says of one document."""

    name: str
    concurrency: int
    """Calls in flight at most."""

    least: int
    step: int
    """What the provider keeps: see `RULES`."""

    prompt_tokens: int
    cached_tokens: int
    cost_usd: str
    """At OpenAI's prices, whatever the rule."""


def measured(
    files: Sequence[tuple[str, Path]], concurrency: int, latency_s: float
) -> Iterator[Cached]:
    """
    Ingest every file by every rule; those that are refused yield nothing.

    First with one call at a time, so that each finds what all before it left.
    """
    for name, path in files:
        for (least, step), calls in (
            (RULES[0], 1),
            *((rule, concurrency) for rule in RULES),
        ):
            cache = PrefixCache(least=least, step=step)
            used = _ingested(path, cache, calls, latency_s)
            if used is None:
                break
            yield Cached(
                name=name,
                concurrency=calls,
                least=least,
                step=step,
                prompt_tokens=sum(row["prompt_tokens"] for row in used),
                cached_tokens=sum(row["cached_tokens"] for row in used),
                cost_usd=str(sum(Decimal(row["cost_usd"]) for row in used)),
            )


def _ingested(
    path: Path, cache: PrefixCache, concurrency: int, latency_s: float
) -> list[dict[str, Any]] | None:
    """Ingest a file; return the rows of the ledger's report, None if refused."""
    manner = replace(FAULTLESS, latency_s=latency_s)
    with (
        tempfile.TemporaryDirectory(prefix="caching-") as home,
        simulating(manner, cache=cache) as server,
    ):
        place = ["--data-dir", str(Path(home) / "data"), "--json"]
        given = ["--model", MODEL, "--api-base", server.base, "--quiet"]
        given += ["--mode", "standard", "--budget-usd", "100"]
        more = {"VECTORLESS_RAG_CONCURRENCY": str(concurrency)}
        (result,) = said(["ingest", str(path), *given, *place], Path(home), more)
        if result["failure"]:
            return None
        return said(["ledger", "report", "--by", "operation", *place], Path(home))
