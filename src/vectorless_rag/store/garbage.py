"""What no activation reaches: a list, and nothing that deletes."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from vectorless_rag.canon import Json
from vectorless_rag.store.blobs import QUARANTINE, SHA256, blob_name
from vectorless_rag.store.reading import Stored, StoreReader
from vectorless_rag.units import Sha256

_ALONE = "nothing refers to it"


@dataclass(frozen=True, kw_only=True)
class Unreached:
    """A file of the store that nothing current or earlier needs."""

    file: str
    """Relative to the store."""

    size_bytes: int
    why: str

    def to_json(self) -> dict[str, Json]:
        """Spell it."""
        return asdict(self)


def unreached(store: StoreReader) -> list[Unreached]:
    """
    List the blobs and leftovers that no activation reaches, by file.

    An activation reaches its own record and the manifest, artifact and run record
    of what it made current, also if another took its place later. A run that is at
    work may be about to reach what is listed.

    Args:
        store: Nothing in it is changed.

    Raises:
        VectorlessRagError: ``store_corrupt``: an activation or a manifest cannot
            be read, so what it reaches is not known.
    """
    reached = set(_reached(store))
    idle = {digest for s in store.all() for digest in _blobs_of(s)} - reached
    found: list[Unreached] = []
    for name in store.blobs.all_names():
        digest = name.rpartition("/")[2]
        ours = SHA256.fullmatch(digest) and name == blob_name(digest)
        if ours and digest not in reached:
            why = "of an artifact never activated" if digest in idle else _ALONE
            found.append(_sized(store, name, why))
    for folder, why in (
        ("tmp", "left by a writer that was killed"),
        (QUARANTINE, "altered bytes, set aside"),
    ):
        names = store.disk.names(folder)
        found += (_sized(store, f"{folder}/{name}", why) for name in names)
    return sorted(found, key=lambda item: item.file)


def _reached(store: StoreReader) -> Iterator[Sha256]:
    for document in store.chain.documents():
        for record in store.chain.newest_first(document):
            yield record.digest
            yield from _blobs_of(store.stored(record.recipe_hash, record.generation))


def _blobs_of(stored: Stored) -> tuple[Sha256, ...]:
    return (stored.manifest.manifest_sha256, *stored.named_files.values())


def _sized(store: StoreReader, name: str, why: str) -> Unreached:
    return Unreached(file=name, size_bytes=store.disk.size(name), why=why)
