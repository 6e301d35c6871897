"""What of a closed ledger row goes into its trace."""

from typing import Any

from vectorless_rag.ledger.types import TokenUsage
from vectorless_rag.pageindex_runtime.observations import Observation
from vectorless_rag.units import usd


def fields_of(row: Observation) -> dict[str, Any]:
    """
    Spell a row the way Langfuse does.

    Returns:
        Arguments of a Langfuse generation, free of content if the row is; the cost
        in dollars.
    """
    code = None if row.code is None else row.code.value
    prompt, reply = row.prompt, row.reply
    return {
        "model": row.model,
        "model_parameters": {"max_tokens": row.max_tokens},
        "usage_details": None if row.usage is None else _usage(row.usage),
        "cost_details": {"total": float(usd(row.amount))},
        "level": "DEFAULT" if code is None else "ERROR",
        "status_message": code,
        "metadata": {
            "attempt_id": row.attempt_id,
            "call_id": row.call_id,
            "hold_id": row.hold_id,
            "try_no": row.try_no,
            "state": row.state,
            "code": code,
            "finish_reason": row.finish_reason,
            # Exact, as the cost in dollars is a float.
            "nano_usd": row.amount,
        },
        "input": None if prompt is None else [turn.as_dict() for turn in prompt],
        # A lone surrogate would lose the whole reply.
        "output": None
        if reply is None
        else reply.encode(errors="backslashreplace").decode(),
    }


def _usage(usage: TokenUsage) -> dict[str, int]:
    """Split the tokens into disjoint kinds: Langfuse adds them up."""
    return {
        "input": max(usage.prompt_tokens - usage.cached_tokens, 0),
        "input_cached_tokens": usage.cached_tokens,
        "output": max(usage.completion_tokens - usage.reasoning_tokens, 0),
        "output_reasoning_tokens": usage.reasoning_tokens,
        "total": usage.prompt_tokens + usage.completion_tokens,
    }
