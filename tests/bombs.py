"""PDF files that are hostile in one way each, written byte by byte."""

import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

TEXT = b"BT /F1 12 Tf 40 540 Td (%s) Tj ET"
FONT = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"


def objects(path: Path, bodies: Sequence[bytes], *, root: int = 1) -> Path:
    """Write a PDF of numbered objects, from 1, with a correct table of them."""
    out = bytearray(b"%PDF-1.7\n")
    offsets = []
    for number, body in enumerate(bodies, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(bodies) + 1)
    for offset in offsets:
        out += b"%010d 00000 n \n" % offset
    out += b"trailer\n<</Size %d/Root %d 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (
        len(bodies) + 1, root, start,
    )  # fmt: skip
    path.write_bytes(out)
    return path


def stream(data: bytes, entries: bytes = b"") -> bytes:
    """Spell a stream object."""
    return b"<</Length %d%s>>stream\n%s\nendstream" % (len(data), entries, data)


def document(
    path: Path,
    contents: Sequence[bytes],
    *,
    font: bytes = FONT,
    catalogue: bytes = b"",
    more: Sequence[bytes] = (),
) -> Path:
    """
    Write a PDF with one content stream a page.

    Object 3 is the font, *more* begin at 4, pages and their contents follow.
    """
    first = 4 + len(more)
    kids = b" ".join(b"%d 0 R" % (first + 2 * n) for n in range(len(contents)))
    bodies = [
        b"<</Type/Catalog/Pages 2 0 R%s>>" % catalogue,
        b"<</Type/Pages/Count %d/Kids[%s]>>" % (len(contents), kids),
        font,
        *more,
    ]
    for number, content in enumerate(contents):
        bodies += [
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 420 595]/Contents %d 0 R"
            b"/Resources<</Font<</F1 3 0 R>>>>>>" % (first + 2 * number + 1),
            content,
        ]
    return objects(path, bodies)


def pages(*texts: str) -> list[bytes]:
    """Spell one content stream a text."""
    return [stream(TEXT % text.encode("ascii")) for text in texts]


def inflating_stream(path: Path, *, size: int = 1 << 27) -> Path:
    """A page whose content grows to *size* bytes from about a thousandth of it."""
    packer = zlib.compressobj(9)
    block = b" " * (1 << 20)
    packed = b"".join(packer.compress(block) for _ in range(size >> 20))
    packed += packer.flush()
    return document(
        path, [*pages("One"), stream(packed, b"/Filter/FlateDecode"), *pages("Three")]
    )


def stacked_filters(path: Path) -> Path:
    """A page packed many times over: each layer is small until it is unpacked."""
    data = bytes(1 << 26)
    for _ in range(4):
        data = zlib.compress(data, 9)
    filters = b"/Filter[" + b"/FlateDecode" * 4 + b"]"
    return document(path, [*pages("One", "Two"), stream(data, filters)])


def deep_array(path: Path, *, depth: int = 200_000) -> Path:
    """A font dictionary nested deeper than any stack."""
    font = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/X "
    return document(
        path, pages("One", "Two"), font=font + b"[" * depth + b"]" * depth + b">>"
    )


def deep_page_tree(path: Path, *, depth: int = 5_000) -> Path:
    """Pages below a long chain of page tree nodes."""
    nodes = [
        b"<</Type/Pages/Count 1/Kids[%d 0 R]>>" % (number + 1)
        for number in range(2, 2 + depth)
    ]
    page = b"<</Type/Page/MediaBox[0 0 420 595]>>"
    return objects(path, [b"<</Type/Catalog/Pages 2 0 R>>", *nodes, page])


def cyclic_page_tree(path: Path) -> Path:
    """A page tree node that is its own child."""
    return objects(
        path,
        [
            b"<</Type/Catalog/Pages 2 0 R>>",
            b"<</Type/Pages/Count 3/Kids[2 0 R 3 0 R 2 0 R]>>",
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 420 595]>>",
        ],
    )


def cyclic_outline(path: Path) -> Path:
    """Outline items that lead back to themselves, by Next and by First."""
    items = [
        b"<</Type/Outlines/First 5 0 R/Last 6 0 R/Count 2>>",
        b"<</Title(One)/Parent 4 0 R/Next 6 0 R/First 5 0 R/Last 6 0 R/Count 2>>",
        b"<</Title(Two)/Parent 4 0 R/Prev 5 0 R/Next 5 0 R>>",
    ]
    return document(
        path, pages("One", "Two", "Three"), catalogue=b"/Outlines 4 0 R", more=items
    )


def deep_outline(path: Path, *, depth: int = 20_000) -> Path:
    """An outline of one item a level."""
    items = [
        b"<</Title(%d)/Parent %d 0 R/First %d 0 R/Last %d 0 R/Count 1>>"
        % (number, number - 1, number + 1, number + 1)
        for number in range(5, 5 + depth)
    ]
    top = b"<</Type/Outlines/First 5 0 R/Last 5 0 R/Count 1>>"
    last = b"<</Title(end)/Parent %d 0 R>>" % (4 + depth)
    more = [top, *items, last]
    return document(path, pages("One", "Two"), catalogue=b"/Outlines 4 0 R", more=more)


def many_pages(path: Path, *, count: int = 100_000) -> Path:
    """A small file of very many pages: all are one object."""
    kids = b"3 0 R " * count
    return objects(
        path,
        [
            b"<</Type/Catalog/Pages 2 0 R>>",
            b"<</Type/Pages/Count %d/Kids[%s]>>" % (count, kids),
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 420 595]>>",
        ],
    )


def lying_count(path: Path) -> Path:
    """A page tree that says it has two thousand million pages."""
    kid = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 420 595]>>"
    tree = b"<</Type/Pages/Count 2000000000/Kids[3 0 R 3 0 R]>>"
    return objects(path, [b"<</Type/Catalog/Pages 2 0 R>>", tree, kid])


def broken_font(path: Path) -> Path:
    """A font whose tables are of the wrong types and whose map is nonsense."""
    font = (
        b"<</Type/Font/Subtype/Type0/BaseFont/X/Encoding 7/ToUnicode 4 0 R"
        b"/FirstChar -5/LastChar 99999999999/Widths(no)/DescendantFonts[9 0 R 3 0 R]>>"
    )
    cmap = stream(
        b"begincmap 1 beginbfrange <00> <FFFFFFFFFFFF> <0041> endbfrange"
        b" 1 beginbfchar <zz> <> endbfchar 99999 begincodespacerange"
    )
    return document(path, pages("One", "Two", "Three"), font=font, more=[cmap])


def wide_font_map(path: Path) -> Path:
    """A character map with a range of four thousand million codes."""
    font = (
        b"<</Type/Font/Subtype/Type0/BaseFont/X/Encoding/Identity-H/ToUnicode 4 0 R"
        b"/DescendantFonts[<</Type/Font/Subtype/CIDFontType2/BaseFont/X"
        b"/CIDSystemInfo<</Registry(A)/Ordering(I)/Supplement 0>>>>]>>"
    )
    cmap = stream(
        b"begincmap 1 begincodespacerange <00000000> <FFFFFFFF> endcodespacerange "
        b"1 beginbfrange <00000000> <FFFFFFF0> <0041> endbfrange endcmap"
    )
    return document(path, pages("One", "Two", "Three"), font=font, more=[cmap])


def self_drawing_form(path: Path) -> Path:
    """A page that draws a form that draws itself."""
    form = stream(
        b"/X1 Do (loop) Tj",
        b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]"
        b"/Resources<</XObject<</X1 4 0 R>>/Font<</F1 3 0 R>>>>",
    )
    bodies = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count 2/Kids[5 0 R 5 0 R]>>",
        FONT,
        form,
        (
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 420 595]/Contents 6 0 R"
            b"/Resources<</XObject<</X1 4 0 R>>/Font<</F1 3 0 R>>>>>>"
        ),
        stream(b"/X1 Do " + TEXT % b"Text"),
    ]
    return objects(path, bodies)


def reference_to_itself(path: Path) -> Path:
    """A length that is the stream it belongs to."""
    bodies = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count 2/Kids[3 0 R 3 0 R]>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 420 595]/Contents 4 0 R>>",
        b"<</Length 4 0 R>>stream\nBT (x) Tj ET\nendstream",
    ]
    return objects(path, bodies)


BOMBS: tuple[Callable[[Path], Path], ...] = (
    inflating_stream, stacked_filters, deep_array, deep_page_tree, cyclic_page_tree,
    cyclic_outline, deep_outline, many_pages, lying_count, broken_font, wide_font_map,
    self_drawing_form, reference_to_itself,
)  # fmt: skip
