"""How model calls go through a provider's batches, as the parent tells the child."""

from dataclasses import dataclass

PROVIDERS = frozenset({"openai"})
"""
Whose batches are used: those that LiteLLM creates, follows, cancels and lists.

For others it lacks a step (Anthropic's it cannot create, Mistral's not list), or files
go through a bucket of one's own (Vertex, Bedrock).
"""


@dataclass(frozen=True, kw_only=True)
class Batching:
    """When a batch is sent, and for how long it is waited for."""

    window_s: float
    """How long calls are gathered for one batch, in seconds."""

    requests: int
    """Calls in one batch at most, and calls in flight."""

    timeout_s: int
    """Deadline of one model call with its retries, in seconds."""

    poll_s: int
    """Longest pause between two looks at a batch, in seconds."""

    stop_s: int
    """How long a batch that was cancelled with its run is waited for, in seconds."""
