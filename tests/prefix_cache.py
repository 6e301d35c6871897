"""
What a provider keeps of the prompts it has read, as such providers describe it.

The start of a prompt is kept once its answer is on its way: a question asked at the
same time as another cannot profit from it.
"""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import tiktoken

from vectorless_rag.pageindex_runtime.tokens import count_tokens

_MODEL, _ENCODING = "openai/gpt-4o-mini", "o200k_base"


@dataclass
class PrefixCache:
    """Starts of prompts, by their digests; one for all models."""

    least: int = 1024
    """Tokens that a start must have to be kept; as OpenAI has it."""

    step: int = 128
    """The steps it grows in."""

    _kept: set[bytes] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def held(self, messages: Sequence[dict[str, Any]]) -> int:
        """Count the tokens at the start of a prompt that are kept."""
        found = 0
        with self._lock:
            for size, digest in self._starts(messages):
                if digest not in self._kept:
                    break
                found = size
        return found if found >= self.least else 0

    def keep(self, messages: Sequence[dict[str, Any]]) -> None:
        """Remember a prompt that was answered."""
        starts = {digest for _, digest in self._starts(messages)}
        with self._lock:
            self._kept |= starts

    def _starts(
        self, messages: Sequence[dict[str, Any]]
    ) -> Iterator[tuple[int, bytes]]:
        """Yield every start of a prompt that may be kept: its tokens, its digest."""
        text = "".join(f"<|{m['role']}|>{m['content']}" for m in messages)
        tokens = _tokens(text)
        digest = sha256()
        for end in range(self.step, len(tokens) + 1, self.step):
            digest.update(str(tokens[end - self.step : end]).encode())
            yield end, digest.digest()


def _tokens(text: str) -> list[int]:
    # Counting first tells tiktoken where its tables lie, so that it fetches none.
    count_tokens("x", _MODEL)
    return tiktoken.get_encoding(_ENCODING).encode_ordinary(text)
