"""The child runs the files of the build's record, and nothing that lies beside them."""

import py_compile
import shutil
import sys
from pathlib import Path

import pytest

from conftest import REPOSITORY
from vectorless_rag import cli, upstream
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.upstream import BuildRecord
from vectorless_rag.upstream.record import RECORD_FILE

SAMPLE = REPOSITORY / "tests" / "samples" / "sp-intro.pdf"


@pytest.fixture(scope="module")
def record() -> BuildRecord:
    return upstream.read_record(REPOSITORY / "build" / "pageindex")


@pytest.fixture
def build(tmp_path: Path, record: BuildRecord) -> Path:
    """A build of its own, that a test may spoil."""
    upstream.copy(record, REPOSITORY / "build" / "pageindex", tmp_path / "build")
    return tmp_path / "build"


def test_planted_bytecode_stays_behind(
    tmp_path: Path, record: BuildRecord, build: Path
) -> None:
    """Python would run it in place of the source, and no digest covers it."""
    source = build / "pageindex" / "errors.py"
    (tmp_path / "evil.py").write_text("raise SystemExit('planted')", encoding="utf-8")
    cached = (
        source.parent / "__pycache__" / f"errors.{sys.implementation.cache_tag}.pyc"
    )
    py_compile.compile(
        str(tmp_path / "evil.py"), str(cached),
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )  # fmt: skip
    upstream.copy(record, build, tmp_path / "copy")
    files = [path for path in (tmp_path / "copy").rglob("*") if path.is_file()]

    assert {entry.path for entry in record.files} == {
        path.relative_to(tmp_path / "copy").as_posix() for path in files
    }


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda file: file.write_text("altered"), "errors.py was changed"),
        (lambda file: file.unlink(), "errors.py is missing"),
    ],
)
def test_a_spoilt_build_is_not_copied(
    tmp_path: Path, record: BuildRecord, build: Path, spoil: object, why: str
) -> None:
    """What is checked is what is copied."""
    assert callable(spoil)
    spoil(build / "pageindex" / "errors.py")

    with pytest.raises(VectorlessRagError, match=why) as caught:
        upstream.copy(record, build, tmp_path / "copy")
    assert Code.UPSTREAM_TAMPERED == caught.value.code


def test_a_folder_that_takes_nothing_is_named(
    tmp_path: Path, record: BuildRecord, build: Path
) -> None:
    """A full disk is no fault of the upstream."""
    (tmp_path / "copy").touch()

    with pytest.raises(VectorlessRagError, match="copy of the upstream: ") as caught:
        upstream.copy(record, build, tmp_path / "copy")
    assert Code.STORE_UNWRITABLE == caught.value.code


@pytest.mark.parametrize("command", [["upstream", "verify"], ["ingest", str(SAMPLE)]])
def test_an_altered_build_neither_verifies_nor_runs(
    command: list[str],
    build: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Both name the file, and nothing of it was executed."""
    shutil.copy(REPOSITORY / "build" / "pageindex" / RECORD_FILE, build)
    planted = build.parent / "executed"
    with (build / "pageindex" / "utils.py").open("a") as file:
        file.write(f"\nopen({str(planted)!r}, 'w').close()\n")
    monkeypatch.setenv("VECTORLESS_RAG_BUILD_DIR", str(build))

    assert 20 == cli.main(command)
    said = capsys.readouterr()
    assert "pageindex/utils.py was changed" in said.err + said.out
    assert not planted.exists()
