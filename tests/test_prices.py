"""What a request may cost at most, and what it did cost."""

import subprocess
import sys
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from math import ceil
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import REPOSITORY
from vectorless_rag import prices as module
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.prices import FREE, Price, Prices, Rate, parse_overrides

BUNDLED = Prices()


def rate(dollars: str, above_tokens: int = 0) -> Rate:
    return Rate(dollars=Decimal(dollars), above_tokens=above_tokens)


@pytest.mark.parametrize(
    ("model", "prompt", "output", "nano"),
    [
        pytest.param("openai/gpt-4o-mini", 100_000, 4_000, 17_400_000, id="plain"),
        pytest.param("gemini/gemini-2.5-pro", 100_000, 4_000, 165_000_000, id="short"),
        pytest.param("gemini/gemini-2.5-pro", 300_000, 4_000, 810_000_000, id="tier"),
        pytest.param(
            "vertex_ai/gemini-2.5-pro", 300_000, 4_000, 810_000_000, id="alias"
        ),
        pytest.param("dashscope/qwen-flash", 300_000, 4_000, 83_000_000, id="ranges"),
        pytest.param("perplexity/sonar", 0, 0, 12_000_000, id="search-fee"),
        pytest.param("ollama/llama3", 10**6, 4_000, 0, id="free"),
        pytest.param("offline/extractive", 10**6, 4_000, 0, id="offline"),
    ],
)
def test_the_worst_case_of_bundled_prices(
    model: str, prompt: int, output: int, nano: int
) -> None:
    """The dearest rate that the prompt may reach, and the output at its cap."""
    price = BUNDLED.find(model)

    assert price is not None
    assert nano == price.most(prompt_tokens=prompt, output_tokens=output)


@pytest.mark.parametrize(
    "model",
    [
        pytest.param("openai/unheard-of", id="unknown"),
        pytest.param("anthropic/gpt-4o-mini", id="other-provider"),
        pytest.param("nobody/gpt-4o-mini", id="unknown-provider"),
        pytest.param("openai/text-embedding-3-small", id="no-chat"),
        pytest.param("perplexity/sonar-deep-research", id="citations"),
        pytest.param("openai/sample_spec", id="no-model-at-all"),
        pytest.param("sample_spec", id="no-provider"),
    ],
)
def test_a_price_that_is_not_known_is_none(model: str) -> None:
    """Never a silent zero."""
    assert BUNDLED.find(model) is None


def test_every_bundled_price_bounds_a_request() -> None:
    """No row of the table breaks the sums, and nothing costs more than the most."""
    names = [name for name in BUNDLED._table if "/" in name]
    found = [price for name in names if (price := BUNDLED.find(name))]

    assert 1000 < len(found)
    for price in found:
        most = price.most(prompt_tokens=300_000, output_tokens=1000)
        paid = price.actual(
            prompt_tokens=300_000,
            completion_tokens=1000,
            cached_tokens=100,
            reasoning_tokens=500,
            cache_write_tokens=50,
        )
        assert 0 <= paid <= most


TIERED = Price(
    input=(rate("0.000001"), rate("0.000002", 200_000)),
    output=(rate("0.00001"), rate("0.00002", 200_000)),
    cached_input=(rate("0.0000001"),),
    cache_write=(rate("0.00000125"),),
    reasoning=(rate("0.00003"),),
    per_request=Decimal("0.005"),
)


@pytest.mark.parametrize(
    ("usage", "dollars"),
    [
        pytest.param({"prompt_tokens": 10, "completion_tokens": 0}, "0.00501", id="in"),
        pytest.param({"prompt_tokens": 0, "completion_tokens": 10}, "0.0051", id="out"),
        pytest.param(
            {"prompt_tokens": 200_000, "completion_tokens": 0}, "0.205", id="at-tier"
        ),
        pytest.param(
            {"prompt_tokens": 200_001, "completion_tokens": 10},
            "0.405202",
            id="above-tier",
        ),
        pytest.param(
            {"prompt_tokens": 10, "completion_tokens": 0, "cached_tokens": 4},
            "0.0050064",
            id="cached",
        ),
        pytest.param(
            {"prompt_tokens": 10, "completion_tokens": 0, "cache_write_tokens": 4},
            "0.005011",
            id="written",
        ),
        pytest.param(
            {"prompt_tokens": 0, "completion_tokens": 10, "reasoning_tokens": 4},
            "0.00518",
            id="reasoning",
        ),
        pytest.param(
            {
                "prompt_tokens": 10,
                "completion_tokens": 1,
                "cached_tokens": 8,
                "cache_write_tokens": 8,
                "reasoning_tokens": 9,
            },
            "0.0050333",
            id="more-parts-than-whole",
        ),
    ],
)
def test_each_kind_of_token_has_its_rate(usage: dict[str, int], dollars: str) -> None:
    """Cached, written and reasoning tokens are parts, and cost their own."""
    assert Decimal(dollars) * 10**9 == TIERED.actual(**usage)


def test_kinds_without_a_rate_cost_what_the_others_do() -> None:
    """No discount is assumed."""
    plain = Price(input=(rate("0.001"),), output=(rate("0.002"),))
    paid = plain.actual(
        prompt_tokens=10,
        completion_tokens=10,
        cached_tokens=5,
        reasoning_tokens=5,
        cache_write_tokens=5,
    )

    assert 30_000_000 == paid


tokens = st.integers(0, 2_000_000)
rates = st.decimals(0, 1, allow_nan=False, allow_infinity=False, places=13)


@given(prompt=tokens, output=tokens, dear=rates, cheap=rates)
def test_amounts_are_exact_and_rounded_up_once(
    prompt: int, output: int, dear: Decimal, cheap: Decimal
) -> None:
    """Rates need not be whole nano-dollars; the sum is rounded, not its parts."""
    price = Price(input=(Rate(dollars=dear),), output=(Rate(dollars=cheap),))
    exact = (prompt * Fraction(dear) + output * Fraction(cheap)) * 10**9

    assert ceil(exact) == price.actual(prompt_tokens=prompt, completion_tokens=output)
    assert ceil(exact) == price.most(prompt_tokens=prompt, output_tokens=output)


def test_no_digit_of_a_rate_is_lost() -> None:
    """The least above a whole nano-dollar is the next one."""
    price = Price(input=(rate("0." + "1".ljust(29, "0") + "1"),), output=(rate("0"),))

    assert 100_000_001 == price.actual(prompt_tokens=1, completion_tokens=0)


@given(prompt=tokens, output=tokens, cached=tokens, reasoning=tokens, written=tokens)
def test_nothing_costs_more_than_the_most(
    prompt: int, output: int, cached: int, reasoning: int, written: int
) -> None:
    """The hold covers every way the tokens may be counted."""
    most = TIERED.most(prompt_tokens=prompt, output_tokens=output)
    paid = TIERED.actual(
        prompt_tokens=prompt,
        completion_tokens=output,
        cached_tokens=cached,
        reasoning_tokens=reasoning,
        cache_write_tokens=written,
    )

    assert paid <= most


def test_configured_prices_stand_above_the_bundled_ones() -> None:
    """A known model can be repriced, an unknown one priced."""
    prices = Prices(
        '{"openai/gpt-4o-mini": {"input": "1e-6", "output": "0.000002"},'
        ' "local/x": {"input": 0, "output": 0.000001, "cached_input": "0",'
        ' "reasoning": "0.5"}}'
    )
    mini, local = prices.find("openai/gpt-4o-mini"), prices.find("local/x")

    assert Price(input=(rate("1E-6"),), output=(rate("0.000002"),)) == mini
    assert local is not None
    assert (rate("0"),) == local.cached_input
    assert 500_000_000 == local.most(prompt_tokens=9, output_tokens=1)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("", "not a JSON object", id="empty"),
        pytest.param("[]", "not a JSON object", id="list"),
        pytest.param('{"openai/x": ', "not a JSON object", id="cut"),
        pytest.param('{"x": {}}', "not provider/name", id="no-provider"),
        pytest.param('{"openai/": {}}', "not provider/name", id="no-name"),
        pytest.param('{"offline/x": {}}', "not provider/name", id="offline"),
        pytest.param('{"openai/x": 3}', "not an object", id="number"),
        pytest.param('{"openai/x": {"input": "1"}}', "required", id="no-output"),
        pytest.param(
            '{"openai/x": {"input": "1", "output": "1", "in": "1"}}',
            "none of",
            id="key",
        ),
        pytest.param(
            '{"openai/x": {"input": "SECRET", "output": "1"}}',
            "not a number",
            id="word",
        ),
        pytest.param(
            '{"openai/x": {"input": true, "output": "1"}}', "not a number", id="true"
        ),
        pytest.param(
            '{"openai/x": {"input": null, "output": "1"}}', "not a number", id="null"
        ),
        pytest.param(
            '{"openai/x": {"input": NaN, "output": "1"}}', "not a number", id="nan"
        ),
        pytest.param(
            '{"openai/x": {"input": "Infinity", "output": "1"}}',
            "not a number",
            id="infinite",
        ),
        pytest.param(
            '{"openai/x": {"input": "-1e-6", "output": "1"}}',
            "out of range",
            id="minus",
        ),
        pytest.param(
            '{"openai/x": {"input": "1.5", "output": "1"}}', "out of range", id="dear"
        ),
        pytest.param(
            '{"openai/x": {"input": "1", "output": "1", "batch_input": "1"}}',
            "belong together",
            id="half-a-batch",
        ),
        pytest.param(
            '{"openai/x": {"input": "0.' + "1" * 40 + '", "output": "1"}}',
            "out of range",
            id="long",
        ),
    ],
)
def test_prices_that_make_no_sense_are_refused(text: str, why: str) -> None:
    """The message names the setting and never its value."""
    with pytest.raises(VectorlessRagError, match=why) as caught:
        parse_overrides(text)

    assert Code.SETTINGS_INVALID == caught.value.code
    assert "VECTORLESS_RAG_PRICES" in str(caught.value)
    assert "SECRET" not in str(caught.value)


@given(st.text(max_size=60))
def test_any_text_is_prices_or_a_refusal(text: str) -> None:
    """A hostile setting is no crash."""
    with suppress(VectorlessRagError):
        assert {} == parse_overrides(text)


def test_a_configured_price_by_batch_stands_beside_the_usual_one() -> None:
    """Without it the usual one says nothing of batches."""
    rates = '"input": "0.000002", "output": "0.000004"'
    by_batch = '"batch_input": "0.000001", "batch_output": "0.000003"'
    own = Prices(f'{{"a/b": {{{rates}, {by_batch}}}, "a/c": {{{rates}}}}}')
    found = own.find("a/b", by_batch=True)

    assert Price(input=(rate("0.000001"),), output=(rate("0.000003"),)) == found
    assert own.find("a/c", by_batch=True) is None
    assert own.find("a/c") is not None


@pytest.mark.parametrize(
    ("row", "by_batch"),
    [
        pytest.param({}, None, id="none"),
        pytest.param({"input_cost_per_token_batches": 1}, None, id="input-alone"),
        pytest.param(
            {"input_cost_per_token_batches": 1, "output_cost_per_token_batches": 2},
            {"input": {0: 1, 200_000: 8}, "output": {0: 2}, "reasoning": {0: 7}},
            id="usual-where-there-is-none",
        ),
        pytest.param(
            {
                "input_cost_per_token_batches": 1,
                "input_cost_per_token_above_200k_tokens_batches": 3,
                "output_cost_per_token_batches": 2,
                "cache_read_input_token_cost_batches": 0,
            },
            {
                "input": {0: 1, 200_000: 3},
                "output": {0: 2},
                "reasoning": {0: 7},
                "cached_input": {0: 0},
            },
            id="all",
        ),
    ],
)
def test_a_row_has_prices_by_batch_or_none(
    row: dict[str, Any],
    by_batch: dict[str, dict[int, int]] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Half is not guessed; what is missing beside it is no cheaper than usual."""
    usual = {
        "mode": "chat", "litellm_provider": "a", "input_cost_per_token": 4,
        "input_cost_per_token_above_200k_tokens": 8, "output_cost_per_token": 6,
        "cache_read_input_token_cost": 1, "output_cost_per_reasoning_token": 7,
    }  # fmt: skip
    prices = Prices()
    monkeypatch.setattr(Prices, "_table", {"a/b": usual | row})
    price = prices.find("a/b", by_batch=True)
    kinds = ("input", "output", "reasoning", "cached_input", "cache_write")
    found = price and {
        kind: {r.above_tokens: int(r.dollars) for r in getattr(price, kind)}
        for kind in kinds
        if getattr(price, kind)
    }

    assert by_batch == found


@pytest.mark.parametrize(
    ("model", "share"), [("openai/gpt-4o-mini", 2), ("openai/gpt-5", 2)]
)
def test_by_batch_a_bundled_price_is_half(model: str, share: int) -> None:
    """Of the worst case; the table says so."""
    usual, by_batch = BUNDLED.find(model), BUNDLED.find(model, by_batch=True)

    assert usual is not None
    assert by_batch is not None
    worst = {"prompt_tokens": 10_000, "output_tokens": 4_000}
    assert usual.most(**worst) == share * by_batch.most(**worst)


def test_the_table_and_the_overrides_have_a_name() -> None:
    """Records can tell by which prices an amount was computed."""
    own = Prices('{"a/b": {"input": "0", "output": "0"}}')

    assert BUNDLED.identity.startswith("litellm 1.")
    assert BUNDLED.identity.endswith(" overrides none")
    assert own.identity.split()[:3] == BUNDLED.identity.split()[:3]
    assert own.identity != BUNDLED.identity


@pytest.mark.parametrize(
    ("entry", "known"),
    [
        pytest.param({}, False, id="empty"),
        pytest.param({"mode": "chat"}, False, id="no-rates"),
        pytest.param(
            {"mode": "chat", "input_cost_per_token": -1, "output_cost_per_token": 1},
            False,
            id="negative",
        ),
        pytest.param(
            {
                "mode": "chat",
                "input_cost_per_token_above_200k_tokens": 1,
                "output_cost_per_token": 1,
            },
            False,
            id="tier-without-base",
        ),
        pytest.param(
            {
                "mode": "chat",
                "input_cost_per_token": Decimal(0),
                "output_cost_per_token": 0,
                "input_cost_per_token_priority": 1,
                "input_cost_per_request": Decimal("0.1"),
                "max_output_tokens": "unknown",
            },
            True,
            id="odd-parts",
        ),
    ],
)
def test_rows_of_the_table_are_read_with_care(
    entry: dict[str, Any],
    known: bool,  # noqa: FBT001  (a column of the table above)
) -> None:
    """A row that does not bound a request is no price; asked-for tiers don't count."""
    price = module._price(entry)

    assert known == (price is not None)
    if price is not None:
        assert 100_000_000 == price.most(prompt_tokens=10, output_tokens=10)
        assert price.max_output_tokens is None


def test_the_cap_of_a_model_is_known() -> None:
    """A request for more output would be refused."""
    mini = BUNDLED.find("openai/gpt-4o-mini")

    assert mini is not None
    assert 16_384 == mini.max_output_tokens
    assert FREE.max_output_tokens is None


@pytest.mark.parametrize("spec", [None, SimpleNamespace(origin=None)])
def test_a_missing_litellm_is_named(spec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation without the table says so."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: spec)
    with pytest.raises(VectorlessRagError, match="not installed"):
        module.litellm_folder()


def test_the_table_is_read_late_and_litellm_never_imported() -> None:
    """Offline models cost no look at four megabytes of prices."""
    code = (
        "import sys\n"
        "from vectorless_rag.prices import Prices\n"
        "prices = Prices()\n"
        "prices.find('offline/extractive')\n"
        "early = '_table' in vars(prices)\n"
        "prices.find('openai/gpt-4o-mini')\n"
        "print(early, '_table' in vars(prices), 'litellm' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(REPOSITORY / "src")},
        capture_output=True,
        check=True,
        timeout=60,
    )

    assert b"False True False\n" == done.stdout
