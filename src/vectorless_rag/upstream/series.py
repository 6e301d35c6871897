"""The patch series: which patches, in which order, and what is wrong with them."""

import itertools
import re
from dataclasses import dataclass
from pathlib import Path

from vectorless_rag.canon import sha256
from vectorless_rag.units import Sha256
from vectorless_rag.upstream.faults import drift, reason, some, unavailable
from vectorless_rag.upstream.mailbox import Patch, read_patch
from vectorless_rag.upstream.pin import PATCHES

SERIES = "series"
RETIRED = "RETIRED.md"


@dataclass(frozen=True, kw_only=True)
class Series:
    """Patches in the order they are applied."""

    patches: tuple[Patch, ...]

    @property
    def patch_sha256(self) -> Sha256:
        """Digest of the order and of every diff; prose and names do not count."""
        parts = [b"%d:%s" % (len(p.diff), p.diff) for p in self.patches]
        return sha256(b"patch/1\0" + b"".join(parts))


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
    folder = root / PATCHES
    names = read_names(root)
    if strays := sorted({p.name for p in folder.glob("*.patch")} ^ set(names)):
        raise drift(f"not both in patches/ and in series: {some(strays)}")
    numbers = [name[:4] for name in names]
    for earlier, later in itertools.pairwise(numbers):
        if later <= earlier:
            raise drift(f"series: {later} does not ascend from {earlier}")
    if back := sorted(set(numbers) & retired(root)):
        raise drift(f"series: {some(back)} was retired; numbers are never reused")
    return Series(patches=tuple(read_patch(folder / name) for name in names))


def read_names(root: Path) -> tuple[str, ...]:
    """
    Read the names that ``patches/series`` lists.

    Raises:
        VectorlessRagError: ``upstream_unavailable``: there is no such file.
    """
    lines = [line.partition("#")[0].strip() for line in read_lines(root)]
    return tuple(line for line in lines if line)


def read_lines(root: Path) -> list[str]:
    """
    Read the lines of ``patches/series``, comments too.

    Raises:
        VectorlessRagError: ``upstream_unavailable``: there is no such file.
    """
    path = root / PATCHES / SERIES
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise unavailable(f"{PATCHES}/{SERIES}: {reason(error)}") from None


def retired(root: Path) -> frozenset[str]:
    """Return the numbers that ``patches/RETIRED.md`` lists in its table."""
    path = root / PATCHES / RETIRED
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return frozenset(re.findall(r"^\| *(\d{4}) *\|", text, re.MULTILINE))
