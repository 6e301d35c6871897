"""A call boundary that asks by batch: real LiteLLM, HTTP, ledger and journal."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from boundary import ATTEMPT, MODEL, caller_for, opened
from fault_server import FaultServer
from vectorless_rag.batching import Batching
from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.ledger.book import Ledger
from vectorless_rag.ledger.types import HoldRow
from vectorless_rag.pageindex_runtime.batch_records import Records
from vectorless_rag.pageindex_runtime.batches import BatchProvider, Behind
from vectorless_rag.pageindex_runtime.calls import Caller, Reply
from vectorless_rag.pageindex_runtime.closing import Late
from vectorless_rag.pageindex_runtime.journal import FileJournal
from vectorless_rag.pageindex_runtime.litellm_batches import LiteLLMBatches
from vectorless_rag.prices import Prices

ASK = "check_title_appearance"
SCOPE = ("document", MODEL, None)


def batching(**changes: Any) -> Batching:
    usual = {"window_s": 0.2, "requests": 3, "timeout_s": 60, "poll_s": 1, "stop_s": 5}
    return Batching(**(usual | changes))


@dataclass
class Batched:
    """A caller by batch, and all that stands behind it."""

    caller: Caller
    ledger: Ledger
    server: FaultServer
    records: Records
    pool: ThreadPoolExecutor
    beats: list[int] = field(default_factory=list)

    def begin(self, *prompts: str, op: str = ASK) -> list[Future[Reply]]:
        """Ask each of *prompts* on a thread of its own."""
        return [self.pool.submit(self.caller.complete, op, p) for p in prompts]

    def ask(self, *prompts: str) -> list[Reply | VectorlessRagError]:
        """Ask all at once, and return what came of each."""
        futures = self.begin(*prompts)
        return [came_of(future) for future in futures]

    @property
    def rows(self) -> list[HoldRow]:
        """The attempt's rows, by the order of their names."""
        return sorted(self.ledger.holds(ATTEMPT), key=lambda row: row.hold_id)

    @property
    def states(self) -> list[str]:
        """How they were closed."""
        return sorted(str(row.state) for row in self.rows)

    @property
    def sizes(self) -> list[int]:
        """How many requests each batch has."""
        desk = self.server.desk
        return [len(desk.lines_of(batch)) for batch in desk.batches.values()]


def came_of(future: Future[Reply]) -> Reply | VectorlessRagError:
    try:
        return future.result(timeout=60)
    except VectorlessRagError as error:
        return error


@contextmanager
def batched(
    folder: Path,
    server: FaultServer,
    *,
    ledger: Ledger | None = None,
    replay: bool = True,
    **changes: Any,
) -> Iterator[Batched]:
    """A caller that asks *server* by batch; at its end the ledger is sound."""
    if ledger is None:
        with (
            opened(folder) as own,
            batched(folder, server, ledger=own, replay=replay, **changes) as found,
        ):
            yield found
        return
    policy = {name: changes.pop(name) for name in ("attempt_id",) if name in changes}
    limits = {name: changes.pop(name) for name in ("call_attempts",) if name in changes}
    journal = FileJournal(folder / "journal", server=None, replay=replay)
    records = Records(folder / "journal", SCOPE)
    beats: list[int] = []

    def beat(waited_s: int) -> None:
        beats.append(waited_s)
        ledger.renew(policy.get("attempt_id", ATTEMPT), 120)

    def provider() -> BatchProvider:
        desk = LiteLLMBatches("openai", api_base=server.base)
        behind = Behind(
            desk=desk, journal=journal, records=records, late=Late(ledger, Prices())
        )
        return BatchProvider(behind, batching(**changes), on_beat=beat, beat_s=0.05)

    caller = caller_for(
        ledger,
        remote=provider,
        journal=journal,
        batching=batching(**changes),
        changes={"concurrency": 1, **limits},
        **policy,
    )
    with ThreadPoolExecutor(16) as pool:
        try:
            yield Batched(caller, ledger, server, records, pool, beats)
        finally:
            caller._shut_down()
            assert [] == ledger.check()
