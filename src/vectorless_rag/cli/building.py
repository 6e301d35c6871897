"""``vectorless-rag upstream``: fetch, build and verify the patched release."""

import sys
from pathlib import Path

from vectorless_rag import upstream
from vectorless_rag.running import build_folder
from vectorless_rag.settings import Settings


def fetch() -> int:
    """Leave the verified release in ``vendor/``."""
    path = upstream.fetch(upstream.resources_root())
    sys.stdout.write(f"fetched {path}\n")
    return 0


def build(settings: Settings, dest: Path | None) -> int:
    """Build the patched release, unless an intact build is there."""
    folder = dest or build_folder(settings)
    record = upstream.build(upstream.resources_root(), folder)
    _print(record, folder)
    return 0


def verify(settings: Settings, dest: Path | None) -> int:
    """Compare a build with its record and with the series."""
    folder = dest or build_folder(settings)
    record = upstream.verify(upstream.resources_root(), folder)
    _print(record, folder)
    return 0


def _print(record: upstream.BuildRecord, folder: Path) -> None:
    sys.stdout.write(
        f"pageindex {record.pageindex_version} in {folder}\n"
        f"patches   {len(record.patches)}, sha256 {record.patch_sha256}\n"
        f"tree      sha256 {record.tree_sha256}\n"
    )
