"""Summaries are sentences of the text: the ones that say most, within bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies_offline import page_texts
from vectorless_rag.pageindex_runtime.offline.sentences import sentences_of
from vectorless_rag.pageindex_runtime.offline.summaries import (
    MAX_WORDS,
    best,
    first_words,
    join,
    summarise,
)
from vectorless_rag.pageindex_runtime.offline.text import (
    count_words,
    has_letter,
    squeeze,
)

LEAD = "The sp package provides classes and methods for dealing with spatial data."
CENTRAL = "Spatial data classes of the sp package hold points, lines and grids of data."
ASIDE = "However, nobody knows why the weather was so bad on that day in the town."


def test_the_opening_and_the_central_sentences_are_taken() -> None:
    """What opens the text, and what shares its words, comes before an aside."""
    text = f"{LEAD} {ASIDE} {CENTRAL}"

    assert f"{LEAD} {CENTRAL}" == summarise(text, 30)


WEAK = {
    "leans": "This also provides spatial data classes for the package.",
    "broken": "The spatial data classes of sp are de- scribed here now.",
    "link": "See https://example.org for spatial data classes and sp.",
    "digits": "In 1998 and 1999 there were 12345 spatial 67890 points.",
    "bracket": "The sp package (with spatial data classes is described.",
    "source": "Pebesma E wrote spatial data classes and methods (2005).",
    "names": "Edzer Pebesma, Roger Bivand, University Of Spatial Data.",
    "glued": "The spatialdataclassesandmethodsofthe package are described.",
    "short": "Spatial data classes exist.",
    "long": "The spatial data classes " + "and other things " * 25 + "end.",
}


@pytest.mark.parametrize("weak", WEAK.values(), ids=WEAK.keys())
def test_weak_sentences_are_passed_over(weak: str) -> None:
    """A sentence that does not stand alone loses to one that does, though first."""
    good = "Grids of spatial data are classes that the package describes at length."

    assert good == best(sentences_of(f"{weak} {good} {good.replace('Grids', 'Lines')}"))


def test_the_opening_sentence_leads() -> None:
    """Where only one sentence fits, it is the one that opens the text."""
    opening = "The manual tells its readers about the package and its history."

    assert opening == summarise(f"{opening} {CENTRAL} {LEAD} {CENTRAL[:-1]} again.", 15)


def test_what_is_said_is_not_said_again_in_other_words() -> None:
    """A second sentence on the same thing loses to one on another."""
    again = "The sp package provides methods and classes for handling spatial data."
    other = "Polygons are built from scratch out of rings that close upon a point."

    assert f"{LEAD} {other}" == summarise(f"{LEAD} {again} {other}", 30)


def test_what_is_repeated_word_for_word_is_passed_over() -> None:
    """A header that looks like a sentence is no content, and is never said twice."""
    header = "The sp package and its spatial data classes are described here."

    assert f"{LEAD} {CENTRAL}" == summarise(
        f"{header} {LEAD} {header} {CENTRAL} {header} {header}", 30
    )
    assert header == summarise(f"{header} {header}")


def test_nothing_said_has_no_best() -> None:
    """No sentence, no description."""
    assert "" == best([])


def test_a_sentence_of_common_words_says_nothing() -> None:
    """Words that every text has weigh nothing, but are better than no summary."""
    text = "This is what it is and that is all."

    assert text == summarise(text)


@pytest.mark.parametrize(
    ("text", "most", "expected"),
    [
        pytest.param(
            "1 Title\nEdzer Pebesma", 70, "1 Title Edzer Pebesma", id="scraps"
        ),
        pytest.param("A title\nMail: x@example.org", 70, "A title", id="address"),
        pytest.param("word " * 100 + "end.", 3, "word word word", id="cut"),
        pytest.param(LEAD, 3, "The sp package", id="cut-sentence"),
        pytest.param("a\x00b good words c\x00d", 70, "good words", id="control"),
        pytest.param("a\x00b\x00", 70, "a", id="letters-only"),
        pytest.param("> x <- c(1)", 70, "> x <- c(1)", id="code-only"),
        pytest.param("12 13", 70, "12 13", id="no-letters"),
        pytest.param("\x00", 70, "", id="nothing"),
        pytest.param("", 70, "", id="empty"),
        pytest.param("Foo", 0, "Foo", id="no-words-asked"),
    ],
)
def test_texts_without_sentences_have_a_summary(
    text: str, most: int, expected: str
) -> None:
    """Where there is no whole sentence, first words stand in."""
    assert expected == summarise(text, most)


@given(page_texts, st.integers(1, 200))
def test_summaries_are_whole_sentences_in_order(text: str, most: int) -> None:
    """A summary is some of the text's sentences, or the start of what there is."""
    found = sentences_of(text)
    whole = [s.text for s in found if s.whole]
    summary = summarise(text, most)
    rest = summary
    for sentence in whole:
        rest = rest.removeprefix(sentence).lstrip()

    assert not rest or not whole or whole[0].startswith(summary)
    assert whole or all(word in squeeze(text) for word in summary.split())
    assert count_words(summary) <= min(most, MAX_WORDS)


@given(page_texts)
def test_a_text_with_letters_has_a_summary(text: str) -> None:
    """No text with a letter is left without a summary."""
    assert not has_letter(text) or summarise(text)


def test_groups_speak_in_turn() -> None:
    """Each group gives its first sentence before one gives its second."""
    groups = [sentences_of(f"{LEAD} {CENTRAL}"), sentences_of(ASIDE)]

    assert [LEAD, ASIDE] == join(groups, 30)
    assert [LEAD, CENTRAL, ASIDE] == join(groups, 70)


def test_groups_are_heard_by_length_where_room_is_short() -> None:
    """The first group leads; of the others the shorter ones fit."""
    short = "Grids of spatial data exist."
    groups = [sentences_of(LEAD), sentences_of(ASIDE), sentences_of(short)]

    assert [LEAD, short] == join(groups, 20)


def test_no_sentence_is_said_twice() -> None:
    """Groups that say the same are heard once."""
    assert [LEAD] == join([sentences_of(LEAD), sentences_of(LEAD)])


def test_first_words_are_the_longest_plain_run() -> None:
    """Words with control characters part the runs."""
    assert "two plain words" == first_words("one a\x00 b\x00 two plain words c\x00", 9)
