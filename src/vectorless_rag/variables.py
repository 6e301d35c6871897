"""What is wrong with the variables that stand for settings, in words."""

import os
from collections.abc import Iterable
from difflib import get_close_matches

_LIKE = 0.8
"""How much of a name must agree for another to be meant."""


def misspelt(prefix: str, fields: Iterable[str]) -> list[str]:
    """
    List variables that mean a setting and would be passed over in silence.

    Args:
        prefix: What names of settings begin with. Those of other programs may too.
        fields: The settings, in lower case.
    """
    known, found = [name.upper() for name in fields], []
    for name in sorted(os.environ):
        rest = name.upper().removeprefix(prefix)
        if rest == name.upper() or rest in known:
            continue
        meant = get_close_matches(rest, known, n=1, cutoff=_LIKE) or [
            name for name in known if sorted(name) == sorted(rest)
        ]
        found += [f"{name}: unknown, {prefix}{other} is meant" for other in meant]
    return found


def said(field: str, message: str) -> str:
    """Say what a setting may be, from pydantic's *message*, which holds no value."""
    for words in ("Input ", "Value error, ", "String "):
        message = message.removeprefix(words)
    return f"{field.upper()}: {message[:1].lower()}{message[1:]}"
