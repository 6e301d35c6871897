"""The code that runs here: the patched upstream, the runtime and the parsers."""

import platform
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import vectorless_rag
from vectorless_rag import upstream
from vectorless_rag.artifact import Patch, Provenance
from vectorless_rag.environment import cache_folder
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.recipe import Asked, Configuration, configuration_of
from vectorless_rag.source import pdfium_identity, pypdf_identity
from vectorless_rag.upstream import BuildRecord, BuiltPatch

if TYPE_CHECKING:
    from vectorless_rag.settings import Settings

_LIBRARIES = ("litellm", "pypdf", "pypdfium2", "tiktoken")


@dataclass(frozen=True, kw_only=True)
class RunningCode:
    """What decides a tree beside the document, by digests."""

    folder: Path
    """The build: it holds the patched ``pageindex`` package."""

    record: BuildRecord
    configuration: Configuration

    def check_unchanged(self, settings: "Settings") -> None:
        """
        Compare every file of the build and the runtime with what they were.

        Raises:
            VectorlessRagError: ``upstream_tampered``: the code changed while it ran.
        """
        if running_code(settings).configuration != self.configuration:
            raise VectorlessRagError(
                Code.UPSTREAM_TAMPERED, "the code changed during the run"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """What a process that has imported the code is known by."""
        code = self.configuration
        return (
            str(self.folder),
            code.pageindex_version,
            code.patch_sha256,
            code.tree_sha256,
            code.runtime_sha256,
        )

    def copy_to(self, target: Path) -> None:
        """
        Make the private copy of the build that the child runs.

        Raises:
            VectorlessRagError: ``upstream_tampered`` or ``store_unwritable``.
        """
        upstream.copy(self.record, self.folder, target)

    @property
    def provenance(self) -> Provenance:
        """The code, as a manifest names it."""
        pin = upstream.read_pin(upstream.resources_root())
        return Provenance(
            version=vectorless_rag.__version__,
            upstream_name=pin.name,
            upstream_version=pin.version,
            upstream_sha256=self.record.upstream_sha256,
            patches=tuple(map(_patch, self.record.patches)),
            python=platform.python_version(),
            libraries={name: version(name) for name in _LIBRARIES},
        )


def build_folder(settings: "Settings") -> Path:
    """Return where the patched upstream is built."""
    if settings.build_dir is not None:
        return settings.build_dir.absolute()
    root = upstream.resources_root()
    # An installed package can't write beside itself.
    beside = (root / "src").is_dir()
    return root / "build" / "pageindex" if beside else cache_folder() / "pageindex"


def running_code(settings: "Settings") -> RunningCode:
    """Digest the code that would run now, see `code_in`."""
    return code_in(build_folder(settings), Asked.of(settings))


def code_in(folder: Path, asked: Asked) -> RunningCode:
    """
    Digest the code that would run now.

    Args:
        folder: The build.
        asked: What the settings ask of it.

    Raises:
        VectorlessRagError: ``upstream_unavailable``: nothing is built;
            ``upstream_tampered``: a file differs from the build's record;
            ``upstream_drift``: the build is of another pin or series.
    """
    record = upstream.verify(upstream.resources_root(), folder)
    configuration = configuration_of(
        asked,
        pageindex_version=record.pageindex_version,
        patch_sha256=record.patch_sha256,
        tree_sha256=record.tree_sha256,
        runtime_sha256=upstream.runtime_digest(Path(vectorless_rag.__file__).parent),
        parsers=(pypdf_identity(), pdfium_identity()),
    )
    return RunningCode(folder=folder, record=record, configuration=configuration)


def _patch(patch: BuiltPatch) -> Patch:
    return Patch(
        name=patch.file,
        sha256=patch.sha256,
        upstream_status=patch.upstream_status,
        proof=patch.proofs,
        tree_after=patch.tree_after,
    )
