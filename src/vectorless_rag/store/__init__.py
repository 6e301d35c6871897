"""
The artifact store: a folder in which nothing is ever overwritten.

Buckets, promises and garbage have modules of their own here: to look an artifact up
needs none of them.
"""

from vectorless_rag.store.blobs import Blobs
from vectorless_rag.store.chain import Activation, Chain
from vectorless_rag.store.disk import Disk
from vectorless_rag.store.medium import Address, Medium
from vectorless_rag.store.opening import open_reader, open_store, place_of
from vectorless_rag.store.reading import Stored, StoreReader, locate
from vectorless_rag.store.writing import Outcome, Published, Store

__all__ = [
    "Activation",
    "Address",
    "Blobs",
    "Chain",
    "Disk",
    "Medium",
    "Outcome",
    "Published",
    "Store",
    "StoreReader",
    "Stored",
    "locate",
    "open_reader",
    "open_store",
    "place_of",
]
