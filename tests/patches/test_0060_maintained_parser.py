"""PDF files are read with pypdf, by both algorithms."""

import ast
import io
from pathlib import Path
from typing import Any

import pypdf
import pytest

from patches.scripted import MODEL, outcome
from patches.tree_under_test import flash, local_api, utils
from pdfs import encrypted, pdf

TEXTS = ["1 Alpha\nFirst words.", "2 Beta\nMore words."]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Page counts of the files that a reader of pypdf opened."""
    found: list[int] = []

    class Recorded(pypdf.PdfReader):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            found.append(len(self.pages))

    monkeypatch.setattr(pypdf, "PdfReader", Recorded)
    return found


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.partition(".")[0])
    return names


def test_nothing_imports_the_unmaintained_parser() -> None:
    """No module of the tree, on any path, needs PyPDF2 to be installed."""
    root = Path(utils.__file__).parent

    found = {
        str(p.relative_to(root)) for p in root.rglob("*.py") if "PyPDF2" in imported(p)
    }

    assert set() == found


@pytest.mark.parametrize("kind", ["path", "bytes"])
def test_flash_opens_the_file_with_pypdf(
    kind: str, opened: list[int], tmp_path: Path
) -> None:
    """The open that swallows every failure really opens the file."""
    path = pdf(tmp_path / "a.pdf", TEXTS)
    handle = str(path) if kind == "path" else io.BytesIO(path.read_bytes())

    result = flash.page_index_flash(handle, summary=False, optimize=False)

    assert [2] == opened
    assert 2 == len(result["structure"])


@pytest.mark.parametrize("kind", ["path", "bytes"])
def test_a_worker_of_flash_opens_the_file_with_pypdf(
    kind: str, opened: list[int], tmp_path: Path
) -> None:
    """So does the open inside each worker process."""
    from pageindex.flash import parser_pdfium_parallel as parallel

    path = pdf(tmp_path / "a.pdf", TEXTS)

    parallel._init_worker(kind, str(path) if kind == "path" else path.read_bytes())

    assert ([2], True) == (opened, parallel._worker_pdf_doc is not None)


def read_every_way(path: Path) -> list[Any]:
    return [
        outcome(
            lambda: [
                text.strip()
                for text in local_api.LocalAPI._extract_page_texts(str(path))
            ]
        ),
        outcome(
            lambda: [t.strip() for t, _ in utils.get_page_tokens(str(path), MODEL)]
        ),
    ]


def test_an_empty_password_is_no_obstacle(tmp_path: Path) -> None:
    """A file that only restricts what may be done with it is read."""
    path = encrypted(tmp_path / "a.pdf", user="")

    assert [["Hello world"]] * 2 == read_every_way(path)


class NoText:
    """A reader of two pages, the second of which has no text to extract."""

    def __init__(self, *_: Any) -> None:
        self.pages = [self, self.Blank()]
        self.metadata = None

    class Blank:
        def extract_text(self) -> None:
            return None

    def extract_text(self) -> str:
        return "Hello"


def test_a_page_without_text_is_an_empty_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """None never stands where a text is counted, joined or stored."""
    monkeypatch.setattr(utils.PyPDF2, "PdfReader", NoText)

    found = [
        outcome(lambda: [text for text, _ in utils.get_page_tokens("a.pdf", MODEL)]),
        outcome(lambda: utils.extract_text_from_pdf("a.pdf")),
        outcome(lambda: utils.get_text_of_pages("a.pdf", 2, 2)),
        outcome(lambda: utils.get_text_of_pages("a.pdf", 1, 2, tag=False)),
    ]

    tagged = "<start_index_2>\n\n<end_index_2>\n"
    assert [["Hello", ""], "Hello", tagged, "Hello"] == found
