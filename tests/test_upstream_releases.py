"""A release is taken as the index gives it once, and by its digest ever after."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import REPOSITORY
from toy_drift import add_release
from toy_upstream import FILES, copy_series, wheel, write_files
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.upstream.pin import read_pin
from vectorless_rag.upstream.releases import (
    RELEASES_FILE,
    between,
    look_up,
    read_releases,
    write_pin,
)
from vectorless_rag.upstream.workflow import unpatched

Index = Callable[[str, dict[str, bytes]], None]


@pytest.fixture
def toy(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_series(tmp_path / "root", tmp_path_factory.getbasetemp())


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    """A folder that pip takes for its index, and a way to publish there."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))

    def publish(version: str, files: dict[str, bytes]) -> None:
        name = f"toy-{version}-py3-none-any.whl"
        (folder / name).write_bytes(wheel(files, version))

    return publish


def test_a_release_is_recorded_at_first_sight(toy: Path, index: Index) -> None:
    """What the index gives under that version later must be the same bytes."""
    index("1.1", FILES)
    found = look_up(toy, "1.1")
    table = (toy / RELEASES_FILE).read_bytes()
    index("1.1", {**FILES, "toy/more.py": b""})

    assert ["1.0", "1.1"] == [r["version"] for r in json.loads(table)["releases"]]
    assert found == look_up(toy, "1.1")
    assert table == (toy / RELEASES_FILE).read_bytes()
    with (
        pytest.raises(VectorlessRagError, match="pip could not download it") as caught,
        unpatched(toy, found.pin(read_pin(toy))),
    ):
        pass
    assert Code.UPSTREAM_UNAVAILABLE == caught.value.code


def test_a_release_that_is_not_there_is_said(toy: Path, index: Index) -> None:
    """Nothing is recorded."""
    index("1.1", FILES)

    with pytest.raises(VectorlessRagError, match=r"no wheel of toy 1\.2"):
        look_up(toy, "1.2")
    assert not (toy / RELEASES_FILE).exists()


@pytest.mark.parametrize("version", ["", "main", "1", "1.0; x", "-r x", "../1.0"])
def test_only_a_version_is_looked_up(toy: Path, version: str) -> None:
    """Whatever is typed, pip gets a version or nothing."""
    with pytest.raises(VectorlessRagError, match="is no version"):
        look_up(toy, version)


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ("[]", "is no table of releases"),
        ('{"schema": 2, "releases": []}', "schema 2"),
        ('{"schema": 1, "releases": [{"version": "1.0"}]}', "is no table of releases"),
    ],
)
def test_a_broken_table_is_refused(toy: Path, table: str, why: str) -> None:
    """It says which file, and what is wrong with it."""
    (toy / RELEASES_FILE).write_text(table)

    with pytest.raises(VectorlessRagError, match=why):
        read_releases(toy)


def test_the_table_and_the_pin_agree(toy: Path) -> None:
    """One version is one release."""
    add_release(toy, {**FILES, "toy/more.py": b""}, "1.0")

    with pytest.raises(VectorlessRagError, match=r"1\.0 is not the one in upstream"):
        read_releases(toy)


@pytest.mark.parametrize(
    ("wanted", "versions"),
    [
        ("1.0..1.1", ["1.0", "1.1"]),
        ("1.1..1.0", ["1.0", "1.1"]),
        ("1.1..1.1", ["1.1"]),
        ("1.1, 1.0", ["1.1", "1.0"]),
    ],
)
def test_several_releases_are_a_range_or_a_list(
    toy: Path, wanted: str, versions: list[str]
) -> None:
    """A range takes what is known between its ends; a list keeps its order."""
    add_release(toy, FILES)

    assert versions == [release.version for release in between(toy, wanted)]


def test_a_moved_pin_keeps_its_other_words(toy: Path) -> None:
    """Version, file, size and digests change together; comments and revision stay."""
    with (toy / "upstream.toml").open("a") as file:
        file.write("# A remark.\n")
    release = add_release(toy, {**FILES, "toy/more.py": b""})
    moved = write_pin(toy, release)

    assert ("1.1", 3, release.tree_sha256) == (
        moved.version,
        moved.revision,
        moved.tree_sha256,
    )
    assert (toy / "upstream.toml").read_text().endswith("# A remark.\n")
    write_files(toy, {"upstream.toml": b'name = "toy"\n'})
    with pytest.raises(VectorlessRagError, match="no line begins with version ="):
        write_pin(toy, release)


def test_the_eight_releases_are_known() -> None:
    """Each release of 0.4 was fetched once; the pin is one of them."""
    assert [f"0.4.{k}" for k in range(8)] == [
        release.version for release in read_releases(REPOSITORY)
    ]
