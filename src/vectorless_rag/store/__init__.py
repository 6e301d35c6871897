"""The artifact store: a folder in which nothing is ever overwritten."""

from vectorless_rag.store.blobs import Blobs
from vectorless_rag.store.chain import Activation, Chain
from vectorless_rag.store.disk import Disk
from vectorless_rag.store.garbage import Unreached, unreached
from vectorless_rag.store.promises import Promise, try_promises
from vectorless_rag.store.reading import Stored, StoreReader, locate
from vectorless_rag.store.writing import Outcome, Published, Store

__all__ = [
    "Activation",
    "Blobs",
    "Chain",
    "Disk",
    "Outcome",
    "Promise",
    "Published",
    "Store",
    "StoreReader",
    "Stored",
    "Unreached",
    "locate",
    "try_promises",
    "unreached",
]
