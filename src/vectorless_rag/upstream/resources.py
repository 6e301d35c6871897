"""Find the folder that holds the pin and the patch series."""

from pathlib import Path

from vectorless_rag.upstream.faults import unavailable
from vectorless_rag.upstream.listing import SERIES
from vectorless_rag.upstream.pin import PATCHES, PIN_FILE

_PACKAGE = Path(__file__).resolve().parents[1]


def resources_root() -> Path:
    """
    Return the folder with ``upstream.toml`` and ``patches/``.

    In a source tree it is the repository; an installed package carries the same
    files in a folder of its own.

    Raises:
        VectorlessRagError: ``upstream_unavailable``: neither is there.
    """
    places = (_PACKAGE / "_upstream", _PACKAGE.parents[1])
    for place in places:
        if (place / PIN_FILE).is_file() and (place / PATCHES / SERIES).is_file():
            return place
    raise unavailable(f"this installation holds no {PIN_FILE} and {PATCHES}/{SERIES}")
