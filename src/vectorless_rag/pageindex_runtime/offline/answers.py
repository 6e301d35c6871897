"""Answers to the questions about structure, read off the text that was shown."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from vectorless_rag.pageindex_runtime.offline import literals, toc
from vectorless_rag.pageindex_runtime.offline.body import Page, body_of
from vectorless_rag.pageindex_runtime.offline.entries import Entry, page_number
from vectorless_rag.pageindex_runtime.offline.labels import path_of_code, read_labels
from vectorless_rag.pageindex_runtime.offline.locate import (
    Index,
    locate,
    opens,
    stands_in,
    titles_of,
    without_label,
)
from vectorless_rag.pageindex_runtime.offline.outline import outline
from vectorless_rag.pageindex_runtime.offline.pages import pages_in
from vectorless_rag.pageindex_runtime.offline.sections import Before, Heading
from vectorless_rag.pageindex_runtime.offline.text import is_plain, is_rtl, key

Parts: TypeAlias = Mapping[str, str]
"""The data of a prompt, by the names in the table of anchors."""

Answer: TypeAlias = Callable[[Parts], str]


def toc_detector_single_page(parts: Parts) -> str:
    """Say whether a page holds a table of contents or a part of one."""
    return _verdict("toc_detected", yes=toc.scan(parts["text"]).found)


def detect_page_index(parts: Parts) -> str:
    """Say whether most entries of a table of contents have page numbers."""
    entries = toc.scan(parts["text"], colons=True).entries
    paged = sum(1 for entry in entries if entry.page is not None)
    return _verdict("page_index_given_in_toc", yes=paged * 2 > len(entries))


def toc_transformer(parts: Parts) -> str:
    """Spell a table of contents as JSON."""
    return _json({"table_of_contents": toc_rows(parts["text"])})


def toc_rows(text: str) -> list[dict[str, Any]]:
    """
    List the entries of a table of contents.

    Returns:
        For each its title as printed, its page (a number, another label, or none)
        and its place in the hierarchy: from its label where any entry has decimal
        ones, else from indents, else from the order alone. Titles written from right
        to left go without their label, which a PDF puts on either side of them.
    """
    entries = [e for e in toc.scan(text, colons=True).entries if is_plain(e.title)]
    codes = _codes(entries)
    return [
        {
            "structure": code,
            "title": _as_printed(entry.title),
            "page": _printed(entry.page),
        }
        for entry, code in zip(entries, codes, strict=True)
    ]


def _as_printed(title: str) -> str:
    return (without_label(title) or title) if is_rtl(title) else title


def extract_toc_content(parts: Parts) -> str:
    """Write a table of contents out as text, one entry a line."""
    entries = toc.scan(parts["text"]).entries
    lines = [e.title if e.page is None else f"{e.title}: {e.page}" for e in entries]
    return "\n".join(lines)


def toc_transformation_is_complete(parts: Parts) -> str:
    """Say whether every entry of a raw table of contents is in the cleaned one."""
    read = literals.read(parts["toc"])
    kept = _keys_of(read.value) if read.whole else set()
    if not read.whole and not parts["toc"].lstrip().startswith(("{", "[")):
        kept = {key(line.rpartition(":")[0] or line) for line in _lines(parts["toc"])}
    entries = toc.scan(parts["text"], colons=True).entries
    return _verdict("completed", yes=all(titles_of(e.title) & kept for e in entries))


def toc_extraction_is_complete(parts: Parts) -> str:
    """Say whether every section of a document is in a table of contents."""
    listed = key(parts["toc"])
    found = outline(body_of([Page(1, parts["text"])]))
    return _verdict("completed", yes=all(key(h.title) in listed for h in found))


def toc_index_extractor(parts: Parts) -> str:
    """Give the physical page of every entry that stands on the pages shown."""
    entries = _entries(parts)
    index = Index(body_of(pages_in(parts["pages"])))
    places = locate([entry["title"] for entry in entries], index)
    return _json(
        [
            {
                "structure": _plain(entry.get("structure")),
                "title": entry["title"],
                "physical_index": _marker(index.page(at)),
            }
            for entry, at in zip(entries, places, strict=True)
            if at is not None
        ]
    )


def add_page_number_to_toc(parts: Parts) -> str:
    """Give every entry back, with its page if it starts on the pages shown."""
    entries = _entries(parts)
    open_entries = [e for e in entries if _plain(e.get("physical_index")) is None]
    index = Index(body_of(pages_in(parts["pages"])))
    places = locate([entry["title"] for entry in open_entries], index)
    found = {id(e): at for e, at in zip(open_entries, places, strict=True)}
    rows: list[dict[str, Any]] = []
    for entry in entries:
        at = found.get(id(entry))
        known = _plain(entry.get("physical_index"))
        rows.append(
            {
                "structure": _plain(entry.get("structure")),
                "title": entry["title"],
                "start": "no" if at is None else "yes",
                "physical_index": known if at is None else _marker(index.page(at)),
            }
        )
    return _json(rows)


def generate_toc_init(parts: Parts) -> str:
    """List the sections of the pages shown."""
    return _json(_sections(outline(body_of(pages_in(parts["pages"])))))


def generate_toc_continue(parts: Parts) -> str:
    """List the sections of the pages shown that are not in the structure so far."""
    before = _entries(parts)
    titles = [entry["title"] for entry in before]
    codes = [str(entry.get("structure") or "") for entry in before]
    found = outline(
        body_of(pages_in(parts["pages"])), Before(tuple(titles), tuple(codes))
    )
    listed = {
        (name, str(e.get("physical_index")).strip("<>").rpartition("_")[2])
        for e, title in zip(before, titles, strict=True)
        for name in titles_of(title)
    }
    new = [h for h in found if (key(h.title), str(h.page)) not in listed]
    return _json(_sections(new))


def check_title_appearance(parts: Parts) -> str:
    """Say whether a section starts on a page."""
    return _verdict("answer", yes=stands_in(parts["title"], _one_page(parts["text"])))


def check_title_appearance_in_start(parts: Parts) -> str:
    """Say whether a section is the first thing on a page."""
    return _verdict("start_begin", yes=opens(parts["title"], _one_page(parts["text"])))


def single_toc_item_index_fixer(parts: Parts) -> str:
    """Give the page on which a section starts, or none."""
    index = Index(body_of(pages_in(parts["pages"])))
    places = index.places(parts["title"])
    page = _marker(index.page(places[0])) if places else None
    return _json(
        {
            "thinking": "Looked for a line that opens with the title.",
            "physical_index": page,
        }
    )


def expand(parts: Parts) -> str:
    """List the subsections one level below a section."""
    title = parts["title"]
    own = titles_of(title)
    body = body_of(pages_in(parts["pages"]))
    found = [h for h in outline(body, Before((title,))) if not own & titles_of(h.title)]
    below = _below(title, found)
    return _json({"subsections": [{"title": h.title, "page": h.page} for h in below]})


def _below(title: str, found: Sequence[Heading]) -> list[Heading]:
    """Keep what belongs to the section, and of that the highest level."""
    labels = read_labels(title)
    path = labels[0].path if labels and labels[0].family == "decimal" else ()
    own = [
        h for h in found if not path or path_of_code(h.code)[: len(path)] in {path, ()}
    ]
    top = min((h.depth for h in own if h.code), default=1)
    return [h for h in own if h.depth == top or h.code is None]


def _one_page(text: str) -> Index:
    return Index(body_of([Page(1, text)]))


def _sections(found: Sequence[Heading]) -> list[dict[str, Any]]:
    return [
        {"structure": h.code, "title": h.title, "physical_index": _marker(h.page)}
        for h in found
    ]


def _codes(entries: Sequence[Entry]) -> list[str | None]:
    labels = [entry.label for entry in entries]
    decimal = [la for la in labels if la is not None and la.family == "decimal"]
    if decimal:
        return [None if label is None else label.code for label in labels]
    numbers: list[int] = []
    indents: list[int] = []
    codes: list[str | None] = []
    for entry in entries:
        while indents and indents[-1] > entry.indent:
            indents.pop()
            numbers.pop()
        if not indents or indents[-1] < entry.indent:
            indents.append(entry.indent)
            numbers.append(0)
        numbers[-1] += 1
        codes.append(".".join(map(str, numbers)))
    return codes


def _printed(page: str | None) -> int | str | None:
    number = page_number(page)
    return page if number is None else number


def _plain(value: object) -> str | int | None:
    """Give back a code or a page as it was; another kind of value is none."""
    return value if isinstance(value, str | int) else None


def _entries(parts: Parts) -> list[dict[str, Any]]:
    """List the entries of a structure that have a title."""
    return _titled(literals.read(parts["toc"]).value)


def _titled(value: object) -> list[dict[str, Any]]:
    found = literals.records(value)
    return [e for e in found if isinstance(e["title"], str) and e["title"].strip()]


def _keys_of(value: object) -> set[str]:
    return {key(entry["title"]) for entry in _titled(value)}


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _marker(page: int) -> str:
    return f"<physical_index_{page}>"


def _verdict(name: str, *, yes: bool) -> str:
    return _json({"thinking": "Read off the lines of the text.", name: _WORD[yes]})


_WORD = {True: "yes", False: "no"}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


ANSWERS: Mapping[str, Answer] = {
    "toc_detector_single_page": toc_detector_single_page,
    "detect_page_index": detect_page_index,
    "toc_transformer": toc_transformer,
    "extract_toc_content": extract_toc_content,
    "check_if_toc_transformation_is_complete": toc_transformation_is_complete,
    "check_if_toc_extraction_is_complete": toc_extraction_is_complete,
    "toc_index_extractor": toc_index_extractor,
    "add_page_number_to_toc": add_page_number_to_toc,
    "generate_toc_init": generate_toc_init,
    "generate_toc_continue": generate_toc_continue,
    "check_title_appearance": check_title_appearance,
    "check_title_appearance_in_start": check_title_appearance_in_start,
    "single_toc_item_index_fixer": single_toc_item_index_fixer,
    "expand": expand,
}
"""The answer to each question about structure, by operation."""
