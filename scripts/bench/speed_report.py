"""The tables and the plot of ``speed.py``."""

import statistics
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from vectorless_rag.reporting.plots import Bar, rows

MARK = "<!-- The rest is written by make bench. -->"

_STYLE = (
    "<style>text{font:13px sans-serif;fill:#333}.value,.to{text-anchor:end}"
    ".at{text-anchor:middle}.tick{font-size:11px;fill:#777}"
    ".grid{stroke:#ddd}.base{stroke:#999}.bar{fill:#3b6ea8}</style>"
)

Row = dict[str, Any]


def spread(values: Sequence[float]) -> str:
    """Spell the median, and the least and greatest where there are several."""
    if not values:
        return "-"
    middle = f"{statistics.median(values):.2f}"
    several = len(values) > 1 and min(values) != max(values)
    return f"{middle} ({min(values):.2f}-{max(values):.2f})" if several else middle


def ratios(row: Row, name: str) -> list[float]:
    """Divide ours by theirs, run by run."""
    old, new = row["released"].get(name), row["patched"].get(name)
    if not old or new is None:
        return []
    if isinstance(old, list):
        return [b / a for a, b in zip(old, new, strict=True)]
    return [new / old]


def report(found: dict[str, Any], write: Path | None) -> None:
    """
    Print the tables; or write them into a document, and a plot beside it.

    What was not measured this time stays in the document as it is.
    """
    sections = {
        title: "\n".join([_settings(found, name), *spell(found[name])]).strip()
        for name, (title, spell) in _SECTIONS.items()
        if name in found
    }
    if write is None:
        print(_joined(sections))
        return
    plot = write.with_suffix(".svg")
    if "standard" in found:
        plot.write_text(_plot(found))
    head, _, tail = write.read_text().partition(MARK)
    old = dict(part.split("\n", 1) for part in tail.split("\n## ")[1:])
    both = {title: text.strip() for title, text in old.items()} | sections
    picture = f"![Ours as a share of the released package's]({plot.name})"
    write.write_text(f"{head}{MARK}\n\n{picture}\n{_joined(both)}\n")


def _joined(sections: dict[str, str]) -> str:
    return "\n".join(
        f"\n## {title}\n\n{sections[title]}"
        for title, _ in _SECTIONS.values()
        if title in sections
    )


def _settings(found: dict[str, Any], name: str) -> str:
    """Say how a part was measured, where it is not always the same."""
    if name == "cached":
        return f"{found['latency_s']:g} s a call in the median."
    if name not in {"standard", "flash"}:
        return ""
    runs = f"{found['runs']} runs" if found["runs"] > 1 else "1 run"
    if name == "flash":
        return f"{runs}."
    return (
        f"{runs}, {found['latency_s']:g} s a call, at most {found['concurrency']} "
        "calls of ours in flight; the released side has no bound."
    )


def _both(rows_: Sequence[Row]) -> list[Row]:
    sides = ("released", "patched")
    return [row for row in rows_ if not any("refused" in row[s] for s in sides)]


def _medians(rows_: Sequence[Row], name: str) -> list[float]:
    """Take each document's median: of these the spread is over documents."""
    return [statistics.median(v) for row in _both(rows_) if (v := ratios(row, name))]


def _plot(found: dict[str, Any]) -> str:
    parts = {
        "standard, wall time": ("standard", "walls_s"),
        "standard, calls that wait for another": ("standard", "rounds"),
        "standard, calls": ("standard", "calls"),
        "standard, prompt tokens": ("standard", "prompt_tokens"),
        "flash, wall time": ("flash", "walls_s"),
        "flash, memory": ("flash", "peaks_mb"),
    }
    bars = [
        Bar(label=label, value=round(100 * statistics.median(values)))
        for label, (part, name) in parts.items()
        if (values := _medians(found.get(part, ()), name))
    ]
    drawn = str(rows(bars, lambda value: f"{value} %"))
    opening, rest = drawn.split(">", 1)
    opening = opening.replace('width="100%"', 'width="720"')
    space = ' xmlns="http://www.w3.org/2000/svg"'
    return f"{opening}{space}>{_STYLE}{rest}\n"


def _line(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _head(*names: str) -> Iterator[str]:
    yield ""
    yield _line(*names)
    yield _line(*["---"] * len(names))


def _start(found: dict[str, list[float]]) -> Iterator[str]:
    yield from _head("what", "seconds")
    for name, values in found.items():
        yield _line(name, spread(values))
    # What a document costs, beside the import that it is spared.
    imports = found.get("import of LiteLLM, processor", [])
    for name, values in found.items():
        if name.startswith("a further document") and name.endswith("processor"):
            parts = [one / whole for one, whole in zip(values, imports, strict=True)]
            yield _line(f"{name}, of LiteLLM's import", spread(parts))


def _refused(found: Sequence[Row]) -> Iterator[str]:
    """List the documents that are in no table, with what each side came to."""
    for row in found:
        ends = [row[side].get("refused") for side in ("released", "patched")]
        if any(ends):
            released, ours = (end or "a tree" for end in ends)
            yield f"\nNot compared: {row['name']}: released {released}; ours {ours}."


def _arrow(row: Row, name: str) -> str:
    return f"{row['released'].get(name, '-')} → {row['patched'].get(name, '-')}"


def _standard(found: Sequence[Row]) -> Iterator[str]:
    names = ("walls_s", "rounds", "calls", "prompt_tokens")
    titles = ("wall time", "in turn", "calls", "prompt tokens")
    yield from _head(
        "document", "pages", *titles, "headings' precision", "recall",
        "same tree when all is asked",
    )  # fmt: skip
    for row in _both(found):
        yield _line(
            row["name"], row["patched"]["pages"],
            *(spread(ratios(row, name)) for name in names),
            _arrow(row, "precision"), _arrow(row, "recall"),
            _tree(row),
        )  # fmt: skip
    medians = (spread(_medians(found, name)) for name in names)
    yield _line("**median**", "", *medians, "", "", "")
    yield from _refused(found)


def _tree(row: Row) -> str:
    asked, ours = row["asked"], row["patched"]
    if "refused" in asked:
        return str(asked["refused"])
    if asked["headings"] != ours["headings"]:
        return "no"
    ends = sum(a != b for a, b in zip(asked["ends"], ours["ends"], strict=True))
    return f"{ends} of {len(ours['ends'])} ends differ" if ends else "yes"


def _decided(found: Sequence[Row]) -> Iterator[str]:
    yield from _head("question", "asked", "not asked", "documents", "same tree")
    for question in dict.fromkeys(row["question"] for row in found):
        mine = [row for row in found if row["question"] == question]
        some = [row for row in mine if row["calls"][0]]
        asked = sum(row["calls"][0] for row in some)
        left = sum(row["calls"][1] for row in some)
        trees = [_tree(row) for row in some]
        others = "; ".join(tree for tree in trees if tree != "yes")
        told = f"{trees.count('yes')} of {len(trees)}" + (others and f" ({others})")
        yield _line(f"`{question}`", asked, asked - left, len(some), told)


def _growth(found: Sequence[Row]) -> Iterator[str]:
    yield from _head(
        "pages", "prompt tokens a page", "calls a page", "longest prompt, tokens"
    )
    for row in _both(found):
        pages = row["patched"]["pages"]
        cells = []
        for name in ("prompt_tokens", "calls"):
            pair = (row[side][name] / pages for side in ("released", "patched"))
            digits = 0 if name == "prompt_tokens" else 2
            cells.append(" → ".join(f"{value:.{digits}f}" for value in pair))
        yield _line(pages, *cells, _arrow(row, "longest_prompt"))
    yield from _refused(found)


def _flash(found: Sequence[Row]) -> Iterator[str]:
    names = ("walls_s", "peaks_mb")
    yield from _head("document", "pages", "wall time", "memory", "peak MB")
    for row in _both(found):
        cells = (spread(ratios(row, name)) for name in names)
        yield _line(
            row["name"], row["patched"]["pages"], *cells, _arrow(row, "peak_mb")
        )
    medians = (spread(_medians(found, name)) for name in names)
    yield _line("**median**", "", *medians, "")
    yield from _refused(found)


def _caching(found: Sequence[Row]) -> Iterator[str]:
    rules = list(dict.fromkeys(map(_rule, found)))
    yield from _head("document", "prompt tokens", *rules)
    for name in dict.fromkeys(row["name"] for row in found):
        mine = [row for row in found if row["name"] == name]
        shares = (f"{_share(row):.0%}" for row in mine)
        yield _line(name, mine[0]["prompt_tokens"], *shares)
    by_rule = [[row for row in found if _rule(row) == rule] for rule in rules]
    medians = (statistics.median(map(_share, mine)) for mine in by_rule)
    yield _line("**median**", "", *(f"{share:.0%}" for share in medians))
    kept, asked = (
        [sum(row[name] for row in mine) for mine in by_rule]
        for name in ("cached_tokens", "prompt_tokens")
    )
    shares = (f"{held / max(of, 1):.1%}" for held, of in zip(kept, asked, strict=True))
    yield _line("**all**", max(asked, default=0), *shares)


def _rule(row: Row) -> str:
    return (
        f"cached, from {row['least']:,} tokens in steps of {row['step']}, "
        f"{row['concurrency']} in flight"
    )


def _share(row: Row) -> float:
    return float(row["cached_tokens"] / max(row["prompt_tokens"], 1))


_SECTIONS: dict[str, tuple[str, Callable[[Any], Iterator[str]]]] = {
    "standard": ("Standard", _standard),
    "decided": ("One question at a time", _decided),
    "growth": ("Growth", _growth),
    "cached": ("Prompt caching", _caching),
    "flash": ("Flash", _flash),
    "start": ("Start and reuse", _start),
}
"""The parts of the bench in the order of the document, and how each is spelled."""
