"""What a run can come to at worst is an arithmetic of caps, and no model passes it."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import REPOSITORY
from vectorless_rag.estimates import total
from vectorless_rag.pageindex_runtime import bounds
from vectorless_rag.pageindex_runtime.bounds import Layout
from vectorless_rag.pageindex_runtime.worst_case import Asked, Work, priced
from vectorless_rag.prices import FREE, Prices

CHECKOUT = REPOSITORY / "build" / "pageindex"
PRICE = Prices().find("openai/gpt-4o-mini")

page_tokens = st.lists(st.integers(0, 30_000), min_size=1, max_size=60)


def asked(**changes: Any) -> Asked:
    usual: dict[str, Any] = {
        "output_tokens": 1000,
        "attempts": 3,
        "concurrency": 8,
        "spread": 1.1,
        "exact": True,
    }
    return Asked(**(usual | changes))


def greedy(mode: str, output_tokens: int, *documents: Path) -> list[dict[str, Any]]:
    """Run each document with a model that makes all the work it can."""
    here = Path(__file__).parent
    kept = {k: v for k, v in os.environ.items() if k.startswith(("COVERAGE_", "PATH"))}
    argv = [here / "greedy_runs.py", CHECKOUT, mode, output_tokens, *documents]
    done = subprocess.run(
        [sys.executable, *map(str, argv)],
        env={
            **kept,
            "PYTHONPATH": os.pathsep.join([str(REPOSITORY / "src"), str(here)]),
        },
        capture_output=True,
        timeout=3600,
        check=False,
    )
    assert 0 == done.returncode, done.stderr.decode()[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def check(runs: Sequence[dict[str, Any]]) -> None:
    assert [] == [run for run in runs if run["exceeded"]]
    assert [] == [r for r in runs if r["requests"] > r["foreseen"]]


def test_a_greedy_model_stays_below_the_bound(sample: Path) -> None:
    """Every question asked twice, every reply as long as it may be."""
    (flash,) = greedy("flash", 512, sample)
    check([flash])
    # So near is the bound: every parent is summarised, and asked about twice.
    assert flash["at_most"]["summary_subtree"] == flash["asked"]["summary_subtree"]
    (standard,) = greedy("standard", 128, sample)
    check([standard])
    assert 100 < standard["requests"]


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "tokens"), [("flash", 4096), ("standard", 1024)])
def test_no_document_lets_a_greedy_model_past_the_bound(
    corpus: Path, mode: str, tokens: int
) -> None:
    """Documents of every kind, with text on several pages."""
    names = ("papers/*", "manuals/*", "legal/*", "nonlatin/*", "tiny/outline*")
    documents = [path for name in names for path in sorted(corpus.glob(name))]

    check(greedy(mode, tokens, *documents))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TRIGGER_PAGES", bounds.EXPAND_ABOVE_PAGES),
        ("ENTRY_TOKENS", bounds.ENTRY_TOKENS),
        # A section without a usable answer is not asked about again.
        ("EMPTY_RETRIES", 0),
    ],
)
def test_the_constants_of_expanding_are_the_upstreams(name: str, value: int) -> None:
    """A new upstream that moves one moves the bound."""
    text = (CHECKOUT / "pageindex" / "tree_optimize.py").read_text(encoding="utf-8")
    found = re.search(rf"^{name} = (\d+)", text, re.MULTILINE)

    assert found
    assert value == int(found[1])


def test_the_options_of_the_standard_route_are_the_upstreams() -> None:
    """Those that decide where a table of contents begins, and what is large."""
    text = (CHECKOUT / "pageindex" / "config.yaml").read_text(encoding="utf-8")

    assert {
        "toc_check_page_num": bounds.TOC_CHECK_PAGES,
        "max_page_num_each_node": bounds.PAGES_EACH,
        "max_token_num_each_node": bounds.TOKENS_EACH,
    } == {
        name: int(value)
        for name, value in re.findall(r"^(\w+_num\w*): (\d+)", text, re.MULTILINE)
    }


@pytest.mark.parametrize(
    ("attempts", "requests"),
    [
        # A call alone; asked again once; and what a run may retry in all.
        (1, 100),
        (2, 200),
        (3, 200 + 5 + 8 + 10),
        (9, 200 + 5 + 8 + 10),
    ],
)
def test_tries_are_counted_as_the_runtime_grants_them(
    attempts: int, requests: int
) -> None:
    """A question is asked twice at most, and retries come out of one allowance."""
    works = [Work("expand", 60, 600), Work("expand", 40, 400)]
    tallies = priced(works, FREE, asked(attempts=attempts))

    assert requests == total(tallies).calls
    assert 1000 * requests == total(tallies).completion_tokens
    assert 0 == total(tallies).cost


def test_few_calls_have_few_retries() -> None:
    """Two calls with three tries each are six requests, whatever the allowance."""
    tallies = priced([Work("expand", 2, 20)], FREE, asked(attempts=3))

    assert 6 == total(tallies).calls
    assert () == priced([Work("expand", 0, 0)], FREE, asked())


def test_every_request_is_priced_at_its_most() -> None:
    """Prompt and whole output, with each request rounded up by itself."""
    assert PRICE
    (tally,) = priced([Work("expand", 10, 5000)], PRICE, asked(attempts=1))

    assert (10, 5000, 10_000) == (
        tally.calls,
        tally.prompt_tokens,
        tally.completion_tokens,
    )
    assert PRICE.most(prompt_tokens=5000, output_tokens=10_000) + 10 == tally.cost
    each = PRICE.most(prompt_tokens=500, output_tokens=1000)
    assert 10 * each <= tally.cost


def test_a_layout_that_is_fine_already_is_not_divided() -> None:
    """Only its summaries are asked for."""
    layout = Layout(nodes=5, parents=1, open_leaves=((1, 5), (6, 10)))
    works = {work.operation: work for work in bounds.flash([100] * 10, layout, asked())}

    assert 0 == works["expand"].calls
    assert (5, 1) == (works["summary_leaf"].calls, works["summary_subtree"].calls)


def test_a_long_section_may_be_divided_as_long_as_it_pays() -> None:
    """Once a page over the limit at most, into parts that their text pays for."""
    layout = Layout(nodes=1, parents=0, open_leaves=((1, 8),))
    works = {w.operation: w for w in bounds.flash([500] * 8, layout, asked())}

    assert 3 == works["expand"].calls
    assert 3 == works["summary_subtree"].calls


@given(pages=page_tokens, more=st.integers(0, 5000))
def test_more_text_never_lowers_the_bound(pages: list[int], more: int) -> None:
    """Nor does another page."""
    layout = Layout(nodes=3, parents=1, open_leaves=((1, len(pages)),))

    def most(tokens: list[int]) -> tuple[int, int, int]:
        way = layout
        if len(tokens) > len(pages):
            way = Layout(nodes=3, parents=1, open_leaves=((1, len(tokens)),))
        return (
            total(priced(bounds.flash(tokens, way, asked()), PRICE, asked())).cost,
            total(priced(bounds.standard(tokens, 3, asked()), PRICE, asked())).cost,
            total(priced(bounds.shortcut(tokens, asked()), PRICE, asked())).cost,
        )

    less = most(pages)
    for grown in ([*pages, more], [pages[0] + more, *pages[1:]]):
        assert all(a <= b for a, b in zip(less, most(grown), strict=True))
