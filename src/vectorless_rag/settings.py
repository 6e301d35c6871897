"""Everything a run may vary, read once from the environment."""

import json
import os
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import NoDecode

from vectorless_rag.batch_settings import BatchSettings
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.store_settings import PREFIX
from vectorless_rag.units import OFFLINE_PREFIX, NanoUsd, nano_usd
from vectorless_rag.variables import misspelt, said


class Mode(StrEnum):
    """Which algorithm finds the sections."""

    AUTO = "auto"
    FLASH = "flash"
    STANDARD = "standard"


class LogLevel(StrEnum):
    """The least severe event that is reported."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class ChildOutput(StrEnum):
    """What becomes of what the child prints; it may quote the document."""

    DISCARD = "discard"
    INHERIT = "inherit"


class Sandbox(StrEnum):
    """Whether the child gives up every file that it does not need."""

    AUTO = "auto"
    REQUIRED = "required"
    OFF = "off"


class Settings(BatchSettings):
    """What one run may spend, where it writes and which model it asks."""

    model: str = Field(
        "offline/extractive",
        pattern=r"^[^/\s]+/\S+$",
        description="Model as provider/name; offline/extractive needs no provider.",
    )
    mode: Mode = Field(
        Mode.AUTO,
        description="auto, flash or standard; auto takes flash, then standard.",
    )
    api_base: str | None = Field(
        None,
        pattern=r"^https?://\S+$",
        description="Address of an OpenAI-compatible server; empty: the default.",
    )
    data_dir: Path = Field(
        Path("data"), description="Folder of the artifact store and the ledger."
    )
    ledger_url: str | None = Field(
        None,
        pattern=r"^(sqlite:///|postgres(ql)?(\+\w+)?://)\S+$",
        description="Ledger database; empty: SQLite inside the data folder.",
    )
    build_dir: Path | None = Field(
        None, description="Patched upstream; empty: build/pageindex beside the source."
    )
    owner: str = Field(
        "local",
        # A bound within the pattern takes a thirtieth of a second to compile.
        pattern=r"^[\w.@-]+$",
        max_length=100,
        description="Who pays: every ledger row carries this name.",
    )
    budget_usd: Decimal = Field(
        Decimal(1),
        ge=0,
        le=1_000_000,
        description="Most one run may spend, in dollars; 0 allows only free calls.",
    )
    allow_unpriced: bool = Field(
        default=False, description="Call models with no known price, counted as free."
    )
    prices: Annotated[str, NoDecode] = Field(
        "{}",
        description=(
            'Prices by model as JSON, dollars per token: {"openai/x": '
            '{"input": "0.000001", "output": "0.000002"}}.'
        ),
    )
    billed_statuses: Annotated[
        dict[str, frozenset[Annotated[int, Field(ge=400, le=599)]]], NoDecode
    ] = Field(
        {},
        description=(
            "HTTP statuses that a provider charges for, as JSON: "
            '{"openai": [500]}; such a request counts at the most it could cost.'
        ),
    )
    max_output_tokens: int = Field(
        4096, ge=64, le=131_072, description="Cap on the output of one model call."
    )
    call_timeout_s: int = Field(
        120,
        ge=1,
        le=3600,
        description="Deadline of one model call with its retries, in seconds.",
    )
    call_attempts: int = Field(
        3, ge=1, le=10, description="Provider requests one model call may make."
    )
    concurrency: int = Field(
        32, ge=1, le=256, description="Model calls in flight at once, per document."
    )
    provider_concurrency: int = Field(
        32,
        ge=1,
        le=1024,
        description="Requests in flight to one provider, over all runs with one "
        "data folder.",
    )
    journal: bool = Field(
        default=True,
        description="Keep the replies of paid calls, so that a rerun is not charged.",
    )
    journal_days: int = Field(
        30, ge=1, le=3650, description="Replies older than this are deleted, in days."
    )
    replay: bool = Field(
        default=True, description="Use kept replies instead of asking again."
    )
    trace_content: bool = Field(
        default=False, description="Put prompts and replies into traces."
    )
    child_timeout_s: int = Field(
        3600, ge=1, le=86_400, description="Longest life of a child, in seconds."
    )
    child_memory_bytes: int = Field(
        8 * 1024**3,
        ge=256 * 1024**2,
        description="Address space the child and each of its workers may use.",
    )
    child_cpu_s: int = Field(
        3600,
        ge=1,
        le=86_400,
        description="CPU time of the child and of each of its workers, in seconds.",
    )
    child_open_files: int = Field(
        1024, ge=64, description="Files the child may hold open at once."
    )
    child_file_bytes: int = Field(
        8 * 1024**3,
        ge=1024**2,
        description="Largest file the child may write; a SQLite ledger is one.",
    )
    child_processes: int | None = Field(
        None,
        ge=1,
        description=(
            "Processes and threads its user may have, all counted; empty: any number."
            " Does not bind root."
        ),
    )
    sandbox: Sandbox = Field(
        Sandbox.AUTO,
        description=(
            "auto, required or off: the child cannot read the store nor other files"
            " (Landlock)."
        ),
    )
    child_output: ChildOutput = Field(
        ChildOutput.DISCARD,
        description="discard, or inherit to see what the upstream prints.",
    )
    grace_s: int = Field(
        5,
        ge=0,
        le=600,
        description="Time a child has to settle its calls when stopped, in seconds.",
    )
    log_level: LogLevel = Field(
        LogLevel.WARNING,
        description="Least event reported: debug, info, warning, error.",
    )
    max_source_bytes: int = Field(
        512 * 1024**2, ge=1, description="Largest PDF file, in bytes."
    )
    source_roots: Annotated[tuple[Path, ...], NoDecode] = Field(
        (),
        description=(
            "Folders that PDFs may be in, separated by colons, links refused; empty:"
            " anywhere."
        ),
    )
    max_pages: int = Field(5000, ge=1, description="Longest document, in pages.")

    @field_validator("billed_statuses", mode="before")
    @classmethod
    def _from_json(cls, value: object) -> object:
        return json.loads(value) if isinstance(value, str) else value

    @field_validator("prices")
    @classmethod
    def _object(cls, value: str) -> str:
        # What is in it is read with the price table, which knows the models.
        if not isinstance(json.loads(value), dict):
            raise ValueError("not a JSON object")  # noqa: TRY004  (pydantic's way)
        return value

    @property
    def provider(self) -> str:
        """Whose model it is."""
        return self.model.partition("/")[0]

    @field_validator("source_roots", mode="before")
    @classmethod
    def _folders(cls, given: object) -> object:
        if not isinstance(given, str):
            return given
        if not given:
            return ()
        # An empty one between two colons would be the folder that one is in.
        if "" in (parts := given.split(os.pathsep)):
            raise ValueError("an empty folder name")
        return tuple(Path(part).absolute() for part in parts)

    @property
    def offline(self) -> bool:
        """Whether the model answers in the process."""
        return self.model.startswith(OFFLINE_PREFIX)

    @property
    def budget_nano_usd(self) -> NanoUsd:
        """The budget in whole nano-dollars."""
        return nano_usd(self.budget_usd)

    @property
    def store_dir(self) -> Path:
        """Folder of the artifact store."""
        return self.data_dir.absolute() / "store"

    @property
    def journal_dir(self) -> Path:
        """Folder of kept replies."""
        return self.data_dir.absolute() / "journal"

    @property
    def runs_dir(self) -> Path:
        """Folder of what became of every run's documents."""
        return self.data_dir.absolute() / "runs"

    @property
    def gate_dir(self) -> Path:
        """Folder of the locks that count requests in flight."""
        return self.data_dir.absolute() / "in-flight"

    @property
    def ledger_file(self) -> Path:
        """Database of the ledger, where ``ledger_url`` names no other."""
        return self.data_dir.absolute() / "ledger.sqlite3"

    @property
    def says_budget(self) -> bool:
        """Whether somebody gave the run's budget, which is not the default then."""
        return "budget_usd" in self.model_fields_set

    @property
    def owns_ledger(self) -> bool:
        """Whether the ledger lies in the data folder, and belongs to it alone."""
        return self.ledger_url is None

    @property
    def effective_ledger_url(self) -> str:
        """Address of the ledger database."""
        return self.ledger_url or f"sqlite:///{self.ledger_file}"

    @property
    def effective_engine_url(self) -> str:
        """Address of the engine's database."""
        # A server that holds the ledger holds the queue too; two SQLite files
        # do not wait for each other's writers.
        if self.engine_url is None and self.ledger_url is None:
            return f"sqlite:///{self.data_dir.absolute() / 'engine.sqlite3'}"
        return self.engine_url or self.effective_ledger_url

    @classmethod
    def load(cls, **overrides: Any) -> Self:  # noqa: ANN401  (pydantic checks them)
        """
        Read the settings of this process.

        Args:
            overrides: Values that stand above the environment; None counts as
                not given.

        Raises:
            VectorlessRagError: ``settings_invalid``. The message names the
                settings and what they may be, never their values.
        """
        given = {k: v for k, v in overrides.items() if v is not None}
        wrong = misspelt(PREFIX, cls.model_fields)
        try:
            if not wrong:
                return cls(**given)
        except ValidationError as error:
            wrong = [PREFIX + said(str(e["loc"][0]), e["msg"]) for e in error.errors()]
        raise VectorlessRagError(Code.SETTINGS_INVALID, "; ".join(sorted(wrong)))
