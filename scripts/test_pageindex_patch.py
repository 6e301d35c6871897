#!/usr/bin/env python3
"""
Run the provider-free proofs of the patch series against any checkout.

    scripts/test_pageindex_patch.py CHECKOUT

CHECKOUT holds the folder ``pageindex``. Exit status 0: at least one proof ran
and every one passed.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from vectorless_rag.errors import VectorlessRagError  # noqa: E402
from vectorless_rag.upstream.proofs import run_suite  # noqa: E402


def main() -> int:
    """Read the one argument and run."""
    if len(sys.argv) != 2:  # noqa: PLR2004
        sys.stderr.write(__doc__)
        return 2
    checkout = Path(sys.argv[1])
    if not (checkout / "pageindex" / "__init__.py").is_file():
        sys.stderr.write(f"{checkout} holds no pageindex\n")
        return 2
    try:
        return run_suite(ROOT, checkout)
    except VectorlessRagError as error:
        sys.stderr.write(f"{error.code}: {error}\n")
        return error.failure.exit_status


if __name__ == "__main__":
    sys.exit(main())
