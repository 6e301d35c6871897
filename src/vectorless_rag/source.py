"""
The PDF file: which bytes it is, and the text of its pages.

The parent only takes a file's identity and a private copy. Parsing untrusted
bytes happens in the child. This is the one module that may import ``pypdf``
or ``pypdfium2``.
"""

import contextlib
import errno
import hashlib
import logging
import os
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.files import opened, unreadable
from vectorless_rag.forks import shared_or_alone
from vectorless_rag.units import Sha256
from vectorless_rag.wire import Parser

if TYPE_CHECKING:
    from pypdf import PdfReader

_CHUNK_BYTES = 1 << 20

# Readers look for the header in the first kilobyte.
_HEADER_WINDOW_BYTES = 1024


@dataclass(frozen=True, kw_only=True)
class Source:
    """One PDF file, by its bytes."""

    path: Path
    """Where it was found."""

    sha256: Sha256
    size_bytes: int

    roots: tuple[Path, ...] = ()
    """Folders that it must be in, without links; empty: anywhere."""

    @property
    def name(self) -> str:
        """The file's name; bytes that are not UTF-8 show as replacement marks."""
        return printable(self.path.name)


@dataclass(frozen=True, kw_only=True)
class Pages:
    """The text layer of a document."""

    texts: tuple[str, ...]
    """One text a page, in order; empty where a page has none."""

    unreadable: int
    """Pages whose text the parser could not decode; they count as empty."""

    parser: Parser


def printable(text: str) -> str:
    """Replace what cannot be shown or stored: escaped bytes and line breaks."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


# What turns the direction of text round, and could make it read otherwise.
_BIDI = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)


def displayable(text: str) -> str:
    """Replace what a terminal would obey rather than show; line breaks stay."""
    return "".join(
        "\N{REPLACEMENT CHARACTER}"
        if c in _BIDI or (unicodedata.category(c) in {"Cc", "Cs"} and c not in "\n\t")
        else c
        for c in text
    )


def identify(path: Path, *, max_bytes: int, roots: Sequence[Path] = ()) -> Source:
    """
    Digest the file at *path*.

    Args:
        path: The PDF; a link is followed, unless there are *roots*.
        max_bytes: Largest file.
        roots: Folders that it must be in, without links below them.

    Raises:
        VectorlessRagError: ``source_unreadable``: missing, no file, not to be
            read, or no PDF. ``source_too_large``: more than *max_bytes*.
            ``source_forbidden``: outside *roots*, or reached by a link.
    """
    return _take(path, None, max_bytes=max_bytes, roots=tuple(roots))


def copy(source: Source, target: Path) -> None:
    """
    Make the private copy at *target* that the child reads.

    Raises:
        VectorlessRagError: ``source_changed``: the bytes are no longer those of
            *source*. ``source_unreadable``: the file is gone.
            ``store_unwritable``: *target* cannot be written.
    """
    again = _take(source.path, target, max_bytes=source.size_bytes, roots=source.roots)
    if again.sha256 != source.sha256:
        raise VectorlessRagError(Code.SOURCE_CHANGED, source.name)


def check_unchanged(source: Source) -> None:
    """
    Compare the file with what it was.

    Raises:
        VectorlessRagError: ``source_changed``.
    """
    again = None
    with contextlib.suppress(VectorlessRagError):
        again = identify(source.path, max_bytes=source.size_bytes, roots=source.roots)
    if again != source:
        raise VectorlessRagError(Code.SOURCE_CHANGED, source.name)


def _take(
    path: Path, target: Path | None, *, max_bytes: int, roots: tuple[Path, ...]
) -> Source:
    name = printable(path.name)
    seen = hashlib.sha256()
    size = 0
    head = b""
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(opened(path, name, roots))
        sink = stack.enter_context(_sink(target)) if target is not None else None
        while data := _read(file, name):
            size += len(data)
            if size > max_bytes:
                code = Code.SOURCE_CHANGED if target else Code.SOURCE_TOO_LARGE
                raise VectorlessRagError(code, f"{name}: over {max_bytes} bytes")
            if len(head) < _HEADER_WINDOW_BYTES:
                head += data[:_HEADER_WINDOW_BYTES]
            seen.update(data)
            if sink is not None:
                _write(sink, data)
    if size == 0:
        raise VectorlessRagError(Code.SOURCE_UNREADABLE, f"{name}: empty file")
    if b"%PDF-" not in head:
        raise VectorlessRagError(Code.SOURCE_UNREADABLE, f"{name}: not a PDF")
    digest = Sha256(seen.hexdigest())
    return Source(path=path, sha256=digest, size_bytes=size, roots=roots)


def _read(fd: int, name: str) -> bytes:
    try:
        return os.read(fd, _CHUNK_BYTES)
    except OSError as error:
        raise unreadable(name, error) from None


@contextlib.contextmanager
def _sink(target: Path) -> Iterator[int]:
    try:
        fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _unwritable(error) from None
    try:
        yield fd
    finally:
        os.close(fd)


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(fd, view) :]
    except OSError as error:
        raise _unwritable(error) from None


def _unwritable(error: OSError) -> VectorlessRagError:
    why = errno.errorcode.get(error.errno or 0, "error")
    return VectorlessRagError(Code.STORE_UNWRITABLE, f"working copy: {why}")


def pypdf_identity() -> Parser:
    """Name what reads the pages of documents."""
    return Parser(name="pypdf", version=version("pypdf"))


def pdfium_identity() -> Parser:
    """Name what reads single-page documents and the layout."""
    return Parser(name="pypdfium2", version=version("pypdfium2"))


def read_pages(path: Path, *, max_pages: int) -> Pages:
    """
    Extract the text of every page.

    Args:
        path: A PDF; encrypted ones must open with the empty password.
        max_pages: Longest document.

    Raises:
        VectorlessRagError: ``source_unreadable``, ``source_encrypted`` or
            ``source_too_large``.
    """
    reader = _reader(path)
    try:
        count = len(reader.pages)
    except (MemoryError, VectorlessRagError):
        raise
    except Exception as error:  # noqa: BLE001  (a parser on hostile bytes)
        raise _broken(error) from None
    if count == 0:
        raise VectorlessRagError(Code.SOURCE_UNREADABLE, "the PDF has no pages")
    if count > max_pages:
        raise VectorlessRagError(Code.SOURCE_TOO_LARGE, f"{count} pages")
    texts = shared_or_alone(lambda some: [_page_text(reader, n) for n in some], count)
    return Pages(
        texts=tuple(text or "" for text in texts),
        unreadable=sum(text is None for text in texts),
        parser=pypdf_identity(),
    )


def _reader(path: Path) -> "PdfReader":
    # Its warnings hold font dictionaries, which are document content.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL + 1)
    from pypdf import PasswordType, PdfReader  # noqa: PLC0415  (child only)

    try:
        reader = PdfReader(path)
        locked = (
            reader.is_encrypted and reader.decrypt("") == PasswordType.NOT_DECRYPTED
        )
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  (a parser on hostile bytes)
        raise _broken(error) from None
    if locked:
        raise VectorlessRagError(Code.SOURCE_ENCRYPTED)
    return reader


# NUL and halves of surrogate pairs are no text: databases and UTF-8 refuse them.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def storable(text: str) -> str:
    """Replace what UTF-8 and databases refuse by replacement marks."""
    return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def _page_text(reader: "PdfReader", index: int) -> str | None:
    try:
        return storable(reader.pages[index].extract_text() or "")
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001  (one bad font must not lose the document)
        return None


def _broken(error: Exception) -> VectorlessRagError:
    # The class only: a parser's message may quote the file.
    return VectorlessRagError(
        Code.SOURCE_UNREADABLE, f"pypdf raised {type(error).__name__}"
    )


def opens_in_pdfium(path: Path) -> bool:
    """Tell whether the layout parser can open the file at all."""
    import pypdfium2  # noqa: PLC0415  (child only)

    closing, refused = contextlib.closing, contextlib.suppress(pypdfium2.PdfiumError)
    with refused, closing(pypdfium2.PdfDocument(path)) as document:
        return len(document) > 0
    return False


@contextlib.contextmanager
def refusals_of_pdfium() -> Iterator[None]:
    """Raise ``source_unreadable`` for what PDFium refuses, be it only a page."""
    import pypdfium2  # noqa: PLC0415  (child only)

    try:
        yield
    except pypdfium2.PdfiumError:
        raise VectorlessRagError(Code.SOURCE_UNREADABLE, "PDFium refused it") from None


def read_single_page(path: Path) -> str:
    """
    Extract the text of the first page with PDFium.

    Raises:
        VectorlessRagError: ``source_unreadable``.
    """
    import pypdfium2  # noqa: PLC0415  (child only)

    with (
        refusals_of_pdfium(),
        contextlib.closing(pypdfium2.PdfDocument(path)) as document,
    ):
        page = document[0]
        text_page = page.get_textpage()
        text = text_page.get_text_bounded()
        text_page.close()
        page.close()
    return storable(str(text).replace("\r\n", "\n"))
