"""Large nodes are divided while it helps."""

import asyncio
from typing import Any

import pytest

from upstream_stand_in import (
    NO_KEY,
    PROSE,
    entry,
    later,
    names,
    options,
    pages_of,
    says,
)
from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.pageindex_runtime.subdivision import MAX_DEPTH, own_parts

WHOLE = {"title": "Whole", "start_index": 1, "end_index": 20}


def divided(node: dict[str, Any] = WHOLE, depth: int = 0, **answers: Any) -> Any:
    upstream = names(**answers)
    divide = upstream["process_large_node_recursively"]
    pages = pages_of(["text"] * 30)
    return asyncio.run(divide(dict(node), pages, options(), depth=depth))


def found(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"meta_processor": later(says(list(entries)))}


def test_a_division_becomes_children() -> None:
    """Each is looked at again, and is small enough."""
    node = divided(**found(entry("A", 1), entry("B", 11)))

    assert [("A", 1, 10), ("B", 11, 20)] == [
        (n["title"], n["start_index"], n["end_index"]) for n in node["nodes"]
    ]


def test_no_headway_ends_the_dividing() -> None:
    """A part nearly as large as the whole is left as it is."""
    node = divided(**found(entry("A", 1), entry("B", 20)))

    assert [1, 20] == [n["start_index"] for n in node["nodes"]]
    assert [None, None] == [n.get("nodes") for n in node["nodes"]]


def test_divisions_add_no_more_levels_than_one_may() -> None:
    """Numbers of many levels, division after division, stay within the bound."""

    def deeper(pages: Any, start_index: int = 1, **_: Any) -> list[dict[str, Any]]:
        # Half of the pages each time, four levels down.
        half = start_index + len(pages) // 2
        codes = ("1", "1.1", "1.1.1", "1.1.1.1")
        return [entry(f"S{half}.{code}", half, code) for code in codes]

    pages = pages_of(["text"] * 1024)
    whole: dict[str, Any] = {**WHOLE, "end_index": 1024}
    divide = names(meta_processor=later(deeper))["process_large_node_recursively"]
    asyncio.run(divide(whole, pages, options(max_page_num_each_node=1)))
    levels, node = 0, whole
    while node.get("nodes"):
        levels, node = levels + 1, node["nodes"][-1]

    assert MAX_DEPTH == levels


@pytest.mark.parametrize(
    ("node", "depth"),
    [
        ({**WHOLE, "end_index": 10}, 0),
        ({**WHOLE, "end_index": 1}, 0),
        (WHOLE, MAX_DEPTH),
    ],
    ids=["small", "one page", "deep"],
)
def test_some_nodes_are_not_divided(node: dict[str, Any], depth: int) -> None:
    """Nothing is asked about them."""
    assert "nodes" not in divided(node, depth, meta_processor=later(says(NO_KEY)))


def test_a_failed_division_marks_the_node() -> None:
    """The reason is the failure's."""
    node = divided(meta_processor=later(says(PROSE)))

    mark = {"code": "pageindex_invalid_json", "what": "subsections"}
    assert ("nodes" not in node, [mark]) == (True, node["degraded"])
    assert "nodes" not in divided(**found())


def test_a_failure_that_ends_the_run_is_raised() -> None:
    """Also from below, and a defect is not swallowed."""
    with pytest.raises(VectorlessRagError, match="credentials"):
        divided(meta_processor=later(says(NO_KEY)))
    small = {**WHOLE, "nodes": [{"title": "A", "start_index": 1, "end_index": 20}]}
    with pytest.raises(KeyError, match="defect"):
        divided(small, meta_processor=later(says(KeyError("defect"))))


def test_own_parts_are_those_inside() -> None:
    """Without the node's own heading, stand-ins and pages outside."""
    stand_in = {
        **entry("Pages 3-4", 3),
        "degraded": [{"code": "x", "what": "structure"}],
    }
    entries = [entry("Whole", 1), entry("A", 1), stand_in, entry("B", 21), entry("C")]

    assert ["A"] == [e["title"] for e in own_parts(WHOLE, entries)]
    intro = {**WHOLE, "title": "Whole (intro)"}
    assert ["A"] == [e["title"] for e in own_parts(intro, entries)]
