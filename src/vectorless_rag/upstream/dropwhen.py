"""
When a patch may go, as a predicate that is evaluated and not only read.

``upstream>=X.Y.Z``, ``proof-passes-on-upstream``, ``upstream-lacks path::name`` (or a
path alone) and ``never [reason]``.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from vectorless_rag.upstream.mailbox import Patch
from vectorless_rag.upstream.places import last_binding, source_sha256

ON_UPSTREAM = "proof-passes-on-upstream"

_GRAMMAR = re.compile(
    r"upstream>=(?P<version>\d+\.\d+\.\d+)"
    rf"|(?P<proof>{ON_UPSTREAM})"
    r"|upstream-lacks (?P<path>[^\s:\[\]]+)(?:::(?P<name>[\w.]+))?"
    r"|never \[(?P<reason>\S.*)\]"
)


@dataclass(frozen=True, kw_only=True)
class DropWhen:
    """The condition under which a patch is to be retired."""

    text: str
    version: tuple[int, ...] | None = None
    path: str | None = None
    name: str | None = None

    @classmethod
    def parse(cls, text: str) -> "DropWhen | None":
        """Read the value of a ``Drop-When`` trailer; None: it is no condition."""
        found = _GRAMMAR.fullmatch(text)
        if found is None:
            return None
        least = found["version"]
        return cls(
            text=text,
            version=version(least) if least else None,
            path=found["path"],
            name=found["name"],
        )

    @property
    def asks_proofs(self) -> bool:
        """Whether only the proofs on the bare upstream can tell."""
        return self.text == ON_UPSTREAM

    def met(self, release: str, tree: Path, *, passes: bool | None) -> bool | None:
        """
        Evaluate the condition on one release.

        Args:
            release: Its version.
            tree: Its bare tree.
            passes: Whether the proofs of the patch pass on that tree; None: that
                could not be told.

        Returns:
            None if that could not be told.
        """
        if self.version is not None:
            return version(release) >= self.version
        if self.path is not None:
            return not stands_in(tree, self.path, self.name)
        return passes if self.asks_proofs else False


def drop_when(patch: Patch) -> DropWhen | None:
    """Return the condition of a patch; the lint names a header that has none."""
    values = patch.values("Drop-When")
    return DropWhen.parse(values[0]) if len(values) == 1 else None


def stands_in(tree: Path, path: str, name: str | None) -> bool:
    """
    Tell whether a file of a tree binds a name, however it does.

    Args:
        tree: Folder that holds the tree.
        path: A file of it.
        name: ``function`` or ``Class.method``; None: ask for the file alone.
    """
    try:
        data = (tree / path).read_bytes()
        return name is None or last_binding(data, name) > 0
    except (OSError, ValueError, SyntaxError):
        return False


def source_of(tree: Path, path: str, name: str) -> str | None:
    """Digest a function of a tree; None: it is not defined there exactly once."""
    try:
        return source_sha256((tree / path).read_bytes(), name)
    except (OSError, ValueError, SyntaxError):
        return None


def version(text: str) -> tuple[int, ...]:
    """Read ``1.2.3`` as numbers, so that 1.10 is later than 1.9."""
    return tuple(int(part) for part in text.split("."))
