"""The patch series: which patches, in which order, and what is wrong with them."""

from dataclasses import dataclass
from pathlib import Path

from vectorless_rag.units import Sha256
from vectorless_rag.upstream.listing import checked_names, digest_of
from vectorless_rag.upstream.mailbox import Patch, read_patch
from vectorless_rag.upstream.pin import PATCHES


@dataclass(frozen=True, kw_only=True)
class Series:
    """Patches in the order they are applied."""

    patches: tuple[Patch, ...]

    @property
    def patch_sha256(self) -> Sha256:
        """Digest of the order and of every diff; prose and names do not count."""
        return digest_of(patch.diff for patch in self.patches)


def read_series(root: Path) -> Series:
    """
    Read the patch series of an installation.

    Args:
        root: Folder that holds ``patches/``.

    Raises:
        VectorlessRagError: ``upstream_unavailable``: there is no series file;
            ``upstream_drift``: the series and the folder differ, the numbers
            do not ascend, or a patch cannot be read.
    """
    folder, names = root / PATCHES, checked_names(root)
    return Series(patches=tuple(read_patch(folder / name) for name in names))
