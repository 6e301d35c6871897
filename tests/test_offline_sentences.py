"""Sentences are parts of the text, whole where the text shows them whole."""

import pytest
from hypothesis import given

from strategies_offline import page_texts
from vectorless_rag.pageindex_runtime.offline.sentences import sentences_of
from vectorless_rag.pageindex_runtime.offline.text import is_plain, squeeze

LONG = "The sp package provides classes and methods for dealing with spatial data."


def whole(text: str) -> list[str]:
    """The whole sentences of a text."""
    return [sentence.text for sentence in sentences_of(text) if sentence.whole]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "This is the first one here. And this\nis the second one.",
            ["This is the first one here.", "And this is the second one."],
            id="line-breaks",
        ),
        pytest.param(
            "See Fig. 3 and e.g. J. Smith et al. for the U.S. law. It is short here.",
            [
                "See Fig. 3 and e.g. J. Smith et al. for the U.S. law.",
                "It is short here.",
            ],
            id="abbreviations",
        ),
        pytest.param(
            'He said "this is all." (It was not all, though.) Yes, it is all of it!',
            [
                'He said "this is all."',
                "(It was not all, though.)",
                "Yes, it is all of it!",
            ],
            id="closing-marks",
        ),
        pytest.param(
            "The version is 3.14 and the file is a.txt here. And so on it goes.",
            [
                "The version is 3.14 and the file is a.txt here.",
                "And so on it goes.",
            ],
            id="stops-inside-words",
        ),
        pytest.param(
            "It appeared in the Journal of Statistical Software. zoo is an R package.",
            [
                "It appeared in the Journal of Statistical Software.",
                "zoo is an R package.",
            ],
            id="a-name-in-lower-case",
        ),
        pytest.param(
            "見出し\n日本語組版処理の要件の実装です。これは二番目の文です。最後",
            ["日本語組版処理の要件の実装です。", "これは二番目の文です。"],
            id="han",
        ),
        pytest.param(
            "に変更することを検討してみてください。これは二番目の文です。",
            ["これは二番目の文です。"],
            id="han-from-the-middle",
        ),
        pytest.param(
            f"{LONG}\n> library(sp)\n{LONG}", [LONG, LONG], id="code-between"
        ),
        pytest.param(
            f"and this is how the sentence before ended. {LONG}",
            [LONG],
            id="starts-inside",
        ),
        pytest.param(
            f"1 Introduction\n{LONG}\n2 zoo: The page header\nwent on here. {LONG}",
            [LONG, LONG],
            id="headings-and-headers",
        ),
        pytest.param(
            f"{LONG} It goes on to the\n17\nnext page. {LONG}",
            [LONG, LONG],
            id="page-number-between",
        ),
        pytest.param(
            f"{LONG}\n• A list item, it ends.\n1In a footnote it says so.\n{LONG}",
            [LONG, LONG],
            id="lists-and-footnotes",
        ),
        pytest.param(
            f"Contents\n1 Foo .... 1\n2 Bar .... 2\n{LONG}", [LONG], id="toc-above"
        ),
        pytest.param("Too short. No.", [], id="scraps"),
        pytest.param("", [], id="empty"),
    ],
)  # fmt: skip
def test_whole_sentences_are_found(text: str, expected: list[str]) -> None:
    """Sentences run over lines, and never over what is no prose."""
    assert expected == whole(text)


def test_a_summary_begins_with_a_sentence() -> None:
    """A text known to begin cleanly may begin in lower case."""
    text = "zoo is an R package with methods."

    assert [False, True] == [
        sentences_of(text, clean=clean)[0].whole for clean in (False, True)
    ]


def test_the_first_of_a_block_is_known() -> None:
    """The first sentence of a paragraph is marked."""
    found = sentences_of(f"{LONG} {LONG}\nHeading\n{LONG}")

    assert [True, False, True, True] == [sentence.opens_block for sentence in found]


@given(page_texts)
def test_sentences_are_parts_of_the_text(text: str) -> None:
    """Every sentence stands in the text with its white space squeezed."""
    assert all(s.text in squeeze(text) for s in sentences_of(text))


@given(page_texts)
def test_sentences_hold_no_control_characters(text: str) -> None:
    """NUL and lone surrogates reach no sentence."""
    assert all(is_plain(sentence.text) for sentence in sentences_of(text))
