"""Read a unified diff as git writes it with full ids and no renames."""

import re
from dataclasses import dataclass

ABSENT = "0" * 40
"""The id git writes where there is no file."""

_GIT = re.compile(r"diff --git a/(\S+) b/(\S+)")
_INDEX = re.compile(r"index ([0-9a-f]{40})\.\.([0-9a-f]{40})(?: (\d{6}))?")
_MODE = re.compile(r"(new file|deleted file) mode (\d{6})")
_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@.*")
_NO_NEWLINE = b"\\ No newline at end of file\n"


@dataclass(frozen=True, kw_only=True)
class Run:
    """One block of removed and added lines, with nothing between them."""

    old_start: int
    """Line the first removed line has in the old file, from 1."""

    old: tuple[bytes, ...]
    """Removed lines with their line ends."""

    new_start: int
    """Line the first added line has in the new file, from 1."""

    new: tuple[bytes, ...]
    """Added lines with their line ends."""


@dataclass(frozen=True, kw_only=True)
class FileChange:
    """What a patch does to one file."""

    path: str

    before: str
    """Id of the file before; 40 zeros: there is none."""

    after: str
    """Id of the file after; 40 zeros: it is deleted."""

    mode: str
    """Mode after, or before where it is deleted."""

    runs: tuple[Run, ...]

    @property
    def added_lines(self) -> frozenset[int]:
        """Numbers of the lines in the new file that this patch wrote."""
        return frozenset(
            run.new_start + k for run in self.runs for k in range(len(run.new))
        )


def parse_diff(diff: bytes) -> tuple[FileChange, ...]:
    """
    Read *diff*.

    Raises:
        ValueError: It is not what the export writes: an abbreviated id, a
            rename, a binary patch, a mode change, a quoted name, text after
            the last hunk such as a mailer's signature.
    """
    pieces = re.split(rb"^(?=diff --git )", diff, flags=re.MULTILINE)
    changes = tuple(_file(piece) for piece in pieces if piece)
    paths = [change.path for change in changes]
    if len(set(paths)) != len(paths):
        raise ValueError("it changes one file twice")
    return changes


def _file(piece: bytes) -> FileChange:
    lines = piece.splitlines(keepends=True)
    cut = next((k for k, line in enumerate(lines) if line.startswith(b"@@")), None)
    if cut is None:
        cut = len(lines)
    head = [line.decode("utf-8").removesuffix("\n") for line in lines[:cut]]
    named = _GIT.fullmatch(head[0])
    if named is None or named[1] != named[2]:
        raise ValueError(f"{head[0]!r} is a rename or a quoted name")
    before, after, mode = _ids(named[1], head[1:])
    return FileChange(
        path=named[1], before=before, after=after, mode=mode, runs=_runs(lines[cut:])
    )


def _ids(path: str, head: list[str]) -> tuple[str, str, str]:
    mode = ""
    ids = ("", "")
    for line in head:
        if found := _MODE.fullmatch(line):
            mode = found[2]
        elif found := _INDEX.fullmatch(line):
            ids = (found[1], found[2])
            mode = found[3] or mode
        elif line not in {f"--- a/{path}", f"+++ b/{path}"} and not line.endswith(
            " /dev/null"
        ):
            raise ValueError(f"{path}: {line[:60]!r} is not expected")
    if not ids[0] or not mode:
        raise ValueError(f"{path}: no index line with two whole ids and a mode")
    return *ids, mode


def _runs(lines: list[bytes]) -> tuple[Run, ...]:
    runs: list[Run] = []
    rest = lines
    while rest:
        found = _HUNK.fullmatch(rest[0].removesuffix(b"\n"))
        if found is None:
            raise ValueError(f"{rest[0][:60]!r} stands after the last hunk")
        old, old_count, new, new_count = (
            int(number) if number is not None else 1 for number in found.groups()
        )
        # An empty side is numbered by the line before it.
        start = (old + (old_count == 0), new + (new_count == 0))
        body, rest = _body(rest[1:], old_count, new_count)
        runs += _blocks(body, *start)
    return tuple(runs)


def _body(
    lines: list[bytes], old: int, new: int
) -> tuple[list[tuple[bytes, bytes]], list[bytes]]:
    body: list[tuple[bytes, bytes]] = []
    used = 0
    for line in lines:
        if line == _NO_NEWLINE and body:
            sign, text = body[-1]
            body[-1] = (sign, text.removesuffix(b"\n"))
        elif old == new == 0:
            break
        elif (sign := line[:1]) in {b" ", b"-", b"+"}:
            body.append((sign, line[1:]))
            old -= sign != b"+"
            new -= sign != b"-"
        else:
            break
        used += 1
    if old or new:
        raise ValueError("a hunk has not as many lines as its head says")
    return body, lines[used:]


def _blocks(body: list[tuple[bytes, bytes]], old: int, new: int) -> list[Run]:
    blocks: list[Run] = []
    removed: list[bytes] = []
    added: list[bytes] = []
    for sign, text in [*body, (b" ", b"")]:
        if sign == b"-":
            removed.append(text)
        elif sign == b"+":
            added.append(text)
        else:
            if removed or added:
                blocks.append(
                    Run(
                        old_start=old,
                        old=tuple(removed),
                        new_start=new,
                        new=tuple(added),
                    )
                )
            old, new = old + len(removed) + 1, new + len(added) + 1
            removed, added = [], []
    return blocks
