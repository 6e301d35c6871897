"""Fixtures: a data folder with two documents, made once and copied for each test."""

import os
import shutil
from pathlib import Path

import pytest

from audited import two_runs
from strategies_tree import sample_recipe
from vectorless_rag.settings import Settings
from vectorless_rag.store import Store, Stored


@pytest.fixture(scope="session")
def _template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audited") / "data"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        two_runs(Settings.load(data_dir=folder))
    return folder


@pytest.fixture
def data(_template: Path, tmp_path: Path) -> Path:
    """The default data folder, as `two_runs` left it."""
    return shutil.copytree(_template, tmp_path / "data")


@pytest.fixture
def settings(data: Path) -> Settings:
    """Settings of that folder."""
    return Settings.load(data_dir=data)


@pytest.fixture
def store(settings: Settings) -> Store:
    """The store in it."""
    return Store(settings.store_dir)


@pytest.fixture
def stored(store: Store) -> Stored:
    """The current artifact of the first document."""
    found = store.current(sample_recipe().document_sha256)
    assert found is not None
    return found
