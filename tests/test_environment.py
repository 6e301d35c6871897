"""Children, tools and caches are given what they need of the environment."""

from pathlib import Path

import pytest

from vectorless_rag.environment import (
    cache_folder,
    measuring_environment,
    provider_environment,
    python_executable,
    search_path,
    tool_environment,
    tracing_environment,
)
from vectorless_rag.errors import Code, VectorlessRagError


def test_an_offline_model_gets_no_provider_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Keys stay with the parent when nobody is called."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")

    assert {} == provider_environment("offline/extractive")


@pytest.mark.parametrize(
    ("model", "mine"),
    [
        ("openai/x", {"OPENAI_API_KEY"}),
        ("anthropic/x", {"ANTHROPIC_API_KEY"}),
        ("gemini/x", {"GEMINI_API_KEY", "GOOGLE_API_KEY"}),
        ("bedrock/x", {"AWS_SECRET_ACCESS_KEY"}),
    ],
)
def test_a_provider_gets_its_own_variables_and_the_proxy(
    monkeypatch: pytest.MonkeyPatch, model: str, mine: set[str]
) -> None:
    """A child never sees another provider's key."""
    names = {
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "GEMINI_API_KEY",
        "GOOGLE_API_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "HTTPS_PROXY",
        # Addresses decide the result, so they come by api_base alone.
        "OPENAI_BASE_URL",
        "OPENAI_API_BASE",
    }
    for name in names:
        monkeypatch.setenv(name, "x")

    assert mine | {"HTTPS_PROXY"} == names & set(provider_environment(model))


@pytest.mark.parametrize("key", ["…", "sk-1\n", "sk-\t1"])
def test_a_key_that_no_request_can_carry_is_refused_before_any(
    monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    """
    A placeholder that was copied, or a line break, fails by the variable's name.

    Unsent requests would each be held to have been billed, and tried again.
    """
    monkeypatch.setenv("OPENAI_API_KEY", key)

    with pytest.raises(VectorlessRagError, match="OPENAI_API_KEY holds") as caught:
        provider_environment("openai/x")
    assert Code.AUTH is caught.value.code
    assert key not in str(caught.value)


def test_tools_see_the_whole_environment_and_children_a_measure_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """pip needs mirrors and proxies; a child needs only what measures it."""
    monkeypatch.setenv("PIP_CANARY", "x")
    monkeypatch.setenv("COVERAGE_CANARY", "x")

    assert "x" == tool_environment()["PIP_CANARY"]
    assert "PIP_CANARY" not in measuring_environment()
    assert "COVERAGE_CANARY" in measuring_environment()


def test_tracing_needs_both_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one key missing nothing of the tracer is handed on; with both, its own."""
    monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", "p")
    monkeypatch.setenv("LANGFUSE_DEBUG", "true")
    monkeypatch.setenv("HTTPS_PROXY", "proxy")
    assert {} == tracing_environment()
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", "s")

    assert {"LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY", "HTTPS_PROXY"} <= set(
        tracing_environment()
    )
    assert "LANGFUSE_DEBUG" not in tracing_environment()


def test_the_cache_is_where_the_desktop_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """XDG_CACHE_HOME, and .cache in the home without it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert tmp_path / "vectorless-rag" == cache_folder()
    monkeypatch.delenv("XDG_CACHE_HOME")

    assert Path.home() / ".cache" / "vectorless-rag" == cache_folder()


def test_programs_are_looked_up_where_this_process_looks() -> None:
    """Path and interpreter are this process's own."""
    assert search_path()
    assert Path(python_executable()).exists()
