"""The three ways the pinned upstream fails, as exceptions ready to raise."""

from collections.abc import Iterable

from vectorless_rag.errors import Code, VectorlessRagError

# A message is one line on a terminal; the first names are enough to start from.
_NAMED = 8


def unavailable(detail: str) -> VectorlessRagError:
    """Something needed is not there: a build, a tool, an archive, a network."""
    return VectorlessRagError(Code.UPSTREAM_UNAVAILABLE, detail)


def drift(detail: str) -> VectorlessRagError:
    """Pin, series, lock and patch files do not say the same."""
    return VectorlessRagError(Code.UPSTREAM_DRIFT, detail)


def tampered(detail: str) -> VectorlessRagError:
    """Bytes are not the ones that were pinned or built."""
    return VectorlessRagError(Code.UPSTREAM_TAMPERED, detail)


def reason(error: OSError) -> str:
    """Say why the operating system refused, without a path."""
    return error.strerror or type(error).__name__


def some(things: Iterable[str]) -> str:
    """List the first few of *things*, and say how many more there are."""
    named = list(things)
    more = len(named) - _NAMED
    return "; ".join(named[:_NAMED]) + (f"; and {more} more" if more > 0 else "")
