"""The files that a worker stands on: one that lost them writes where nobody looks."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.settings import Settings
from vectorless_rag.source import printable

_SQLITE = "sqlite:///"

_Identity = tuple[int, int]


@dataclass(frozen=True)
class Footing:
    """Database files, as they were when the worker opened them."""

    files: tuple[tuple[Path, _Identity], ...]

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Take note of the files; databases behind a server look after themselves."""
        urls = (settings.effective_ledger_url, settings.effective_engine_url)
        return cls(tuple(_seen(_paths(urls))))

    def check(self) -> None:
        """
        See that each is still the file that was opened.

        Raises:
            VectorlessRagError: ``store_unwritable``: one was removed or replaced.
        """
        for path, identity in self.files:
            if _identity(path) != identity:
                raise VectorlessRagError(
                    Code.STORE_UNWRITABLE,
                    f"{printable(path.name)} was removed or replaced;"
                    " start the worker again",
                )


def _paths(urls: Iterable[str]) -> Iterable[Path]:
    return (Path(url.removeprefix(_SQLITE)) for url in urls if url.startswith(_SQLITE))


def _seen(paths: Iterable[Path]) -> Iterable[tuple[Path, _Identity]]:
    for path in paths:
        identity = _identity(path)
        if identity is not None:
            yield path, identity


def _identity(path: Path) -> _Identity | None:
    try:
        found = os.stat(path)  # noqa: PTH116  (as often as a worker looks around)
    except OSError:
        return None
    return found.st_dev, found.st_ino
