"""The lock: what every patch must find and leave, byte for byte."""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from vectorless_rag.canon import sha256
from vectorless_rag.units import Sha256
from vectorless_rag.upstream.faults import drift, reason, unavailable
from vectorless_rag.upstream.listing import checked_names, diff_of, digest_of
from vectorless_rag.upstream.pin import PATCHES, Pin
from vectorless_rag.upstream.replaced import Replaced

if TYPE_CHECKING:
    from vectorless_rag.upstream.series import Series

LOCK_FILE = "series.lock.json"
_SCHEMA = 1


@dataclass(frozen=True, kw_only=True)
class LockedFile:
    """One file of one patch."""

    path: str
    mode: str
    before: str
    after: str

    places: tuple[str, ...]
    """Functions and classes the change lands in."""


@dataclass(frozen=True, kw_only=True)
class LockedPatch:
    """One patch, with what it finds and what it leaves."""

    id: str
    file: str
    sha256: Sha256
    files: tuple[LockedFile, ...]
    replaces: tuple[Replaced, ...]

    tree_after: Sha256
    """Digest of the tree once this patch stands."""


@dataclass(frozen=True, kw_only=True)
class LockedUpstream:
    """The part of the pin that the lock was made for."""

    name: str
    version: str
    file: str
    size: int
    sha256: Sha256
    tree_sha256: Sha256

    @classmethod
    def of(cls, pin: Pin) -> Self:
        """Take the fields of *pin* that name bytes."""
        names = [field.name for field in dataclasses.fields(cls)]
        return cls(**{name: getattr(pin, name) for name in names})


@dataclass(frozen=True, kw_only=True)
class Lock:
    """What ``patches/series.lock.json`` holds."""

    git: str
    """Version of git that exported the series."""

    upstream: LockedUpstream
    patches: tuple[LockedPatch, ...]
    patch_sha256: Sha256
    tree_sha256: Sha256

    def encode(self) -> bytes:
        """Spell the lock as its file does."""
        value = {"schema": _SCHEMA, **dataclasses.asdict(self)}
        return json.dumps(value, indent=1, ensure_ascii=False).encode() + b"\n"

    def is_of(self, pin: Pin, root: Path) -> bool:
        """
        Whether it was made for *pin* and for the very patch files below *root*.

        Then `check` passes, and no patch need be read for it.

        Raises:
            VectorlessRagError: As `read_series`, for the list of the patches.
        """
        names = checked_names(root)
        try:
            files = [(root / PATCHES / name).read_bytes() for name in names]
        except OSError:
            return False
        return (
            self.upstream == LockedUpstream.of(pin)
            and [(p.file, p.sha256) for p in self.patches]
            == [(n, sha256(file)) for n, file in zip(names, files, strict=True)]
            and self.patch_sha256 == digest_of(map(diff_of, files))
        )

    def check(self, pin: Pin, series: "Series") -> None:
        """
        Hold the lock against the pin and the series it stands beside.

        Raises:
            VectorlessRagError: ``upstream_drift``, naming the first patch that
                differs.
        """
        if self.upstream != LockedUpstream.of(pin):
            raise drift(f"{LOCK_FILE} was made for another pin")
        for patch, locked in zip(series.patches, self.patches, strict=False):
            if (patch.file, patch.sha256) != (locked.file, locked.sha256):
                raise drift(f"{patch.file} is not the patch in {LOCK_FILE}")
        if len(series.patches) != len(self.patches):
            ours, locks = ([p.file for p in part.patches] for part in (series, self))
            first = max(ours, locks, key=len)[min(len(ours), len(locks))]
            raise drift(f"{first} is not in both series and {LOCK_FILE}")
        if self.patch_sha256 != series.patch_sha256:
            raise drift(f"{LOCK_FILE}: patch_sha256 is not that of the series")


def read_lock(root: Path) -> Lock:
    """
    Read the lock of an installation.

    Raises:
        VectorlessRagError: ``upstream_unavailable``: there is none;
            ``upstream_drift``: it is no lock of this schema.
    """
    path = root / PATCHES / LOCK_FILE
    try:
        return _lock(json.loads(path.read_bytes()))
    except OSError as error:
        raise unavailable(f"{PATCHES}/{LOCK_FILE}: {reason(error)}") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise drift(f"{LOCK_FILE} is no lock: {error!r}") from None


def _lock(raw: dict[str, Any]) -> Lock:
    if (schema := raw.pop("schema")) != _SCHEMA:
        raise ValueError(f"schema {schema!r}")
    upstream = LockedUpstream(**raw.pop("upstream"))
    patches = tuple(_patch(item) for item in raw.pop("patches"))
    return Lock(**raw, upstream=upstream, patches=patches)


def _patch(raw: dict[str, Any]) -> LockedPatch:
    files = tuple(
        LockedFile(**{**item, "places": tuple(item["places"])})
        for item in raw.pop("files")
    )
    replaces = tuple(Replaced(**item) for item in raw.pop("replaces"))
    return LockedPatch(**raw, files=files, replaces=replaces)
