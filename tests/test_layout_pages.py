"""Pages are read one by one, by several processes; and whatever fails, all are read."""

import subprocess
import sys
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conftest import REPOSITORY
from vectorless_rag.pageindex_runtime.layout_pages import page_reader_in


class _Document:
    def __init__(self, _source: object) -> None:
        self.closed = False

    def __len__(self) -> int:
        return 5

    def close(self) -> None:
        self.closed = True


def names(**own: Any) -> dict[str, Any]:
    """The upstream's names, with *own* steps; its own reader says so in its answer."""
    upstream: dict[str, Any] = {
        "pdfium": SimpleNamespace(PdfDocument=_Document),
        "_run_page": lambda page: ([f"span {page}"], (page, 0)),
        "parse_charlevel_meta": lambda handle: ([[handle]], ["whole"]),
    }

    def init_worker(_kind: str, payload: object) -> None:
        upstream["_worker_pdf"] = _Document(payload)

    upstream |= {"_init_worker": init_worker, **own}
    return upstream


@pytest.mark.parametrize("handle", [Path("a.pdf"), "a.pdf", BytesIO(b"%PDF-")])
def test_every_page_is_read_in_order(handle: object) -> None:
    """From a path or from memory; the open file is closed and forgotten."""
    upstream = names()
    opened: list[_Document] = []

    def init_worker(_kind: str, payload: object) -> None:
        opened.append(_Document(payload))
        upstream["_worker_pdf"] = opened[-1]

    upstream["_init_worker"] = init_worker
    spans, meta = page_reader_in(upstream)(handle)

    assert [[f"span {n}"] for n in range(5)] == spans
    assert [(n, 0) for n in range(5)] == meta
    assert (True, None) == (opened[0].closed, upstream["_worker_pdf"])


def test_what_fails_leaves_the_document_to_the_upstream() -> None:
    """Its own reader knows fonts whose size depends on other pages."""

    def run_page(_page: int) -> Any:
        raise ValueError

    handle = "a.pdf"

    assert ([[handle]], ["whole"]) == page_reader_in(names(_run_page=run_page))(handle)


def test_an_open_document_is_left_to_the_upstream() -> None:
    """It cannot be opened a second time."""
    handle = object()

    assert ([[handle]], ["whole"]) == page_reader_in(names())(handle)


# Processes are made by forking, which a test process full of threads should not do.
SHARED = """
import os, sys
sys.path[:0] = sys.argv[1:3]
os.sched_getaffinity = lambda _: {0, 1, 2}
from test_layout_pages import names
from vectorless_rag import forks
from vectorless_rag.pageindex_runtime import layout_pages
forks.shared.__kwdefaults__["share"] = 1
me = os.getpid()
def run_page(page):
    if sys.argv[3] == "dies" and os.getpid() != me:
        os._exit(9)
    return [os.getpid()], page
spans, meta = layout_pages.page_reader_in(names(_run_page=run_page))("a", min_pages=2)
print(meta, len({str(s) for s in spans}))
try:
    os.wait()
except ChildProcessError:
    print("nobody left")
"""


@pytest.mark.parametrize(
    ("helpers", "expected"),
    [("live", "[0, 1, 2, 3, 4] 3"), ("dies", "['whole'] 1")],
)
def test_pages_are_shared_between_processes(helpers: str, expected: str) -> None:
    """All of them end; should one die, its pages are not missing."""
    done = subprocess.run(
        [
            sys.executable, "-c", SHARED, str(REPOSITORY / "src"),
            str(REPOSITORY / "tests"), helpers,
        ],
        capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert [expected, "nobody left"] == done.stdout.splitlines()
