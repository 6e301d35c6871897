"""A file is its bytes; what can't be read says why in one line."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from pypdf import PageObject

from pdfs import encrypted, pdf, without_pages
from strategies import page_texts
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.source import (
    Pages,
    Source,
    check_unchanged,
    copy,
    displayable,
    identify,
    opens_in_pdfium,
    pdfium_identity,
    printable,
    pypdf_identity,
    read_pages,
    read_single_page,
    storable,
)
from vectorless_rag.units import Sha256

LIMIT = 10**6


def code_of(error: pytest.ExceptionInfo[VectorlessRagError]) -> Code:
    return error.value.code


def stripped(pages: Pages) -> list[str]:
    return [text.strip() for text in pages.texts]


def test_a_source_is_named_by_its_bytes(tmp_path: Path) -> None:
    """The same bytes under two names have one digest."""
    one = pdf(tmp_path / "one.pdf", ["Hello"])
    two = Path(shutil.copy(one, tmp_path / "two.pdf"))

    a, b = identify(one, max_bytes=LIMIT), identify(two, max_bytes=LIMIT)

    assert (a.sha256, a.size_bytes) == (b.sha256, one.stat().st_size)


def test_a_link_is_followed(tmp_path: Path) -> None:
    """A symbolic link to a PDF is that PDF."""
    real = pdf(tmp_path / "real.pdf", ["Hello"])
    link = tmp_path / "link.pdf"
    link.symlink_to(real)

    assert (
        identify(real, max_bytes=LIMIT).sha256 == identify(link, max_bytes=LIMIT).sha256
    )


def _missing(folder: Path) -> Path:
    return folder / "missing.pdf"


def _folder(folder: Path) -> Path:
    return folder


def _pipe(folder: Path) -> Path:
    os.mkfifo(folder / "pipe.pdf")
    return folder / "pipe.pdf"


def _empty(folder: Path) -> Path:
    (folder / "empty.pdf").touch()
    return folder / "empty.pdf"


def _text(folder: Path) -> Path:
    (folder / "text.pdf").write_text("just text", encoding="ascii")
    return folder / "text.pdf"


def _nul(_folder: Path) -> Path:
    return Path("a\0b.pdf")


def _loop(folder: Path) -> Path:
    (folder / "loop.pdf").symlink_to(folder / "loop.pdf")
    return folder / "loop.pdf"


@pytest.mark.parametrize(
    ("make", "why"),
    [
        pytest.param(_missing, "missing.pdf: no such file", id="missing"),
        pytest.param(_folder, "a folder", id="folder"),
        pytest.param(_pipe, "pipe.pdf: no file but a pipe", id="pipe"),
        pytest.param(_empty, "empty.pdf: empty file", id="empty"),
        pytest.param(_text, "text.pdf: not a PDF", id="text"),
        pytest.param(_nul, "not a file name", id="nul"),
        pytest.param(_loop, "too many levels", id="loop"),
    ],
)
def test_what_is_no_pdf_is_refused(
    tmp_path: Path, make: Callable[[Path], Path], why: str
) -> None:
    """Each kind of bad input has its reason."""
    with pytest.raises(VectorlessRagError, match=why) as error:
        identify(make(tmp_path), max_bytes=LIMIT)

    assert Code.SOURCE_UNREADABLE == code_of(error)


def test_a_file_over_the_limit_is_refused_before_it_is_read_whole(
    tmp_path: Path,
) -> None:
    """The limit holds for the bytes read."""
    with pytest.raises(VectorlessRagError, match="over 100 bytes") as error:
        identify(pdf(tmp_path / "a.pdf", ["Hello"]), max_bytes=100)

    assert Code.SOURCE_TOO_LARGE == code_of(error)


def test_the_copy_is_the_source(tmp_path: Path) -> None:
    """The child reads the bytes that were hashed."""
    source = identify(pdf(tmp_path / "a.pdf", ["Hello"]), max_bytes=LIMIT)
    copy(source, tmp_path / "copy.pdf")

    assert source.path.read_bytes() == (tmp_path / "copy.pdf").read_bytes()


@pytest.mark.parametrize("pages", [["Other"], ["Longer", "than before"]])
def test_a_copy_of_changed_bytes_is_refused(tmp_path: Path, pages: list[str]) -> None:
    """A file edited after it was hashed does not run under the old name."""
    source = identify(pdf(tmp_path / "a.pdf", ["Hello"]), max_bytes=LIMIT)
    pdf(source.path, pages)

    with pytest.raises(VectorlessRagError, match=r"a\.pdf") as error:
        copy(source, tmp_path / "copy.pdf")

    assert Code.SOURCE_CHANGED == code_of(error)


def test_a_copy_that_can_not_be_written_says_so(tmp_path: Path) -> None:
    """A full or read-only folder is not the document's fault."""
    source = identify(pdf(tmp_path / "a.pdf", ["Hello"]), max_bytes=LIMIT)

    with pytest.raises(VectorlessRagError, match="ENOENT") as error:
        copy(source, tmp_path / "gone" / "copy.pdf")

    assert Code.STORE_UNWRITABLE == code_of(error)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_full_disk_under_the_copy_is_classified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Writing fails half-way: the working copy, not the source, is named."""
    source = identify(pdf(tmp_path / "a.pdf", ["Hello"]), max_bytes=LIMIT)

    def fail(_fd: int, _data: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "write", fail)
    with pytest.raises(VectorlessRagError, match=errno.errorcode[number]):
        copy(source, tmp_path / "copy.pdf")


def test_a_disk_error_while_reading_is_the_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that opens and then fails to read is unreadable."""
    path = pdf(tmp_path / "a.pdf", ["Hello"])

    def fail(_fd: int, _size: int) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "read", fail)
    with pytest.raises(VectorlessRagError, match=r"a\.pdf: input/output error"):
        identify(path, max_bytes=LIMIT)


def test_an_unchanged_source_passes(tmp_path: Path) -> None:
    """Nothing happens when the bytes are still the same."""
    check_unchanged(identify(pdf(tmp_path / "a.pdf", ["Hello"]), max_bytes=LIMIT))


@pytest.mark.parametrize("pages", [["Jello"], []])
def test_a_changed_or_vanished_source_is_noticed(
    tmp_path: Path, pages: list[str]
) -> None:
    """The second look compares the bytes, not the time stamp."""
    source = identify(pdf(tmp_path / "a.pdf", ["Hello"]), max_bytes=LIMIT)
    source.path.unlink()
    if pages:
        pdf(source.path, pages)

    with pytest.raises(VectorlessRagError, match="changed while"):
        check_unchanged(source)


def test_pages_come_in_order_and_a_blank_page_is_an_empty_text(tmp_path: Path) -> None:
    """No page is lost, and none is None."""
    pages = read_pages(pdf(tmp_path / "a.pdf", ["One", "", "Three"]), max_pages=9)

    assert (["One", "", "Three"], 0) == (stripped(pages), pages.unreadable)


def test_the_parser_is_named_with_its_version() -> None:
    """Both identities say what is installed."""
    assert ("pypdf", "pypdfium2") == (pypdf_identity().name, pdfium_identity().name)


def test_an_empty_password_opens(tmp_path: Path) -> None:
    """A PDF that only restricts printing is read."""
    pages = read_pages(encrypted(tmp_path / "a.pdf", user=""), max_pages=9)

    assert "Hello world" == pages.texts[0].strip()


def test_a_password_is_asked_for(tmp_path: Path) -> None:
    """A PDF that needs a password is refused as such."""
    with pytest.raises(VectorlessRagError, match="needs a password"):
        read_pages(encrypted(tmp_path / "a.pdf", user="secret"), max_pages=9)


def test_a_document_without_pages_is_refused(tmp_path: Path) -> None:
    """A valid PDF may have none."""
    with pytest.raises(VectorlessRagError, match="has no pages"):
        read_pages(without_pages(tmp_path / "a.pdf"), max_pages=9)


def test_a_document_with_too_many_pages_is_refused(tmp_path: Path) -> None:
    """The number of pages is bounded before any is read."""
    with pytest.raises(VectorlessRagError, match="3 pages") as error:
        read_pages(pdf(tmp_path / "a.pdf", ["x"] * 3), max_pages=2)

    assert Code.SOURCE_TOO_LARGE == code_of(error)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"%PDF-1.7\n", id="header-only"),
        pytest.param(b"%PDF-1.7\nstartxref\n99999\n%%EOF", id="bad-xref"),
        pytest.param(
            b"%PDF-1.7\n1 0 obj<</Type/Catalog/Pages 1 0 R>>endobj\n"
            b"trailer<</Root 1 0 R>>\nstartxref\n0\n%%EOF",
            id="pages-are-the-catalogue",
        ),
    ],
)
def test_broken_bytes_are_unreadable_and_nothing_worse(
    tmp_path: Path, data: bytes
) -> None:
    """Whatever the parser raises, the failure is classified."""
    (tmp_path / "a.pdf").write_bytes(data)

    with pytest.raises(VectorlessRagError, match="no readable PDF") as error:
        read_pages(tmp_path / "a.pdf", max_pages=9)

    assert Code.SOURCE_UNREADABLE == code_of(error)


def test_one_bad_page_does_not_lose_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that the parser chokes on counts as empty, and is counted."""
    extract = PageObject.extract_text

    def choke(page: PageObject) -> str:
        text = extract(page)
        if text.strip() == "Two":
            raise RecursionError
        return text

    monkeypatch.setattr(PageObject, "extract_text", choke)
    pages = read_pages(pdf(tmp_path / "a.pdf", ["One", "Two", "Three"]), max_pages=9)

    assert (["One", "", "Three"], 1) == (stripped(pages), pages.unreadable)


def test_pdfium_reads_the_first_page(tmp_path: Path) -> None:
    """The shortcut's text is that of page 1."""
    path = pdf(tmp_path / "a.pdf", ["Line one\nLine two", "Other"])

    assert ("Line one\nLine two", True) == (
        read_single_page(path).strip(),
        opens_in_pdfium(path),
    )


def test_what_pdfium_refuses_is_unreadable(tmp_path: Path) -> None:
    """A file only pypdf can repair has no layout to read."""
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.7\n")

    with pytest.raises(VectorlessRagError, match="PDFium refused it"):
        read_single_page(tmp_path / "a.pdf")
    assert not opens_in_pdfium(tmp_path / "a.pdf")


def test_a_hostile_name_is_shown_on_one_line() -> None:
    """Line breaks, escape codes and bytes that are not UTF-8 do not get through."""
    name = os.fsdecode(b"a\nb\x1b[31m\xff.pdf")
    source = Source(path=Path(name), sha256=Sha256("0" * 64), size_bytes=1)

    assert "a\ufffdb\ufffd[31m\ufffd.pdf" == source.name


@given(page_texts)
def test_a_stored_text_is_utf8_without_nul(text: str) -> None:
    """What leaves the parser can be encoded and kept, character for character."""
    kept = storable(text)

    assert (len(text), -1) == (len(kept.encode().decode()), kept.find("\0"))


def test_a_terminal_is_shown_text_and_no_commands() -> None:
    """Escape sequences, C1 controls and turned directions do not get through."""
    assert "a\n\tb\ufffd[31m\ufffd\ufffd" == displayable("a\n\tb\x1b[31m\x9b\u202e")


@given(page_texts)
def test_a_printable_name_is_one_line(text: str) -> None:
    """Whatever a name holds, it prints on one line."""
    assert len(printable(text).splitlines()) <= 1
