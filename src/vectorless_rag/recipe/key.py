"""
What decides an artifact: every input, and nothing that only decides how fast.

The keys are allow-lists. A field joins a key when someone writes it into
`Configuration.to_json`, never by accident.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self

from vectorless_rag.canon import Json, canonical, digest
from vectorless_rag.records import Digest, corrupt, decode
from vectorless_rag.units import Sha256
from vectorless_rag.wire import Parser

if TYPE_CHECKING:
    from vectorless_rag.settings import Settings

SCHEMA_VERSION = 2
"""Layout of the artifact, and how titles and texts are cleaned on their way in."""

RESULT_SETTINGS = frozenset(
    {"api_base", "call_attempts", "max_output_tokens", "mode", "model"}
)
"""
Settings that can change what an artifact holds.

The others decide whether there is one: a run over a budget, a deadline or a size
ends with a failure and publishes nothing.
"""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What `RESULT_SETTINGS` say, as `Configuration` has it. It holds no address."""

    mode: str
    model: str
    api_base_sha256: Digest | None
    max_output_tokens: int
    call_attempts: int

    @classmethod
    def of(cls, settings: "Settings") -> Self:
        """Take them. An offline model asks no server, whatever ``api_base`` says."""
        base = None if settings.offline else settings.api_base
        return cls(
            mode=settings.mode.value,
            model=settings.model,
            api_base_sha256=digest("api_base/1", base.rstrip("/")) if base else None,
            max_output_tokens=settings.max_output_tokens,
            call_attempts=settings.call_attempts,
        )


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """Every input but the document."""

    pageindex_version: str
    """Upstream version and our revision: ``0.4.7+vr1``."""

    patch_sha256: Digest
    """Digest of the patch series."""

    runtime_sha256: Digest
    """Digest of what the patches wire in, see `upstream.runtime_digest`."""

    tree_sha256: Digest
    """Digest of the patched upstream tree."""

    mode: str
    """``auto``, ``flash`` or ``standard``, as asked for."""

    model: str
    """``provider/name``, as the operator wrote it."""

    api_base_sha256: Digest | None
    """Which server answers, without naming the host; None: the provider's own."""

    max_output_tokens: int
    """Cap on one reply: a longer one is cut and continued."""

    call_attempts: int
    """Requests one call may make: the last unusable reply marks a node degraded."""

    pypdf: str
    """Version of what reads the pages."""

    pypdfium2: str
    """Version of what reads the layout, and single-page documents."""

    schema_version: int = SCHEMA_VERSION

    def to_json(self) -> dict[str, Json]:
        """Spell every field."""
        return {
            "pageindex_version": self.pageindex_version,
            "patch_sha256": self.patch_sha256,
            "runtime_sha256": self.runtime_sha256,
            "tree_sha256": self.tree_sha256,
            "mode": self.mode,
            "model": self.model,
            "api_base_sha256": self.api_base_sha256,
            "max_output_tokens": self.max_output_tokens,
            "call_attempts": self.call_attempts,
            "pypdf": self.pypdf,
            "pypdfium2": self.pypdfium2,
            "schema_version": self.schema_version,
        }

    @cached_property
    def configuration_hash(self) -> Sha256:
        """Name of these options."""
        return digest("configuration/1", self.to_json())


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The inputs of one artifact."""

    configuration: Configuration

    document_sha256: Digest
    """Digest of the PDF's bytes, taken before the run and checked after it."""

    @cached_property
    def recipe_hash(self) -> Sha256:
        """Key of the artifact these inputs make."""
        return digest(
            "recipe/1",
            {
                "configuration_hash": self.configuration.configuration_hash,
                "document_sha256": self.document_sha256,
            },
        )

    def inputs(self) -> dict[str, Json]:
        """Spell every input, so that anyone can compute the key again."""
        return {
            "configuration": self.configuration.to_json(),
            "document_sha256": self.document_sha256,
        }

    @classmethod
    def from_inputs(cls, raw: Json) -> Self:
        """
        Read `inputs` back.

        Raises:
            VectorlessRagError: ``store_corrupt``: a field is missing, unknown or
                malformed. The message names the field.
        """
        try:
            spelled = canonical(raw)
        except (TypeError, ValueError):
            raise corrupt("recipe: no canonical form") from None
        return decode(cls, spelled, "recipe")


def configuration_of(
    asked: Asked,
    *,
    pageindex_version: str,
    patch_sha256: Sha256,
    tree_sha256: Sha256,
    runtime_sha256: Sha256,
    parsers: tuple[Parser, Parser],
) -> Configuration:
    """
    Collect what decides an artifact beside the document.

    Args:
        asked: What the settings decide.
        pageindex_version: Of the build, with its revision.
        patch_sha256: Of the build.
        tree_sha256: Of the build.
        runtime_sha256: From `upstream.runtime_digest`.
        parsers: pypdf and pypdfium2, as installed.
    """
    versions = {parser.name: parser.version for parser in parsers}
    return Configuration(
        pageindex_version=pageindex_version,
        patch_sha256=patch_sha256,
        runtime_sha256=runtime_sha256,
        tree_sha256=tree_sha256,
        mode=asked.mode,
        model=asked.model,
        api_base_sha256=asked.api_base_sha256,
        max_output_tokens=asked.max_output_tokens,
        call_attempts=asked.call_attempts,
        pypdf=versions["pypdf"],
        pypdfium2=versions["pypdfium2"],
    )
