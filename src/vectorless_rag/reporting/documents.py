"""The documents: a line each, and behind it what is current and its tree."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.reporting import trees
from vectorless_rag.reporting.collecting import read_unaltered
from vectorless_rag.reporting.facts import DocumentFacts, Facts, Unreadable
from vectorless_rag.reporting.markup import Child, Html, cut, h
from vectorless_rag.reporting.spelling import (
    digest,
    facts,
    lasted,
    money,
    plural,
    prose,
    size,
    when,
)
from vectorless_rag.store import Store

INLINE_NODES = 8000
"""
Sections up to which trees are plain markup, which needs no script.

A browser lays out that many in a moment; ten times as many make a phone halt.
"""


_CHANGES = 4
"""Reasons for staleness that a document lists itself."""


class Trees(StrEnum):
    """How a report holds its trees."""

    INLINE = "inline"
    """As markup that is there when the page is."""

    PACKED = "packed"
    """As data that a script unpacks when someone opens a document."""


@dataclass(frozen=True, kw_only=True)
class Shelf:
    """Where trees come from, and how they are to be written."""

    store: Store
    form: Trees

    @classmethod
    def for_facts(cls, facts: Facts, store: Store) -> "Shelf":
        """Choose by the number of sections."""
        few = facts.node_count <= INLINE_NODES
        return cls(store=store, form=Trees.INLINE if few else Trees.PACKED)

    def tree(self, document: DocumentFacts, packing: trees.Packing) -> Html:
        """Write one document's tree; where that cannot be read, why."""
        try:
            nodes = read_unaltered(self.store, document.stored).tree
        except VectorlessRagError as error:
            packing.note([])
            return h("p", error.failure.message, class_="bad")
        inline = self.form is Trees.INLINE
        return (trees.tree if inline else packing.tree)(nodes, document.page_count)


def documents(report: Facts, shelf: Shelf) -> Iterator[Html]:
    """Yield the part about documents piece by piece: it may be long."""
    yield Html('<section id="documents" aria-labelledby="documents-title">')
    yield h("h2", "Documents", id="documents-title")
    if not report.documents and not report.unreadable:
        yield h("p", "No document was ever ingested.", class_="none")
    else:
        yield _filter()
    if shelf.form is Trees.PACKED:
        yield h(
            "noscript",
            h(
                "p",
                prose(
                    "This report is so large that its trees open only with scripts"
                    " enabled; `vectorless-rag show` prints one in a terminal."
                ),
                class_="bad",
            ),
        )
    # The titles of all documents go in the order of the page.
    packing = trees.Packing()
    for lost in report.unreadable:
        packing.note([])
        yield _unreadable(lost)
    for document in report.documents:
        yield _document(document, shelf.tree(document, packing))
    if shelf.form is Trees.PACKED:
        yield packing.titles()
    yield h("p", "No document and no section matches.", id="nothing", hidden=True)
    yield Html("</section>")


def _filter() -> Html:
    # Without scripts it could do nothing, so it stays hidden.
    box = h(
        "input",
        type="search",
        id="filter",
        placeholder="name, title, model, stale, degraded",
        autocomplete="off",
        spellcheck="false",
        aria_describedby="matches",
    )
    label = h("label", "Filter documents and sections", for_="filter")
    said = h("p", id="matches", role="status")
    return h("form", label, box, said, id="filtering", role="search", hidden=True)


def _document(document: DocumentFacts, tree: Html) -> Html:
    name = cut(document.name, trees.LONGEST_TITLE) or "(no name)"
    configuration = document.configuration
    pages = plural(document.page_count, "page")
    head = h(
        "summary",
        h("span", h("bdi", name, class_="name"), _flags(document), class_="what"),
        h(
            "span",
            f"{pages} · {plural(document.node_count, 'section')} · ",
            f"{configuration.model} · ",
            when(document.run.started_at),
            class_="line",
        ),
    )
    return h(
        "details",
        head,
        h(
            "div",
            _details(document),
            h("h3", "Tree"),
            h("div", tree, class_="treebox"),
            class_="inside",
        ),
        class_="doc",
        # What the filter looks at, beside names and titles.
        data_words=" ".join(_words(document)),
    )


def _flags(document: DocumentFacts) -> list[Child]:
    flags: list[Child] = []
    if document.degraded_nodes:
        flags.append(h("span", document.degraded_nodes, " degraded", class_="flag"))
    if document.stale:
        flags.append(h("span", "stale", class_="flag quiet"))
    return flags


def _words(document: DocumentFacts) -> Iterator[str]:
    configuration, stored = document.configuration, document.stored
    yield from (configuration.model, configuration.mode, document.route.value)
    yield from (stored.artifact_id, stored.recipe_hash, stored.document_sha256)
    yield from (code for code, _ in document.degraded)
    if document.degraded:
        yield "degraded"
    if document.stale:
        yield "stale"


def _details(document: DocumentFacts) -> Html:
    stored, run = document.stored, document.run
    usage = run.usage
    pairs: list[tuple[str, Child]] = [
        ("Mode", f"{document.configuration.mode}, tree by {document.route.value}"),
        ("Size", size(document.size_bytes)),
        (
            "Cost",
            [
                f"{money(usage.cost_nano_usd)} for {plural(usage.calls, 'request')},",
                f" {usage.prompt_tokens:,} prompt and {usage.completion_tokens:,}",
                " completion tokens",
            ],
        ),
        ("Built", [when(run.started_at), f", in {lasted(run.wall_ms)}"]),
        ("Current since", when(document.activated_at)),
        ("Artifact", digest(stored.artifact_id)),
        ("Recipe", [digest(stored.recipe_hash), f", generation {stored.generation}"]),
        ("Document", digest(stored.document_sha256)),
    ]
    if document.activations > 1:
        times = f"{plural(document.activations, 'artifact')} so far"
        pairs.append(("Was current", times))
    if document.pages_without_text:
        blank = plural(document.pages_without_text, "page")
        pairs.append(("Without text", blank))
    if document.degraded:
        marks = ", ".join(f"{code} ×{number}" for code, number in document.degraded)
        pairs.append(("Degraded", marks))
    if document.changes is not None:
        pairs.append(("Today", _today(document.changes)))
    return facts(pairs, long="Today")


def _today(changes: Sequence[str]) -> str:
    if not changes:
        return "the current build and settings would make this artifact"
    more = len(changes) - _CHANGES
    named = "; ".join(changes[:_CHANGES])
    return f"{named}; and {more} more, see Staleness" if more > 0 else named


def _unreadable(lost: Unreadable) -> Html:
    head = h(
        "summary",
        h(
            "span",
            h("code", lost.document_sha256[:12], class_="name"),
            h("span", lost.failure.code.value, class_="flag bad"),
            class_="what",
        ),
    )
    return h(
        "details",
        head,
        h("div", h("p", lost.failure.message, class_="bad"), class_="inside"),
        class_="doc",
        data_words=f"{lost.document_sha256} {lost.failure.code.value}",
    )
