"""
What a request may cost at most, and what it did cost.

Rates come from the table bundled with LiteLLM, read without importing LiteLLM, and
from the settings, which stand above it. Rates are exact; only the amount of a
request is rounded, up, to a whole nano-dollar.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from functools import cached_property
from importlib import metadata, util
from pathlib import Path
from typing import Any

from vectorless_rag.canon import sha256
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.rates import DIGITS, FREE, Price, Rate
from vectorless_rag.units import OFFLINE_PREFIX

__all__ = ["FREE", "OFFLINE_PREFIX", "Price", "Prices", "Rate", "parse_overrides"]

SETTING = "VECTORLESS_RAG_PRICES"

_DEAREST = Decimal(1)

_TIER = re.compile(r"(.+)_above_(\d+)k_tokens(_batches)?")
_MODES = frozenset({"chat", "completion", "responses"})
_BATCHED = "_batches"
_KEYS = {
    "input": "input_cost_per_token",
    "output": "output_cost_per_token",
    "cached_input": "cache_read_input_token_cost",
    "cache_write": "cache_creation_input_token_cost",
    "reasoning": "output_cost_per_reasoning_token",
}
"""Where the table has which rate of a `Price`."""

_OWN = frozenset({"input", "output", "cached_input", "reasoning"})
_OWN_BATCHED = frozenset({"batch_input", "batch_output"})


class Prices:
    """
    The prices of all models.

    Args:
        overrides_json: The setting ``VECTORLESS_RAG_PRICES``: model to rates in
            dollars per token.

    Raises:
        VectorlessRagError: ``settings_invalid``.
    """

    def __init__(self, overrides_json: str = "{}") -> None:
        self._overrides = parse_overrides(overrides_json)
        self._overrides_json = overrides_json

    def find(self, model: str, *, by_batch: bool = False) -> Price | None:
        """
        Return the price of *model*, or None if it is not known.

        Args:
            model: ``provider/name``. An offline model is free, and the bundled
                table is not read for it.
            by_batch: Asked through its provider's batches. Half of the usual price
                is what most take, and is never taken for granted.
        """
        if model.startswith(OFFLINE_PREFIX):
            return FREE
        price = self._find(model)
        return price.batch if by_batch and price is not None else price

    def _find(self, model: str) -> Price | None:
        if model in self._overrides:
            return self._overrides[model]
        entry = _entry(self._table, model)
        return None if entry is None else _price(entry)

    @property
    def identity(self) -> str:
        """Name the table and the overrides, for records that outlive an upgrade."""
        own = sha256(self._overrides_json.encode())[:12] if self._overrides else "none"
        table = sha256(self._raw)[:12]
        return f"litellm {metadata.version('litellm')} {table} overrides {own}"

    @cached_property
    def _raw(self) -> bytes:
        name = "model_prices_and_context_window_backup.json"
        return (litellm_folder() / name).read_bytes()

    @cached_property
    def _table(self) -> Mapping[str, Any]:
        table: Mapping[str, Any] = json.loads(self._raw, parse_float=Decimal)
        return table


def litellm_folder() -> Path:
    """
    Return the folder of the installed LiteLLM, without importing it.

    Raises:
        VectorlessRagError: ``internal_error``, if it is not installed.
    """
    spec = util.find_spec("litellm")
    if spec is None or spec.origin is None:
        raise VectorlessRagError(Code.INTERNAL_ERROR, "litellm is not installed")
    return Path(spec.origin).parent


def parse_overrides(text: str) -> Mapping[str, Price]:
    """
    Read configured prices.

    Args:
        text: ``{"openai/x": {"input": "0.000001", "output": "0.000002"}}``, with
            ``cached_input`` and ``reasoning`` where they differ, and with
            ``batch_input`` and ``batch_output`` for requests by batch.

    Raises:
        VectorlessRagError: ``settings_invalid``. It says what is wrong and quotes
            nothing.
    """
    try:
        raw = json.loads(text, parse_float=Decimal)
    except ValueError:
        raw = None
    if not isinstance(raw, dict):
        raise _refused("not a JSON object")
    return {model: _override(model, rates) for model, rates in raw.items()}


def _override(model: str, raw: object) -> Price:
    provider, _, name = model.partition("/")
    if not provider or not name or model.startswith(OFFLINE_PREFIX):
        raise _refused("a key is not provider/name")
    if not isinstance(raw, dict):
        raise _refused("a value is not an object")
    if raw.keys() - _OWN - _OWN_BATCHED:
        raise _refused(
            "a rate is none of input, output, cached_input, reasoning, batch_input,"
            " batch_output"
        )
    if not raw.keys() >= {"input", "output"}:
        raise _refused("input and output are required")
    if len(raw.keys() & _OWN_BATCHED) == 1:
        raise _refused("batch_input and batch_output belong together")
    rates = {key: (Rate(dollars=_dollars(value)),) for key, value in raw.items()}
    return Price(
        input=rates["input"],
        output=rates["output"],
        cached_input=rates.get("cached_input", ()),
        reasoning=rates.get("reasoning", ()),
        batch=Price(input=rates["batch_input"], output=rates["batch_output"])
        if rates.keys() >= _OWN_BATCHED
        else None,
    )


def _dollars(raw: object) -> Decimal:
    try:
        # A float here is a defect of the setting's reader, not a rate.
        value = Decimal(raw) if isinstance(raw, str | int | Decimal) else None
    except InvalidOperation:
        value = None
    if value is None or isinstance(raw, bool) or not value.is_finite():
        raise _refused("a rate is not a number")
    if not 0 <= value <= _DEAREST or len(value.as_tuple().digits) > DIGITS // 2:
        raise _refused("a rate is out of range")
    return value


def _refused(why: str) -> VectorlessRagError:
    return VectorlessRagError(Code.SETTINGS_INVALID, f"{SETTING}: {why}")


def _entry(table: Mapping[str, Any], model: str) -> Mapping[str, Any] | None:
    """Find the row of *model*: the table names some models without their provider."""
    provider, _, name = model.partition("/")
    if model in table:
        return _mapping(table[model])
    entry = _mapping(table.get(name))
    owner = str(entry.get("litellm_provider")) if entry else ""
    # vertex_ai-anthropic_models, bedrock_converse: one provider, many routes.
    return (
        entry if re.fullmatch(re.escape(provider) + r"([-_][\w-]+)?", owner) else None
    )


def _mapping(value: object) -> Mapping[str, Any] | None:
    return value if isinstance(value, Mapping) else None


def _price(entry: Mapping[str, Any]) -> Price | None:
    """Read one row; None if a request's cost cannot be bounded from it."""
    if entry.get("mode") not in _MODES or "citation_cost_per_token" in entry:
        return None
    rates = _rates(entry)
    named = {name: rates.get(key, ()) for name, key in _KEYS.items()}
    if not (named["input"] and named["output"]):
        return None
    usual = _of(named, entry)
    batched = {
        name: _with_tiers(rates.get(f"{key}{_BATCHED}", ()), named[name])
        for name, key in _KEYS.items()
    }
    if not (batched["input"] and batched["output"]):
        return usual
    # What has no rate by batch is no cheaper than usual; and not every provider then
    # takes less for what its cache holds.
    named |= {name: own for name, own in batched.items() if own}
    named["cached_input"] = batched["cached_input"]
    return replace(usual, batch=_of(named, entry))


def _of(named: Mapping[str, tuple[Rate, ...]], entry: Mapping[str, Any]) -> Price:
    cap = entry.get("max_output_tokens")
    return Price(
        input=named["input"],
        output=named["output"],
        cached_input=named["cached_input"],
        cache_write=named["cache_write"],
        reasoning=named["reasoning"],
        per_request=_per_request(entry),
        max_output_tokens=cap if isinstance(cap, int) and cap > 0 else None,
    )


def _with_tiers(own: tuple[Rate, ...], usual: tuple[Rate, ...]) -> tuple[Rate, ...]:
    """Add the tiers that only the usual rates have; nothing, if there is no own."""
    if not own:
        return ()
    known = {rate.above_tokens for rate in own}
    return (*own, *(rate for rate in usual if rate.above_tokens not in known))


def _rates(entry: Mapping[str, Any]) -> dict[str, tuple[Rate, ...]]:
    """Group the rates of a row, long-context tiers included, by what they are for."""
    found: dict[str, list[Rate]] = {}
    for name, above, value in _listed(entry):
        # A negative rate stands for "depends", not for a gift.
        if isinstance(value, int | Decimal) and value >= 0:
            rate = Rate(dollars=Decimal(value), above_tokens=above)
            found.setdefault(name, []).append(rate)
    # A tier without a rate below it says nothing about most prompts.
    return {
        name: tuple(rates)
        for name, rates in found.items()
        if any(rate.above_tokens == 0 for rate in rates)
    }


def _listed(entry: Mapping[str, Any]) -> Iterable[tuple[str, int, object]]:
    for key, value in entry.items():
        tier = _TIER.fullmatch(key)
        if tier is None:
            yield key, 0, value
            continue
        yield tier[1] + (tier[3] or ""), int(tier[2]) * 1000, value
    for tier in entry.get("tiered_pricing") or ():
        for key, value in tier.items():
            yield key, int(tier.get("range", (0,))[0]), value


def _per_request(entry: Mapping[str, Any]) -> Decimal:
    fee = Decimal(entry.get("input_cost_per_request") or 0)
    if entry.get("litellm_provider") == "perplexity":
        # Its models search the web with every request.
        searches = entry.get("search_context_cost_per_query") or {}
        fee += max(map(Decimal, searches.values()), default=Decimal(0))
    return fee
