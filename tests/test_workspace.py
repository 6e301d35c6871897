"""A run's folder goes with the run, also when nobody is left to remove it."""

import errno
import os
import sys
import tempfile
from pathlib import Path

import pytest

from conftest import REPOSITORY
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.process import run_tool
from vectorless_rag.workspace import PREFIX, sweep, working_folder

KILLED = """
import os
from vectorless_rag.workspace import working_folder
with working_folder() as folder:
    (folder / "copy.pdf").write_bytes(b"private")
    os.kill(os.getpid(), 9)
"""


@pytest.fixture(autouse=True)
def _own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_the_folder_is_private_and_gone_afterwards(tmp_path: Path) -> None:
    """With all that is in it."""
    with working_folder() as folder:
        (folder / "inner").mkdir()
        assert (0o700, tmp_path) == (folder.stat().st_mode & 0o777, folder.parent)

    assert [] == list(tmp_path.iterdir())


def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path: Path) -> None:
    """It holds a copy of the document. One at work, however old, is left alone."""
    env = {"PYTHONPATH": str(REPOSITORY / "src"), "TMPDIR": str(tmp_path)}
    run_tool((sys.executable, "-c", KILLED), cwd=tmp_path, env=env)
    (left,) = tmp_path.glob(f"{PREFIX}*")
    os.utime(left, (0, 0))

    with working_folder() as at_work:
        os.utime(at_work, (0, 0))
        with working_folder() as other:
            assert {at_work, other} == set(tmp_path.iterdir())


def test_what_is_young_or_no_folder_is_left_alone(tmp_path: Path) -> None:
    """A run may be about to begin; a link may lead anywhere."""
    (tmp_path / f"{PREFIX}young").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"{PREFIX}link").symlink_to(tmp_path / "elsewhere")

    assert 0 == sweep(tmp_path)
    assert 1 == sweep(tmp_path, older_than_s=0)
    assert (tmp_path / "elsewhere").is_dir()


def test_no_place_for_it_is_classified(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk is not the document's fault."""

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "mkdir", full)
    with (
        pytest.raises(VectorlessRagError, match="temporary folder: ENOSPC") as caught,
        working_folder(),
    ):
        pass
    assert Code.STORE_UNWRITABLE == caught.value.code
