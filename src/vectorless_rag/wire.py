"""
What the parent and the child say to each other, and how it is spelled.

The parent writes one `Request` to the child's standard input. The child writes
`Progress` lines to one descriptor and exactly one framed `Answer` to another.
"""

import dataclasses
import hashlib
import json
import struct
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from vectorless_rag.batching import Batching
from vectorless_rag.errors import Code, Failure
from vectorless_rag.estimates import Estimate
from vectorless_rag.units import Sha256
from vectorless_rag.wire_json import check_type, dump, garbled, load

MAGIC = b"VLR1"
_HEAD = struct.Struct(">4sQ32s")

HEAD_BYTES = _HEAD.size
"""Length of a frame's head: magic, length of the body, sha256 of the body."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one child may do. Result-affecting fields are part of the recipe."""

    max_output_tokens: int
    """Cap on the output tokens of one model call."""

    call_timeout_s: int
    """Deadline of one model call with all its attempts, in seconds."""

    call_attempts: int
    """Provider requests one model call may make, the first included."""

    concurrency: int
    """Model calls in flight at once."""

    provider_concurrency: int
    """Requests in flight at once to one provider, over all runs together."""

    max_pages: int
    """Longest document, in pages."""

    memory_bytes: int
    """Address space of the child and of each of its workers."""

    cpu_s: int | None = None
    """CPU time of the child and of each of its workers, in seconds; None: any."""

    open_files: int | None = None
    """Descriptors open at once; None: any."""

    file_bytes: int | None = None
    """Largest file it may write, the ledger among them; None: any."""

    processes: int | None = None
    """Processes and threads of its user, all counted; None: any."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """Everything the child is told. Secrets travel in its environment, not here."""

    schema: ClassVar[int] = 1

    attempt_id: str
    """Owner of every ledger row the child writes."""

    parent_pid: int
    """The child ends itself when this process is gone."""

    document_path: str
    """A private copy of the PDF inside the child's working folder."""

    document_sha256: Sha256

    checkout: str
    """Folder that holds the patched ``pageindex`` package."""

    mode: str
    """``auto``, ``flash`` or ``standard``."""

    model: str
    """``provider/name``, as the operator wrote it."""

    api_base: str | None = None

    ledger_url: str
    """Where the ledger is: ``sqlite:///...``."""

    budgets: tuple[str, ...]
    """Budgets every call counts towards."""

    limits: Limits

    gate_dir: str
    """Folder of the locks that count requests in flight."""

    journal_dir: str | None = None
    """Folder of replies that were paid for; None: none are kept."""

    journal_days: int = 30
    """Kept replies older than this are deleted, in days."""

    replay: bool = True
    """Whether kept replies are used."""

    trace_content: bool = False
    """Whether traces carry prompts and replies."""

    prices_json: str = "{}"
    """Configured prices: model to dollars per token, as decimal strings."""

    allow_unpriced: bool = False

    billed_statuses: tuple[int, ...] = ()
    """HTTP statuses after which a request counts as billed."""

    sandbox: str = "off"
    """``auto``, ``required`` or ``off``: whether other files are closed to it."""

    closed_dir: str | None = None
    """Folder of the store: only ledger and journal stay open to the child."""

    batching: Batching | None = None
    """None: each call is a request of its own."""

    restarts: int = 0
    """How many children were lost at this attempt; their calls keep their names."""

    rehearse: bool = False
    """Ask no provider and charge nothing: say what a run would come to."""

    def encode(self) -> bytes:
        """Spell the request as one JSON object."""
        return dump({"schema": self.schema, **dataclasses.asdict(self)})

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """
        Read a request back.

        Raises:
            VectorlessRagError: ``child_protocol``, if it is not one of ours.
        """
        raw = load(data, cls.schema)
        try:
            raw["limits"] = Limits(**raw["limits"])
            raw["budgets"] = tuple(raw["budgets"])
            raw["billed_statuses"] = tuple(raw["billed_statuses"])
            raw["batching"] = Batching(**raw["batching"]) if raw["batching"] else None
            return cls(**raw)
        except (TypeError, KeyError) as error:
            raise garbled("request fields") from error


@dataclass(frozen=True, kw_only=True)
class Parser:
    """What read the pages, by name and installed version."""

    name: str
    version: str


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a successful child found, not yet checked."""

    route: str
    """What built the tree: ``flash``, ``standard`` or ``shortcut``."""

    tree: tuple[Any, ...]
    """Nested nodes as PageIndex spells them; `vectorless_rag.tree` checks them."""

    pages: tuple[str, ...]
    """Text of every page, in order."""

    parser: Parser


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The one answer of a child: what it found, or why it failed."""

    schema: ClassVar[int] = 1

    found: Found | None = None
    failure: Failure | None = None

    notes: dict[str, int] = field(default_factory=dict)
    """Counters for the run record, for example of traces not delivered."""

    estimate: Estimate | None = None
    """Of a rehearsal, one that failed included."""

    def encode(self) -> bytes:
        """Spell the answer as one frame: head, then JSON."""
        body = dump(
            {
                "schema": self.schema,
                "found": dataclasses.asdict(self.found) if self.found else None,
                "failure": dataclasses.asdict(self.failure) if self.failure else None,
                "notes": self.notes,
                "estimate": dataclasses.asdict(self.estimate)
                if self.estimate
                else None,
            }
        )
        head = _HEAD.pack(MAGIC, len(body), hashlib.sha256(body).digest())
        return head + body

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """
        Read the one frame in *data*.

        Raises:
            VectorlessRagError: ``child_protocol``: nothing, half a frame, more
                than a frame, or a frame that is not ours.
        """
        if len(data) < HEAD_BYTES:
            raise garbled("no answer")
        magic, length, digest = _HEAD.unpack_from(data)
        body = data[HEAD_BYTES:]
        if magic != MAGIC or length != len(body):
            raise garbled("half an answer")
        if hashlib.sha256(body).digest() != digest:
            raise garbled("answer digest")
        raw = load(body, cls.schema)
        try:
            return cls(
                found=_found(raw["found"]) if raw["found"] else None,
                failure=_failure(raw["failure"]) if raw["failure"] else None,
                notes=_notes(raw["notes"]),
                estimate=Estimate.of(raw["estimate"]) if raw["estimate"] else None,
            )
        except (TypeError, KeyError, ValueError) as error:
            raise garbled("answer fields") from error


@dataclass(frozen=True, kw_only=True)
class Progress:
    """One line about how far the child is."""

    stage: str
    """A stage of the flow: ``pages``, ``structure``, ``summaries``, …"""

    calls: int = 0
    """Model calls finished so far."""

    cost_nano_usd: int = 0
    """Spent so far, in nano-dollars."""

    in_flight: int = 0
    """Model calls begun and not finished."""

    waited_s: int = 0
    """How long batches were out so far, in seconds."""

    def encode(self) -> bytes:
        """Spell it as one line of JSON."""
        return dump(dataclasses.asdict(self)) + b"\n"

    @classmethod
    def decode(cls, line: bytes) -> Self:
        """
        Read one line back.

        Raises:
            VectorlessRagError: ``child_protocol``.
        """
        try:
            report = cls(**json.loads(line))
            check_type(report.stage, str)
            for number in (report.calls, report.cost_nano_usd, report.waited_s):
                check_type(number, int)
        except (TypeError, ValueError, RecursionError) as error:
            raise garbled("progress line") from error
        return report


_LONGEST_DETAIL = 300

# The child may have been taken over by a document: nothing it says is believed to
# be of the right type. `vectorless_rag.tree` checks the tree.


def _found(raw: dict[str, Any]) -> Found:
    parser = Parser(**raw["parser"])
    for text in (raw["route"], parser.name, parser.version, *raw["pages"]):
        check_type(text, str)
    return Found(
        route=raw["route"],
        tree=tuple(raw["tree"]),
        pages=tuple(raw["pages"]),
        parser=parser,
    )


def _failure(raw: dict[str, Any]) -> Failure:
    check_type(raw["detail"], str)
    shown = "".join(c if c.isprintable() else "?" for c in raw["detail"])
    return Failure(code=Code(raw["code"]), detail=shown[:_LONGEST_DETAIL])


def _notes(raw: dict[str, Any]) -> dict[str, int]:
    check_type(raw, dict)
    for number in raw.values():
        check_type(number, int)
    return raw
