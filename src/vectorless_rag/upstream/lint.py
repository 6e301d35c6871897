"""What is wrong with a series, found without a network and without applying it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from vectorless_rag.upstream.dropwhen import DropWhen, drop_when, version
from vectorless_rag.upstream.mailbox import Patch
from vectorless_rag.upstream.pin import Pin
from vectorless_rag.upstream.series import Series

_PROOFS = "tests/patches/"
_WHY = "Why not without a patch:"
_MOST_ADDED = 40

_URL = r"https?://\S+"
_VALUES = {
    "Origin": rf"upstream|vendor|other|(upstream|backport|vendor|other) "
    rf"({_URL}|commit:[0-9a-f]{{7,40}})",
    "Bug": rf"{_URL}|none",
    "Upstream-Status": rf"Pending \[\S.*\]|Submitted \[{_URL}\]|Backport \[\S+\]"
    rf"|Denied \[{_URL}\]|Inactive-Upstream \[lastcommit: \S+\]"
    r"|Inappropriate \[\S.*\]",
    "Proof": r"\S+::\S+( \[\w+\])?",
    "Replaces": r"\S+::[\w.]+ sha256:[0-9a-f]{64}",
    "Proof-Exempt": r"run \d+ \[\S.*\]",
    "Depends-On": r"\d{4}",
    "CVE": r"CVE-\d{4}-\d{4,}",
}
_KNOWN = {*_VALUES, "Drop-When"}
_ONCE = ("Origin", "Bug", "Upstream-Status", "Drop-When")


def lint(root: Path, pin: Pin, series: Series) -> tuple[str, ...]:
    """
    List what is wrong with the patches of a series, each with its patch.

    Args:
        root: Folder that holds ``tests/patches/``.
        pin: The release the series is for.
        series: The patches.
    """
    found: list[str] = []
    known: set[str] = set()
    for patch in series.patches:
        found += (f"{patch.file}: {what}" for what in _lint(root, pin, patch, known))
        known.add(patch.id)
    return tuple(found)


def questions(series: Series) -> tuple[str, ...]:
    """List what a reviewer should ask about; no check fails on these."""
    return tuple(
        f"{patch.file}: {added} added lines; should this live in pageindex_runtime?"
        for patch in series.patches
        if (added := sum(len(r.new) for c in patch.changes for r in c.runs))
        > _MOST_ADDED
    )


def _lint(root: Path, pin: Pin, patch: Patch, known: set[str]) -> Iterator[str]:
    yield from _trailers(patch)
    if not patch.prose.strip() or _WHY not in patch.prose:
        yield f"no paragraph begins with {_WHY!r}"
    for change in patch.changes:
        if not _inside(change.path, pin):
            yield f"{change.path} is not a path of the upstream"
    when = drop_when(patch)
    if when is not None and when.version and version(pin.version) >= when.version:
        yield f"retire it: the pin is at {pin.version}, Drop-When is {when.text}"
    for value in patch.values("Depends-On"):
        if value not in known:
            yield f"depends on {value}, which no earlier patch is"
    yield from _proofs(root, patch)


def _trailers(patch: Patch) -> Iterator[str]:
    for name in (*_ONCE, "Proof"):
        values = patch.values(name)
        if not values or (name in _ONCE and len(values) > 1):
            yield f"{len(values)} {name} trailers"
    for name, value in patch.trailers:
        if name not in _KNOWN:
            yield f"unknown trailer {name}"
        elif not _allowed(name, value):
            yield f"{name}: {value!r} is not allowed"


def _allowed(name: str, value: str) -> bool:
    if name == "Drop-When":
        return DropWhen.parse(value) is not None
    return re.fullmatch(_VALUES[name], value) is not None


def _inside(path: str, pin: Pin) -> bool:
    def under(tops: tuple[str, ...]) -> bool:
        return any(path == top or path.startswith(f"{top}/") for top in tops)

    return ".." not in path.split("/") and under(pin.include) and not under(pin.exclude)


def _proofs(root: Path, patch: Patch) -> Iterator[str]:
    for value in patch.values("Proof"):
        node = value.partition(" ")[0]
        path, _, name = node.partition("::")
        if not path.startswith(f"{_PROOFS}test_{patch.id}_") or ".." in path:
            yield f"proof {node} is not in {_PROOFS}test_{patch.id}_*.py"
        elif not _is_test(root / path, name.partition("[")[0].split("::")):
            yield f"proof {node} does not exist"


def _is_test(path: Path, names: list[str]) -> bool:
    try:
        scope = ast.parse(path.read_bytes()).body
    except (OSError, SyntaxError):
        return False
    for name in names:
        node = next(
            (
                n
                for n in scope
                if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
                and n.name == name
            ),
            None,
        )
        if node is None:
            return False
        scope = node.body
    return True
