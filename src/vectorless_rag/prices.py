"""
What a request may cost at most, and what it did cost.

Rates come from the table bundled with LiteLLM, read without importing LiteLLM, and
from the settings, which stand above it. Rates are exact; only the amount of a
request is rounded, up, to a whole nano-dollar.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation, localcontext
from functools import cached_property
from importlib import metadata, util
from pathlib import Path
from typing import Any

from vectorless_rag.canon import sha256
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.units import NanoUsd, nano_usd

OFFLINE_PREFIX = "offline/"
"""Models that answer inside the process, at no cost."""

SETTING = "VECTORLESS_RAG_PRICES"

# Enough digits for any rate times any count of tokens: the product stays exact.
_DIGITS = 60
_DEAREST = Decimal(1)

_TIER = re.compile(r"(.+)_above_(\d+)k_tokens")
_MODES = frozenset({"chat", "completion", "responses"})


@dataclass(frozen=True, kw_only=True)
class Rate:
    """Dollars per token, and from how long a prompt on it applies."""

    dollars: Decimal

    above_tokens: int = 0
    """It applies to prompts longer than this, in tokens."""


@dataclass(frozen=True, kw_only=True)
class Price:
    """The rates of one model."""

    input: tuple[Rate, ...]
    output: tuple[Rate, ...]

    cached_input: tuple[Rate, ...] = ()
    """For prompt tokens found in the provider's cache. Empty: as other input."""

    cache_write: tuple[Rate, ...] = ()
    """For prompt tokens written to the cache. Empty: as other input."""

    reasoning: tuple[Rate, ...] = ()
    """For output tokens spent on reasoning. Empty: as other output."""

    per_request: Decimal = Decimal(0)
    """Dollars, whatever its length."""

    max_output_tokens: int | None = None
    """The most the model can answer with, where known."""

    def most(self, *, prompt_tokens: int, output_tokens: int) -> NanoUsd:
        """
        Return the most a request can cost, in nano-dollars.

        Args:
            prompt_tokens: Upper bound of the prompt.
            output_tokens: Cap on the output.
        """
        inputs = (*self.input, *self.cached_input, *self.cache_write)
        outputs = (*self.output, *self.reasoning)
        return self._sum(
            (prompt_tokens, _dearest(inputs, prompt_tokens)),
            (output_tokens, _dearest(outputs, prompt_tokens)),
        )

    def actual(
        self,
        *,
        prompt_tokens: int,
        completion_tokens: int,
        cached_tokens: int = 0,
        reasoning_tokens: int = 0,
        cache_write_tokens: int = 0,
    ) -> NanoUsd:
        """
        Return what a request cost, in nano-dollars.

        Cached and written tokens are part of the prompt's, reasoning tokens part
        of the completion's.
        """
        cached = min(cached_tokens, prompt_tokens)
        written = min(cache_write_tokens, prompt_tokens - cached)
        reasoning = min(reasoning_tokens, completion_tokens)

        def rate(own: tuple[Rate, ...], otherwise: tuple[Rate, ...]) -> Decimal:
            return _applying(own or otherwise, prompt_tokens)

        return self._sum(
            (prompt_tokens - cached - written, rate(self.input, ())),
            (cached, rate(self.cached_input, self.input)),
            (written, rate(self.cache_write, self.input)),
            (completion_tokens - reasoning, rate(self.output, ())),
            (reasoning, rate(self.reasoning, self.output)),
        )

    def _sum(self, *parts: tuple[int, Decimal]) -> NanoUsd:
        with localcontext(prec=_DIGITS):
            total = sum((n * rate for n, rate in parts), self.per_request)
            return nano_usd(total)


FREE = Price(input=(Rate(dollars=Decimal(0)),), output=(Rate(dollars=Decimal(0)),))
"""The price of a model that costs nothing, or whose price nobody knows."""


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

    def find(self, model: str) -> Price | None:
        """
        Return the price of *model*, or None if it is not known.

        Args:
            model: ``provider/name``. An offline model is free, and the bundled
                table is not read for it.
        """
        if model.startswith(OFFLINE_PREFIX):
            return FREE
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
            ``cached_input`` and ``reasoning`` where they differ.

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
    if raw.keys() - {"input", "output", "cached_input", "reasoning"}:
        raise _refused("a rate is none of input, output, cached_input, reasoning")
    if not raw.keys() >= {"input", "output"}:
        raise _refused("input and output are required")
    rates = {key: (Rate(dollars=_dollars(value)),) for key, value in raw.items()}
    return Price(
        input=rates["input"],
        output=rates["output"],
        cached_input=rates.get("cached_input", ()),
        reasoning=rates.get("reasoning", ()),
    )


def _dollars(raw: object) -> Decimal:
    try:
        # A float here is a defect of the setting's reader, not a rate.
        value = Decimal(raw) if isinstance(raw, str | int | Decimal) else None
    except InvalidOperation:
        value = None
    if value is None or isinstance(raw, bool) or not value.is_finite():
        raise _refused("a rate is not a number")
    if not 0 <= value <= _DEAREST or len(value.as_tuple().digits) > _DIGITS // 2:
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
    if not {"input_cost_per_token", "output_cost_per_token"} <= rates.keys():
        return None
    cap = entry.get("max_output_tokens")
    return Price(
        input=rates["input_cost_per_token"],
        output=rates["output_cost_per_token"],
        cached_input=rates.get("cache_read_input_token_cost", ()),
        cache_write=rates.get("cache_creation_input_token_cost", ()),
        reasoning=rates.get("output_cost_per_reasoning_token", ()),
        per_request=_per_request(entry),
        max_output_tokens=cap if isinstance(cap, int) and cap > 0 else None,
    )


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
        yield (tier[1], int(tier[2]) * 1000, value) if tier else (key, 0, value)
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


def _dearest(rates: Iterable[Rate], prompt_tokens: int) -> Decimal:
    """Return the highest of the rates that the prompt may reach."""
    return max(r.dollars for r in rates if r.above_tokens <= prompt_tokens)


def _applying(rates: tuple[Rate, ...], prompt_tokens: int) -> Decimal:
    """Return the rate of the longest tier that the prompt is in."""
    reached = [r for r in rates if r.above_tokens < max(prompt_tokens, 1)]
    return max(reached, key=lambda r: r.above_tokens).dollars
