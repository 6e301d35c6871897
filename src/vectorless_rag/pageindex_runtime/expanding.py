"""Subsections proposed for a long section, its text read whole in bounded prompts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from vectorless_rag.pageindex_runtime.framing import framed
from vectorless_rag.pageindex_runtime.grouping import MAX_TOKENS
from vectorless_rag.pageindex_runtime.page_text import Node, walk
from vectorless_rag.pageindex_runtime.pieces import pieces

Upstream = Mapping[str, Any]

_TASK = """Find the headings of the subsections of one section of a document.

List, in the order of the document, the headings that begin on the pages below, each
with the number of its page. Take only headings that are printed there, word for word.
Running headers, labels of tables and cross-references are no headings, and neither is
the section's own title. An empty list is a good answer.

Reply with JSON only:
{"subsections": [{"title": "<heading>", "page": 0}]}
"""


def prompts_for(
    title: str, texts: Sequence[str], first: int, count: Callable[[str], int]
) -> Iterator[str]:
    """
    Yield the questions that together show every page once.

    Args:
        title: Heading of the section.
        texts: Its pages.
        first: Number of the first of them.
        count: Tokens of a text.
    """
    block, room = "", MAX_TOKENS
    for number, text in enumerate(texts, first):
        for piece in pieces(text, cap=MAX_TOKENS, count=count) if text else [""]:
            size = count(piece)
            if block and size > room:
                yield _prompt(title, block)
                block, room = "", MAX_TOKENS
            block += f"<page_{number}>\n{piece}\n</page_{number}>\n"
            room -= size
    if block:
        yield _prompt(title, block)


def _prompt(title: str, block: str) -> str:
    return f"{_TASK}\nSection title:\n{framed(title)}\n\nPages:\n{framed(block)}\n"


def proposer_in(upstream: Upstream) -> Callable[..., Any]:
    """Return ``propose_children`` for the module whose names are *upstream*."""

    async def propose_children(
        node: Node,
        pages: Sequence[str],
        args: Any,  # noqa: ANN401  (upstream's options)
    ) -> list[Node]:
        """
        Ask for the subsections of a node.

        Returns:
            Nodes in page order, each with a heading that stands on its page. They
            end where the node does; the upstream sizes them.

        Raises:
            VectorlessRagError: What a call failed with.
        """
        start = node["start_index"]
        end = min(upstream["subtree_end"](node), len(pages))
        texts = pages[start - 1 : end] if start <= end else []
        key = upstream["heading_key"]
        found: list[Node] = []
        seen = {key(node["title"])}

        def count(text: str) -> int:
            return int(upstream["count_tokens"](text, args.model))

        for prompt in prompts_for(str(node["title"]), texts, start, count):
            answer = await upstream["ask_model"](args.model, prompt)
            for item in answer["subsections"]:
                title, page = str(item["title"]).strip(), item["page"]
                heading = key(title)
                known = not heading or heading in seen or not start <= page <= end
                back = bool(found) and page < found[-1]["start_index"]
                if known or back or heading not in key(pages[page - 1]):
                    continue
                seen.add(heading)
                found.append(
                    {
                        "title": title,
                        "start_index": page,
                        "end_index": end,
                        "node_id": f"{node['node_id']}.{len(found) + 1}",
                    }
                )
        return found

    return propose_children


def with_ids(structure: list[Node]) -> list[Node]:
    """Number every node if any has no id: decisions are remembered by it."""
    nodes = list(walk(structure))
    if any(node.get("node_id") in {None, ""} for node in nodes):
        for number, node in enumerate(nodes):
            node["node_id"] = f"{number:04d}"
    return structure
