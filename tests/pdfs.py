"""Tiny PDF files, made where a test needs one, with one property each."""

import io
from collections.abc import Sequence
from pathlib import Path

from pypdf import PdfReader, PdfWriter
from reportlab.lib.pagesizes import A5
from reportlab.pdfgen.canvas import Canvas


def pdf(path: Path, pages: Sequence[str]) -> Path:
    """Write a PDF with one text a page; an empty text leaves a page blank."""
    path.write_bytes(pdf_bytes(pages))
    return path


def pdf_bytes(pages: Sequence[str]) -> bytes:
    """Return a PDF with one text a page, the same bytes each time."""
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=A5, invariant=True)
    for text in pages:
        for number, line in enumerate(text.splitlines()):
            canvas.drawString(40, 540 - 14 * number, line)
        canvas.showPage()
    canvas.save()
    return out.getvalue()


def encrypted(path: Path, *, user: str) -> Path:
    """Write a one-page PDF, AES-256, with *user* as the password to open it."""
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf_bytes(["Hello world"]))))
    writer.encrypt(user_password=user, owner_password="owner", algorithm="AES-256")  # noqa: S106
    writer.write(path)
    return path


def without_pages(path: Path) -> Path:
    """Write a valid PDF that has no page."""
    writer = PdfWriter()
    writer.write(path)
    return path
