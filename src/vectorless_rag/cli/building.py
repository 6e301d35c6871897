"""``vectorless-rag upstream``: fetch, build and verify the patched release."""

import re
import sys
from pathlib import Path

from vectorless_rag import upstream
from vectorless_rag.cli.lines import print_json
from vectorless_rag.cli.printing import console, labelled
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.running import build_folder
from vectorless_rag.settings import Settings
from vectorless_rag.source import printable
from vectorless_rag.upstream import checkout, moving
from vectorless_rag.upstream import fetch as fetching
from vectorless_rag.upstream import why as explaining
from vectorless_rag.upstream.mailbox import Patch

_PLACE = re.compile(r"(.+):([1-9][0-9]{0,8})", re.DOTALL)


def fetch() -> int:
    """Leave the verified release in ``vendor/``."""
    path = fetching.fetch(upstream.resources_root())
    sys.stdout.write(f"fetched {path}\n")
    return 0


def build(settings: Settings, dest: Path | None) -> int:
    """Build the patched release, unless an intact build is there."""
    folder = dest or build_folder(settings)
    record = checkout.build(upstream.resources_root(), folder)
    _print(record, folder)
    return 0


def verify(settings: Settings, dest: Path | None) -> int:
    """Compare a build with its record and with the series."""
    folder = dest or build_folder(settings)
    record = upstream.verify(upstream.resources_root(), folder)
    _print(record, folder)
    return 0


def drift(to: str | None, matrix: str | None, *, as_json: bool) -> int:
    """Print what would become of each patch on another release, or on several."""
    if to is not None and matrix is not None:
        raise VectorlessRagError(Code.SETTINGS_INVALID, "either --to or --matrix")
    root = upstream.resources_root()
    return moving.drift(root, to=to, wanted=matrix, as_json=as_json)


def why(place: str, settings: Settings, *, as_json: bool) -> int:
    """
    Print which patch put a line of the build there; return 0.

    Args:
        place: ``FILE:LINE``; the end of a path will do where it is unique.
        settings: Where the build is.
        as_json: Print one object.
    """
    match = _PLACE.fullmatch(place)
    if match is None:
        raise VectorlessRagError(Code.SETTINGS_INVALID, "a place is FILE:LINE")
    root, folder = upstream.resources_root(), build_folder(settings)
    reason = explaining.why(root, folder, match[1], int(match[2]))
    if as_json:
        print_json(reason.to_json())
    else:
        _show(reason)
    return 0


def _show(reason: explaining.Reason) -> None:
    out = console()
    line = printable(reason.text.strip()) or "(blank)"
    out.print(labelled(f"{reason.file}:{reason.line}", f"  {line}"), soft_wrap=True)
    if reason.patch is not None:
        _show_patch("patch", reason.patch)
    else:
        out.print(labelled("patch", "none: the line is upstream's own"))
    for patch in reason.superseded:
        out.print(labelled("but", f"{reason.place} is bound anew, so it does not run"))
        _show_patch("by", patch)
    for patch in reason.around:
        where = f"in {reason.place}" if reason.place else "near it"
        words = f"{patch.id}  {patch.title}, {where}"
        out.print(labelled("around", words), soft_wrap=True)


def _show_patch(label: str, patch: Patch) -> None:
    out = console()
    out.print(labelled(label, f"{patch.id}  {patch.title}"), soft_wrap=True)
    out.print(labelled("why", explaining.first_paragraph(patch)), soft_wrap=True)
    for proof in patch.proofs:
        out.print(labelled("proof", proof.node), soft_wrap=True)


def _print(record: upstream.BuildRecord, folder: Path) -> None:
    sys.stdout.write(
        f"pageindex {record.pageindex_version} in {folder}\n"
        f"patches   {len(record.patches)}, sha256 {record.patch_sha256}\n"
        f"tree      sha256 {record.tree_sha256}\n"
    )
