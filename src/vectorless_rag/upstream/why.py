"""Which patch put a line of the patched tree there, why, and what proves it."""

from dataclasses import dataclass
from pathlib import Path

from vectorless_rag.canon import Json
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.upstream.checkout import read_locked
from vectorless_rag.upstream.mailbox import Patch
from vectorless_rag.upstream.places import definition_around
from vectorless_rag.upstream.series import Series
from vectorless_rag.upstream.verifying import verify

_NEAR = 3
"""Lines on either side that count as around, outside of any definition."""


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Where one line of the patched tree comes from."""

    file: str
    line: int

    text: str
    """The line, without its line end; bytes that are no UTF-8 are replaced."""

    place: str | None
    """The outermost function or class around it."""

    patch: Patch | None
    """The patch that wrote the line; None: the line is upstream's own."""

    superseded: tuple[Patch, ...]
    """Patches that bind the name of `place` anew: a line of upstream's does not run."""

    around: tuple[Patch, ...]
    """Other patches that changed or removed lines in the same place."""

    def to_json(self) -> dict[str, Json]:
        """Spell the reason."""
        return {
            "file": self.file,
            "line": self.line,
            "text": self.text,
            "place": self.place,
            "patch": _spelled(self.patch) if self.patch is not None else None,
            "superseded": [_spelled(patch) for patch in self.superseded],
            "around": [_spelled(patch) for patch in self.around],
        }


def why(root: Path, folder: Path, file: str, line: int) -> Reason:
    """
    Find the patch that a line of a build comes from.

    Args:
        root: Folder that holds ``upstream.toml`` and ``patches/``.
        folder: The build, which is verified first.
        file: Path of a file of the build, or the end of one that is unique.
        line: Number of the line, from 1.

    Raises:
        VectorlessRagError: ``settings_invalid``: no such file or line;
            otherwise as `upstream.verify`.
    """
    record = verify(root, folder)
    _, series, _ = read_locked(root)
    path = _find(file, folder, [entry.path for entry in record.files])
    data = (folder / path).read_bytes()
    # As git counts them: a carriage return ends no line.
    lines = data.removesuffix(b"\n").split(b"\n")
    if not 1 <= line <= len(lines):
        raise _unknown(f"{path} has lines 1 to {len(lines)}")
    place = definition_around(data, line) if path.endswith(".py") else None
    first, last = (line - _NEAR, line + _NEAR) if place is None else place[1:]
    cells = trace(series, path, len(lines))
    writer = cells[line - 1].writer
    near: set[str] = set()
    for cell in cells[max(first, 1) - 1 : last]:
        near |= cell.touched | ({cell.writer.id} if cell.writer else set())
    superseded = () if writer or not place else _superseding(series, path, place[0])
    told = {writer, *superseded}
    return Reason(
        file=path,
        line=line,
        text=lines[line - 1].decode("utf-8", "replace"),
        place=place[0] if place else None,
        patch=writer,
        superseded=superseded,
        around=tuple(p for p in series.patches if p.id in near and p not in told),
    )


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What happened to one line of the patched tree."""

    writer: Patch | None = None

    touched: frozenset[str] = frozenset()
    """Ids of patches that removed lines just before it."""


def trace(series: Series, path: str, count: int) -> list[Cell]:
    """
    Replay what a series does to the lines of one file.

    Args:
        series: The patches, in order.
        path: The file.
        count: How many lines it has in the end.

    Returns:
        A cell for each line of the patched file.
    """
    changes = [(p, c) for p in series.patches for c in p.changes if c.path == path]
    grown = sum(len(r.new) - len(r.old) for _, c in changes for r in c.runs)
    cells = [Cell()] * (count - grown)
    for patch, change in changes:
        # From the bottom, so that the numbers above stay true.
        for run in reversed(change.runs):
            start = run.old_start - 1
            end = start + len(run.old)
            cells[start:end] = [Cell(writer=patch)] * len(run.new)
            if run.old and not run.new and start < len(cells):
                below = cells[start]
                cells[start] = Cell(
                    writer=below.writer, touched=below.touched | {patch.id}
                )
    return cells


def _superseding(series: Series, path: str, name: str) -> tuple[Patch, ...]:
    return tuple(
        patch
        for patch in series.patches
        if any((r.path, r.qualname) == (path, name) for r in patch.replaces)
    )


def _find(file: str, folder: Path, paths: list[str]) -> str:
    name = file
    if Path(file).is_absolute():
        whole = Path(file).resolve()
        if whole.is_relative_to(folder.resolve()):
            name = whole.relative_to(folder.resolve()).as_posix()
    if name in paths:
        return name
    ends = [path for path in paths if path.endswith(f"/{name}")]
    if len(ends) != 1:
        raise _unknown(f"{len(ends)} files of the build go by {name}")
    return ends[0]


def _spelled(patch: Patch) -> dict[str, Json]:
    return {
        "id": patch.id,
        "file": patch.file,
        "title": patch.title,
        "why": first_paragraph(patch),
        "proofs": [proof.node for proof in patch.proofs],
    }


def first_paragraph(patch: Patch) -> str:
    """Return what breaks without a patch, as one line."""
    return " ".join(patch.prose.strip().partition("\n\n")[0].split())


def _unknown(detail: str) -> VectorlessRagError:
    return VectorlessRagError(Code.SETTINGS_INVALID, detail)
