"""Lines, keys and word counts in any script."""

import pytest
from hypothesis import given

from strategies_offline import texts
from vectorless_rag.pageindex_runtime.offline.text import (
    count_words,
    cut_words,
    ends_sentence,
    is_plain,
    is_rtl,
    key,
    lines_of,
    squeeze,
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("2.1 Spatial  data", "2.1Spatial data", id="spaces"),
        pytest.param("Empirical ﬂuctuation", "EMPIRICAL FLUCTUATION", id="ligature"),
        pytest.param("“Any” type", 'any" type', id="quotes"),
        pytest.param("第一章 总则", "第 一 章 总 则", id="han"),
    ],
)
def test_spellings_of_one_title_have_one_key(one: str, other: str) -> None:
    """What extraction adds or drops does not tell titles apart."""
    assert key(one) == key(other)


def test_marks_count_in_keys() -> None:
    """Vowel signs are part of a word where a script writes them as marks."""
    assert key("กิน") != key("กน")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("one two  three", 3, id="latin"),
        pytest.param("日本語の文章", 3, id="dense"),
        pytest.param("", 0, id="empty"),
    ],
)
def test_words_are_counted_in_every_script(text: str, words: int) -> None:
    """Two characters of a script without spaces count as one word."""
    assert words == count_words(text)


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        pytest.param("It ends.", True, id="stop"),
        pytest.param('He said "yes."', True, id="quoted"),
        pytest.param("終わり。", True, id="han"),
        pytest.param("انتهى؟", True, id="arabic"),
        pytest.param("A title", False, id="title"),
        pytest.param("”", False, id="closer-alone"),
        pytest.param("", False, id="empty"),
    ],
)
def test_sentence_ends_are_known(text: str, *, ends: bool) -> None:
    """A stop of any script ends a sentence, also inside closing marks."""
    assert ends is ends_sentence(text)


@pytest.mark.parametrize(
    ("text", "most", "cut"),
    [
        pytest.param("one two three", 2, "one two", id="words"),
        pytest.param("one", 5, "one", id="short"),
        pytest.param("日本語の文章です", 2, "日本語の", id="inside-a-word"),
        pytest.param("", 3, "", id="empty"),
    ],
)
def test_text_is_cut_at_words(text: str, most: int, cut: str) -> None:
    """Whole words stay; only a first word that alone is too long is cut inside."""
    assert cut == cut_words(text, most)


@given(texts)
def test_lines_hold_everything_but_white_space(text: str) -> None:
    """Splitting into lines loses no word."""
    assert squeeze(text) == squeeze(" ".join(lines_of(text)))


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        pytest.param("plain text", True, id="plain"),
        pytest.param("a\x00b", False, id="nul"),
        pytest.param("a\ud800b", False, id="surrogate"),
        pytest.param("a\x9fb", False, id="c1"),
    ],
)
def test_control_characters_are_seen(text: str, *, plain: bool) -> None:
    """NUL, other control characters and lone surrogates make a text unfit."""
    assert plain is is_plain(text)


@pytest.mark.parametrize(
    ("text", "rtl"),
    [
        pytest.param("١. مقدمة", True, id="arabic"),
        pytest.param("1. Intro", False, id="latin"),
        pytest.param("123", False, id="no-letter"),
    ],
)
def test_direction_is_that_of_the_first_letter(text: str, *, rtl: bool) -> None:
    """Digits have no direction."""
    assert rtl is is_rtl(text)
