"""Every file of the store by the digest of its bytes."""

import os
import re
from collections.abc import Iterator

from vectorless_rag.canon import sha256
from vectorless_rag.records import corrupt
from vectorless_rag.store.medium import Medium
from vectorless_rag.units import Sha256

FOLDER = "blobs/sha256"
QUARANTINE = "quarantine"

SHA256 = re.compile(r"[0-9a-f]{64}")


class Blobs:
    """
    Bytes by digest.

    All other files of the store are links to blobs. So a byte that changes in any
    of them is found, whoever else vouches for it.
    """

    def __init__(self, disk: Medium) -> None:
        self._disk = disk

    def put(self, data: bytes) -> Sha256:
        """
        Keep *data*; it is on disk when this returns.

        Bytes of that name that are not *data* are moved to the quarantine, where
        nothing reads them, instead of being overwritten.
        """
        digest = sha256(data)
        name = blob_name(digest)
        while not self._disk.create(name, data):
            if self._disk.read(name) == data:
                break
            aside = f"{QUARANTINE}/{digest}-{os.urandom(4).hex()}"
            self._disk.move(name, aside)
        return digest

    def get(self, digest: Sha256) -> bytes:
        """
        Return the bytes whose digest is *digest*.

        Raises:
            VectorlessRagError: ``store_corrupt``: they are missing or altered.
        """
        name = blob_name(digest)
        data = self._disk.read(name)
        if data is None:
            raise corrupt(f"{name}: missing")
        if sha256(data) != digest:
            raise corrupt(f"{name}: altered")
        return data

    def has(self, digest: Sha256) -> bool:
        """Whether there is a blob of that name; its bytes are not looked at."""
        return self._disk.exists(blob_name(digest))

    def link(self, digest: Sha256, name: str) -> bool:
        """
        Give a blob a second name, unless that is taken.

        Raises:
            VectorlessRagError: ``store_corrupt``: there is no such blob.
        """
        if not self.has(digest):
            raise corrupt(f"{blob_name(digest)}: missing")
        return self._disk.link(blob_name(digest), name)

    def read_linked(self, name: str) -> bytes | None:
        """
        Return the bytes of a file that is a link to a blob; None without the file.

        Raises:
            VectorlessRagError: ``store_corrupt``: there is no blob of its digest.
        """
        data = self._disk.read(name)
        if data is not None and not self.has(sha256(data)):
            raise corrupt(f"{name}: altered")
        return data

    def all_names(self) -> Iterator[str]:
        """Yield the name of every file among the blobs, ours or not."""
        for shard in self._disk.names(FOLDER):
            for name in self._disk.names(f"{FOLDER}/{shard}"):
                yield f"{FOLDER}/{shard}/{name}"


def blob_name(digest: str) -> str:
    """Return where a blob is, relative to the store."""
    return f"{FOLDER}/{digest[:2]}/{digest}"
