"""A pin whose parts do not fit together is refused before anything is fetched."""

import dataclasses
from pathlib import Path

import pytest

from conftest import REPOSITORY
from toy_upstream import make_root, pin_text
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.upstream import environment
from vectorless_rag.upstream.pin import GitSource, read_pin
from vectorless_rag.upstream.resources import resources_root

COMMIT = "c" * 40


def read(root: Path, text: str) -> object:
    (root / "upstream.toml").write_text(text)
    return read_pin(root)


def test_our_pin_is_the_one_of_the_design() -> None:
    """PageIndex 0.4.7, by the digest of its wheel and of its tree."""
    pin = read_pin(REPOSITORY)

    assert "0.4.7+vr" == pin.pageindex_version.rstrip("0123456789")
    assert (
        "08024579492e0c8ddbd7a8af16f1cf98170c5f0f4296f64c9f0a9a227276184f" == pin.sha256
    )
    assert (
        "231b6ee4438f7be9ae53972eff8169579d8e61b9ef16cfd9d5aa5c29ad5f99d6"
        == pin.tree_sha256
    )


def test_a_pin_is_read_whole(tmp_path: Path) -> None:
    """Every field of the file is a field of the pin, git's too."""
    text = pin_text(b"x", "0" * 64) + f'[git]\nurl = "/m"\ncommit = "{COMMIT}"\n'
    pin = read(tmp_path, text)

    assert {
        "name": "toy",
        "version": "1.0",
        "revision": 3,
        "file": "toy-1.0-py3-none-any.whl",
        "size": 1,
        "sha256": "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881",
        "tree_sha256": "0" * 64,
        "include": ("toy",),
        "exclude": ("toy/assets",),
        "git": {"url": "/m", "commit": COMMIT, "tree": None},
    } == dataclasses.asdict(pin)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("version", '"1.1"', r"version 1\.1 is not in file name"),
        ("file", '"toy-1.0-src.tar.gz"', "no wheel's name"),
        ("file", '"toy-1.0-/x.whl"', "no wheel's name"),
        ("sha256", '"abc"', "sha256 is not 64"),
        ("tree_sha256", f'"{"G" * 64}"', "tree_sha256 is not 64"),
        ("size", "0", "out of range"),
        ("revision", "-1", "out of range"),
        ("include", "[]", "out of range"),
        ("include", '"toy"', "include is not a list"),
        ("revision", "true", "revision is not a int"),
        ("unknown", '"x"', "unexpected keyword"),
        ("size", "= 1", "upstream.toml: "),
    ],
)
def test_a_pin_that_contradicts_itself_is_refused(
    tmp_path: Path, field: str, value: str, why: str
) -> None:
    """Each contradiction is named."""
    with pytest.raises(VectorlessRagError, match=why) as raised:
        read(tmp_path, pin_text(b"x", "0" * 64, **{field: value}))
    assert Code.UPSTREAM_DRIFT is raised.value.code


def test_a_missing_pin_is_unavailable(tmp_path: Path) -> None:
    """No pin is not a wrong pin."""
    with pytest.raises(VectorlessRagError, match=r"upstream\.toml: No such file"):
        read_pin(tmp_path)


@pytest.mark.parametrize(
    ("url", "commit", "tree", "why"),
    [
        ("/m", "main", None, "'main' is not a 40-hex git id"),
        ("/m", "c" * 39, None, "is not a 40-hex"),
        ("/m", COMMIT, "abc", "'abc' is not a 40-hex"),
        ("--upload-pack=x", COMMIT, None, "begins with a dash"),
    ],
)
def test_git_names_that_can_move_are_refused(
    url: str, commit: str, tree: str | None, why: str
) -> None:
    """A branch, a tag, a short id and an option are no commit."""
    with pytest.raises(VectorlessRagError, match=why):
        GitSource(url=url, commit=commit, tree=tree)


def test_resources_stand_beside_the_source() -> None:
    """In a source tree the root is the repository."""
    assert REPOSITORY == resources_root()


def test_resources_stand_in_an_installed_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wheel carries them in a folder of the package."""
    package = tmp_path / "site-packages" / "vectorless_rag"
    monkeypatch.setattr("vectorless_rag.upstream.resources._PACKAGE", package)
    with pytest.raises(VectorlessRagError, match=r"holds no upstream\.toml"):
        resources_root()

    assert make_root(package / "_upstream") == resources_root()


def test_no_git_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without git learns what is missing."""
    monkeypatch.setenv("PATH", "/nonexistent")

    with pytest.raises(VectorlessRagError, match="git is not installed"):
        environment.bare_environment()
