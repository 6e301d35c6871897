"""
An exact repetition of ``ingest`` is answered without reading its settings anew.

To read settings and command line takes longer than to look artifacts up. So a command
all of whose documents have their artifacts leaves a memo of what its settings came to,
under a digest of all that they were read from and of the code that read them; ccache
calls this its direct mode. A memo is no answer: documents, code, build and artifacts
are looked at as ever, by the same functions. Whatever is not as it was goes the
ordinary way, as if there were no memo.
"""

import hashlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Self

import vectorless_rag
from vectorless_rag import events
from vectorless_rag.canon import digest
from vectorless_rag.cli.ingesting import Run, Wanted, exit_status, follow
from vectorless_rag.cli.memos import Known, Memo, find, keep
from vectorless_rag.environment import deciding_environment
from vectorless_rag.inputs import STANDARD_INPUT
from vectorless_rag.recipe import Asked
from vectorless_rag.results import IngestResult, Status
from vectorless_rag.reuse import recipe_of, reuse
from vectorless_rag.running import build_folder, code_in
from vectorless_rag.runs import new_run_id
from vectorless_rag.source import identify
from vectorless_rag.store import Store
from vectorless_rag.wire import Progress

if TYPE_CHECKING:
    from vectorless_rag.settings import Settings

MOST_DOCUMENTS = 16

# What reads settings and command line: another version may read them otherwise.
_READERS = ("pydantic_settings", "typer")


class Command:
    """
    A command as it was typed, and where.

    Args:
        argv: From ``ingest`` on.
        key: Digest of all that decides what it means; None: it cannot be told.
    """

    def __init__(self, argv: Sequence[str], key: str | None) -> None:
        self._argv = argv
        self._key = key

    @classmethod
    def of(cls, argv: Sequence[str]) -> Self:
        """Take the command and its surroundings as they are now."""
        try:
            return cls(argv, _key(argv))
        except (OSError, ValueError):
            return cls(argv, None)

    def answer(self) -> int | None:
        """
        Carry it out again, where that needs nothing but what is there.

        Returns:
            The exit status; None: nothing was said, and it is to be carried out.
        """
        try:
            found = self._found()
        except Exception:  # noqa: BLE001  (the ordinary way says what is wrong)
            return None
        if found is None:
            return None
        memo, results = found
        events.configure(memo.log_level)
        run = Run(
            run_id=new_run_id(),
            folder=Path(memo.data_dir) / "runs",
            mode=memo.asked.mode,
            model=memo.asked.model,
        )
        wanted = Wanted(
            jobs=memo.jobs,
            rebuild=False,
            as_json=memo.as_json,
            quiet=memo.quiet,
            run_id=None,
        )
        done = follow(list(results), _Found(results), run, wanted)
        # Here, so that a full disk is noticed while it can still be told.
        sys.stdout.flush()
        return exit_status(done)

    def _found(self) -> tuple[Memo, dict[Path, IngestResult]] | None:
        memo = find(self._key) if self._key is not None else None
        if memo is None or not self._names(memo.documents):
            return None
        code = code_in(Path(memo.build_dir), memo.asked)
        store = Store(Path(memo.data_dir) / "store")
        roots = tuple(map(Path, memo.source_roots))
        found = []
        for known in memo.documents:
            source = identify(
                Path(known.path), max_bytes=memo.max_source_bytes, roots=roots
            )
            stored = store.find(recipe_of(source, code).recipe_hash)
            if stored is None or (stored.recipe_hash, stored.artifact_id) != (
                known.recipe_hash,
                known.artifact_id,
            ):
                return None
            blank = IngestResult(source=source.path, status=Status.FAILED)
            found.append((blank, stored))
        # Only now: of a command that is not answered nothing is changed.
        return memo, {b.source: reuse(b, store, stored) for b, stored in found}

    def _names(self, documents: Sequence[Known]) -> bool:
        """Whether *documents* are the files that the command names, and all of them."""
        words = {Path(word) for word in self._argv[1:]}
        files = {path for path in words if path.is_file()}
        return files == {Path(known.path) for known in documents} != set()

    def remember(
        self,
        arguments: Sequence[str],
        settings: "Settings",
        wanted: Wanted,
        results: Sequence[IngestResult],
    ) -> None:
        """Leave a memo of a command that has ended, if it may be answered from one."""
        with suppress(Exception):
            # Whatever is wrong with the cache: the command is done.
            if self._key is not None and _may_be_repeated(
                arguments, settings, wanted, results
            ):
                keep(self._key, _memo(settings, wanted, results))


class _Found:
    """Tells what was found."""

    def __init__(self, results: dict[Path, IngestResult]) -> None:
        self._results = results

    def ingest(
        self,
        path: Path,
        *,
        rebuild: bool,  # noqa: ARG002  (never)
        on_progress: Callable[[Progress], None],  # noqa: ARG002  (there is none)
        check: Callable[[], None],  # noqa: ARG002  (it is done)
    ) -> IngestResult:
        """Return what was found for *path*."""
        return self._results[path]


def _may_be_repeated(
    arguments: Sequence[str],
    settings: "Settings",
    wanted: Wanted,
    results: Sequence[IngestResult],
) -> bool:
    # Folders, lists and patterns may name other documents the next time.
    named = all(
        a != STANDARD_INPUT and os.path.lexists(a) and not Path(a).is_dir()
        for a in arguments
    )
    plain = not (wanted.rebuild or wanted.run_id or settings.batch)
    return (
        named
        and plain
        and settings.store_url is None
        and len(arguments) == len(results) <= MOST_DOCUMENTS
        and all(r.status in {Status.BUILT, Status.REUSED} for r in results)
    )


def _memo(
    settings: "Settings", wanted: Wanted, results: Sequence[IngestResult]
) -> Memo:
    return Memo(
        asked=Asked.of(settings),
        build_dir=str(build_folder(settings)),
        data_dir=str(settings.data_dir.absolute()),
        source_roots=tuple(map(str, settings.source_roots)),
        max_source_bytes=settings.max_source_bytes,
        log_level=settings.log_level.value,
        jobs=wanted.jobs,
        as_json=wanted.as_json,
        quiet=wanted.quiet,
        documents=tuple(
            Known(
                path=str(result.source),
                recipe_hash=result.recipe_hash,
                artifact_id=result.artifact_id,
            )
            for result in results
            if result.recipe_hash is not None and result.artifact_id is not None
        ),
    )


def _key(argv: Sequence[str]) -> str:
    return digest(
        "direct/1",
        {
            "argv": list(argv),
            "folder": str(Path.cwd()),
            "environment": deciding_environment(),
            "code": hashlib.sha256("\n".join(_code()).encode()).hexdigest(),
        },
    )


def _code() -> Iterator[str]:
    """Name the code that would read the settings, by what changes with it."""
    yield sys.version
    for name in _READERS:
        spec = find_spec(name)
        if spec is not None and spec.origin is not None:
            # Where packages are put: its time changes with any of them.
            yield _stamp(name, Path(spec.origin).parents[1].stat())
    yield from sorted(_files(Path(vectorless_rag.__file__).parent))


def _files(folder: Path) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                if entry.name != "__pycache__":
                    yield from _files(Path(entry.path))
            else:
                yield _stamp(entry.path, entry.stat())


def _stamp(name: str, its: os.stat_result) -> str:
    return f"{its.st_size} {its.st_mtime_ns} {its.st_ctime_ns} {its.st_ino} {name}"
