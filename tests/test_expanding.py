"""Subsections proposed for a long section."""

import asyncio
from types import SimpleNamespace
from typing import Any

from upstream_stand_in import later, names, says
from vectorless_rag.pageindex_runtime.expanding import proposer_in, with_ids
from vectorless_rag.pageindex_runtime.page_text import comparable

NODE = {"title": "Whole", "start_index": 2, "end_index": 4, "node_id": "7"}
PAGES = ["before", "Alpha", "", "Beta Alpha"]


def proposed(pages: list[str], *items: tuple[str, int], **node: Any) -> list[Any]:
    subsections = [{"title": title, "page": page} for title, page in items]
    upstream = names(
        subtree_end=lambda n: n["end_index"],
        heading_key=comparable,
        ask_model=later(says({"subsections": subsections})),
    )
    args = SimpleNamespace(model=None)
    return list(asyncio.run(proposer_in(upstream)({**NODE, **node}, pages, args)))


def test_only_headings_that_stand_on_their_page_are_taken() -> None:
    """Not the section's own, none twice, none outside, none going back."""
    found = proposed(
        PAGES, ("Alpha", 2), ("Ghost", 2), ("ALPHA", 4), ("Whole", 2), ("Beta", 9),
        ("Beta", 4), ("before", 1), ("Alp", 2), ("…", 2),
    )  # fmt: skip

    assert [("Alpha", 2, "7.1"), ("Beta", 4, "7.2")] == [
        (n["title"], n["start_index"], n["node_id"]) for n in found
    ]


def test_a_section_beyond_the_pages_has_none() -> None:
    """A tree of another parser may overrun the pages."""
    assert [] == proposed(PAGES, ("Alpha", 2), start_index=9, end_index=9)


def test_long_pages_are_asked_about_in_parts() -> None:
    """Every part may name headings of its pages."""
    assert ["Alpha"] == [
        n["title"] for n in proposed(["x", "Alpha " + "word " * 50_000], ("Alpha", 2))
    ]


def test_ids_are_given_where_any_is_missing() -> None:
    """A tree that has them keeps them."""
    kept = [{"node_id": "7"}]
    missing: list[dict[str, Any]] = [{"nodes": [{"node_id": ""}]}]

    assert [{"node_id": "7"}] == with_ids(kept)
    assert "0000" == with_ids(missing)[0]["node_id"]
    assert "0001" == missing[0]["nodes"][0]["node_id"]
