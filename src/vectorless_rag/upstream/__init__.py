"""
The pinned upstream: fetched, checked, patched, and held to its digests.

What fetches, builds or explains has modules of its own here: to look at a build needs
none of them.
"""

from vectorless_rag.upstream.copying import copy
from vectorless_rag.upstream.pin import GitSource, Pin, read_pin
from vectorless_rag.upstream.record import BuildRecord, BuiltPatch, read_record
from vectorless_rag.upstream.resources import resources_root
from vectorless_rag.upstream.runtime import COMPANIONS, runtime_digest
from vectorless_rag.upstream.verifying import differences, verify

__all__ = [
    "COMPANIONS",
    "BuildRecord",
    "BuiltPatch",
    "GitSource",
    "Pin",
    "copy",
    "differences",
    "read_pin",
    "read_record",
    "resources_root",
    "runtime_digest",
    "verify",
]
