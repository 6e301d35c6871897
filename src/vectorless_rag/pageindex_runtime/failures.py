"""Which failures end a run, and which only spoil one prompt."""

from vectorless_rag.errors import Code

ONE_PROMPT = frozenset({
    Code.CONTEXT_OVERFLOW,
    Code.CONTENT_FILTER,
    Code.EMPTY_RESPONSE,
    Code.TRUNCATED_RESPONSE,
    Code.INVALID_JSON,
})  # fmt: skip
"""Failures of one prompt; the next may be answered."""


def ends_run(code: Code) -> bool:
    """Say whether no further request should leave after *code*."""
    return code not in ONE_PROMPT
