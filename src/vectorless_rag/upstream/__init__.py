"""The pinned upstream: fetched, checked, patched, and held to its digests."""

from vectorless_rag.upstream.checkout import build, differences, verify
from vectorless_rag.upstream.copying import copy
from vectorless_rag.upstream.fetch import FileSource, IndexSource, Source, fetch
from vectorless_rag.upstream.pin import GitSource, Pin, read_pin
from vectorless_rag.upstream.record import BuildRecord, BuiltPatch, read_record
from vectorless_rag.upstream.resources import resources_root
from vectorless_rag.upstream.runtime import COMPANIONS, runtime_digest
from vectorless_rag.upstream.why import Reason, first_paragraph, why

__all__ = [
    "COMPANIONS",
    "BuildRecord",
    "BuiltPatch",
    "FileSource",
    "GitSource",
    "IndexSource",
    "Pin",
    "Reason",
    "Source",
    "build",
    "copy",
    "differences",
    "fetch",
    "first_paragraph",
    "read_pin",
    "read_record",
    "resources_root",
    "runtime_digest",
    "verify",
    "why",
]
