"""The layout is read page by page, and by several processes."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfWriter

from conftest import REPOSITORY
from patches.tree_under_test import layout

SAMPLE = REPOSITORY / "tests" / "samples" / "sp-intro.pdf"


def test_a_page_is_finished_before_the_next_is_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What its characters were is not kept until the whole document is read."""
    steps: list[str] = []
    for module in (layout, layout.parse_charlevel_meta):
        names = vars(module) if module is layout else module.__globals__
        for name in ("_page_pass1", "_page_pass2"):
            real = names[name]

            def noted(*args: Any, _real: Any = real, _name: str = name) -> Any:
                steps.append(_name)
                return _real(*args)

            monkeypatch.setitem(names, name, noted)

    layout.parse_charlevel_meta_parallel(SAMPLE, workers=1)

    assert ["_page_pass1", "_page_pass2"] * 21 == steps


# Processes are made by forking, which a test process full of threads should not do.
TWO_PROCESSORS = """
import os, sys
os.sched_getaffinity = lambda _: {0, 1}
os.cpu_count = lambda: 2
from patches.tree_under_test import layout
real = layout._run_page
layout._run_page = lambda page: ([os.getpid()], real(page)[1])
pages, meta = layout.parse_charlevel_meta_parallel(sys.argv[1], min_pages=8)
print(len(pages), len(meta), len({str(spans) for spans in pages}))
"""


def test_pages_are_shared_between_two_processes(tmp_path: Path) -> None:
    """On two processors, from so many pages on."""
    twice = tmp_path / "twice.pdf"
    with PdfWriter() as writer:
        writer.append(SAMPLE)
        writer.append(SAMPLE)
        writer.write(twice)

    done = subprocess.run(
        [sys.executable, "-c", TWO_PROCESSORS, str(twice)],
        env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=True,
    )

    assert ["42", "42", "2"] == done.stdout.split()
