"""
The replies that were paid for, kept so that they are paid for once.

One file a reply, named by the exact request. A reply that no use could be made of
is kept as well, so that a run that was cut off goes on where it was; a run that
failed forgets those, since the next would fail the same way. The files hold
document text, so only their owner may read them.
"""

import contextlib
import hashlib
import json
import os
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Protocol

from vectorless_rag.canon import digest
from vectorless_rag.ledger.types import TokenUsage
from vectorless_rag.pageindex_runtime.providers import ProviderReply, ProviderRequest
from vectorless_rag.units import Sha256

_DAY_S = 86_400


class Journal(Protocol):
    """Where replies are kept between runs."""

    def key(self, request: ProviderRequest) -> Sha256:
        """Name a request; asked again within one run, it gets another name."""
        ...

    def find(self, key: Sha256) -> ProviderReply | None:
        """Return the reply kept under *key*."""
        ...

    def keep(self, key: Sha256, reply: ProviderReply) -> None:
        """Keep *reply*; it is on disk when this returns."""
        ...

    def reject(self, key: Sha256) -> None:
        """Take note that a call failed for the reply kept under *key*."""
        ...

    def forget_rejected(self) -> None:
        """Delete the replies that calls failed for, so that they are asked again."""
        ...


_NO_KEY = Sha256("")


class NoJournal:
    """Keeps nothing."""

    def key(self, _request: ProviderRequest) -> Sha256:
        """Give every request the same name: none is looked up."""
        return _NO_KEY

    def find(self, _key: Sha256) -> ProviderReply | None:
        """Know of no reply."""
        return None

    def keep(self, _key: Sha256, _reply: ProviderReply) -> None:
        """Forget the reply."""

    def reject(self, _key: Sha256) -> None:
        """Keep no note either."""

    def forget_rejected(self) -> None:
        """Have nothing to delete."""


class FileJournal:
    """
    A folder of replies.

    A run that cannot read or write it goes on without: it then pays, as it would
    with no journal at all.

    Args:
        folder: Made on first use, readable by its owner only.
        server: Address the requests go to; None: the provider's own.
        replay: Whether replies are used that were kept before this run; new ones are
            kept in any case.
    """

    def __init__(self, folder: Path, *, server: str | None, replay: bool) -> None:
        self._folder = folder
        self._server = server
        self._replay = replay
        self._seen: Counter[Sha256] = Counter()
        self._rejected: set[Sha256] = set()
        self._new: set[Sha256] = set()

    def key(self, request: ProviderRequest) -> Sha256:
        """
        Name a request by all that the provider is told.

        The second time a run sends the very same request it wants a second answer,
        so repetitions within one run are told apart.
        """
        base = digest(
            "request/1",
            {
                "server": self._server,
                "model": request.model,
                "max_tokens": request.max_tokens,
                "params": dict(request.params),
                "messages": [message.as_dict() for message in request.messages],
            },
        )
        self._seen[base] += 1
        return digest("occurrence/1", [base, self._seen[base]])

    def find(self, key: Sha256) -> ProviderReply | None:
        """Return the reply kept under *key*; an altered file counts as none."""
        if not self._replay and key not in self._new:
            return None
        try:
            seal, _, body = self._path(key).read_bytes().partition(b"\n")
            if seal.decode("ascii") != hashlib.sha256(body).hexdigest():
                return None
            return _reply(body)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def keep(self, key: Sha256, reply: ProviderReply) -> None:
        """Keep *reply*, in place of an older one of the same request."""
        self._new.add(key)
        body = json.dumps(asdict(reply)).encode()
        seal = hashlib.sha256(body).hexdigest().encode()
        path = self._path(key)
        new = path.with_name(f".{key}-{os.getpid()}")
        with contextlib.suppress(OSError):
            _private(self._folder)
            _private(path.parent)
            _write(new, seal + b"\n" + body)
            # Whole or not at all; the last run to ask decides.
            new.replace(path)

    def reject(self, key: Sha256) -> None:
        """Take note that a call failed for the reply kept under *key*."""
        self._rejected.add(key)

    def forget_rejected(self) -> None:
        """Delete the replies that calls failed for, so that they are asked again."""
        for key in self._rejected:
            with contextlib.suppress(OSError):
                self._path(key).unlink()
        self._rejected.clear()

    def _path(self, key: Sha256) -> Path:
        return self._folder / key[:2] / key


def sweep(folder: Path, *, keep_days: int) -> int:
    """
    Delete replies that are older than *keep_days*, once a day at most.

    Returns:
        How many were deleted.
    """
    now, gone, note = time.time(), 0, folder / ".swept"
    with contextlib.suppress(OSError):
        if now - note.stat().st_mtime < _DAY_S:
            return 0
    for path in folder.glob("*/*"):
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < now - keep_days * _DAY_S:
                path.unlink()
                gone += 1
    with contextlib.suppress(OSError):
        note.touch(mode=0o600)
    return gone


def _private(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _write(path: Path, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        # A reply that was paid for outlives a crash of the machine.
        os.fsync(fd)
    finally:
        os.close(fd)


def _reply(body: bytes) -> ProviderReply:
    raw = json.loads(body)
    usage = raw.pop("usage")
    return ProviderReply(**raw, usage=TokenUsage(**usage) if usage else None)
