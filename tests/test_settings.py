"""Settings are read once, checked, and never quoted."""

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from conftest import REPOSITORY
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.settings import Settings
from vectorless_rag.store_settings import PREFIX

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
        ("LEDGER_URL", "canary"),
        ("LEDGER_URL", "canary://host/database"),
        ("PRICES", "{canary"),
        ("PRICES", '["canary"]'),
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


def test_what_a_value_may_be_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that is wrong, at once, with the range."""
    monkeypatch.setenv(PREFIX + "MAX_PAGES", "0")
    monkeypatch.setenv(PREFIX + "MODE", "slow")

    with pytest.raises(VectorlessRagError, match="MAX_PAGES") as error:
        Settings.load()
    assert (
        "VECTORLESS_RAG_MAX_PAGES: should be greater than or equal to 1;"
        " VECTORLESS_RAG_MODE: should be 'auto', 'flash' or 'standard'"
    ) == error.value.detail


@pytest.mark.parametrize("name", ["BUDGET_US", "budget_usd_", "MAXPAGES", "JOSB"])
def test_a_misspelt_variable_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A limit that was meant to hold does not pass in silence."""
    monkeypatch.setenv(PREFIX + name, "5")

    with pytest.raises(VectorlessRagError, match=f"{PREFIX}{name}: unknown, "):
        Settings.load()


def test_a_variable_of_something_else_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The prefix is not ours alone: tests and images have their own names."""
    monkeypatch.setenv(PREFIX + "CORPUS", "somewhere")

    assert Settings() == Settings.load()


def test_an_unknown_option_is_refused() -> None:
    """A misspelt option does not pass in silence."""
    with pytest.raises(VectorlessRagError, match="BUDGET_USB"):
        Settings.load(budget_usb=1)


@pytest.mark.parametrize("value", [":", "/srv/in:", "/srv/in::papers"])
def test_an_empty_root_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """A slip of the keyboard must not open every folder."""
    monkeypatch.setenv(f"{PREFIX}SOURCE_ROOTS", value)

    with pytest.raises(VectorlessRagError, match="SOURCE_ROOTS"):
        Settings.load()


def test_roots_are_folders_separated_by_colons(monkeypatch: pytest.MonkeyPatch) -> None:
    """As PATH is; what is relative counts from where the program started."""
    monkeypatch.setenv(f"{PREFIX}SOURCE_ROOTS", "/srv/in:papers")

    assert (Path("/srv/in"), Path.cwd() / "papers") == Settings.load().source_roots
    assert (Path("/x"),) == Settings.load(source_roots=(Path("/x"),)).source_roots
