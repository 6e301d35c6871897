"""The runtime's digest names the code that shapes artifacts, and nothing else."""

import shutil
from pathlib import Path

import pytest

from conftest import REPOSITORY
from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.upstream import COMPANIONS, runtime_digest

PACKAGE = REPOSITORY / "src" / "vectorless_rag"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A small package of the layout that is digested."""
    runtime = tmp_path / "pageindex_runtime"
    (runtime / "offline").mkdir(parents=True)
    (runtime / "__init__.py").write_text("")
    (runtime / "calls.py").write_text("x = 1\n")
    (runtime / "offline" / "words.json").write_text("[]")
    for name in COMPANIONS:
        (tmp_path / name).write_text("")
    return tmp_path


def test_the_runtime_digest_is_pinned(package: Path) -> None:
    """The same files have the same digest on every machine."""
    assert (
        "041a3e27f51eea86db881c76fcadf92ea5357e481cc7f3fbd5f591a430a7dd26"
        == runtime_digest(package)
    )


@pytest.mark.parametrize(
    "name",
    [
        "pageindex_runtime/calls.py",
        "pageindex_runtime/new.py",
        "pageindex_runtime/offline/words.json",
        *COMPANIONS,
    ],
)
def test_each_file_counts(package: Path, name: str) -> None:
    """A change of one byte, or a new file, is another behaviour."""
    before = runtime_digest(package)
    (package / name).write_text("x = 2\n")

    assert before != runtime_digest(package)


def test_a_moved_file_counts(package: Path) -> None:
    """The same bytes under another name are another behaviour."""
    before = runtime_digest(package)
    runtime = package / "pageindex_runtime"
    (runtime / "calls.py").rename(runtime / "other.py")

    assert before != runtime_digest(package)


@pytest.mark.parametrize(
    "name",
    [
        "pageindex_runtime/__pycache__/calls.cpython-311.pyc",
        "pageindex_runtime/calls.pyc",
        "pageindex_runtime/.calls.py.swp",
        "store.py",
    ],
)
def test_bytecode_and_hidden_files_do_not_count(package: Path, name: str) -> None:
    """What no interpreter of ours reads, and what runs elsewhere, is no input."""
    before = runtime_digest(package)
    (package / name).parent.mkdir(exist_ok=True)
    (package / name).write_text("x = 2\n")

    assert before == runtime_digest(package)


def test_an_incomplete_installation_is_named(package: Path) -> None:
    """Without the file that starts the child there is no identity."""
    (package / "run_pageindex.py").unlink()

    with pytest.raises(VectorlessRagError, match=r"no run_pageindex\.py"):
        runtime_digest(package)


def test_our_own_runtime_has_an_identity(tmp_path: Path) -> None:
    """An installed copy has the digest of the checkout it was made from."""
    copy = tmp_path / "vectorless_rag"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))

    assert runtime_digest(PACKAGE) == runtime_digest(copy)
