"""The pin: which release of the upstream, named by digests."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vectorless_rag.units import Sha256
from vectorless_rag.upstream.faults import drift, reason, unavailable

PIN_FILE = "upstream.toml"
PATCHES = "patches"

_HEX = re.compile(r"[0-9a-f]{64}")
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, kw_only=True)
class GitSource:
    """A commit of a repository, as another way to the pinned tree."""

    url: str
    """Address or path of a repository that holds the commit."""

    commit: str
    """40 hexadecimal digits; names move, commits do not."""

    tree: str | None = None
    """Id of the commit's tree, checked when given."""

    def __post_init__(self) -> None:
        """Refuse names that can move, and what git would read as an option."""
        for what in (self.commit, self.tree or self.commit):
            if not _COMMIT.fullmatch(what):
                raise drift(f"{what[:60]!r} is not a 40-hex git id")
        if self.url.startswith("-"):
            raise drift("the git url begins with a dash")


@dataclass(frozen=True, kw_only=True)
class Pin:
    """One release of the upstream."""

    name: str
    version: str

    revision: int
    """N in ``0.4.7+vrN``; any change of the patched behaviour raises it."""

    file: str
    """Name of the released wheel."""

    size: int
    """Bytes of the wheel."""

    sha256: Sha256
    """Digest of the wheel."""

    tree_sha256: Sha256
    """Digest of the unpatched tree; every source ends in this check."""

    include: tuple[str, ...]
    """Paths that make up the tree."""

    exclude: tuple[str, ...]
    """Paths below them that do not."""

    git: GitSource | None = None

    @property
    def pageindex_version(self) -> str:
        """Version and revision for people; compare N as a number."""
        return f"{self.version}+vr{self.revision}"

    def __post_init__(self) -> None:
        """Refuse a pin whose parts contradict each other."""
        if not self.file.startswith(f"{self.name}-{self.version}-"):
            raise drift(f"{PIN_FILE}: version {self.version} is not in file name")
        if not self.file.endswith(".whl") or "/" in self.file:
            raise drift(f"{PIN_FILE}: file is no wheel's name")
        for field in ("sha256", "tree_sha256"):
            if not _HEX.fullmatch(getattr(self, field)):
                raise drift(f"{PIN_FILE}: {field} is not 64 hexadecimal digits")
        if self.revision < 0 or self.size < 1 or not self.include:
            raise drift(f"{PIN_FILE}: revision, size or include is out of range")


def read_pin(root: Path) -> Pin:
    """
    Read the pin of an installation.

    Args:
        root: Folder that holds ``upstream.toml``.

    Raises:
        VectorlessRagError: ``upstream_unavailable``: there is no such file;
            ``upstream_drift``: it says something else than a pin.
    """
    try:
        text = (root / PIN_FILE).read_text(encoding="utf-8")
    except OSError as error:
        raise unavailable(f"{PIN_FILE}: {reason(error)}") from None
    try:
        return _pin(tomllib.loads(text))
    except (ValueError, TypeError, KeyError) as error:
        raise drift(f"{PIN_FILE}: {error}") from None


def _pin(raw: dict[str, Any]) -> Pin:
    git = raw.pop("git", None)
    fields = {name: _typed(name, value) for name, value in raw.items()}
    return Pin(**fields, git=GitSource(**git) if git is not None else None)


def _typed(name: str, value: Any) -> Any:  # noqa: ANN401  (any field's type)
    wanted: type = {
        "revision": int,
        "size": int,
        "include": list,
        "exclude": list,
    }.get(name, str)
    if type(value) is not wanted:
        raise TypeError(f"{name} is not a {wanted.__name__}")
    return tuple(value) if isinstance(value, list) else value
