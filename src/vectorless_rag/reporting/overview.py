"""The head of the page: the state of things in a sentence, and in figures."""

from collections.abc import Iterator

from vectorless_rag.audit import Verdict
from vectorless_rag.reporting.facts import Facts
from vectorless_rag.reporting.markup import Child, Html, cut, h
from vectorless_rag.reporting.spelling import facts, money, plural, rounded, when

PARTS = (
    ("documents", "Documents"),
    ("spend", "Spend"),
    ("failures", "Failures"),
    ("stale", "Staleness"),
    ("recipes", "Recipes"),
    ("patches", "Patches"),
    ("checks", "Verification"),
)
"""Ids and titles of the parts, in order."""


def header(report: Facts) -> Html:
    """Say how things stand."""
    made = report.made_at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    where = [
        "Vectorless RAG audit of ",
        h("bdi", cut(report.folder, 100)),
        ", ",
        when(made),
    ]
    return h(
        "header",
        h("p", where, class_="kicker"),
        h("h1", *_verdict(report)),
        h("ul", list(_attention(report)), class_="attention"),
        _figures(report),
        class_="top",
    )


def navigation() -> Html:
    """Lead to the parts of the page."""
    links = [h("li", h("a", title, href=f"#{ident}")) for ident, title in PARTS]
    return h("nav", h("ul", links), aria_label="Parts of this report")


def _verdict(report: Facts) -> list[Child]:
    known = len(report.documents) + len(report.unreadable)
    documents = plural(known, "document")
    match report.exit_status:
        case 20:
            return [f"{documents}. ", h("em", "The audit found damage.", class_="bad")]
        case 21:
            words = "The audit could not look at everything."
            return [f"{documents}. ", h("em", words, class_="bad")]
        case _ if not known:
            return ["Nothing has been ingested here yet."]
        case _:
            words = "Every byte is as it was written."
            return [f"{documents}. ", h("em", words, class_="good")]


def _attention(report: Facts) -> Iterator[Html]:
    """Yield what a person should look at, the gravest first."""
    altered = len(report.found(Verdict.MISMATCH))
    if altered:
        yield _point("checks", f"{plural(altered, 'file')} not as written", "bad")
    if report.unreadable:
        lost = plural(len(report.unreadable), "document")
        yield _point("documents", f"{lost} cannot be read", "bad")
    if report.ledger.problems:
        yield _point("checks", "the ledger does not add up", "bad")
    if report.ledger.failure is not None:
        yield _point("checks", "the ledger could not be read", "bad")
    if report.code.failure is not None:
        yield _point("checks", "there is no sound build", "bad")
    if report.left:
        words = f"{plural(len(report.left), 'document')} without an artifact"
        yield _point("failures", words, "warn")
    if report.stale:
        words = f"{plural(len(report.stale), 'artifact')} stale"
        yield _point("stale", words, "warn")


def _point(part: str, words: str, kind: str) -> Html:
    return h("li", h("a", words, href=f"#{part}"), class_=kind)


def _figures(report: Facts) -> Html:
    pages = sum(document.page_count for document in report.documents)
    degraded = sum(document.degraded_nodes for document in report.documents)
    cost = report.ledger.cost
    spent = h("span", rounded(cost), title=money(cost))
    figures: list[tuple[str, Child]] = [
        ("pages", pages),
        ("sections", report.node_count),
        ("degraded", degraded),
        ("requests", report.ledger.calls),
        ("spent", spent),
    ]
    return facts(figures, class_="figures")
