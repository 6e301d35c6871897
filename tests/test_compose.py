"""The compose file starts commands and sets variables that the program has."""

import importlib
import inspect
import re
from typing import Any

import pytest
import yaml
from pydantic_settings import BaseSettings

from conftest import REPOSITORY
from test_documented import PROGRAM, parse

FILE = yaml.safe_load((REPOSITORY / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = FILE["services"]
OURS = {name: s for name, s in SERVICES.items() if s["image"] == "vectorless-rag"}
PREFIX = "VECTORLESS_RAG_"


def settings() -> set[str]:
    """The variables of every class of settings."""
    folder = REPOSITORY / "src" / "vectorless_rag"
    classes = {
        each
        for path in folder.glob("*settings.py")
        for _, each in inspect.getmembers(
            importlib.import_module(f"vectorless_rag.{path.stem}"), inspect.isclass
        )
        if issubclass(each, BaseSettings)
    }
    return {PREFIX + n.upper() for each in classes for n in each.model_fields}


def test_it_is_two_workers_a_database_and_a_bucket() -> None:
    """What a fleet shares, and nothing else is one of ours."""
    assert {"worker", "cli"} == set(OURS)
    assert {"postgres", "s3", "bucket"} == set(SERVICES) - set(OURS)
    assert 2 == SERVICES["worker"]["deploy"]["replicas"]


@pytest.mark.parametrize("name", OURS)
def test_our_services_run_commands_that_there_are(name: str) -> None:
    """The image's entry point is the program, so a command is its arguments."""
    parse(" ".join([PROGRAM, *OURS[name]["command"]]))


@pytest.mark.parametrize("name", OURS)
def test_our_services_are_set_by_settings_that_there_are(name: str) -> None:
    """A variable nobody reads would be a wish."""
    ours = {v for v in OURS[name]["environment"] if v.startswith(PREFIX)}

    assert set() == ours - settings()
    assert OURS[name]["read_only"]


def test_the_images_own_variables_are_settings() -> None:
    """The Dockerfile sets what the program reads."""
    dockerfile = (REPOSITORY / "Dockerfile").read_text(encoding="utf-8")
    named = set(re.findall(rf"\b({PREFIX}\w+)=", dockerfile))

    assert named
    assert set() == named - settings()


@pytest.mark.parametrize("name", SERVICES)
def test_what_is_waited_for_says_when_it_is_ready(name: str) -> None:
    """Whoever is waited for is there and has a health check, or ends."""
    for needed, how in SERVICES[name].get("depends_on", {}).items():
        ends = how["condition"] == "service_completed_successfully"
        assert ends or "healthcheck" in SERVICES[needed]


@pytest.mark.parametrize("name", SERVICES)
def test_volumes_are_declared_and_secrets_are_not_written(name: str) -> None:
    """A named volume exists; a password comes from whoever starts it."""
    volumes = [v.partition(":")[0] for v in SERVICES[name].get("volumes", [])]
    secrets = {
        v: value
        for v, value in SERVICES[name].get("environment", {}).items()
        if re.search("PASSWORD|SECRET|_KEY$", v)
    }

    assert {v for v in volumes if v.isidentifier()} <= set(FILE["volumes"])
    assert all(value.startswith("${") for value in secrets.values())
