"""Whatever a model says, a document ends in a checked tree or a classified failure."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from random_replies import MOODS

HERE = Path(__file__).parent
CHECKOUT = HERE.parent / "build" / "pageindex"

STRETCHES = (
    "papers/zoo-jss.pdf", "papers/sp-intro.pdf", "papers/jose-00118.pdf",
    "manuals/R-lang.pdf", "manuals/maint-guide.en.pdf", "manuals/erlang-crypto.pdf",
    "manuals/rst2pdf-sphinx-toc-depth.pdf", "legal/us-copyright-office-dmca.pdf",
    "legal/tax-court-memo-2020-26.pdf", "nonlatin/jlreq-ja.pdf",
    "nonlatin/arabic-book.pdf", "tiny/outline-mistitled.pdf",
    "malformed/outline-invalid-dests.pdf",
)  # fmt: skip
"""Documents of the corpus with text on several pages."""

SHORT = (
    "papers/jose-00118.pdf", "manuals/rst2pdf-sphinx-toc-depth.pdf",
    "nonlatin/arabic-book.pdf", "legal/us-copyright-office-dmca.pdf",
    "tiny/outline-mistitled.pdf",
)  # fmt: skip
"""Those whose layout is read in a second or two."""


def made(mode: str, count: int, documents: Sequence[Path]) -> list[dict[str, Any]]:
    """Make the first *count* runs in a process of their own."""
    kept = {k: v for k, v in os.environ.items() if k.startswith(("COVERAGE_", "PATH"))}
    paths = [CHECKOUT, mode, 0, count, *documents]
    done = subprocess.run(
        [sys.executable, str(HERE / "random_runs.py"), *map(str, paths)],
        env={
            **kept,
            "PYTHONPATH": os.pathsep.join([str(HERE.parent / "src"), str(HERE)]),
        },
        capture_output=True,
        timeout=3600,
        check=False,
    )
    assert 0 == done.returncode, done.stderr.decode()[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def check(runs: Sequence[dict[str, Any]], count: int) -> None:
    """Every run ended as it may; each says by its number how to repeat it."""
    assert [] == [run for run in runs if run["wrong"]]
    assert count == len(runs)


def test_random_replies_leave_a_tree_or_a_classified_failure(sample: Path) -> None:
    """Thirty runs over stretches of a real paper, and every mood was there."""
    runs = made("standard", 30, [sample])

    check(runs, 30)
    assert set(MOODS) == {run["mood"] for run in runs}
    assert {"tree"} < {run["ended"] for run in runs}


@pytest.mark.slow
def test_a_thousand_random_runs_of_the_standard_algorithm(corpus: Path) -> None:
    """Over stretches of real documents of every kind."""
    check(made("standard", 1000, [corpus / name for name in STRETCHES]), 1000)


@pytest.mark.slow
def test_random_runs_of_flash(corpus: Path) -> None:
    """The same holds where the layout shows the sections."""
    check(made("flash", 40, [corpus / name for name in SHORT]), 40)
