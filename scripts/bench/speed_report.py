"""The tables of ``speed.py``."""

import json
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

MARK = "<!-- The rest is written by make bench. -->"


def spread(values: Sequence[float]) -> str:
    """Minimum, median and maximum."""
    if not values:
        return "-"
    low, high = min(values), max(values)
    return f"{statistics.median(values):.2f} ({low:.2f}-{high:.2f})"


def ratios(row: dict[str, Any], name: str) -> list[float]:
    """Divide ours by theirs, run by run."""
    old, new = row["released"].get(name), row["patched"].get(name)
    if not old or not new:
        return []
    if isinstance(old, list):
        return [b / a for a, b in zip(old, new, strict=True)]
    return [new / old]


def report(found: dict[str, Any], write: Path | None) -> None:
    """Print the tables, or write them into a document."""
    text = "\n".join(_tables(found))
    if write is None:
        print(text)
        return
    head = write.read_text().partition(MARK)[0]
    write.write_text(f"{head}{MARK}\n\n{text}\n")


def _line(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _head(*names: str) -> Iterator[str]:
    yield _line(*names)
    yield _line(*["---"] * len(names))


def _tables(found: dict[str, Any]) -> Iterator[str]:
    for name in ("standard", "growth", "flash"):
        if name not in found:
            continue
        yield f"\n## {name}\n"
        yield from _head("document", "pages", "wall", "calls", "prompt tokens", "peak MB", "precision", "recall", "cached")
        rows = [r for r in found[name] if not any("refused" in r[s] for s in ("released", "patched"))]
        for row in rows:
            old, new = row["released"], row["patched"]
            walls = ratios(row, "walls_s") or ratios(row, "wall_s")
            yield _line(
                row["name"], new["pages"], spread(walls),
                f"{ratios(row, 'calls')[0]:.2f}" if ratios(row, "calls") else "-",
                f"{ratios(row, 'prompt_tokens')[0]:.2f}" if ratios(row, "prompt_tokens") else "-",
                spread(ratios(row, "peaks_mb") or ratios(row, "peak_mb")),
                *(f"{old.get(k, '-')} → {new.get(k, '-')}" for k in ("precision", "recall")),
                f"{old['cached_tokens'] / max(old['prompt_tokens'], 1):.2f} → {new['cached_tokens'] / max(new['prompt_tokens'], 1):.2f}",
            )
        medians = [statistics.median(v) for r in rows if (v := ratios(r, "walls_s") or ratios(r, "wall_s"))]
        yield _line("median", "", spread(medians),
            spread([v for r in rows for v in ratios(r, "calls")]),
            spread([v for r in rows for v in ratios(r, "prompt_tokens")]), "", "", "", "")
    if "start" in found:
        yield "\n## start\n"
        yield from _head("what", "seconds")
        for name, values in found["start"].items():
            yield _line(name, spread(values))
    _ = json
