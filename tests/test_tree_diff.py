"""Of two trees it is said what became of each section."""

from collections.abc import Iterator
from itertools import count as count_from
from typing import Any

import pytest
from hypothesis import given, settings

from strategies_tree import raw_trees
from vectorless_rag.tree import Node, count, read_tree, walk
from vectorless_rag.tree_diff import Change, TreeDiff, diff_trees
from vectorless_rag.tree_matching import bare, match, places

Spec = tuple[Any, ...]


def tree(*specs: Spec) -> tuple[Node, ...]:
    """Make a tree of (title, first, last, *children)."""
    numbers = count_from(0)
    return tuple(node(spec, numbers) for spec in specs)


def node(spec: Spec, numbers: Iterator[int]) -> Node:
    title, first, last, *children = spec
    return Node(
        node_id=f"{next(numbers):04d}",
        title=title,
        start_index=first,
        end_index=last,
        nodes=tuple(node(child, numbers) for child in children),
    )


def told(found: TreeDiff) -> list[tuple[str | None, str | None, str]]:
    """Titles before and after, and the changes."""
    return [
        (
            pair.before.node.title if pair.before else None,
            pair.after.node.title if pair.after else None,
            " ".join(pair.changes),
        )
        for pair in found.pairs
    ]


REST = ("Rest", 9, 99)
FRUIT = ("Fruit", 1, 8, ("Apples", 2, 4), ("Pears", 5, 8))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(
            [FRUIT, REST],
            [FRUIT, REST],
            [
                ("Fruit", "Fruit", ""),
                ("Apples", "Apples", ""),
                ("Pears", "Pears", ""),
                ("Rest", "Rest", ""),
            ],
            id="same",
        ),
        pytest.param(
            [FRUIT],
            [("1 Fruit", 1, 8, ("1.1 Apples", 2, 5), ("PEARS", 5, 8))],
            [
                ("Fruit", "1 Fruit", "renamed"),
                ("Apples", "1.1 Apples", "renamed re-ranged"),
                ("Pears", "PEARS", "renamed"),
            ],
            id="numbered",
        ),
        pytest.param(
            [("Spatial objects in R", 1, 9)],
            [("Spatial objects of R", 1, 8)],
            [("Spatial objects in R", "Spatial objects of R", "renamed re-ranged")],
            id="alike",
        ),
        pytest.param(
            [FRUIT],
            [("Fruit", 1, 8, ("Cherries", 2, 4), ("Pears", 5, 8))],
            [
                ("Fruit", "Fruit", ""),
                ("Apples", "Cherries", "renamed"),
                ("Pears", "Pears", ""),
            ],
            id="same-pages",
        ),
        pytest.param(
            [FRUIT, REST],
            [("Fruit", 1, 8, ("Pears", 5, 8)), REST, ("Nuts", 50, 60)],
            [
                ("Fruit", "Fruit", ""),
                ("Apples", None, "lost"),
                ("Pears", "Pears", ""),
                ("Rest", "Rest", ""),
                (None, "Nuts", "new"),
            ],
            id="lost-and-new",
        ),
        pytest.param(
            [("Preface", 1, 1), REST],
            [REST],
            [("Preface", None, "lost"), ("Rest", "Rest", "")],
            id="lost-first",
        ),
        pytest.param(
            [FRUIT, REST],
            [("Fruit", 1, 8, ("Apples", 2, 4)), ("Pears", 5, 8), REST],
            [
                ("Fruit", "Fruit", ""),
                ("Apples", "Apples", ""),
                ("Pears", "Pears", "moved"),
                ("Rest", "Rest", ""),
            ],
            id="to-another-parent",
        ),
        pytest.param(
            [("A", 1, 9), ("B", 1, 9), ("C", 1, 9)],
            [("C", 1, 9), ("A", 1, 9), ("B", 1, 9)],
            [("C", "C", "moved"), ("A", "A", ""), ("B", "B", "")],
            id="reordered",
        ),
        pytest.param(
            [("Part", 1, 9, ("Summary", 8, 9)), ("Other", 10, 20, ("Summary", 20, 20))],
            [("Part", 1, 9), ("Other", 10, 20, ("Summary", 20, 20))],
            [
                ("Part", "Part", ""),
                ("Summary", None, "lost"),
                ("Other", "Other", ""),
                ("Summary", "Summary", ""),
            ],
            id="one-title-twice",
        ),
        pytest.param([], [], [], id="empty"),
        pytest.param(
            [("", 1, 1)],
            [("", 2, 2)],
            [("", None, "lost"), (None, "", "new")],
            id="untitled",
        ),
    ],
)
def test_what_became_of_each_section(
    before: list[Spec], after: list[Spec], expected: list[tuple[str, str, str]]
) -> None:
    """Kept, renamed, re-ranged, moved, lost and new, in reading order."""
    assert expected == told(diff_trees(tree(*before), tree(*after)))


def test_a_lost_parent_moves_its_children() -> None:
    """They stand elsewhere now, though neither title nor pages changed."""
    before = tree(("Container", 1, 60, ("Apples", 2, 4), ("Pears", 30, 60)))
    after = tree(("Apples", 2, 4), ("Pears", 30, 60))

    assert [
        ("Container", None, "lost"),
        ("Apples", "Apples", "moved"),
        ("Pears", "Pears", "moved"),
    ] == told(diff_trees(before, after))


def test_many_sections_of_one_title_are_paired_in_order() -> None:
    """Where weighing every pair would take too long."""
    before = tree(*(("Example", n // 2 + 1, n // 2 + 1) for n in range(120)))
    after = tree(*(("Example", n // 2 + 1, n // 2 + 1) for n in range(1, 121)))
    found = diff_trees(before, after)

    assert [120, 0] == [len(found.pairs), found.counts[Change.LOST]]


def test_covered_pages_are_compared() -> None:
    """Pages that no section reaches any more are named."""
    found = diff_trees(tree(("A", 1, 5)), tree(("A", 2, 6)))
    covered = found.to_json()["pages_covered"]

    assert {"before": 5, "after": 5, "lost": [1], "new": [6]} == covered


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("3.1 Standard methods", "standard methods"),
        ("IV. The End", "the end"),
        ("Chapter 7 Whales!", "whales"),
        ("Civil law", "civil law"),
        ("ﬁsh", "fish"),
        ("12", "12"),
        ("1" * 9000 + "x", "1" * 9000 + "x"),
        ("1." * 9000 + "x", "1 " * 9000 + "x"),
    ],
)
def test_a_bare_title_is_its_words(title: str, expected: str) -> None:
    """Without number, case and punctuation."""
    assert expected == bare(title)


@settings(max_examples=20)
@given(raw_trees())
def test_a_tree_differs_from_itself_in_nothing(
    made: tuple[list[dict[str, Any]], int],
) -> None:
    """Every node is its own partner."""
    nodes = read_tree(*made)
    found = diff_trees(nodes, nodes)

    assert count(nodes) == found.unchanged == len(found.pairs)


@settings(max_examples=20)
@given(raw_trees(), raw_trees())
def test_every_node_is_told_of_once(
    first: tuple[list[dict[str, Any]], int], second: tuple[list[dict[str, Any]], int]
) -> None:
    """On each side, and no node has two partners."""
    before, after = read_tree(*first), read_tree(*second)
    found = diff_trees(before, after)
    partner = match(places(before), places(after))

    assert len(partner) == len(set(partner.values()))
    assert sorted(node.node_id for _, node in walk(before)) == sorted(
        pair.before.node.node_id for pair in found.pairs if pair.before
    )
    assert [node.node_id for _, node in walk(after)] == [
        pair.after.node.node_id for pair in found.pairs if pair.after
    ]
