"""What a character is, and a word without its accents, is worked out once."""

import unicodedata
from types import SimpleNamespace
from typing import Any

import pytest

from patches.tree_under_test import flash  # noqa: F401  (makes the rest importable)


@pytest.mark.parametrize(
    ("name", "function", "used", "argument"),
    [
        ("char_stats", "char_category", "category", "\u04e8"),
        ("block", "_strip_diacritics", "normalize", "Žluťoučký kůň, a word once"),
    ],
)
def test_a_second_look_costs_nothing(
    name: str, function: str, used: str, argument: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tables of Unicode are asked once, and the answer is the same."""
    from pageindex.flash import model

    module = getattr(model, name)
    asked: list[Any] = []

    def counted(*given: Any) -> Any:
        asked.append(given)
        return getattr(unicodedata, used)(*given)

    monkeypatch.setattr(module, "unicodedata", SimpleNamespace(**{used: counted}))
    look = getattr(module, function)
    first = look(argument)
    once = len(asked)

    assert (first, once) == (look(argument), len(asked))


def test_two_characters_are_weighed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether one goes on where the other stopped is asked of the script once."""
    from pageindex.flash import stats, tokens

    asked: list[str] = []
    monkeypatch.setattr(stats, "char_script_bucket", lambda c: asked.append(c) or 0)

    first, second = (tokens.can_extend_token(3, 4, "\u56fe") for _ in range(2))

    assert (first, ["\u56fe"]) == (second, asked)
