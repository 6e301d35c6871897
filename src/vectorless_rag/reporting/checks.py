"""What went wrong and what an audit found, each with what to do."""

from collections.abc import Iterator, Sequence

from vectorless_rag.audit import Finding, Verdict
from vectorless_rag.errors import FAILURES, Code
from vectorless_rag.reporting.facts import Facts, FailureFacts, LedgerFacts
from vectorless_rag.reporting.markup import Child, Html, cut, h
from vectorless_rag.reporting.spelling import (
    digest,
    folded,
    plural,
    prose,
    section,
    table,
    when,
    when_us,
)
from vectorless_rag.runs import Ended

_LISTED = 500
"""Lines of one list; the rest is counted."""

_LONGEST = 1000

_VERDICTS = {
    Verdict.MISMATCH: ("Not what was written", "bad"),
    Verdict.UNDECIDED: ("Could not be looked at", "bad"),
    Verdict.NOTE: ("Notes: leftovers of crashes, and what is not ours", "note"),
}


def failures(report: Facts) -> Html:
    """List failures by code, with what each means and what to do."""
    return section("failures", "Failures", *_failures(report))


def _failures(report: Facts) -> Iterator[Html]:
    if not report.failures:
        yield h("p", "No attempt, no request and no section failed.", class_="good")
        return
    yield h("ul", [_failure(failure) for failure in report.failures], class_="failures")
    if report.left:
        title = f"{plural(len(report.left), 'document')} without an artifact"
        yield folded(title, _left(report.left))


def _failure(failure: FailureFacts) -> Html:
    counts = [
        plural(failure.documents, "document") if failure.documents else None,
        plural(failure.attempts, "attempt") if failure.attempts else None,
        plural(failure.requests, "request") if failure.requests else None,
        plural(failure.marks, "section mark") if failure.marks else None,
    ]
    line: list[Child] = [" · ".join(filter(None, counts))]
    if failure.last_us is not None:
        line += [" · last ", when_us(failure.last_us)]
    return h(
        "li",
        h("p", h("code", failure.code), h("span", line, class_="line"), class_="head"),
        _retried() if failure.only_requests else _advice(failure.code),
    )


def _retried() -> Html:
    words = "Asking again helped: no attempt ended with it, no section is marked."
    return h("p", words)


def _advice(code: str) -> Html:
    if code not in Code.__members__.values():
        words = "A mark of the tree builder: this part of a section fell back."
        return h("p", words)
    kind = FAILURES[Code(code)]
    return h("p", kind.meaning, " ", h("b", prose(kind.advice)), class_="advice")


def _left(left: Sequence[Ended]) -> list[Html]:
    lines = [
        (
            h("bdi", cut(ended.path.name, _LONGEST)),
            h("code", ended.code or "has not ended"),
            when(ended.at),
        )
        for ended in left[:_LISTED]
    ]
    caption = "Documents without an artifact"
    return [
        table(("document", "ended with", "when"), lines, caption=caption),
        h("p", prose("`vectorless-rag failures retry` ingests them again.")),
        *_more(len(left)),
    ]


def verification(report: Facts) -> Html:
    """List what the audit of store, ledger and build found."""
    return section(
        "checks",
        "Verification",
        h("h3", "Store"),
        *_store(report),
        h("h3", "Ledger"),
        *_ledger(report.ledger),
        h("h3", "Build"),
        _build(report),
    )


def _store(report: Facts) -> Iterator[Html]:
    if not report.found(Verdict.MISMATCH) and not report.found(Verdict.UNDECIDED):
        words = "Every file was read, and every byte is the one that was written."
        yield h("p", words, class_="good")
    for verdict, (title, kind) in _VERDICTS.items():
        if found := report.found(verdict):
            yield h("p", h("b", f"{title}: {len(found):,}"), class_=kind)
            yield _findings(title, found)


def _findings(title: str, found: Sequence[Finding]) -> Html:
    lines = [
        (h("code", cut(finding.file, _LONGEST)), cut(finding.what, _LONGEST))
        for finding in found[:_LISTED]
    ]
    whole = table(("file", "what"), lines, caption=title)
    return h("div", whole, *_more(len(found)))


def _ledger(ledger: LedgerFacts) -> Iterator[Html]:
    if ledger.failure is not None:
        yield h("p", prose(ledger.failure.message), class_="bad")
    elif not ledger.present:
        yield h("p", "There is no ledger yet.", class_="none")
    elif ledger.problems:
        lines = [h("li", cut(problem, _LONGEST)) for problem in ledger.problems]
        yield h("p", h("b", "It does not add up."), class_="bad")
        yield h("ul", lines[:_LISTED])
        yield from _more(len(lines))
    else:
        words = "Every hold is closed or leased, and all sums agree."
        yield h("p", words, class_="good")
    if running := ledger.count(None):
        words = f"{plural(running, 'attempt')} not ended: at work, or killed."
        advice = "`vectorless-rag ledger reconcile` settles what the dead left."
        yield h("p", words, " ", prose(advice), class_="note")


def _build(report: Facts) -> Html:
    code = report.code
    if code.failure is not None or code.configuration is None:
        return h("p", prose(code.failure.message if code.failure else ""), class_="bad")
    options = code.configuration
    return h(
        "p",
        f"pageindex {options.pageindex_version} with"
        f" {plural(len(code.patches), 'patch', 'patches')}: every file is the one that"
        " was built. Patched tree ",
        digest(options.tree_sha256),
        ", series ",
        digest(options.patch_sha256),
        ", runtime ",
        digest(options.runtime_sha256),
        ".",
        class_="good",
    )


def _more(number: int) -> list[Html]:
    rest = number - _LISTED
    return [h("p", f"and {rest:,} more")] if rest > 0 else []
