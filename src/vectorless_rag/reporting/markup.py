"""HTML that cannot be written without escaping what goes into it."""

from collections.abc import Iterable
from html import escape
from typing import TypeAlias

from vectorless_rag.source import displayable


class Html(str):
    """Text that is markup already. Only this module makes it from strings."""

    __slots__ = ()


Child: TypeAlias = "str | int | Html | Iterable[Child] | None"
"""What may stand inside an element. A plain text is escaped."""

Value: TypeAlias = "str | int | float | bool | None"
"""What an attribute may be."""

_VOID = frozenset({"input", "meta"})


def h(name: str, *children: Child, **attributes: Value) -> Html:
    """
    Make an element.

    Args:
        name: Of the element.
        children: Texts, which are escaped, elements, or sequences of both.
        attributes: ``class_`` and ``aria_label`` for ``class`` and
            ``aria-label``. True stands for a bare name; None and False for none.
    """
    head = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Html(f"<{name}{head}>")
    return Html(f"<{name}{head}>{joined(children)}</{name}>")


def joined(children: Child) -> Html:
    """Put elements and texts one after the other."""
    return Html("".join(_spelled(children)))


def cut(text: str, longest: int) -> str:
    """
    Make text of a document fit to be shown.

    Returns:
        The text without control and direction characters; of one that is longer
        than *longest* characters, the start and its length.
    """
    if len(text) <= longest:
        return _shown(text)
    return f"{_shown(text[:longest])}… ({len(text):,} characters in all)"


def _shown(text: str) -> str:
    # Nearly all texts are plain, and looking at each character takes long.
    return text if text.isprintable() else displayable(text)


def _spelled(children: Child) -> Iterable[str]:
    match children:
        case None:
            return
        case Html():
            yield children
        case str():
            yield escape(children)
        case int():
            yield f"{children:,}"
        case _:
            for child in children:
                yield from _spelled(child)


def _attribute(key: str, value: Value) -> str:
    name = key.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'


def embedded(name: str, text: str, **attributes: str) -> Html:
    """
    Put a style sheet, a script or data of ours into its element, as it stands.

    Raises:
        AssertionError: It holds what could end its element.
    """
    if "</" in text or "<!--" in text:
        raise AssertionError(f"a {name} of ours would end its element")
    start = h(name, **attributes).removesuffix(f"</{name}>")
    return Html(f"{start}{text}</{name}>")
