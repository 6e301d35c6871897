"""Headings become sections where they follow from one another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies_offline import page_texts
from vectorless_rag.pageindex_runtime.offline.body import Page, body_of
from vectorless_rag.pageindex_runtime.offline.outline import outline
from vectorless_rag.pageindex_runtime.offline.sections import Before

# Lines that differ in letters: what differs in numbers alone is a running header.
PROSE = [
    f"The {one}{two} of the running text goes on and ends about here."
    for one in "bcdfgh"
    for two in "aeioulmnr"
]


def pages_of(*blocks: str) -> list[Page]:
    """One page for each block, every line of it followed by running text."""
    text = iter(PROSE)
    return [
        Page(n, "\n".join(f"{line}\n{next(text)}" for line in block.split("\n")))
        for n, block in enumerate(blocks, start=1)
    ]


def sections(*blocks: str, before: Before | None = None) -> list[str]:
    """Code, title and page of every section."""
    found = outline(body_of(pages_of(*blocks)), before or Before())
    return [f"{h.code or '-'} | {h.title} | {h.page}" for h in found]


ONE_AND_TWO = Before(("3 Three", "3.1 Sub"), ("3", "3.1"))


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        pytest.param(
            ["1 Introduction\n1.1 Aims", "2 Methods\n2.1 Data", "A Tables\nA.1 More"],
            [
                "1 | 1 Introduction | 1", "1.1 | 1.1 Aims | 1", "2 | 2 Methods | 2",
                "2.1 | 2.1 Data | 2", "A | A Tables | 3", "A.1 | A.1 More | 3",
            ],
            id="decimal",
        ),
        pytest.param(
            ["1. Introduction\n2 zoo: a header", "2. Methods\n1 Foo", "3. Results"],
            [
                "1 | 1. Introduction | 1", "2 | 2. Methods | 2", "3 | 3. Results | 3",
            ],
            id="one-style-of-numbers",
        ),
        pytest.param(
            ["1 One\n1. First of a list\n2. Second of it\n3. It", "2 Two", "3 Three"],
            ["1 | 1 One | 1", "2 | 2 Two | 2", "3 | 3 Three | 3"],
            id="a-list-inside",
        ),
        pytest.param(
            ["1 One", "3 Three"], ["1 | 1 One | 1", "3 | 3 Three | 2"], id="one-missing"
        ),
        pytest.param(["1 One", "4 Four"], [], id="two-missing"),
        pytest.param(
            ["1 One\n2.1 Sub", "3 Three"],
            ["1 | 1 One | 1", "2.1 | 2.1 Sub | 1", "3 | 3 Three | 2"],
            id="a-parent-missing",
        ),
        pytest.param(
            ["4 Some University", "Abstract", "Appendix 1: Authors"],
            ["1 | Abstract | 2"],
            id="one-number-and-an-appendix",
        ),
        pytest.param(
            ["0 Zero", "1 One"], ["0 | 0 Zero | 1", "1 | 1 One | 2"], id="from-zero"
        ),
        pytest.param(
            ["2 Two\n2.1 Sub", "3 Three"],
            ["2 | 2 Two | 1", "2.1 | 2.1 Sub | 1", "3 | 3 Three | 2"],
            id="from-the-middle",
        ),
        pytest.param(
            ["Chapter 1 Foo\n1.1 Bar", "Chapter 2 Baz", "Appendix A Yet\nA.1 Xx"],
            [
                "1 | Chapter 1 Foo | 1", "1.1 | 1.1 Bar | 1", "2 | Chapter 2 Baz | 2",
                "A | Appendix A Yet | 3", "A.1 | A.1 Xx | 3",
            ],
            id="chapters-with-numbers",
        ),
        pytest.param(
            ["1 One", "2 Two", "Appendix 1: Foo", "Appendix 2: Bar"],
            [
                "1 | 1 One | 1", "2 | 2 Two | 2", "A | Appendix 1: Foo | 3",
                "B | Appendix 2: Bar | 4",
            ],
            id="numbered-appendices",
        ),
        pytest.param(
            ["I. Facts\nA. First\n1. Detail\n2. Other\nB. Second", "II. Law\nA. Rule"],
            [
                "1 | I. Facts | 1", "1.1 | A. First | 1", "1.1.1 | 1. Detail | 1",
                "1.1.2 | 2. Other | 1", "1.2 | B. Second | 1", "2 | II. Law | 2",
                "2.1 | A. Rule | 2",
            ],
            id="nested-labels",
        ),
        pytest.param(
            ["第一章 总则\n第一条 目的", "第二章 分则\n第二条 范围\n第四条 其他"],
            [
                "1 | 第一章 总则 | 1", "1.1 | 第一条 目的 | 1", "2 | 第二章 分则 | 2",
                "2.1 | 第二条 范围 | 2", "2.2 | 第四条 其他 | 2",
            ],
            id="articles-count-on",
        ),
        pytest.param(
            ["I. Facts\nA. First\nB. Second", "II. Law\nC. No Third"],
            [
                "1 | I. Facts | 1", "1.1 | A. First | 1", "1.2 | B. Second | 1",
                "2 | II. Law | 2",
            ],
            id="letters-start-again",
        ),
        pytest.param(
            ["TITLE I: ONE\nGeneral Approach", "TITLE II: TWO\nEFFECTIVE DATES"],
            [
                "1 | TITLE I: ONE | 1", "1.1 | General Approach | 1",
                "2 | TITLE II: TWO | 2", "3 | EFFECTIVE DATES | 2",
            ],
            id="titles-below-named-parts",
        ),
        pytest.param(
            ["Abstract\nGENERAL PROVISIONS\nNational Matters", "LAST PART\nRemedies"],
            [
                "1 | Abstract | 1", "2 | GENERAL PROVISIONS | 1",
                "2.1 | National Matters | 1", "3 | LAST PART | 2",
                "3.1 | Remedies | 2",
            ],
            id="capitals-above-titles",
        ),
        pytest.param(
            ["First Title", "Second Title"],
            ["1 | First Title | 1", "2 | Second Title | 2"],
            id="titles",
        ),
        pytest.param(["plain text", "more of it"], [], id="none"),
    ],
)  # fmt: skip
def test_sections_follow_from_one_another(
    blocks: list[str], expected: list[str]
) -> None:
    """Of all the lines that could be headings, those in sequence are sections."""
    assert expected == sections(*blocks)


def test_items_of_a_list_are_no_sections() -> None:
    """Numbered lines one below the other are a list, whatever their number."""
    listed = "\n".join(f"{n} Item of the list" for n in range(2, 9))
    text = iter(PROSE)
    parts = ["1 One", listed, "2 Two", "3 Three"]
    page = "\n".join(
        "\n".join([part, *(next(text) for _ in range(8))]) for part in parts
    )

    assert ["1 One", "2 Two", "3 Three"] == [
        h.title for h in outline(body_of([Page(1, page)]))
    ]


@pytest.mark.parametrize(
    ("before", "blocks", "expected"),
    [
        pytest.param(
            ONE_AND_TWO,
            ["3.2 Next", "4 Last"],
            ["3.2 | 3.2 Next | 1", "4 | 4 Last | 2"],
            id="decimal",
        ),
        pytest.param(
            ONE_AND_TWO, ["4 Last"], ["4 | 4 Last | 1"], id="one-section-is-enough"
        ),
        pytest.param(ONE_AND_TWO, ["1 Not Next", "9 Nor This"], [], id="not-next"),
        pytest.param(
            ONE_AND_TWO,
            ["1 Item\n2 Item", "4 Last\n5 End"],
            ["4 | 4 Last | 2", "5 | 5 End | 2"],
            id="no-new-start",
        ),
        pytest.param(
            ONE_AND_TWO,
            ["Just A Title", "References", "Another Title"],
            ["- | References | 2"],
            id="no-titles-among-numbers",
        ),
        pytest.param(
            Before(("FIRST", "Second"), ("1", "1.1")),
            ["A Title", "Third Thing"],
            ["2 | A Title | 1", "3 | Third Thing | 2"],
            id="titles",
        ),
        pytest.param(
            Before(("I. Facts", "A. One"), ("1", "1.1")),
            ["B. Two\nII. Law"],
            ["1.2 | B. Two | 1", "2 | II. Law | 1"],
            id="nested-labels",
        ),
        pytest.param(
            Before(("I. Facts", "1. Detail", "2. Other"), ("1", "1.1", "1.2")),
            ["3. Third\nII. Law"],
            ["1.3 | 3. Third | 1", "2 | II. Law | 1"],
            id="numbers-below-others",
        ),
        pytest.param(
            Before(("2 Two",)),
            ["2.1 Sub\n2.2 Other", "3 Next"],
            ["2.1 | 2.1 Sub | 1", "2.2 | 2.2 Other | 1", "3 | 3 Next | 2"],
            id="below-a-section",
        ),
    ],
)
def test_sections_follow_from_those_above(
    before: Before, blocks: list[str], expected: list[str]
) -> None:
    """Numbering goes on from the sections that were found before."""
    assert expected == sections(*blocks, before=before)


@given(st.lists(page_texts, max_size=4))
def test_sections_are_in_order_and_have_their_codes(texts: list[str]) -> None:
    """Sections stand in the order of the text, each on a page that is there."""
    pages = [Page(n, text) for n, text in enumerate(texts, start=1)]
    found = outline(body_of(pages))

    assert sorted(found, key=lambda h: h.at) == found
    assert all(1 <= h.page <= len(pages) and h.depth >= 1 for h in found)
