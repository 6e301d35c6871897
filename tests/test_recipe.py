"""A key names every input that can change an artifact, and nothing else."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from conftest import REPOSITORY
from strategies_tree import patient, recipes, sample_recipe
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.recipe import (
    RESULT_SETTINGS,
    Asked,
    Configuration,
    Recipe,
    configuration_of,
    explain,
)
from vectorless_rag.settings import Mode, Settings
from vectorless_rag.units import Sha256
from vectorless_rag.wire import Parser

PACKAGE = REPOSITORY / "src" / "vectorless_rag"
FIELDS = [field.name for field in dataclasses.fields(Configuration)]

# Each with a value that is neither its default nor a neighbour's.
DECIDING: dict[str, Any] = {
    "model": "openai/another",
    "mode": Mode.STANDARD,
    "api_base": "http://127.0.0.1:9/v1",
    "max_output_tokens": 100,
    "call_attempts": 9,
}
INDIFFERENT: dict[str, Any] = {
    "batch": True,
    "batch_window_s": 9,
    "batch_requests": 9,
    "batch_timeout_s": 9,
    "batch_poll_s": 9,
    "data_dir": Path("elsewhere"),
    "ledger_url": "sqlite:///elsewhere.sqlite3",
    "build_dir": Path("elsewhere"),
    "owner": "someone",
    "budget_usd": 7,
    "allow_unpriced": True,
    "prices": '{"openai/x": {"input": "1", "output": "1"}}',
    "call_timeout_s": 7,
    "concurrency": 7,
    "jobs": 3,
    "provider_concurrency": 9,
    "billed_statuses": {"openai": [500]},
    "journal": False,
    "journal_days": 7,
    "replay": False,
    "trace_content": True,
    "child_timeout_s": 7,
    "child_memory_bytes": 2**30,
    "child_cpu_s": 7,
    "child_open_files": 512,
    "child_file_bytes": 2**30,
    "child_processes": 100,
    "sandbox": "off",
    "source_roots": (Path("/srv"),),
    "child_output": "inherit",
    "grace_s": 7,
    "log_level": "debug",
    "max_source_bytes": 7,
    "max_pages": 7,
    "store_url": "s3://elsewhere/x",
    "store_endpoint": "http://127.0.0.1:9",
    "engine_url": "sqlite:///elsewhere.sqlite3",
    "fork_server": False,
    "jobs_per_owner": 2,
    "jobs_per_model": 2,
    "job_tries": 2,
    "retry_s": 2,
    "heartbeat_s": 2,
    "dead_after_s": 9,
    "drain_s": 2,
    "listen": "127.0.0.1:9464",
    "otel": True,
}


def configured(**settings: Any) -> Configuration:
    return configuration_of(
        Asked.of(Settings(**({"model": "openai/a-model"} | settings))),
        pageindex_version="0.4.7+vr1",
        patch_sha256=Sha256("b" * 64),
        tree_sha256=Sha256("d" * 64),
        runtime_sha256=Sha256("c" * 64),
        parsers=(
            Parser(name="pypdf", version="7.1.1"),
            Parser(name="pypdfium2", version="5.15.2"),
        ),
    )


def changed(value: Any) -> Any:
    return value + 1 if isinstance(value, int) else f"f{value}"[:64]


def with_option(name: str) -> Recipe:
    before = sample_recipe().configuration
    after = dataclasses.replace(before, **{name: changed(getattr(before, name))})
    return dataclasses.replace(sample_recipe(), configuration=after)


@pytest.mark.parametrize("name", FIELDS)
def test_every_option_changes_the_key(name: str) -> None:
    """No option that shapes an artifact is left out of its name."""
    before, after = sample_recipe(), with_option(name)

    assert before.recipe_hash != after.recipe_hash
    assert (
        before.configuration.configuration_hash
        != after.configuration.configuration_hash
    )


def test_the_document_changes_the_key() -> None:
    """Two documents never share an artifact."""
    assert sample_recipe("a").recipe_hash != sample_recipe("b").recipe_hash


def test_the_key_is_pinned() -> None:
    """Old artifacts stay reachable. If this fails, raise recipe/1 to recipe/2."""
    assert (
        "48c9a7bf34ec3eb523b070d4dfd64dd82e0b1713808e46696ddcaf1ee351d374",
        "5d2ec6ebc23696fc5f6986a74b8a4d8f0eb0baeba545e955b20deabe1d317a0a",
    ) == (
        sample_recipe().configuration.configuration_hash,
        sample_recipe().recipe_hash,
    )


def test_every_setting_is_decided_about() -> None:
    """A new setting belongs to one of the two lists before it can be released."""
    assert set(Settings.model_fields) == DECIDING.keys() | INDIFFERENT.keys()
    assert set() == DECIDING.keys() & INDIFFERENT.keys()
    assert RESULT_SETTINGS == DECIDING.keys()


@pytest.mark.parametrize("name", DECIDING)
def test_a_deciding_setting_changes_the_key(name: str) -> None:
    """What can change the result is in the key."""
    other = configured(**{name: DECIDING[name]})

    assert configured().configuration_hash != other.configuration_hash


@pytest.mark.parametrize("name", INDIFFERENT)
def test_an_indifferent_setting_does_not(name: str) -> None:
    """Places, limits and money decide whether there is a result, not which."""
    assert configured() == configured(**{name: INDIFFERENT[name]})


def test_the_server_is_in_the_key_but_not_its_name() -> None:
    """An address may hold a host or a password; a slash at its end is no matter."""
    asked = configured(api_base="http://user:pw@host.invalid/v1")

    assert asked == configured(api_base="http://user:pw@host.invalid/v1/")
    assert "host" not in str(asked)


def test_an_offline_model_asks_no_server() -> None:
    """The address of a server that is not asked decides nothing."""
    offline = {"model": "offline/extractive"}

    assert configured(**offline) == configured(**offline, api_base="http://x.invalid")


@patient
@given(recipes)
def test_inputs_read_back(recipe: Recipe) -> None:
    """The recorded inputs give the recipe, and so its key."""
    assert recipe == Recipe.from_inputs(recipe.inputs())


def _drop(raw: dict[str, Any]) -> None:
    del raw["configuration"]["mode"]


def _drop_default(raw: dict[str, Any]) -> None:
    del raw["configuration"]["schema_version"]


def _add(raw: dict[str, Any]) -> None:
    raw["configuration"]["colour"] = "red"


def _bool(raw: dict[str, Any]) -> None:
    raw["configuration"]["call_attempts"] = True


def _float(raw: dict[str, Any]) -> None:
    raw["configuration"]["call_attempts"] = 3.0


def _digest(raw: dict[str, Any]) -> None:
    raw["document_sha256"] = "A" * 64


def _huge(raw: dict[str, Any]) -> None:
    raw["configuration"]["call_attempts"] = 2**60


@pytest.mark.parametrize(
    ("alter", "why"),
    [
        (_drop, r"recipe: configuration\.mode"),
        (_drop_default, r"recipe: not in canonical form"),
        (_add, r"recipe: not in canonical form"),
        (_bool, r"recipe: configuration\.call_attempts"),
        (_float, r"recipe: no canonical form"),
        (_digest, r"recipe: document_sha256"),
        (_huge, r"recipe: no canonical form"),
    ],
)
def test_altered_inputs_are_refused(
    alter: Callable[[dict[str, Any]], None], why: str
) -> None:
    """A field that is missing or malformed is named; an unknown one is no spelling."""
    raw: dict[str, Any] = sample_recipe().inputs()
    alter(raw)

    with pytest.raises(VectorlessRagError, match=why) as caught:
        Recipe.from_inputs(raw)
    assert Code.STORE_CORRUPT == caught.value.code


@pytest.mark.parametrize(
    ("expected", "options"),
    [
        (["model changed: offline/extractive → openai/x"], {"model": "openai/x"}),
        (["mode changed: auto → flash"], {"mode": "flash"}),
        (["pypdf 7.1.1 → 7.2.0"], {"pypdf": "7.2.0"}),
        (["pypdfium2 5.15.2 → 6.0"], {"pypdfium2": "6.0"}),
        (["pageindex 0.4.7+vr1 → 0.4.7+vr2"], {"pageindex_version": "0.4.7+vr2"}),
        (
            ["patch series changed: bbbbbbbbbbbb → 111111111111"],
            {"patch_sha256": "1" * 64},
        ),
        (
            ["runtime code changed: cccccccccccc → 111111111111"],
            {"runtime_sha256": "1" * 64},
        ),
        (
            ["patched upstream tree changed: dddddddddddd → 111111111111"],
            {"tree_sha256": "1" * 64},
        ),
        (
            ["server address changed: default → 111111111111"],
            {"api_base_sha256": "1" * 64},
        ),
        (["max output tokens changed: 4096 → 64"], {"max_output_tokens": 64}),
        (["call attempts changed: 3 → 1"], {"call_attempts": 1}),
        (["schema version changed: 2 → 3"], {"schema_version": 3}),
        (
            ["mode changed: auto → flash", "pypdf 7.1.1 → 8"],
            {"mode": "flash", "pypdf": "8"},
        ),
        ([], {}),
    ],
)
def test_a_difference_is_told_in_words(
    expected: list[str], options: dict[str, Any]
) -> None:
    """Every field has words, in the order of the fields."""
    differences = explain(sample_recipe(), sample_recipe(**options))

    assert expected == [difference.words for difference in differences]


@pytest.mark.parametrize("name", FIELDS)
def test_every_option_is_explained(name: str) -> None:
    """No reason for a rebuild goes without words."""
    (difference,) = explain(sample_recipe(), with_option(name))

    assert (name, True) == (difference.field, "_" not in difference.words)


def test_another_document_is_a_difference() -> None:
    """Two files are told apart by the start of their digests."""
    (difference,) = explain(sample_recipe("a"), sample_recipe("b"))

    assert "document changed: ca978112ca1b → 3e23e8160039" == difference.words
    assert {
        "field": "document_sha256",
        "before": sample_recipe("a").document_sha256,
        "after": sample_recipe("b").document_sha256,
        "words": difference.words,
    } == difference.to_json()


def test_single_patches_are_named() -> None:
    """Where both series are known, the difference is told patch by patch."""
    before = {"0010-a-b.patch": "1", "0020-c.patch": "2", "0030-d.patch": "3"}
    after = {"0040-e.patch": "4", "0030-d.patch": "9", "0010-a-b.patch": "1"}
    later = sample_recipe(patch_sha256="1" * 64)
    differences = explain(
        sample_recipe(), later, patches_before=before, patches_after=after
    )

    assert [
        "patch series changed: bbbbbbbbbbbb → 111111111111",
        "patch 0020 dropped (c)",
        "patch 0030 changed (d)",
        "patch 0040 added (e)",
        "patches in another order",
    ] == [difference.words for difference in differences]


def test_a_patch_in_its_old_place_is_no_difference() -> None:
    """Only what differs is told."""
    before, after = {"0010-a.patch": "1", "0020-b.patch": "2"}, {"0010-a.patch": "1"}
    later = sample_recipe(patch_sha256="1" * 64)
    _, *differences = explain(
        sample_recipe(), later, patches_before=before, patches_after=after
    )

    assert ["patch 0020 dropped (b)"] == [d.words for d in differences]


def test_a_reworded_patch_is_no_difference() -> None:
    """The digest of the series leaves prose out, and so does the explanation."""
    differences = explain(
        sample_recipe(),
        sample_recipe(),
        patches_before={"0010-a.patch": "1"},
        patches_after={"0010-a.patch": "2"},
    )

    assert [] == differences
