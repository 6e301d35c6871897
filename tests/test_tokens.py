"""Counting tokens without LiteLLM and without a network."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import REPOSITORY
from vectorless_rag.pageindex_runtime.providers import Message
from vectorless_rag.pageindex_runtime.tokens import bound_tokens, count_tokens

GPT = "openai/gpt-4o-mini"


@pytest.mark.parametrize(
    ("text", "model", "tokens"),
    [
        pytest.param("", GPT, 0, id="nothing"),
        pytest.param("", None, 0, id="nothing-unknown"),
        pytest.param("Hello, world!", GPT, 4, id="o200k"),
        pytest.param("漢字", GPT, 2, id="o200k-han"),
        pytest.param("漢字", "openai/gpt-4-turbo", 3, id="cl100k-han"),
        pytest.param("漢字", "azure/gpt-3.5-turbo", 3, id="azure"),
        pytest.param("<|endoftext|>", GPT, 7, id="special-token-is-text"),
        pytest.param("Hello, world!", None, 4, id="no-model"),
        pytest.param("Hello, world!", "offline/extractive", 4, id="offline"),
        pytest.param("a" * 40, "anthropic/claude-sonnet-4-5", 10, id="long-word"),
        pytest.param("a b c d e", "openai/local-llama", 5, id="short-words"),
        pytest.param("漢字" * 6, "mistral/gpt-4o", 9, id="dense-script"),
        pytest.param("\ud800", None, 1, id="lone-surrogate"),
    ],
)
def test_counts(text: str, model: str | None, tokens: int) -> None:
    """OpenAI's models exactly, others by a fixed estimate."""
    assert tokens == count_tokens(text, model)


texts = st.text(st.characters(), max_size=300)


@given(text=texts, model=st.sampled_from([GPT, "openai/gpt-4", "offline/x", "a/b"]))
def test_a_bound_is_a_bound(text: str, model: str) -> None:
    """It is at least the count, and no tokenizer passes the bytes."""
    bound = bound_tokens([Message("user", text)], model)

    assert bound >= count_tokens(text, GPT)
    assert bound <= len(text.encode("utf-8", "surrogatepass")) + 16


def test_a_known_tokenizer_gives_a_closer_bound() -> None:
    """Bytes are the bound of a tokenizer nobody knows."""
    text = "plain words " * 100

    assert 238 == bound_tokens([Message("user", text)], GPT)
    assert 1216 == bound_tokens([Message("user", text)], "anthropic/claude")


def test_the_framing_of_each_message_counts() -> None:
    """Sixteen tokens for every message, on top of its text."""
    assert 2 * 16 == bound_tokens([Message("user", ""), Message("user", "")], "a/b")


@given(st.text(st.characters(), max_size=200))
def test_counting_is_deterministic_and_never_negative(text: str) -> None:
    """The same text counts the same, since trees are grouped by it."""
    assert count_tokens(text) == count_tokens(text)
    assert (count_tokens(text) > 0) == bool(text)


def test_a_text_without_a_break_is_counted_in_stretches() -> None:
    """A tokenizer's time may grow with the square of such a text."""
    assert 12_500 == count_tokens("a" * 100_000, GPT)


def test_the_tables_are_the_ones_installed() -> None:
    """Counting needs no network, not even in a fresh process without a cache."""
    code = (
        "import socket, sys\n"
        "def refuse(*_): raise AssertionError('network')\n"
        "socket.socket.connect = refuse\n"
        "from vectorless_rag.pageindex_runtime.tokens import count_tokens\n"
        f"print(count_tokens('Hello, world!', {GPT!r}), 'litellm' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(REPOSITORY / "src"), "TIKTOKEN_CACHE_DIR": ""},
        capture_output=True,
        check=True,
        timeout=60,
    )

    assert b"4 False\n" == done.stdout
