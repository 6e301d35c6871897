"""Where artifacts are kept, if not in the data folder."""

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

PREFIX = "VECTORLESS_RAG_"


class StoreSettings(BaseSettings):
    """A store that several machines share."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, frozen=True, extra="forbid", hide_input_in_errors=True
    )

    store_url: str | None = Field(
        None,
        pattern=r"^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[\w.-]+)*/?$",
        description="Artifact store in a bucket, s3://bucket/prefix; empty: inside the"
        " data folder.",
    )
    store_endpoint: str | None = Field(
        None,
        pattern=r"^https?://\S+$",
        description="Address of the S3-compatible server; empty: AWS. Keys are read"
        " from AWS_ACCESS_KEY_ID and its like.",
    )
