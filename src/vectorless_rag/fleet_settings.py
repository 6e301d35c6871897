"""What workers may vary beside what one run may."""

from pydantic import Field

from vectorless_rag.store_settings import StoreSettings


class FleetSettings(StoreSettings):
    """How many workers build how much, and when one is taken for dead."""

    jobs: int = Field(
        1, ge=1, le=256, description="Documents that are built at a time."
    )
    fork_server: bool = Field(
        default=True,
        description="Fork the children of many documents from one process that has"
        " imported everything; only with a sandbox.",
    )
    engine_url: str | None = Field(
        None,
        description="Database of the queue; empty: the ledger's server, or SQLite"
        " inside the data folder.",
    )
    jobs_per_owner: int | None = Field(
        None,
        ge=1,
        description="Documents of one owner built at a time by all workers; empty: any"
        " number.",
    )
    jobs_per_model: int | None = Field(
        None,
        ge=1,
        description="Documents built with one model at a time by all workers; empty:"
        " any number.",
    )
    job_tries: int = Field(
        5, ge=1, le=100, description="Workers that may begin one job before it fails."
    )
    retry_s: int = Field(
        10,
        ge=0,
        le=3600,
        description="Pause before a job's second try, in seconds; doubled each time.",
    )
    heartbeat_s: int = Field(
        5, ge=1, le=600, description="Between a worker's signs of life, in seconds."
    )
    dead_after_s: int = Field(
        60,
        ge=3,
        le=86_400,
        description="A worker without a sign of life for so long is dead, in seconds.",
    )
    drain_s: int = Field(
        60,
        ge=0,
        le=86_400,
        description="Time a stopping worker has to finish its documents, in seconds.",
    )
    listen: str | None = Field(
        None,
        pattern=r"^[^\s:/]*:\d{1,5}$|^\[[0-9a-fA-F:]+\]:\d{1,5}$",
        description="Where a worker answers /healthz, /readyz and /metrics, as"
        " host:port; empty: nowhere.",
    )
    otel: bool = Field(
        default=False,
        description="Send metrics and traces of workers by OTLP (extra otel); OTEL_*"
        " say where to.",
    )
