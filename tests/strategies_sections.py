"""Named strategies of what the patched upstream hands to the runtime."""

from typing import Any

from hypothesis import strategies as st

titles = st.sampled_from(
    ["Alpha", "2 Beta", "Глава первая", "第一章 总则", "บทที่ ๑", "Κεφάλαιο Α", "…"]
)

lines = titles | st.text("ab \u3042\u05d0.", max_size=12)

texts = st.lists(lines, max_size=6).map("\n".join)

page_lists = st.lists(st.tuples(texts, st.just(0)), min_size=1, max_size=6)


@st.composite
def nodes(draw: st.DrawFn, pages: int, depth: int = 3) -> dict[str, Any]:
    """A section of a document of *pages* pages; children may lie outside it."""
    first = draw(st.integers(1, pages))
    node: dict[str, Any] = {
        "title": draw(titles),
        "start_index": first,
        "end_index": draw(st.integers(first, pages)),
    }
    if depth > 1 and draw(st.booleans()):
        node["nodes"] = draw(st.lists(nodes(pages, depth - 1), max_size=3))
    return node


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[tuple[str, int]], list[dict[str, Any]]]:
    """Pages and a tree over them."""
    pages = draw(page_lists)
    return pages, draw(st.lists(nodes(len(pages)), min_size=1, max_size=4))
