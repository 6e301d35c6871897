"""Which patches there are, and in which order: the list, before any is read."""

import itertools
import re
from collections.abc import Iterable
from pathlib import Path

from vectorless_rag.canon import sha256
from vectorless_rag.units import Sha256
from vectorless_rag.upstream.faults import drift, reason, some, unavailable
from vectorless_rag.upstream.pin import PATCHES

SERIES = "series"
RETIRED = "RETIRED.md"

_DIFF = b"diff --git "


def checked_names(root: Path) -> tuple[str, ...]:
    """
    Read the names of the series, and hold them against the folder.

    Args:
        root: Folder that holds ``patches/``.

    Raises:
        VectorlessRagError: ``upstream_unavailable``: there is no series file;
            ``upstream_drift``: the series and the folder differ, or the numbers
            do not ascend, or one was retired.
    """
    names = read_names(root)
    here = {path.name for path in (root / PATCHES).glob("*.patch")}
    if strays := sorted(here ^ set(names)):
        raise drift(f"not both in patches/ and in series: {some(strays)}")
    numbers = [name[:4] for name in names]
    for earlier, later in itertools.pairwise(numbers):
        if later <= earlier:
            raise drift(f"series: {later} does not ascend from {earlier}")
    if back := sorted(set(numbers) & retired(root)):
        raise drift(f"series: {some(back)} was retired; numbers are never reused")
    return names


def diff_of(patch: bytes) -> bytes:
    """Return what a patch file holds from its first ``diff --git`` line on."""
    _, found, rest = patch.partition(b"\n" + _DIFF)
    return _DIFF + rest if found else b""


def digest_of(diffs: Iterable[bytes]) -> Sha256:
    """Digest the order and every diff of a series; prose and names do not count."""
    parts = [b"%d:%s" % (len(diff), diff) for diff in diffs]
    return sha256(b"patch/1\0" + b"".join(parts))


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
