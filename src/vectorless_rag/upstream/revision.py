"""
The revision: whatever changes behaviour raises it.

``revision.lock.json`` records the behaviour that the revision in ``upstream.toml``
stands for. It is compared with the tree it lies in, and with the same file of the
commit that the tree is to follow: other behaviour under an old number is refused.
"""

import dataclasses
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from vectorless_rag.units import Sha256
from vectorless_rag.upstream import git
from vectorless_rag.upstream.faults import drift, unavailable
from vectorless_rag.upstream.pin import PIN_FILE, read_pin
from vectorless_rag.upstream.runtime import runtime_digest
from vectorless_rag.upstream.series import read_series

REVISION_FILE = "revision.lock.json"

_PACKAGE = Path("src", "vectorless_rag")
_REVISION = re.compile(r"^revision = \d+$", re.MULTILINE)

# Where the reviewed history is; a clone may have no branch of its own for it.
_TRUNKS = ("origin/main", "main")

_FIX = "run `make revision`"


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """What one revision of one release does, by digests."""

    version: str
    revision: int
    patch_sha256: Sha256
    runtime_sha256: Sha256

    def encode(self) -> bytes:
        """Spell it as its file does."""
        return json.dumps(dataclasses.asdict(self), indent=1).encode() + b"\n"

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """
        Read it back.

        Raises:
            VectorlessRagError: ``upstream_drift``: it is no such record.
        """
        try:
            return cls(**json.loads(data))
        except (ValueError, TypeError):
            raise drift(f"{REVISION_FILE} is no record; {_FIX}") from None

    def same(self, other: Self) -> bool:
        """Whether both behave alike, whatever their numbers."""
        return dataclasses.replace(self, revision=other.revision) == other

    def forgot(self, earlier: Self | None) -> bool:
        """Whether this is other behaviour than *earlier*, under no higher number."""
        return (
            earlier is not None
            and self.version == earlier.version
            and self.revision <= earlier.revision
            and not self.same(earlier)
        )


def behaviour(root: Path) -> Behaviour:
    """
    Digest the behaviour of a source tree.

    Raises:
        VectorlessRagError: ``upstream_unavailable``: *root* is no source tree.
    """
    if not (root / _PACKAGE).is_dir():
        raise unavailable("revisions are kept in a source tree, not in a package")
    pin = read_pin(root)
    return Behaviour(
        version=pin.version,
        revision=pin.revision,
        patch_sha256=read_series(root).patch_sha256,
        runtime_sha256=runtime_digest(root / _PACKAGE),
    )


def check_revision(root: Path) -> list[str]:
    """
    Say what is wrong with the revision of a source tree; nothing: it is right.

    Raises:
        VectorlessRagError: ``upstream_unavailable`` or ``upstream_drift``: pin,
            series or record cannot be read.
    """
    now, found = behaviour(root), []
    path = root / REVISION_FILE
    recorded = Behaviour.decode(path.read_bytes()) if path.exists() else None
    if recorded != now:
        found.append(f"{REVISION_FILE} is not of this tree; {_FIX}")
    earlier = _earlier(root, now)
    if now.forgot(earlier) and earlier is not None:
        found.append(
            f"behaviour differs from the last commit's, and revision is still"
            f" {now.revision} after {earlier.revision}; {_FIX}"
        )
    return found


def write_revision(root: Path) -> Behaviour:
    """
    Raise the revision if behaviour changed since the last commit, and record it.

    The number goes up once however often behaviour changes before the commit.

    Raises:
        VectorlessRagError: as `check_revision`.
    """
    now = behaviour(root)
    earlier = _earlier(root, now)
    if now.forgot(earlier) and earlier is not None:
        pin = root / PIN_FILE
        line = f"revision = {earlier.revision + 1}"
        text, lines = _REVISION.subn(line, pin.read_text(encoding="utf-8"))
        if lines != 1:
            raise drift(f"{PIN_FILE}: {lines} lines say `revision = N`")
        pin.write_text(text, encoding="utf-8")
        now = behaviour(root)
    (root / REVISION_FILE).write_bytes(now.encode())
    return now


def _earlier(root: Path, now: Behaviour) -> Behaviour | None:
    """Read the record of the commit that this tree is to follow; None if unknown."""
    head = _asked(root, "rev-parse", "--verify", "HEAD")
    for trunk in _TRUNKS:
        fork = _asked(root, "merge-base", "HEAD", trunk)
        if fork not in {None, head}:
            return _at(root, fork or "")
    at_head = _at(root, "HEAD")
    # A tree that is HEAD itself follows the commit before it.
    committed = at_head is not None and at_head.same(now)
    return _at(root, "HEAD~1") if committed else at_head


def _at(root: Path, commit: str) -> Behaviour | None:
    text = _asked(root, "show", f"{commit}:./{REVISION_FILE}")
    return Behaviour.decode(text.encode()) if text is not None else None


def _asked(root: Path, *args: str) -> str | None:
    """Ask git; None where it has no answer: no repository, no such name."""
    done = git.attempt(root, *args)
    return done.stdout.decode().strip() if done.status == 0 else None
