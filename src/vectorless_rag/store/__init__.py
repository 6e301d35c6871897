"""The artifact store: a folder in which nothing is ever overwritten."""

from vectorless_rag.store.blobs import Blobs
from vectorless_rag.store.bucket import Access, Address, Bucket
from vectorless_rag.store.bucket_promises import try_bucket
from vectorless_rag.store.chain import Activation, Chain
from vectorless_rag.store.disk import Disk
from vectorless_rag.store.garbage import Unreached, unreached
from vectorless_rag.store.medium import Medium
from vectorless_rag.store.opening import open_reader, open_store, place_of
from vectorless_rag.store.promises import Promise, try_promises
from vectorless_rag.store.reading import Stored, StoreReader, locate
from vectorless_rag.store.writing import Outcome, Published, Store

__all__ = [
    "Access",
    "Activation",
    "Address",
    "Blobs",
    "Bucket",
    "Chain",
    "Disk",
    "Medium",
    "Outcome",
    "Promise",
    "Published",
    "Store",
    "StoreReader",
    "Stored",
    "Unreached",
    "locate",
    "open_reader",
    "open_store",
    "place_of",
    "try_bucket",
    "try_promises",
    "unreached",
]
