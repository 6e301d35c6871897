"""Say in words and in tables what a drift report holds."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from vectorless_rag.canon import Json
from vectorless_rag.upstream.checkout import read_locked
from vectorless_rag.upstream.landing import Text
from vectorless_rag.upstream.proofs import Outcome
from vectorless_rag.upstream.releases import Release, releases_digest
from vectorless_rag.upstream.verdicts import Report, Row, Verdict

_WIDTH = max(len(verdict) for verdict in Verdict)
_TEXTS = max(len(text) for text in Text)


def row_lines(row: Row) -> Iterator[str]:
    """Say what becomes of one patch: a line, then a line a reason."""
    yield (
        f"{row.patch.id}  {row.verdict:<{_WIDTH}}  {row.landing.text:<{_TEXTS}}  "
        f"before {_count(row.without)}, after {_count(row.with_it)}"
    )
    yield from (f"      {reason}" for reason in row.reasons())


def summary(report: Report) -> str:
    """Say in one line what a move to one release would take."""
    return f"{report.release.version}: {_tally(report.rows)}"


def to_json(root: Path, reports: Sequence[Report]) -> dict[str, Json]:
    """Spell some reports as one object."""
    pin, series, _ = read_locked(root)
    return {
        "upstream": pin.name,
        "pin": pin.version,
        "patch_sha256": series.patch_sha256,
        "releases": [report.to_json() for report in reports],
    }


def stamp(root: Path, releases: tuple[Release, ...]) -> str:
    """Name the series and the releases that a matrix is about."""
    _, series, _ = read_locked(root)
    return (
        f"<!-- `make drift-matrix` writes this file; series {series.patch_sha256}, "
        f"releases {releases_digest(releases)} -->"
    )


def matrix(root: Path, reports: Sequence[Report]) -> str:
    """Write the reports of some releases as a page of Markdown."""
    pin, series, _ = read_locked(root)
    versions = [report.release.version for report in reports]
    lines = [
        "# Drift matrix",
        "",
        stamp(root, tuple(report.release for report in reports)),
        "",
        (
            f"What would become of each patch, written for {pin.version}, on other "
            f"releases of {pin.name}. The words are those of "
            "[upgrading.md](upgrading.md#what-the-verdicts-mean)."
        ),
        "",
        _table_row("Patch", versions),
        _table_row("---", ["---"] * len(versions)),
    ]
    for k, patch in enumerate(series.patches):
        name = patch.file.removesuffix(".patch")
        lines.append(_table_row(name, [r.rows[k].verdict for r in reports]))
    lines += ["", "## Why", ""]
    for report in reports:
        lines += [f"**{report.release.version}**: {_tally(report.rows)}.", ""]
        told = [f"- {line}" for line in report.holding()]
        told += [line for row in report.rows for line in _bullets(row)]
        lines += [*told, *([""] if told else [])]
    return "\n".join(lines).rstrip("\n") + "\n"


def _bullets(row: Row) -> Iterator[str]:
    reasons = [f"`{reason}`" for reason in row.reasons()]
    if row.verdict is Verdict.KEEP and not reasons:
        return
    words = [f"text {row.landing.text}", *reasons]
    yield f"- {row.patch.id} {row.verdict}: {'; '.join(words)}"


def _table_row(first: str, rest: Sequence[str]) -> str:
    return f"| {' | '.join([first, *rest])} |"


def _tally(rows: Sequence[Row]) -> str:
    kinds = Counter(row.verdict for row in rows)
    return ", ".join(f"{kinds[kind]} {kind}" for kind in Verdict if kinds[kind])


def _count(outcomes: Sequence[Outcome]) -> str:
    kinds = Counter(str(outcome.verdict) for outcome in outcomes)
    return " ".join(f"{kind} x{count}" for kind, count in sorted(kinds.items())) or "-"
