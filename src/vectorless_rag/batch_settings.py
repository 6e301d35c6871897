"""Whether model calls go through a provider's batches."""

from pydantic import Field

from vectorless_rag.fleet_settings import FleetSettings


class BatchSettings(FleetSettings):
    """Half the price for replies that may take hours."""

    batch: bool = Field(
        default=False,
        description="Send model calls through the provider's batches: half the price,"
        " and replies that may take hours.",
    )
    batch_window_s: int = Field(
        2, ge=0, le=3600, description="Calls are gathered for one batch, in seconds."
    )
    batch_requests: int = Field(
        1000,
        ge=1,
        le=50_000,
        description="Calls in one batch at most, and in flight per document.",
    )
    batch_timeout_s: int = Field(
        86_400,
        ge=1,
        le=604_800,
        description="Deadline of one model call by batch with its retries, in seconds.",
    )
    batch_poll_s: int = Field(
        30,
        ge=1,
        le=3600,
        description="Longest pause between two looks at a batch, in seconds.",
    )
