"""``artifact.json``: document, recipe, tree and the pages' text, schema version 2."""

from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, Literal

from vectorless_rag.canon import sha256
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.recipe import Recipe
from vectorless_rag.records import (
    Digest,
    corrupt,
    decode,
    encode,
    one_line,
    storable,
)
from vectorless_rag.tree import Node, read_tree, walk
from vectorless_rag.units import Sha256
from vectorless_rag.wire import Found, Parser


class Route(StrEnum):
    """What built the tree."""

    FLASH = "flash"
    STANDARD = "standard"
    SHORTCUT = "shortcut"
    """A single page is its own tree."""


@dataclass(frozen=True, kw_only=True)
class Document:
    """The PDF an artifact is about."""

    sha256: Sha256

    size_bytes: int

    name: str
    """
    File name, without its folder, under which it was first ingested.

    A label: it is in no key, and the same bytes under another name are the same
    document.
    """


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """
    Everything an index of one document holds.

    Raises:
        ValueError: The parts are not of one run: another document than the
            recipe's, another parser version, or no pages.
    """

    document: Document
    recipe: Recipe

    parser: Parser
    """What read `pages`."""

    route: Route
    tree: tuple[Node, ...]

    pages: tuple[str, ...]
    """Text of every page, in order: the evidence; empty where a page has none."""

    def __post_init__(self) -> None:
        if not self.pages:
            raise ValueError("no pages")
        if self.document.sha256 != self.recipe.document_sha256:
            raise ValueError("another document than the recipe's")
        options = self.recipe.configuration
        known = {"pypdf": options.pypdf, "pypdfium2": options.pypdfium2}
        if known.get(self.parser.name) != self.parser.version:
            raise ValueError("another parser version than the recipe's")

    @property
    def provider(self) -> str:
        """Who wrote the summaries: ``provider/name``."""
        return self.recipe.configuration.model

    @property
    def page_count(self) -> int:
        """Length of the document, in pages."""
        return len(self.pages)

    @cached_property
    def encoded(self) -> bytes:
        """The artifact as bytes, in canonical form."""
        return encode(_spell(self))

    @property
    def artifact_id(self) -> Sha256:
        """Digest of `encoded`."""
        return sha256(self.encoded)

    def same_but_name(self, other: "Artifact") -> bool:
        """Whether both say the same about the document, whatever it is called."""
        return replace(self, document=other.document) == other


def artifact_of(
    found: Found, *, recipe: Recipe, name: str, size_bytes: int
) -> Artifact:
    """
    Check what the child found, and make it an artifact.

    Args:
        found: The child's answer.
        recipe: What it was asked for.
        name: The document's file name. Folders before it are dropped; bytes of
            it that are not UTF-8 become U+FFFD.
        size_bytes: Length of the document.

    Raises:
        VectorlessRagError: ``pageindex_no_structure`` or ``pageindex_invalid_tree``
            for the tree, ``child_protocol`` if the answer does not fit the recipe.
    """
    tree = read_tree(found.tree, len(found.pages))
    try:
        return Artifact(
            document=Document(
                sha256=recipe.document_sha256,
                size_bytes=size_bytes,
                name=one_line(name.rpartition("/")[2]),
            ),
            recipe=recipe,
            parser=found.parser,
            route=_route(found.route),
            tree=tree,
            pages=tuple(storable(text) for text in found.pages),
        )
    except ValueError as error:
        raise VectorlessRagError(Code.CHILD_PROTOCOL, str(error)) from None


def _route(name: str) -> Route:
    if name not in set(Route):
        # Not quoted: the child may say anything.
        raise ValueError("no such route")
    return Route(name)


def read_artifact(data: bytes) -> Artifact:
    """
    Read an artifact back.

    Raises:
        VectorlessRagError: ``store_corrupt``: not the canonical form of an
            artifact of schema version 2. The message names the place, never
            what stands there.
    """
    shape = decode(_Shape, data, "artifact.json")
    try:
        artifact = Artifact(
            document=Document(
                sha256=shape.document.sha256,
                size_bytes=shape.document.bytes,
                name=shape.document.name,
            ),
            recipe=shape.recipe.inputs,
            parser=shape.parser,
            route=shape.route,
            tree=read_tree(shape.tree, len(shape.pages)),
            pages=tuple(page.text for page in shape.pages),
        )
    except ValueError as error:
        raise corrupt(f"artifact.json: {error}") from None
    except VectorlessRagError as error:
        raise corrupt(f"artifact.json: {error.failure.detail or 'no tree'}") from None
    # What can be computed (hashes, counts, page numbers) is, and must agree.
    if artifact.encoded != data:
        raise corrupt("artifact.json: a derived field disagrees")
    return artifact


@dataclass(frozen=True, kw_only=True)
class _DocumentShape:
    sha256: Digest
    bytes: int
    page_count: int
    name: str


@dataclass(frozen=True, kw_only=True)
class _RecipeShape:
    recipe_hash: Digest
    configuration_hash: Digest
    inputs: Recipe


@dataclass(frozen=True, kw_only=True)
class _PageShape:
    page: int
    text: str


@dataclass(frozen=True, kw_only=True)
class _DegradedShape:
    nodes: int
    codes: dict[str, int]
    pages_without_text: int


@dataclass(frozen=True, kw_only=True)
class _Shape:
    """The layout of the file."""

    schema_version: Literal[2]
    document: _DocumentShape
    recipe: _RecipeShape
    parser: Parser
    provider: str
    route: Route
    tree: tuple[Any, ...]
    pages: tuple[_PageShape, ...]
    degraded: _DegradedShape


def _spell(artifact: Artifact) -> _Shape:
    recipe = artifact.recipe
    return _Shape(
        schema_version=2,
        document=_DocumentShape(
            sha256=artifact.document.sha256,
            bytes=artifact.document.size_bytes,
            page_count=artifact.page_count,
            name=artifact.document.name,
        ),
        recipe=_RecipeShape(
            recipe_hash=recipe.recipe_hash,
            configuration_hash=recipe.configuration.configuration_hash,
            inputs=recipe,
        ),
        parser=artifact.parser,
        provider=artifact.provider,
        route=artifact.route,
        tree=tuple(node.to_json() for node in artifact.tree),
        pages=tuple(
            _PageShape(page=number, text=text)
            for number, text in enumerate(artifact.pages, start=1)
        ),
        degraded=_degraded(artifact),
    )


def _degraded(artifact: Artifact) -> _DegradedShape:
    marked = [node.degraded for _, node in walk(artifact.tree) if node.degraded]
    codes = Counter(mark.code for marks in marked for mark in marks)
    return _DegradedShape(
        nodes=len(marked),
        codes=dict(codes),
        pages_without_text=sum(not text.strip() for text in artifact.pages),
    )
