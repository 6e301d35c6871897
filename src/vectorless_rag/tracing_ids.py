"""The names of an attempt's trace: whoever knows the attempt knows its trace."""

from hashlib import sha256


def trace_id(attempt_id: str) -> str:
    """Name the trace of an attempt: 32 hexadecimal digits."""
    return sha256(attempt_id.encode()).hexdigest()[:32]


def span_id(attempt_id: str) -> str:
    """Name the span that the attempt's model calls lie in: 16 hexadecimal digits."""
    return sha256(f"{attempt_id}:span".encode()).hexdigest()[:16]
