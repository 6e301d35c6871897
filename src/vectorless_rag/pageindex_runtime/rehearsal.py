"""
A run in which nobody is asked and nothing is charged.

The offline provider stands in for the model, so that the run goes the way a real one
would; tokens are counted and priced as the model's own.
"""

from collections.abc import Callable

from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.estimates import Estimate, Tally
from vectorless_rag.ledger.types import Hold, TokenUsage
from vectorless_rag.pageindex_runtime import bounds, worst_case
from vectorless_rag.pageindex_runtime.calls import Caller, Policy
from vectorless_rag.pageindex_runtime.framing import framed
from vectorless_rag.pageindex_runtime.grouping import page_list_to_group_text
from vectorless_rag.pageindex_runtime.indexing import Survey, index_document
from vectorless_rag.pageindex_runtime.no_toc import marked_page
from vectorless_rag.pageindex_runtime.offline import OfflineProvider
from vectorless_rag.pageindex_runtime.planning import output_cap, price_of
from vectorless_rag.pageindex_runtime.providers import (
    Message,
    ProviderReply,
    ProviderRequest,
)
from vectorless_rag.pageindex_runtime.tokens import (
    PER_MESSAGE,
    bound_tokens,
    count_tokens,
    is_counted_exactly,
)
from vectorless_rag.pageindex_runtime.wiring import use
from vectorless_rag.prices import Price, Prices
from vectorless_rag.source import Pages
from vectorless_rag.units import NanoUsd
from vectorless_rag.wire import Answer, Found, Progress, Request

REASONING_TOKENS = 40
"""What a model writes where it is asked to say first what it thinks."""

_THINKS = '"thinking"'

# Of a count that is a guess: four bytes are taken for a token, and may be four.
_GUESSED = 4.0
_COUNTED = 1.1


class _StandIn:
    """Answers as the offline model does, at the length a model would take."""

    def __init__(self, model: str) -> None:
        self._offline = OfflineProvider(counted_as=model)

    async def open(self) -> None:
        """Load nothing."""

    async def close(self) -> None:
        """Leave nothing."""

    async def send(self, request: ProviderRequest) -> ProviderReply:
        """Answer one request."""
        reply = await self._offline.send(request)
        if reply.usage is None or _THINKS not in request.messages[0].content:
            return reply
        usage = TokenUsage(
            prompt_tokens=reply.usage.prompt_tokens,
            completion_tokens=reply.usage.completion_tokens + REASONING_TOKENS,
        )
        return ProviderReply(
            text=reply.text, finish_reason=reply.finish_reason, usage=usage
        )


class RehearsedAccount:
    """Sums up what would be charged; refuses nothing."""

    def __init__(self) -> None:
        self.slack = NanoUsd(0)
        """How much more than its cost a request had set aside, at most."""

        self._holds: dict[str, Hold] = {}
        self._tallies: dict[str, Tally] = {}

    @property
    def tallies(self) -> tuple[Tally, ...]:
        """What was asked, by operation."""
        return tuple(self._tallies[name] for name in sorted(self._tallies))

    def reserve(self, hold: Hold) -> None:
        """Take note of a request."""
        self._holds[hold.hold_id] = hold

    def settle(
        self,
        hold_id: str,
        amount: NanoUsd,
        usage: TokenUsage,
        response_id: str | None,
        finish_reason: str | None,
    ) -> None:
        """Add what it would have cost."""
        del response_id, finish_reason
        hold = self._holds.pop(hold_id)
        self.slack = NanoUsd(max(self.slack, hold.amount - amount))
        name = hold.operation
        before = self._tallies.get(name)
        self._tallies[name] = Tally(
            operation=name,
            calls=1 + (before.calls if before else 0),
            prompt_tokens=usage.prompt_tokens + (before.prompt_tokens if before else 0),
            completion_tokens=usage.completion_tokens
            + (before.completion_tokens if before else 0),
            cost=NanoUsd(amount + (before.cost if before else 0)),
        )

    def replay(self, hold: Hold) -> None:
        """Count nothing: nothing is kept between rehearsals."""

    def void(self, hold_id: str, reason: str, code: Code | None) -> None:
        """Count nothing: it would not be billed."""
        del reason, code
        self._holds.pop(hold_id)

    def unknown(
        self,
        hold_id: str,
        reason: str,
        code: Code | None,
        response_id: str | None = None,
    ) -> None:
        """Count nothing: the stand-in always says what it used."""
        del reason, code, response_id
        self._holds.pop(hold_id)


def rehearse(
    request: Request, policy: Policy, on_progress: Callable[[Progress], None]
) -> Answer:
    """
    Go through a run of *request* without a provider, a ledger or a journal.

    Args:
        request: As for a run.
        policy: What the calls of that run may do.
        on_progress: Is handed each stage as it starts.

    Returns:
        An estimate; beside it the route and the pages, or why there is no tree.
    """
    prices, account, survey = Prices(request.prices_json), RehearsedAccount(), Survey()
    stand_in = _StandIn(request.model)
    found, failure = None, None
    try:
        price = _price(prices, policy)
        with (
            Caller(
                policy=policy,
                account=account,
                prices=prices,
                offline=OfflineProvider(),
                remote=lambda: stand_in,
            ) as caller,
            use(caller),
        ):
            found = index_document(request, caller, on_progress, survey)
    except VectorlessRagError as error:
        by_batch = request.batching is not None
        price, failure = prices.find(request.model, by_batch=by_batch), error.failure
    if survey.pages is None:
        return Answer(failure=failure)
    return Answer(
        found=_bare(found),
        failure=failure,
        estimate=Estimate(
            page_tokens=tuple(
                count_tokens(text, request.model) if text.strip() else 0
                for text in survey.pages.texts
            ),
            expected=account.tallies,
            worst=worst_of(request, survey, _route(request, survey, found), price),
            slack=account.slack,
        ),
    )


def _price(prices: Prices, policy: Policy) -> Price | None:
    """Refuse an unpriced model even where nothing would be asked."""
    return price_of(prices, policy, policy.model, by_batch=policy.batching is not None)


def _bare(found: Found | None) -> Found | None:
    """Keep the route alone: the tree is made up, and the texts are not needed."""
    if found is None:
        return None
    return Found(route=found.route, tree=(), pages=(), parser=found.parser)


def worst_of(
    request: Request, survey: Survey, route: str, price: Price | None
) -> tuple[Tally, ...]:
    """
    Bound what a run can come to.

    Args:
        request: Model and limits.
        survey: Its pages; and the layout, on the flash route.
        route: ``shortcut``, ``flash`` or ``standard``.
        price: None: nothing is charged.

    Returns:
        Requests at the most they can cost, by operation, and retries; nothing
        where no model would be asked.
    """
    pages = survey.pages
    if pages is None or not any(text.strip() for text in pages.texts):
        return ()
    asked = _asked(request, price)
    bound = [_bound(text, request.model) for text in pages.texts]
    if route == "shortcut":
        works = bounds.shortcut(bound, asked)
    elif route == "standard":
        works = bounds.standard(bound, _groups(pages, request.model), asked)
    else:
        layout = survey.layout or bounds.Layout(nodes=0, parents=0, open_leaves=())
        works = bounds.flash(bound, layout, asked)
    return worst_case.priced(works, price, asked)


def _route(request: Request, survey: Survey, found: Found | None) -> str:
    """Name the route, also where it led to nothing."""
    if found is not None:
        return found.route
    if survey.pages is not None and len(survey.pages.texts) == 1:
        return "shortcut"
    return "flash" if request.mode == "flash" else "standard"


def _asked(request: Request, price: Price | None) -> worst_case.Asked:
    limits, exact = request.limits, is_counted_exactly(request.model)
    return worst_case.Asked(
        output_tokens=output_cap(limits.max_output_tokens, price),
        attempts=limits.call_attempts,
        concurrency=limits.concurrency,
        spread=_COUNTED if exact else _GUESSED,
        exact=exact,
    )


def _bound(text: str, model: str) -> int:
    # Framed: what looks like the frame's own tag grows by a few characters.
    return bound_tokens((Message("user", framed(text)),), model) - PER_MESSAGE


def _groups(pages: Pages, model: str) -> int:
    marked = [marked_page(n, text) for n, text in enumerate(pages.texts, 1)]
    lengths = [count_tokens(page, model) for page in marked]
    return len(page_list_to_group_text(marked, lengths))
