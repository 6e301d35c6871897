"""Where the settings say that the store is."""

from pathlib import Path
from typing import TYPE_CHECKING

from vectorless_rag.environment import bucket_environment
from vectorless_rag.store.medium import Medium
from vectorless_rag.store.reading import StoreReader
from vectorless_rag.store.writing import Store

if TYPE_CHECKING:
    from vectorless_rag.settings import Settings


def open_store(settings: "Settings") -> Store:
    """
    Open the store to write.

    Raises:
        VectorlessRagError: ``settings_invalid``: its address is none.
    """
    return Store(place_of(settings))


def open_reader(settings: "Settings") -> StoreReader:
    """Open the store to read; as `open_store`."""
    return StoreReader(place_of(settings))


def place_of(settings: "Settings") -> Path | Medium:
    """Return the folder, or the bucket."""
    if settings.store_url is None:
        return settings.store_dir
    # Most stores are folders.
    from vectorless_rag.store.bucket import Access, Bucket  # noqa: PLC0415

    access = Access(endpoint=settings.store_endpoint, variables=bucket_environment())
    # Of this machine: between machines the first manifest stays.
    locks = settings.data_dir.absolute() / "store-locks"
    return Bucket(settings.store_url, access, locks)
