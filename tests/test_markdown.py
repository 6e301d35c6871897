"""Headings of Markdown, line by line."""

from hypothesis import given
from hypothesis import strategies as st

from vectorless_rag.pageindex_runtime.markdown import (
    extract_nodes_from_markdown,
    or_default,
)

# Whatever may stand at the start of a line, so that blocks meet in every order.
starts = st.sampled_from(
    ["", "# ", "###### ", "**", "~~~", "```", "=", "-", "> ", "- ", "1. ", "|"]
)
rows = st.builds("{}{}{}".format, starts, st.text("ab \u3042#*", max_size=5), starts)
files = st.lists(rows, max_size=10).map("\n".join)


def headings(text: str) -> list[tuple[str, int, int]]:
    found, _ = extract_nodes_from_markdown(text)
    return [(h["node_title"], h["line_num"], h["level"]) for h in found]


def test_underlined_text_is_one_heading() -> None:
    """Of all its lines, at the first of them."""
    assert [("Two lines", 1, 1), ("Sub", 4, 2)] == headings("Two\nlines\n===\nSub\n--")
    assert [("text", 1, 1)] == headings("text\n\n===")
    assert [("> quoted", 1, 1)] == headings("> quoted\n---")


def test_a_bold_line_lies_in_the_heading_before_it() -> None:
    """Two in a row are neighbours; a blank one is none."""
    assert [("A", 1, 2), ("N", 2, 3), ("M", 3, 3)] == headings("## A\n**N**\n**M**")
    assert [("** **", 1, 1)] == headings("** **")
    assert [("N", 1, 1), ("A", 2, 1)] == headings("**N**\n# A")


def test_a_rule_before_anything_else_is_no_front_matter() -> None:
    """Unless a second one closes it."""
    assert [("---", 1, 1), ("A", 2, 1)] == headings("---\n# A")
    assert [("# no: data", 1, 1), ("A", 4, 1)] == headings("---\n# no: data\n...\n# A")
    assert [] == headings("\n \n")


def test_a_threshold_that_was_given_is_kept() -> None:
    """Also where it is nothing."""
    assert (0, 7) == (or_default(0, 7), or_default(None, 7))


@given(files)
def test_every_line_with_text_belongs_to_a_node(text: str) -> None:
    """Nodes begin at lines of the file, in order, and none has a blank title."""
    found, lines = extract_nodes_from_markdown(text)
    numbers = [heading["line_num"] for heading in found]

    assert text.split("\n") == lines
    assert sorted(set(numbers)) == numbers
    assert all(h["node_title"].strip() and 1 <= h["level"] <= 7 for h in found)
    first = numbers[0] - 1 if numbers else len(lines)
    assert not "".join(lines[:first]).strip()
