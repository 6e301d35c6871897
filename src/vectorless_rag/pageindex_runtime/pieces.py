"""Cut text that is too long for one prompt into pieces that are not."""

from collections.abc import Callable, Iterator

Count = Callable[[str], int]
"""Tokens of a text."""


def longest_head(text: str, *, cap: int, count: Count) -> int:
    """
    Find by bisection how many characters of *text* fit under *cap* tokens.

    Returns:
        A length from 0 to ``len(text)`` whose text counts at most *cap* tokens.
    """
    if count(text) <= cap:
        return len(text)
    fits, over = 0, len(text)
    while over - fits > 1:
        middle = (fits + over) // 2
        if count(text[:middle]) <= cap:
            fits = middle
        else:
            over = middle
    return fits


def _at_a_break(text: str, length: int) -> int:
    """Move a cut back to a line or word end, unless that gives up over half."""
    for mark in ("\n", " "):
        place = text.rfind(mark, length // 2, length)
        if place != -1:
            return place + 1
    return length


def pieces(text: str, *, cap: int, count: Count) -> Iterator[str]:
    """
    Yield *text* in consecutive pieces of at most *cap* tokens each.

    Joined, the pieces are *text*. Cuts fall at line ends where there are any, else
    between words. A single character is a piece even if it counts over *cap*.
    """
    while text:
        length = longest_head(text, cap=cap, count=count)
        if length < len(text):
            length = max(1, _at_a_break(text, length))
        yield text[:length]
        text = text[length:]
