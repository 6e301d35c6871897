"""
The releases of the upstream that were looked at, each named by its digests.

A release is fetched by its digest, as the pin is. One that no one has looked at yet
is taken as the index gives it, once, and recorded; what comes later must be the same.
"""

import dataclasses
import json
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from vectorless_rag.canon import sha256
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.units import Sha256
from vectorless_rag.upstream.archive import unpack
from vectorless_rag.upstream.dropwhen import version
from vectorless_rag.upstream.faults import drift, reason, unavailable
from vectorless_rag.upstream.pin import PIN_FILE, Pin, read_pin
from vectorless_rag.upstream.pip import complaint, first_download
from vectorless_rag.upstream.tree import digest, scan

RELEASES_FILE = "upstream.releases.json"

_SCHEMA = 1
_VERSION = re.compile(r"\d+(?:\.\d+)+")
_MOVED = ("version", "file", "size", "sha256", "tree_sha256")


@dataclass(frozen=True, kw_only=True)
class Release:
    """One release of the upstream."""

    version: str

    file: str
    """Name of its wheel."""

    size: int
    """Bytes of the wheel."""

    sha256: Sha256
    """Digest of the wheel."""

    tree_sha256: Sha256
    """Digest of its tree over the paths the pin lists."""

    def pin(self, pin: Pin) -> Pin:
        """Return *pin* moved to this release; a git source would be of another."""
        return dataclasses.replace(pin, **dataclasses.asdict(self), git=None)


def read_releases(root: Path) -> tuple[Release, ...]:
    """
    Read the releases that are known, in the order of their versions.

    Args:
        root: Folder that holds ``upstream.toml``; no table: the pin alone.

    Raises:
        VectorlessRagError: ``upstream_drift``: the table says something else, or
            another release under the pin's version.
    """
    pin = read_pin(root)
    pinned = Release(**{name: getattr(pin, name) for name in _MOVED})
    try:
        found = _table((root / RELEASES_FILE).read_bytes())
    except FileNotFoundError:
        found = {}
    except OSError as error:
        raise unavailable(f"{RELEASES_FILE}: {reason(error)}") from None
    except (ValueError, TypeError, KeyError) as error:
        raise drift(f"{RELEASES_FILE} is no table of releases: {error!r}") from None
    if found.setdefault(pin.version, pinned) != pinned:
        raise drift(f"{RELEASES_FILE}: {pin.version} is not the one in {PIN_FILE}")
    return tuple(sorted(found.values(), key=lambda each: version(each.version)))


def releases_digest(releases: tuple[Release, ...]) -> Sha256:
    """Digest some releases: what a report about them is about."""
    spelled = [dataclasses.asdict(each) for each in releases]
    return sha256(json.dumps(spelled, sort_keys=True).encode())


def between(root: Path, wanted: str) -> tuple[Release, ...]:
    """
    Read which releases ``0.4.0..0.4.7`` or ``0.4.4,0.4.7`` names.

    Args:
        root: Folder that holds ``upstream.toml``.
        wanted: First and last version of the known releases, or a list. A version
            of a list that is not known is looked up on the index and recorded.

    Raises:
        VectorlessRagError: ``upstream_unavailable``: no such release, or no index;
            ``settings_invalid``: not a version.
    """
    first, dots, last = wanted.partition("..")
    if not dots:
        return tuple(look_up(root, each.strip()) for each in wanted.split(","))
    ends = [version(look_up(root, each).version) for each in (first, last)]
    return tuple(
        each
        for each in read_releases(root)
        if min(ends) <= version(each.version) <= max(ends)
    )


def look_up(root: Path, wanted: str) -> Release:
    """
    Return one release; one that is not known is fetched once and recorded.

    Args:
        root: Folder that holds ``upstream.toml``.
        wanted: Its version.

    Raises:
        VectorlessRagError: ``upstream_unavailable``: the index has no wheel of it;
            ``settings_invalid``: *wanted* is no version.
    """
    if not _VERSION.fullmatch(wanted):
        words = f"{wanted[:40]!r} is no version; write one as 0.4.7"
        raise VectorlessRagError(Code.SETTINGS_INVALID, words)
    releases = read_releases(root)
    for each in releases:
        if each.version == wanted:
            return each
    found = _first_look(read_pin(root), wanted)
    spelled = [dataclasses.asdict(each) for each in (*releases, found)]
    spelled.sort(key=lambda item: version(item["version"]))
    text = json.dumps({"schema": _SCHEMA, "releases": spelled}, indent=1) + "\n"
    try:
        (root / RELEASES_FILE).write_text(text, encoding="utf-8")
    except OSError as error:
        raise unavailable(f"{RELEASES_FILE}: {reason(error)}") from None
    return found


def write_pin(root: Path, release: Release) -> Pin:
    """
    Move the pin to another release; comments and the other fields stay.

    Raises:
        VectorlessRagError: ``upstream_drift``: a field is not there once.
    """
    path = root / PIN_FILE
    text = path.read_text(encoding="utf-8")
    for name, value in dataclasses.asdict(release).items():
        line = f"{name} = {json.dumps(value)}"
        text, count = re.subn(rf"(?m)^{name} = .*$", line, text, count=1)
        if count != 1:
            raise drift(f"{PIN_FILE}: no line begins with {name} =")
    path.write_text(text, encoding="utf-8")
    return read_pin(root)


def _table(data: bytes) -> dict[str, Release]:
    raw = json.loads(data)
    if raw["schema"] != _SCHEMA:
        raise ValueError(f"schema {raw['schema']!r}")
    return {item["version"]: Release(**item) for item in raw["releases"]}


def _first_look(pin: Pin, wanted: str) -> Release:
    with tempfile.TemporaryDirectory(prefix="release-") as name:
        folder = Path(name)
        done = first_download(folder, f"{pin.name}=={wanted}")
        wheels = sorted(folder.glob("*.whl"))
        if done.status != 0 or len(wheels) != 1:
            raise unavailable(f"no wheel of {pin.name} {wanted}: {complaint(done)}")
        unpack(wheels[0], folder / "unpacked")
        entries = scan(folder / "unpacked", include=pin.include, exclude=pin.exclude)
        data = wheels[0].read_bytes()
        return Release(
            version=wanted,
            file=wheels[0].name,
            size=len(data),
            sha256=sha256(data),
            tree_sha256=digest(entries),
        )
