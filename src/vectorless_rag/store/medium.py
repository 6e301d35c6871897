"""What a store lies on: a folder of one file system, or a bucket of objects."""

import re
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path, PosixPath
from typing import Protocol

SCHEME = "s3://"


class Address(PosixPath):
    """Where an object is: it is joined and shown like a path, and opens nothing."""

    def __str__(self) -> str:
        """Spell it as a URL."""
        return SCHEME + super().__str__().removeprefix("s3:/")

    def __fspath__(self) -> str:
        """Refuse to be opened as a file."""
        raise TypeError("an object of a bucket is no file")


class Medium(Protocol):
    """
    Files by name, each whole or absent, and none ever overwritten.

    What fails below leaves as ``store_unwritable``, with the name of the file and
    the kind of error. Names are relative to *root*, with ``/`` between their parts.
    """

    @property
    def root(self) -> Path:
        """Where it is; for a bucket an address that opens nothing."""
        ...

    def path(self, name: str) -> Path:
        """Return where *name* is."""
        ...

    def read(self, name: str) -> bytes | None:
        """Return the bytes of *name*; None if there is no such file."""
        ...

    def exists(self, name: str) -> bool:
        """Whether there is a file *name*."""
        ...

    def names(self, folder: str) -> list[str]:
        """Return what is in *folder*, sorted; nothing if there is no such folder."""
        ...

    def numbers(self, folder: str, form: str) -> list[int]:
        """
        Return every number whose file is in *folder*, ascending.

        Args:
            folder: Where numbered files are.
            form: The name of one with ``{}`` for the number.
        """
        ...

    def size(self, name: str) -> int:
        """Return the length of the file *name* in bytes; 0 if there is none."""
        ...

    def create(self, name: str, data: bytes) -> bool:
        """
        Make the file *name*, unless it is there; it lasts when this returns.

        Returns:
            Whether this call made it.
        """
        ...

    def link(self, source: str, name: str) -> bool:
        """
        Give the file *source* a second name, unless that is taken.

        Returns:
            Whether this call gave it.
        """
        ...

    def sync(self, folder: str) -> None:
        """Have the names in *folder* last."""
        ...

    def move(self, name: str, target: str) -> None:
        """Move the file *name* to *target*, if it is still there."""
        ...

    def sweep(self, *, older_than_s: float) -> int:
        """Remove what crashed writers left behind; return how many files."""
        ...

    def lock(
        self,
        name: str,
        *,
        timeout_s: float | None = None,
        on_wait: Callable[[], None] | None = None,
        check: Callable[[], None] | None = None,
    ) -> AbstractContextManager[None]:
        """Hold the lock *name* against other processes of this machine."""
        ...


def numbered(names: Iterable[str], form: str) -> list[int]:
    """Return the numbers in *names* that are spelled by *form*, ascending."""
    head, tail = form.split("{}")
    spelled = re.compile(re.escape(head) + "(0|[1-9][0-9]*)" + re.escape(tail))
    return sorted(int(found[1]) for name in names if (found := spelled.fullmatch(name)))
