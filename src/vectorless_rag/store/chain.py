"""Activations: which artifact is current, as a chain of records per document."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Literal

from msgspec import Meta

from vectorless_rag.artifact import timestamp
from vectorless_rag.artifact.run import Moment
from vectorless_rag.canon import sha256
from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.records import Digest, corrupt, decode, encode
from vectorless_rag.store.blobs import SHA256, Blobs
from vectorless_rag.store.medium import Medium
from vectorless_rag.units import Sha256

FOLDER = "activations"

RECORD = re.compile(r"(0|[1-9][0-9]*)\.json")


@dataclass(frozen=True, kw_only=True)
class Activation:
    """From a moment on, this artifact is the current one of its document."""

    document_sha256: Digest

    number: Annotated[int, Meta(ge=0)]
    """Place in the document's chain, from 0."""

    previous_sha256: Digest | None
    """Digest of the record before it; None for the first."""

    recipe_hash: Digest
    generation: Annotated[int, Meta(ge=0)]
    artifact_id: Digest
    manifest_sha256: Digest
    activated_at: Moment
    schema_version: Literal[1] = 1

    @property
    def digest(self) -> Sha256:
        """Of the record: the name of its blob."""
        return sha256(encode(self))


class Chain:
    """
    The activations of all documents.

    Args:
        disk: What the store lies on.
        blobs: Records are links to blobs.
        now: Tells the time.
    """

    def __init__(
        self, disk: Medium, blobs: Blobs, now: Callable[[], datetime] | None = None
    ) -> None:
        self._disk = disk
        self._blobs = blobs
        self._now = now or _now

    def documents(self) -> list[Sha256]:
        """Return every document that has activations."""
        names = self._disk.names(FOLDER)
        return [Sha256(name) for name in names if SHA256.fullmatch(name)]

    def numbers(self, document: Sha256) -> list[int]:
        """Return the numbers of a document's activations, ascending."""
        return self._disk.numbers(f"{FOLDER}/{document}", "{}.json")

    def read(self, document: Sha256, number: int) -> Activation:
        """
        Return one activation.

        Raises:
            VectorlessRagError: ``store_corrupt``: missing, altered, or not what
                its place says.
        """
        name = record_name(document, number)
        data = self._blobs.read_linked(name)
        if data is None:
            raise corrupt(f"{name}: missing")
        record = decode(Activation, data, name)
        if (record.document_sha256, record.number) != (document, number):
            raise corrupt(f"{name}: of another place")
        return record

    def newest_first(self, document: Sha256) -> Iterator[Activation]:
        """Yield a document's activations, the current one first."""
        for number in reversed(self.numbers(document)):
            yield self.read(document, number)

    def append(
        self,
        document: Sha256,
        *,
        recipe_hash: Sha256,
        generation: int,
        artifact_id: Sha256,
        manifest_sha256: Sha256,
    ) -> bool:
        """
        Make an artifact the current one of *document*, unless it is.

        Returns:
            Whether that changed what is current.
        """
        while True:
            number, previous, current = self._last(document)
            if current is not None and (
                (current.recipe_hash, current.generation, current.manifest_sha256)
                == (recipe_hash, generation, manifest_sha256)
            ):
                # Whoever wrote it may not have come this far yet.
                self._disk.sync(f"{FOLDER}/{document}")
                return False
            record = Activation(
                document_sha256=document,
                number=number,
                previous_sha256=previous,
                recipe_hash=recipe_hash,
                generation=generation,
                artifact_id=artifact_id,
                manifest_sha256=manifest_sha256,
                activated_at=timestamp(self._now()),
            )
            digest = self._blobs.put(encode(record))
            # Lost against another activation: look again at what is current.
            if self._blobs.link(digest, record_name(document, number)):
                return True

    def _last(self, document: Sha256) -> tuple[int, Sha256 | None, Activation | None]:
        """Return the next number, the digest to chain to, and what is current."""
        numbers = self.numbers(document)
        if not numbers:
            return 0, None, None
        last = numbers[-1]
        data = self._disk.read(record_name(document, last)) or b""
        try:
            current = self.read(document, last)
        except VectorlessRagError:
            # An altered record is nobody's word. The chain goes on behind it, over
            # its bytes as they are, and an audit still finds them altered.
            current = None
        return last + 1, sha256(data), current


def record_name(document: str, number: int) -> str:
    """Return where an activation is, relative to the store."""
    return f"{FOLDER}/{document}/{number}.json"


def _now() -> datetime:
    return datetime.now(UTC)
