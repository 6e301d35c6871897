"""
Every question the patched upstream asks, and the shape of the answer it expects.

`read` returns exactly that shape, or raises. Its keys and spellings are the ones
the upstream's own code compares with.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from vectorless_rag.canon import Json
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.pageindex_runtime.replies import ReplyError, spelled
from vectorless_rag.pageindex_runtime.shapes import (
    LEFT_OUT,
    Key,
    Reader,
    entries,
    fields,
    marker,
    optional,
    page_number,
    printed_page,
    prose,
    structure,
    title,
    verdict,
)


class Reads(StrEnum):
    """What a reply is read as."""

    TEXT = "text"
    OBJECT = "object"
    ENTRIES = "entries"
    """A list of objects."""


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One question the upstream asks."""

    name: str
    """Name of the upstream function that asks it."""

    reads: Reads = Reads.TEXT

    shape: Reader | None = None
    """Reads the parsed reply; None for plain text."""

    may_truncate: bool = False
    """A reply cut at the output limit is handed on, for the upstream to continue."""

    @property
    def is_data(self) -> bool:
        """Whether the reply is read as JSON."""
        return self.shape is not None


@dataclass(frozen=True)
class Read:
    """A usable reply."""

    text: str
    """For data: the value spelled anew, without a fence. Otherwise as it came."""

    value: Any
    """The value read, None for plain text."""


def _answer(name: str, key: str) -> Operation:
    shape = fields(Key(key, verdict))
    return Operation(name=name, reads=Reads.OBJECT, shape=shape)


def _sections(name: str, *keys: Key) -> Operation:
    return Operation(name=name, reads=Reads.ENTRIES, shape=entries(_section(*keys)))


def _section(*keys: Key) -> Reader:
    number = Key("structure", structure, default=None)
    return fields(number, Key("title", title), *keys, closed=True)


def _summary(name: str, *keys: Key) -> Operation:
    shape = fields(Key("summary", prose), *keys)
    return Operation(name=name, reads=Reads.OBJECT, shape=shape)


_PLACED = Key("physical_index", marker)
_PERHAPS_PLACED = Key("physical_index", marker, default=None)
_STARTS = Key("start", optional(verdict), default=LEFT_OUT)
_PRINTED = Key("page", printed_page, default=None)
_TITLE = Key("title", optional(prose), default=LEFT_OUT)
_SUBSECTION = fields(Key("title", title), Key("page", page_number), closed=True)

_ALL = (
    _answer("toc_detector_single_page", "toc_detected"),
    _answer("detect_page_index", "page_index_given_in_toc"),
    _answer("check_if_toc_transformation_is_complete", "completed"),
    _answer("check_if_toc_extraction_is_complete", "completed"),
    _answer("check_title_appearance", "answer"),
    _answer("check_title_appearance_in_start", "start_begin"),
    _sections("toc_index_extractor", _PERHAPS_PLACED),
    _sections("add_page_number_to_toc", _STARTS, _PERHAPS_PLACED),
    _sections("generate_toc_init", _PLACED),
    _sections("generate_toc_continue", _PLACED),
    Operation(
        name="toc_transformer",
        reads=Reads.OBJECT,
        shape=fields(Key("table_of_contents", entries(_section(_PRINTED)))),
        may_truncate=True,
    ),
    Operation(name="extract_toc_content", may_truncate=True),
    Operation(
        name="single_toc_item_index_fixer",
        reads=Reads.OBJECT,
        shape=fields(_PLACED),
    ),
    Operation(
        name="expand",
        reads=Reads.OBJECT,
        shape=fields(Key("subsections", entries(_SUBSECTION))),
    ),
    _summary("summary_leaf", _TITLE),
    _summary("summary_direct"),
    _summary("summary_subtree"),
    Operation(name="generate_node_summary"),
    Operation(name="generate_doc_description"),
)

OPERATIONS: Mapping[str, Operation] = MappingProxyType({o.name: o for o in _ALL})
"""All operations by name."""


def operation_named(name: str) -> Operation:
    """
    Return the operation called *name*.

    Raises:
        VectorlessRagError: ``internal_error``: the patched code asks something that
            has no shape here.
    """
    if name not in OPERATIONS:
        raise VectorlessRagError(Code.INTERNAL_ERROR, f"no operation {name}")
    return OPERATIONS[name]


def read(operation: Operation, text: str) -> Read:
    """
    Read a whole reply as *operation* expects it.

    Raises:
        ReplyError: ``pageindex_empty_response`` for a blank reply and
            ``pageindex_invalid_json`` for anything but the shape asked for; it
            says why and where, and holds nothing of the reply.
    """
    try:
        return _read(operation, text)
    except ReplyError as error:
        failed = error.asked(operation.name)
    raise failed


def _read(operation: Operation, text: str) -> Read:
    if operation.shape is None:
        if not text.strip():
            raise ReplyError(Code.EMPTY_RESPONSE, "empty")
        return Read(text=text, value=None)
    value = operation.shape(spelled(text))
    return Read(text=spell(value), value=value)


def spell(value: Json) -> str:
    """Spell a value as the JSON text that the upstream is handed."""
    return json.dumps(value, ensure_ascii=False)
