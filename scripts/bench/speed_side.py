"""
One side of ``speed.py``: index one document several times, print what it took.

    speed_side.py SIDE TREE standard|flash PDF RUNS LATENCY_S CONCURRENCY QUESTIONS

The first run fills a memory of answers and is not timed, so that the others wait for
the simulated provider alone, and not for the making of its answers. With 0 runs there
is the first one only, and it is timed.
The last argument names the questions that are not asked where the text answers them.
"""

import json
import logging
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from scripts.compare_child import covered, every, patched, released, reply

from patches.parser_stand_in import take_the_name
from patches.scripted import MODEL, Asked, Script, provider
from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.pageindex_runtime.operations import OPERATIONS
from vectorless_rag.pageindex_runtime.page_text import comparable
from vectorless_rag.pageindex_runtime.tokens import count_tokens

_FUSED = "; "
"""Stands between the headings of sections that are one node."""


class Memory:
    """Answers of the scripted model, each made once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], str] = {}
        self.times: list[float] = []
        """When each question was asked."""

    def __call__(self, asked: Asked) -> str:
        """Answer from the text in the prompt."""
        self.times.append(time.perf_counter())
        key = (asked.question, *(turn["content"] for turn in asked.messages))
        if key not in self._known:
            self._known[key] = reply(asked)
        return self._known[key]


def run(argv: list[str], memory: Memory, latency_s: float) -> dict[str, Any]:
    """Index once; return what came of it and how long it took."""
    side, tree, mode, path = argv[:4]
    answers: dict[str, Any] = dict.fromkeys(OPERATIONS, memory)
    with provider(
        mode=mode,
        latency_s=latency_s,
        concurrency=int(argv[6]),
        decides=frozenset(filter(None, argv[7].split(","))),
        **answers,
    ) as script:
        sys.modules["litellm"].token_counter = (  # type: ignore[attr-defined]
            lambda text="", **_: count_tokens(text, MODEL)
        )
        start = time.perf_counter()
        try:
            made, pages = (
                released(mode, Path(path))
                if side == "released"
                else patched(Path(tree), mode, Path(path))
            )
        except VectorlessRagError as error:
            return {"refused": str(error.code)}
        except SystemExit as error:
            return {"refused": str(error)}
        except Exception as error:  # noqa: BLE001  (any end is a result)
            return {"refused": type(error).__name__}
        wall = time.perf_counter() - start
    nodes = every(made)
    return {
        "wall_s": round(wall, 3),
        "pages": pages,
        "nodes": len(nodes),
        "covered": covered(made, pages),
        "headings": [(n.get("title"), n.get("start_index")) for n in nodes],
        "ends": [n.get("end_index") for n in nodes],
        "calls": len(script.asked),
        "prompt_tokens": sum(count_tokens(a.text, MODEL) for a in script.asked),
        "longest_prompt": max(
            (count_tokens(a.text, MODEL) for a in script.asked), default=0
        ),
        "per_question": dict(Counter(script.questions)),
        "tokens_per_question": per_question(script),
    }


def in_turn(times: Sequence[float], latency_s: float) -> int:
    """Count the most calls of which each began after the one before had ended."""
    count, end = 0, 0.0
    for start in sorted(times):
        if start >= end:
            count, end = count + 1, start + latency_s
    return count


def per_question(script: Script) -> dict[str, int]:
    """Count the prompt tokens of each question."""
    found: Counter[str] = Counter()
    for asked in script.asked:
        found[asked.question] += count_tokens(asked.text, MODEL)
    return dict(found)


def outline_of(path: Path) -> list[tuple[str, int]]:
    """List the headings that the file's own outline names, each with its page."""
    from pypdf import PdfReader  # noqa: PLC0415

    reader = PdfReader(path)
    found: list[tuple[str, int]] = []

    def visit(items: list[Any]) -> None:
        for item in items:
            if isinstance(item, list):
                visit(item)
                continue
            number = reader.get_destination_page_number(item)
            if number is not None and number >= 0:
                found.append((str(item.title), number + 1))

    try:
        visit(reader.outline)
    except Exception:  # noqa: BLE001  (a broken outline is none)
        return []
    return found


def key_of(title: str) -> str:
    """Spell a heading for comparison: without its number."""
    words = comparable(title).split()
    while len(words) > 1 and all(c.isdigit() for c in words[0]):
        words = words[1:]
    return " ".join(words)


def quality(
    headings: list[tuple[str, int]], outline: list[tuple[str, int]]
) -> dict[str, float]:
    """
    Compare the tree with the outline: same heading on the same page.

    Flash makes one node of short sections on one page, called by all their headings:
    each of them counts.
    """
    want = Counter((key_of(title), page) for title, page in outline)
    have: Counter[tuple[str, int]] = Counter()
    for title, page in headings:
        whole = key_of(title or ""), page
        fused = [] if whole in want else (title or "").split(_FUSED)
        parts = [(key_of(part), page) for part in fused]
        have.update(parts if any(part in want for part in parts) else [whole])
    both = sum((want & have).values())
    return {
        "precision": round(both / max(sum(have.values()), 1), 4),
        "recall": round(both / max(sum(want.values()), 1), 4),
    }


def main(argv: list[str]) -> int:
    """Print one JSON object."""
    logging.disable(logging.CRITICAL)
    # Upstream prints; the answer has a stream of its own.
    out, sys.stdout = sys.stdout, sys.stderr
    take_the_name()
    runs, latency_s = int(argv[4]), float(argv[5])
    memory = Memory()
    found = run(argv, memory, 0.0)
    if "refused" not in found:
        outline = outline_of(Path(argv[3]))
        if outline:
            found |= quality(found["headings"], outline)
        found["walls_s"] = []
        for _ in range(runs):
            memory.times.clear()
            found["walls_s"].append(run(argv, memory, latency_s)["wall_s"])
            found["rounds"] = in_turn(memory.times, latency_s)
    out.write(json.dumps(found) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
