"""Settings are read once, checked, and never quoted."""

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from conftest import REPOSITORY
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.settings import (
    PREFIX,
    Settings,
    cache_folder,
    measuring_environment,
    provider_environment,
    python_executable,
    search_path,
    tool_environment,
    tracing_environment,
)

ROW = r"^\| `VECTORLESS_RAG_(\w+)` \| (.+?) \| (.+) \|$"


def documented() -> dict[str, tuple[str, str]]:
    rows = (REPOSITORY / "docs" / "settings.md").read_text(encoding="utf-8")
    found = re.findall(ROW, rows, re.MULTILINE)
    return {name: (default, text) for name, default, text in found}


def shown(default: Any) -> str:
    return "empty" if default is None else f"`{default}`"


def test_the_settings_table_is_the_settings_class() -> None:
    """Every field is in the table with its default, and nothing else is."""
    fields = {
        name.upper(): (shown(field.default), field.description)
        for name, field in Settings.model_fields.items()
    }

    assert fields == documented()


@pytest.mark.parametrize("suffix", ["_s", "_bytes", "_tokens", "_pages"])
def test_a_setting_that_ends_in_a_unit_is_a_whole_number(suffix: str) -> None:
    """The unit stands in the name."""
    kinds = {
        f.annotation for n, f in Settings.model_fields.items() if n.endswith(suffix)
    }

    assert {int} == kinds


def test_the_environment_sets_and_an_option_overrides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Options given stand above variables; None is not given."""
    monkeypatch.setenv(f"{PREFIX}MODE", "standard")
    monkeypatch.setenv(f"{PREFIX}BUDGET_USD", "0.25")
    settings = Settings.load(mode="flash", budget_usd=None)

    assert ("flash", 250_000_000) == (settings.mode, settings.budget_nano_usd)


def test_the_default_needs_no_provider() -> None:
    """A fresh machine answers by itself, in the data folder."""
    settings = Settings.load()

    assert (True, Path.cwd() / "data" / "store", Decimal(1)) == (
        settings.offline,
        settings.store_dir,
        settings.budget_usd,
    )
    assert f"sqlite:///{Path.cwd()}/data/ledger.sqlite3" == (
        settings.effective_ledger_url
    )


def test_a_ledger_of_its_own_is_taken_as_given() -> None:
    """An address that is set is not derived."""
    settings = Settings.load(ledger_url="postgresql://ledger")

    assert "postgresql://ledger" == settings.effective_ledger_url


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BUDGET_USD", "canary"),
        ("BUDGET_USD", "-1"),
        ("MODE", "canary"),
        ("MODEL", "canary"),
        ("OWNER", "canary canary"),
        ("CONCURRENCY", "0"),
        ("API_BASE", "canary"),
    ],
)
def test_a_bad_value_is_named_and_not_quoted(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    """A value may be a secret in the wrong place."""
    monkeypatch.setenv(PREFIX + name, value)

    with pytest.raises(VectorlessRagError, match=PREFIX + name) as error:
        Settings.load()
    assert Code.SETTINGS_INVALID == error.value.code
    assert value not in str(error.value)


def test_an_unknown_option_is_refused() -> None:
    """A misspelt option does not pass in silence."""
    with pytest.raises(VectorlessRagError, match="BUDGET_USB"):
        Settings.load(budget_usb=1)


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
