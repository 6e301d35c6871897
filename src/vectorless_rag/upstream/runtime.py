"""The digest of our own code that shapes artifacts."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.units import Sha256

# Outside the runtime folder, but they start the run and read the pages. What the
# child imports beside them carries messages, prices and ledger rows, no content.
# What the parent does to a tree afterwards is part of the schema version.
COMPANIONS = ("run_pageindex.py", "source.py")


def runtime_digest(package: Path) -> Sha256:
    """
    Digest the behaviour that the patches wire in.

    Args:
        package: Folder of ``vectorless_rag``.

    Returns:
        A digest over the path and the bytes of every file under
        ``pageindex_runtime`` and of `COMPANIONS`. Bytecode and hidden files do
        not count.

    Raises:
        VectorlessRagError: ``internal_error``, if this installation lacks a file.
    """
    lines = []
    for name in sorted(_runtime_files(package)):
        try:
            body = hashlib.sha256((package / name).read_bytes()).hexdigest()
        except OSError:
            raise VectorlessRagError(Code.INTERNAL_ERROR, f"no {name}") from None
        lines.append(f"{body} {len(name.encode())}:{name}\n")
    return Sha256(hashlib.sha256(("runtime/1\0" + "".join(lines)).encode()).hexdigest())


def _runtime_files(package: Path) -> Iterator[str]:
    yield from COMPANIONS
    for path in (package / "pageindex_runtime").rglob("*"):
        place = path.relative_to(package)
        hidden = any(p == "__pycache__" or p.startswith(".") for p in place.parts)
        if path.is_file() and not hidden and path.suffix != ".pyc":
            yield place.as_posix()
