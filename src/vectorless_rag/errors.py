"""
Every failure this package foresees: its code, its phase and its exit status.

The table `FAILURES` is the one list; the docs and the tests read it from here.
No message holds document text, a prompt, a reply or a secret.
"""

from dataclasses import dataclass
from enum import StrEnum


class Code(StrEnum):
    """The stable name of a kind of failure."""

    LLM_RETRY_EXHAUSTED = "pageindex_llm_retry_exhausted"
    CONTENT_FILTER = "pageindex_content_filter"
    EMPTY_RESPONSE = "pageindex_empty_response"
    INVALID_JSON = "pageindex_invalid_json"
    TRUNCATED_RESPONSE = "pageindex_truncated_response"
    CONTEXT_OVERFLOW = "pageindex_context_overflow"
    AUTH = "pageindex_auth"
    QUOTA = "pageindex_quota"
    BAD_REQUEST = "pageindex_bad_request"
    TIMEOUT = "pageindex_timeout"
    BUDGET_EXCEEDED = "pageindex_budget_exceeded"
    BUDGET_CONTENDED = "pageindex_budget_contended"
    UNPRICED_MODEL = "pageindex_unpriced_model"
    NO_STRUCTURE = "pageindex_no_structure"
    INVALID_TREE = "pageindex_invalid_tree"
    SOURCE_UNREADABLE = "source_unreadable"
    SOURCE_ENCRYPTED = "source_encrypted"
    SOURCE_NO_TEXT = "source_no_text"
    SOURCE_TOO_LARGE = "source_too_large"
    SOURCE_CHANGED = "source_changed"
    SOURCE_FORBIDDEN = "source_forbidden"
    CHILD_TIMEOUT = "child_timeout"
    CHILD_KILLED = "child_killed"
    CHILD_MEMORY = "child_memory"
    CHILD_LIMIT = "child_limit"
    CHILD_PROTOCOL = "child_protocol"
    CANCELLED = "cancelled"
    IN_PROGRESS = "in_progress"
    STORE_CONFLICT = "store_conflict"
    STORE_CORRUPT = "store_corrupt"
    STORE_UNWRITABLE = "store_unwritable"
    LEDGER_UNAVAILABLE = "ledger_unavailable"
    LEDGER_CONFLICT = "ledger_conflict"
    ENGINE_UNAVAILABLE = "engine_unavailable"
    JOB_TRIES_SPENT = "job_tries_spent"
    UPSTREAM_UNAVAILABLE = "upstream_unavailable"
    UPSTREAM_DRIFT = "upstream_drift"
    UPSTREAM_TAMPERED = "upstream_tampered"
    SETTINGS_INVALID = "settings_invalid"
    NOT_FOUND = "not_found"
    INTERNAL_ERROR = "internal_error"


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What is fixed about a failure code."""

    phase: str
    """Where in the flow it arises."""

    exit_status: int
    """Exit status of a command that ends with it (design section 9)."""

    meaning: str
    """What happened, in one sentence."""

    advice: str
    """What to do next, in one sentence."""

    retryable: bool = False
    """Whether the same command may succeed later with nothing changed."""


FAILURES: dict[Code, Kind] = {
    Code.LLM_RETRY_EXHAUSTED: Kind(
        phase="calls",
        exit_status=3,
        retryable=True,
        meaning="The provider failed on every attempt allowed.",
        advice="Check the address and the network, or run again later;"
        " what was spent is in the ledger.",
    ),
    Code.CONTENT_FILTER: Kind(
        phase="calls",
        exit_status=3,
        meaning="The provider refused the prompt or its own answer by content policy.",
        advice="Use another model, or offline/extractive, for this document.",
    ),
    Code.EMPTY_RESPONSE: Kind(
        phase="calls",
        exit_status=3,
        retryable=True,
        meaning="The provider answered without any text.",
        advice="Run again, or use another model.",
    ),
    Code.INVALID_JSON: Kind(
        phase="calls",
        exit_status=3,
        retryable=True,
        meaning="A reply that is read as data was not the JSON asked for.",
        advice="Run again, or use a model that follows formats better.",
    ),
    Code.TRUNCATED_RESPONSE: Kind(
        phase="calls",
        exit_status=3,
        retryable=True,
        meaning="A reply was cut at the output limit.",
        advice="Raise VECTORLESS_RAG_MAX_OUTPUT_TOKENS.",
    ),
    Code.CONTEXT_OVERFLOW: Kind(
        phase="calls",
        exit_status=3,
        meaning="A prompt is longer than the model accepts.",
        advice="Use a model with a larger context.",
    ),
    Code.AUTH: Kind(
        phase="calls",
        exit_status=3,
        meaning="The provider refused the credentials, or none were given.",
        advice="Set the provider's own key variable, for example OPENAI_API_KEY.",
    ),
    Code.QUOTA: Kind(
        phase="calls",
        exit_status=3,
        meaning="The provider account has no quota or credit left.",
        advice="Add credit with the provider, then run again.",
    ),
    Code.BAD_REQUEST: Kind(
        phase="calls",
        exit_status=3,
        meaning="The provider refused the request, or does not know the model.",
        advice="Check the model's name (provider/model) and the API base.",
    ),
    Code.TIMEOUT: Kind(
        phase="calls",
        exit_status=3,
        retryable=True,
        meaning="A model call did not finish before its deadline.",
        advice="Run again, or raise VECTORLESS_RAG_CALL_TIMEOUT_S"
        " (VECTORLESS_RAG_BATCH_TIMEOUT_S by batch).",
    ),
    Code.BUDGET_EXCEEDED: Kind(
        phase="calls",
        exit_status=4,
        meaning="A model call was refused because it could have overspent the budget.",
        advice="Raise --budget-usd, or an owner's or a day's limit by `budget set`,"
        " and run again.",
    ),
    Code.BUDGET_CONTENDED: Kind(
        phase="calls",
        exit_status=4,
        retryable=True,
        meaning="Other calls hold what is left of the budget for now.",
        advice="Run again when the other runs have ended.",
    ),
    Code.UNPRICED_MODEL: Kind(
        phase="calls",
        exit_status=3,
        meaning="No price is known for the model, so its cost could not be bounded.",
        advice="Configure VECTORLESS_RAG_PRICES or pass --allow-unpriced.",
    ),
    Code.NO_STRUCTURE: Kind(
        phase="tree",
        exit_status=3,
        meaning="No sections were found in the document.",
        advice="Try --mode standard with a capable model.",
    ),
    Code.INVALID_TREE: Kind(
        phase="tree",
        exit_status=3,
        meaning="The tree found is not a page tree of this document.",
        advice="Try the other mode; nothing was published.",
    ),
    Code.SOURCE_UNREADABLE: Kind(
        phase="source",
        exit_status=3,
        meaning="The file is missing, is no readable PDF, or has no pages.",
        advice="Check the path, and open the file in a PDF viewer.",
    ),
    Code.SOURCE_ENCRYPTED: Kind(
        phase="source",
        exit_status=3,
        meaning="The PDF needs a password.",
        advice="Remove the password and run again.",
    ),
    Code.SOURCE_NO_TEXT: Kind(
        phase="source",
        exit_status=3,
        meaning="No page of the PDF has a text layer; it may be a scan.",
        advice="Run OCR on it first.",
    ),
    Code.SOURCE_TOO_LARGE: Kind(
        phase="source",
        exit_status=3,
        meaning="The PDF is over the configured size or number of pages.",
        advice="Raise VECTORLESS_RAG_MAX_SOURCE_BYTES or VECTORLESS_RAG_MAX_PAGES.",
    ),
    Code.SOURCE_CHANGED: Kind(
        phase="source",
        exit_status=3,
        retryable=True,
        meaning="The file changed while it was being indexed.",
        advice="Run again when nothing writes to it; nothing was published.",
    ),
    Code.SOURCE_FORBIDDEN: Kind(
        phase="source",
        exit_status=3,
        meaning="The file is outside the allowed folders, or reached by a link.",
        advice="Put the file itself under a folder of VECTORLESS_RAG_SOURCE_ROOTS.",
    ),
    Code.CHILD_TIMEOUT: Kind(
        phase="child",
        exit_status=3,
        retryable=True,
        meaning="The child process outlived its time limit and was ended.",
        advice="Raise VECTORLESS_RAG_CHILD_TIMEOUT_S or VECTORLESS_RAG_CHILD_CPU_S.",
    ),
    Code.CHILD_KILLED: Kind(
        phase="child",
        exit_status=3,
        retryable=True,
        meaning="The child process died by a signal.",
        advice="Run again; if it repeats, the document breaks the parser.",
    ),
    Code.CHILD_MEMORY: Kind(
        phase="child",
        exit_status=3,
        meaning="The child process ran out of its memory limit.",
        advice="Raise VECTORLESS_RAG_CHILD_MEMORY_BYTES.",
    ),
    Code.CHILD_LIMIT: Kind(
        phase="child",
        exit_status=3,
        meaning="The child process reached a limit of the operating system.",
        advice="Raise the limit named, see VECTORLESS_RAG_CHILD_* in docs/settings.md.",
    ),
    Code.CHILD_PROTOCOL: Kind(
        phase="child",
        exit_status=3,
        retryable=True,
        meaning="The child process ended without one whole answer.",
        advice="Run `vectorless-rag doctor`; the installation may be incomplete.",
    ),
    Code.CANCELLED: Kind(
        phase="run",
        exit_status=5,
        retryable=True,
        meaning="The run was cancelled before it finished.",
        advice="Run again when you want it.",
    ),
    Code.IN_PROGRESS: Kind(
        phase="store",
        exit_status=3,
        retryable=True,
        meaning="Another process of this machine builds the same and has not ended.",
        advice="Run again when it has; if it is frozen, let it go on or end it.",
    ),
    Code.STORE_CONFLICT: Kind(
        phase="store",
        exit_status=3,
        meaning="A different artifact has this name already; nothing was overwritten.",
        advice="Run again with --rebuild to add a new generation.",
    ),
    Code.STORE_CORRUPT: Kind(
        phase="store",
        exit_status=20,
        meaning="Stored bytes no longer match their digest.",
        advice="Restore the store from a backup, or run again with --rebuild.",
    ),
    Code.STORE_UNWRITABLE: Kind(
        phase="store",
        exit_status=10,
        meaning="The data folder cannot be read or written.",
        advice="Check its permissions and free space, or pass another --data-dir.",
    ),
    Code.LEDGER_UNAVAILABLE: Kind(
        phase="ledger",
        exit_status=10,
        meaning="The ledger cannot be opened or written.",
        advice="Check VECTORLESS_RAG_LEDGER_URL and the data folder.",
    ),
    Code.LEDGER_CONFLICT: Kind(
        phase="ledger",
        exit_status=1,
        meaning="A hold was closed twice in two different ways.",
        advice="Run `vectorless-rag ledger verify` and report it.",
    ),
    Code.ENGINE_UNAVAILABLE: Kind(
        phase="engine",
        exit_status=10,
        meaning="The queue of jobs cannot be opened or written.",
        advice="See that the data folder or VECTORLESS_RAG_ENGINE_URL can be written,"
        " and the extra `worker` is installed.",
    ),
    Code.JOB_TRIES_SPENT: Kind(
        phase="engine",
        exit_status=3,
        meaning="Every try that a job has was begun, and none came to an end.",
        advice="See `vectorless-rag jobs ls`, then `vectorless-rag jobs retry`.",
    ),
    Code.UPSTREAM_UNAVAILABLE: Kind(
        phase="upstream",
        exit_status=10,
        meaning="The patched upstream is not built, or could not be fetched.",
        advice="Run `vectorless-rag upstream build`.",
    ),
    Code.UPSTREAM_DRIFT: Kind(
        phase="upstream",
        exit_status=10,
        meaning="The pin, the patch series and the lock do not agree.",
        advice="Run `make patches-check`; it names what differs.",
    ),
    Code.UPSTREAM_TAMPERED: Kind(
        phase="upstream",
        exit_status=20,
        meaning="Files of the upstream are not the ones that were pinned or built.",
        advice="Delete the build folder and run `vectorless-rag upstream build`.",
    ),
    Code.SETTINGS_INVALID: Kind(
        phase="settings",
        exit_status=2,
        meaning="A setting or option is unknown, missing or out of range.",
        advice="See docs/settings.md or --help.",
    ),
    Code.NOT_FOUND: Kind(
        phase="store",
        exit_status=3,
        meaning="No artifact goes by that name.",
        advice="Ingest the document first, or check the name.",
    ),
    Code.INTERNAL_ERROR: Kind(
        phase="run",
        exit_status=1,
        meaning="Something failed that this package did not foresee: a defect of ours.",
        advice="Please report it with the line printed.",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A failure as records and the command line show it."""

    code: Code

    detail: str = ""
    """What is particular to this case: names, numbers, limits; may be empty."""

    @property
    def message(self) -> str:
        """One line: what happened and what to do."""
        kind = FAILURES[self.code]
        what = kind.meaning
        if self.detail:
            what = f"{what.removesuffix('.')}: {self.detail}."
        return f"{what} {kind.advice}"

    @property
    def phase(self) -> str:
        """Where in the flow it arose."""
        return FAILURES[self.code].phase

    @property
    def retryable(self) -> bool:
        """Whether the same command may succeed later with nothing changed."""
        return FAILURES[self.code].retryable

    @property
    def exit_status(self) -> int:
        """Exit status of a command that ends with it."""
        return FAILURES[self.code].exit_status


class VectorlessRagError(Exception):
    """
    Something this package foresaw went wrong.

    Args:
        code: Which failure it is.
        detail: What is particular to this case. Never document text, a prompt,
            a reply or a secret.
    """

    def __init__(self, code: Code, detail: str = "") -> None:
        # One line: names of files may hold anything.
        self.failure = Failure(code=code, detail=" ".join(detail.split()))
        super().__init__(self.failure.message)

    @property
    def code(self) -> Code:
        """Which failure it is."""
        return self.failure.code

    @property
    def detail(self) -> str:
        """What is particular to this case."""
        return self.failure.detail

    @classmethod
    def of(cls, failure: Failure) -> "VectorlessRagError":
        """Return the error whose value is *failure*."""
        return cls(failure.code, failure.detail)

    def __reduce__(self) -> tuple[type["VectorlessRagError"], tuple[Code, str]]:
        """Keep code and detail when an error crosses a process boundary."""
        return type(self), (self.code, self.detail)
