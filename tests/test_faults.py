"""Whichever write fails: it is told, nothing is lost, and a retry succeeds."""

import errno
import itertools
import os
import resource
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from pdfs import pdf
from test_store import Fault
from vectorless_rag import launch
from vectorless_rag.audit import Verdict, verify_store
from vectorless_rag.errors import Code
from vectorless_rag.ledger.book import Ledger
from vectorless_rag.pageindex_adapter import PageIndexAdapter
from vectorless_rag.results import IngestResult, Status
from vectorless_rag.settings import Settings
from vectorless_rag.source import pypdf_identity
from vectorless_rag.store import Store
from vectorless_rag.wire import Answer, Found

WRITING = {Code.STORE_UNWRITABLE, Code.LEDGER_UNAVAILABLE}

TREE = ({"title": "One", "start_index": 1, "end_index": 2, "summary": "All of it."},)


@dataclass(frozen=True)
class Run:
    """A folder, a document, and a child that answers at once."""

    home: Path
    document: Path

    @property
    def settings(self) -> Settings:
        return Settings.load(data_dir=self.home / "data")

    def ingest(self) -> IngestResult:
        return PageIndexAdapter(self.settings).ingest(self.document)

    def check_whole(self) -> None:
        """See that what is there is whole, and that a retry finishes it."""
        self.check_sound()
        retried = self.ingest()
        assert retried.status in {Status.BUILT, Status.REUSED}, retried.failure
        self.check_sound()
        store = Store(self.settings.store_dir)
        (stored,) = store.all()
        assert stored == store.current(stored.document_sha256)

    def check_sound(self) -> None:
        found = verify_store(Store(self.settings.store_dir))
        assert [] == [f for f in found if f.verdict is not Verdict.NOTE]
        with Ledger.open(self.settings.effective_ledger_url) as ledger:
            assert [] == ledger.check()

    def check_told(self, result: IngestResult) -> None:
        if result.failure is not None:
            assert result.failure.code in WRITING, result.failure
            assert "SECRET" not in result.failure.message
            assert str(self.home) not in result.failure.message


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    answer = Answer(
        found=Found(
            route="flash", tree=TREE, pages=("One", "Two"), parser=pypdf_identity()
        )
    )
    program = tmp_path / "python"
    program.write_text(
        f"#!{sys.executable} -IS\nimport os, sys\n"
        f"os.write(int(sys.argv[-2]), {answer.encode()!r})",
        encoding="utf-8",
    )
    program.chmod(0o755)
    monkeypatch.setattr(launch, "python_executable", lambda: str(program))
    # What is reported goes to no file.
    with capture_logs():
        yield Run(tmp_path, pdf(tmp_path / "a.pdf", ["One", "Two"]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "number"),
    [
        ("link", errno.EACCES),
        ("write", errno.ENOSPC),
        ("fsync", errno.EIO),
        ("mkdir", errno.ENOSPC),
        ("fchmod", errno.EPERM),
    ],
)
def test_each_fault_is_told_and_a_retry_succeeds(
    run: Run, function: str, number: int
) -> None:
    """One call after the other fails, from the first look to the activation."""
    hit, n = True, 0
    while hit:
        fault = Fault(getattr(os, function), n, OSError(number, "SECRET"))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, function, fault)
            run.check_told(run.ingest())
        run.check_whole()
        shutil.rmtree(run.home / "data")
        hit, n = fault.hit, n + 1

    assert n > 3


class Vanishing:
    """Removes the data folder just before the *n*th call of a function."""

    def __init__(self, run: Run, function: str, n: int) -> None:
        self.real, self.run, self.left, self.hit = getattr(os, function), run, n, False

    def __call__(self, *args: object, **options: object) -> object:
        self.left -= 1
        if self.left == -1:
            self.hit = True
            shutil.rmtree(self.run.home / "data", ignore_errors=True)
        return self.real(*args, **options)


@pytest.mark.slow
@pytest.mark.parametrize("function", ["link", "mkdir"])
def test_a_folder_that_vanishes_is_told_or_made_again(run: Run, function: str) -> None:
    """No half artifact is left where it was, and a retry succeeds."""
    for n in itertools.count():
        vanishing = Vanishing(run, function, n)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, function, vanishing)
            run.check_told(run.ingest())
        if not vanishing.hit:
            break
        run.check_whole()
        shutil.rmtree(run.home / "data")

    assert n > 3


@contextmanager
def no_file_over(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


SIZES = {
    "some": (0, 40_000),
    "many": (*range(0, 4096, 1024), *range(4096, 150_000, 16_384)),
}


@pytest.mark.parametrize(
    "sizes", ["some", pytest.param("many", marks=pytest.mark.slow)]
)
def test_a_disk_that_fills_up_anywhere_is_told(run: Run, sizes: str) -> None:
    """
    Every size of file at which a write can fail, the ledger's own among them.

    The limit is the kernel's: what SQLite writes meets it too.
    """
    for size in SIZES[sizes]:
        with no_file_over(size):
            result = run.ingest()
        run.check_told(result)
        run.check_whole()
        shutil.rmtree(run.home / "data")
