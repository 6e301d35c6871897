#!/usr/bin/env python3
"""
Print the image's OCI labels, as options of ``docker build``, one a line.

    docker build $(scripts/image_labels.py | xargs) .
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

import vectorless_rag  # noqa: E402
from vectorless_rag.upstream import read_pin, runtime_digest  # noqa: E402
from vectorless_rag.upstream.series import read_series  # noqa: E402


def main() -> int:
    """Print ``--label`` and its value, one option a line."""
    pin, series = read_pin(ROOT), read_series(ROOT)
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"],  # noqa: S607  (whichever git is here)
        cwd=ROOT, capture_output=True, text=True, check=False,
    ).stdout.strip()  # fmt: skip
    labels = {
        "org.opencontainers.image.title": "vectorless-rag",
        "org.opencontainers.image.licenses": "MIT",
        "org.opencontainers.image.version": vectorless_rag.__version__,
        "org.opencontainers.image.revision": commit or "unknown",
        "vectorless-rag.upstream": f"{pin.name}=={pin.version}",
        "vectorless-rag.pageindex-version": pin.pageindex_version,
        "vectorless-rag.patch-sha256": series.patch_sha256,
        "vectorless-rag.runtime-sha256": runtime_digest(ROOT / "src/vectorless_rag"),
    }
    for name, value in labels.items():
        sys.stdout.write(f"--label\n{name}={value}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
