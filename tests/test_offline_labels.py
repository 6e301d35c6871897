"""Section labels are read in every style, and nothing else is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies_offline import texts
from vectorless_rag.pageindex_runtime.offline.labels import (
    path_of_code,
    read_labels,
    read_roman,
)


@pytest.mark.parametrize(
    ("line", "family", "code", "title"),
    [
        ("1 Introduction", "decimal", "1", "Introduction"),
        ("1. Introduction", "decimal", "1", "Introduction"),
        ("1.Introduction", "decimal", "1", "Introduction"),
        ("2.1. Creation", "decimal", "2.1", "Creation"),
        ("2.1.3.1 Symbols", "decimal", "2.1.3.1", "Symbols"),
        ("4動作環境", "decimal", "4", "動作環境"),
        ("４．１ 動作環境", "decimal", "4.1", "動作環境"),
        ("١.مقدمة", "decimal", "1", "مقدمة"),
        ("A. Reference card", "letter", "A", "Reference card"),
        ("A Advanced packaging", "letter", "A", "Advanced packaging"),
        ("A.1 Shared libraries", "letter", "A.1", "Shared libraries"),
        ("IV. Law", "roman", "4", "Law"),
        ("Chapter 3", "chapter", "3", ""),
        ("CHAPTER IV: Foo", "chapter", "4", "Foo"),
        ("Part Two", "part", "2", ""),
        ("Appendix C Foo", "annex", "C", "Foo"),
        ("Appendix I", "annex", "1", ""),
        ("Title V: Designs", "part", "5", "Designs"),
        ("第一章 总则", "chapter", "1", "总则"),
        ("第二十三条 内容", "article", "23", "内容"),
        ("第一百零二节", "section", "102", ""),
        ("第12章", "chapter", "12", ""),
        ("제2장 서론", "chapter", "2", "서론"),
        ("Глава первая", "chapter", "1", ""),
        ("Κεφάλαιο Α", "chapter", "1", ""),
        ("الفصل الأول", "chapter", "1", ""),
        ("บทที่ ๑", "chapter", "1", ""),
    ],
)
def test_labels_are_read(line: str, family: str, code: str, title: str) -> None:
    """Each style gives its numbers and the place where the title starts."""
    label = read_labels(line)[0]

    assert (family, code, title) == (label.family, label.code, line[label.end :])


@pytest.mark.parametrize(
    "line",
    [
        "",
        "Introduction",
        "1In principle, a footnote",
        "2004 was a year",
        "4.0 International License",
        "1) a list item",
        "A simple case",
        "chapter 3 says",
        "Chapter 1234",
        "Chapter Xa",
        "Section One-One",
        "MIX. foo",
        "IIII. foo",
        "第1十章",
        "²",
        "1 " + "x" * 400,
    ],
)
def test_other_lines_have_no_label(line: str) -> None:
    """Prose, footnotes, years, versions, list marks and long lines are no headings."""
    assert () == read_labels(line)


def test_an_ambiguous_label_is_read_both_ways() -> None:
    """One capital can be a roman number and a letter."""
    assert [("roman", "1"), ("letter", "I")] == [
        (label.family, label.code) for label in read_labels("I. Facts")
    ]


@given(st.integers(1, 399))
def test_roman_numbers_are_read(number: int) -> None:
    """Every roman number up to 399 is read, in either case."""
    parts = [
        (100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"),
        (9, "IX"), (5, "V"), (4, "IV"), (1, "I"),
    ]  # fmt: skip
    text, left = "", number
    for value, spelling in parts:
        text += spelling * (left // value)
        left %= value

    assert [number, number] == [read_roman(text), read_roman(text.lower())]


@pytest.mark.parametrize(
    ("code", "path"),
    [
        ("2.1", (2, 1)),
        (3, (3,)),
        ("0.1", (0, 1)),
        ("A.1", (1001, 1)),
        ("x", ()),
        ("1.", ()),
        ("1.9999", ()),
        (None, ()),
    ],
)
def test_codes_are_read_back(code: object, path: tuple[int, ...]) -> None:
    """A structure code gives its numbers; anything else gives none."""
    assert path == path_of_code(code)


@given(texts)
def test_labels_stay_inside_their_line(line: str) -> None:
    """No text fails, and a title never starts behind its line."""
    assert all(0 < label.end <= len(line) for label in read_labels(line))
