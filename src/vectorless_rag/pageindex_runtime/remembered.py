"""Pure functions of a character or a short text, worked out once for each."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

KEPT = 1 << 13
"""Results kept of one function: the characters of a document, or its short texts."""


def remembered(function: F) -> F:
    """
    Return *function*, which keeps its results.

    Args:
        function: Its result depends on its arguments alone, takes long to work out,
            and is never altered.
    """
    return cast("F", lru_cache(maxsize=KEPT)(function))
