"""No text gets into a page as markup."""

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vectorless_rag.reporting.markup import Html, cut, embedded, h, joined
from vectorless_rag.source import displayable

hostile = st.text(st.characters(), max_size=20) | st.sampled_from(
    ["</script>", "<!--", '" onload="x', "' a='", "&lt;", "<svg/onload=x>", "]]>"]
)


class Seen(HTMLParser):
    """What a parser sees in a piece of a page."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, list[tuple[str, str | None]]]] = []
        self.text = ""
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, attrs))

    def handle_data(self, data: str) -> None:
        self.text += data


@given(text=hostile, value=hostile)
def test_texts_stay_texts(text: str, value: str) -> None:
    """Whatever a text holds, it is one text and one attribute afterwards."""
    seen = Seen(h("p", cut(text, 100), title=cut(value, 100)))

    assert [("p", [("title", displayable(value))])] == seen.tags
    assert displayable(text) == seen.text


@pytest.mark.parametrize(
    ("expected", "made"),
    [
        ('<input type="text" hidden>', h("input", type="text", hidden=True)),
        ("<p>1,234 b</p>", h("p", 1234, " ", ["b"], None, id=None, open=False)),
        ('<p class="a" aria-label="b"></p>', h("p", class_="a", aria_label="b")),
        ("<i></i>&amp;", joined([h("i"), "&"])),
        ("<b>&lt;i&gt;</b>", h("b", "<i>")),
        ("<b><i></i></b>", h("b", Html("<i></i>"))),
    ],
)
def test_elements_are_spelled_one_way(expected: str, made: Html) -> None:
    """Numbers have groups; names lose their underscore; void elements no end."""
    assert expected == made


def test_long_texts_are_cut_and_say_so() -> None:
    """The start, and how long the whole is."""
    assert "ab… (100,000 characters in all)" == cut("ab" * 50_000, 2)
    assert "ab" == cut("ab", 2)


def test_what_turns_text_round_is_shown_as_a_mark() -> None:
    """Direction controls, NUL and half a surrogate pair are replaced."""
    assert "a\ufffdb\ufffd\ufffd" == cut("a\u202eb\0\ud800", 9)


def test_a_resource_cannot_end_its_element() -> None:
    """Ours are put in as they stand, so they must not hold an end tag."""
    assert '<style id="s">a > b {}</style>' == embedded("style", "a > b {}", id="s")
    with pytest.raises(AssertionError, match="would end its element"):
        embedded("script", "x = '</script>'")
