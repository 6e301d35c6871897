"""
Count tokens without LiteLLM, and bound them from above.

Counting shapes the tree (pages are grouped by it), so it is deterministic. The
bound decides what is held against a budget, so it never falls short.
"""

import math
import os
import re
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from vectorless_rag.pageindex_runtime.providers import Message
from vectorless_rag.prices import litellm_folder

if TYPE_CHECKING:
    import tiktoken

PER_MESSAGE = 16
"""Tokens that the framing of one message may take, at most."""

# Longest run handed to the tokenizer at once: its time grows faster than the text
# where there are no blanks to split at.
_STRETCH = 20_000
_MARGIN = 1.1

_BYTES_PER_TOKEN = 4
_WORD = re.compile(r"\w+|[^\w\s]")

# Encodings that LiteLLM ships, by the names OpenAI gives its models.
_ENCODINGS = (
    ("o200k_base", re.compile(r"gpt-4o|gpt-4\.[15]|gpt-5|chatgpt-4o|o[134](-|$)")),
    ("cl100k_base", re.compile(r"gpt-4|gpt-3\.5")),
)
_PROVIDERS = frozenset({"openai", "azure"})


def count_tokens(text: str, model: str | None = None) -> int:
    """
    Count the tokens of *text*.

    Args:
        text: Anything.
        model: ``provider/name``. OpenAI's models are counted exactly; for others,
            and for None, the count is an estimate from words and bytes.
    """
    if not text:
        return 0
    name = _encoding_name(model or "")
    return _estimate(text) if name is None else _count(text, name)


def bound_tokens(messages: Iterable[Message], model: str) -> int:
    """
    Return a number of tokens that *messages* do not exceed.

    No tokenizer in use yields more tokens than bytes. Where the tokenizer is known,
    its count with a margin is nearer.
    """
    listed = tuple(messages)
    name = _encoding_name(model)
    return sum(_bound(message.content, name) + PER_MESSAGE for message in listed)


def is_counted_exactly(model: str) -> bool:
    """Say whether the tokenizer of *model* is known."""
    return _encoding_name(model) is not None


def _bound(text: str, name: str | None) -> int:
    most = len(text.encode("utf-8", "surrogatepass"))
    if name is None:
        return most
    return min(most, math.ceil(_count(text, name) * _MARGIN))


def _encoding_name(model: str) -> str | None:
    provider, _, name = model.rpartition("/")
    if provider not in _PROVIDERS:
        return None
    return next((e for e, names in _ENCODINGS if names.match(name)), None)


def _estimate(text: str) -> int:
    """Return the larger of two guesses: long words and dense scripts need more."""
    size = len(text.encode("utf-8", "surrogatepass"))
    return max(math.ceil(size / _BYTES_PER_TOKEN), len(_WORD.findall(text)))


def _count(text: str, name: str) -> int:
    encoding = _encoding(name)
    stretches = (text[i : i + _STRETCH] for i in range(0, len(text), _STRETCH))
    return sum(len(encoding.encode_ordinary(stretch)) for stretch in stretches)


@cache
def _encoding(name: str) -> "tiktoken.Encoding":
    # tiktoken fetches its tables from the network unless this variable names a
    # folder that holds them, and reads no other setting.
    folder = litellm_folder() / "litellm_core_utils" / "tokenizers"
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)  # noqa: TID251  (no other way in)
    import tiktoken  # noqa: PLC0415  (0.3 s, not needed for offline models)

    return tiktoken.get_encoding(name)
