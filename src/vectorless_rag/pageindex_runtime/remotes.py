"""What asks the provider of a run's model."""

from collections.abc import Callable
from pathlib import Path

from vectorless_rag.ledger.book import Ledger
from vectorless_rag.pageindex_runtime.batch_records import Records
from vectorless_rag.pageindex_runtime.batches import BatchProvider, Behind
from vectorless_rag.pageindex_runtime.closing import Late
from vectorless_rag.pageindex_runtime.journal import Journal
from vectorless_rag.pageindex_runtime.litellm_batches import LiteLLMBatches
from vectorless_rag.pageindex_runtime.litellm_provider import LiteLLMProvider
from vectorless_rag.pageindex_runtime.providers import RemoteProvider
from vectorless_rag.prices import Prices
from vectorless_rag.wire import Request


def remote_of(
    request: Request,
    ledger: Ledger,
    journal: Journal,
    on_beat: Callable[[int], None],
) -> RemoteProvider:
    """
    Make what asks the provider, one by one or by batch.

    Args:
        request: Model, server, and how calls are batched.
        ledger: Where calls of runs that are gone are settled.
        journal: Where replies are kept.
        on_beat: Is told every few seconds for how many seconds batches were out.
    """
    billed, server = frozenset(request.billed_statuses), request.api_base
    if request.batching is None:
        return LiteLLMProvider(api_base=server, billed=billed)
    if request.journal_dir is None:
        raise AssertionError("the parent refuses it")
    provider, _, _ = request.model.partition("/")
    scope = (request.document_sha256, request.model, server)
    behind = Behind(
        desk=LiteLLMBatches(provider, api_base=server),
        journal=journal,
        records=Records(Path(request.journal_dir), scope),
        late=Late(ledger, Prices(request.prices_json)),
        billed=billed,
    )
    return BatchProvider(behind, request.batching, on_beat=on_beat)
