"""
Memos of commands: small private files that any process may lose at any time.

A memo is sealed against damage, and is its owner's alone. Nothing waits for the disk.
"""

import os
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from vectorless_rag.canon import sha256
from vectorless_rag.environment import cache_folder
from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.recipe import Asked
from vectorless_rag.records import Digest, decode, encode

MOST_MEMOS = 256
MOST_BYTES = 1 << 16
STALE_S = 30 * 24 * 60 * 60
"""Age at which a memo is removed; all of them may be at any time."""


@dataclass(frozen=True, kw_only=True)
class Known:
    """A document of the command, and the artifact that it had."""

    path: str
    recipe_hash: Digest
    artifact_id: Digest


@dataclass(frozen=True, kw_only=True)
class Memo:
    """What command line and settings came to: no secret, no address and no text."""

    asked: Asked
    build_dir: str
    data_dir: str
    source_roots: tuple[str, ...]
    max_source_bytes: int
    log_level: Literal["debug", "info", "warning", "error"]
    jobs: Annotated[int, Meta(ge=1)]
    as_json: bool
    quiet: bool
    documents: tuple[Known, ...]


def sealed(key: str, memo: Memo) -> bytes:
    """Spell *memo* so that any change of it, or of its name, is seen."""
    body = encode(memo)
    return f"{sha256(key.encode() + body)}\n".encode() + body


def unsealed(key: str, data: bytes) -> Memo | None:
    """Read what `sealed` wrote under this very *key*; None: it is not that."""
    seal, _, body = data.partition(b"\n")
    if seal != sha256(key.encode() + body).encode():
        return None
    try:
        return decode(Memo, body, "memo")
    except VectorlessRagError:
        return None


def find(key: str) -> Memo | None:
    """
    Return the memo under *key*; None where it is none that we wrote.

    Raises:
        OSError: There is none, or it cannot be read.
    """
    folder = _folder()
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    file = os.open(folder / key, flags)
    try:
        its = os.fstat(file)
        if not (_is_ours(folder.lstat()) and _is_ours(its)):
            return None
        data = b"" if its.st_size > MOST_BYTES else os.read(file, MOST_BYTES)
    finally:
        os.close(file)
    return unsealed(key, data)


def keep(key: str, memo: Memo) -> None:
    """
    Leave *memo* under *key*, and remove those that are old or too many.

    Raises:
        OSError: The cache takes nothing.
    """
    folder = _folder()
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    if not _is_ours(folder.lstat()):
        return
    new = folder / f".{key}.{os.getpid()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(new, flags, 0o600)
    try:
        os.write(file, sealed(key, memo))
    finally:
        os.close(file)
    new.replace(folder / key)
    tidy(folder)


def _folder() -> Path:
    return cache_folder() / "direct"


def _is_ours(its: os.stat_result) -> bool:
    """Whether nobody else may have written it."""
    others = stat.S_IRWXG | stat.S_IRWXO
    return its.st_uid == os.geteuid() and not its.st_mode & others


def tidy(folder: Path) -> None:
    """Remove what is old, and the oldest of too many."""
    ages = sorted((p.lstat().st_mtime, p) for p in folder.iterdir())
    old = time.time() - STALE_S
    for number, (age, path) in enumerate(reversed(ages)):
        if number >= MOST_MEMOS or age < old:
            path.unlink(missing_ok=True)
