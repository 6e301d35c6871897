"""What the call boundary asks of a provider, and how a provider fails."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, Self

from vectorless_rag.errors import Code
from vectorless_rag.ledger.types import TokenUsage
from vectorless_rag.units import Sha256

_NO_KEY = Sha256("")


@dataclass(frozen=True)
class Message:
    """One turn of a conversation."""

    role: str
    """``system``, ``user`` or ``assistant``."""

    content: str

    def as_dict(self) -> dict[str, str]:
        """Spell it the way chat protocols do."""
        return {"role": self.role, "content": self.content}

    def __repr__(self) -> str:
        """Show the length alone: the content is a prompt or a reply."""
        return f"Message(role={self.role!r}, {len(self.content)} characters)"


@dataclass(frozen=True, kw_only=True)
class ProviderRequest:
    """One request to a provider."""

    operation: str
    model: str
    """``provider/name``."""

    messages: tuple[Message, ...]

    max_tokens: int
    """Cap on the output tokens."""

    timeout_s: float
    """Longest wait for the reply, in seconds."""

    params: Mapping[str, str] = field(default_factory=dict)
    """Further parameters, from the boundary's allow-list."""

    hold_id: str = ""
    """What it is charged to; no other request has the same."""

    key: Sha256 = _NO_KEY
    """Its name in the journal."""


@dataclass(frozen=True, kw_only=True, repr=False)
class ProviderReply:
    """What a provider answered. Its text is in no representation."""

    text: str | None
    finish_reason: str | None
    """``stop``, ``length``, ``content_filter``, or what the provider calls it."""

    usage: TokenUsage | None
    """None: not known. It then counts at the most it could have cost."""

    response_id: str | None = None

    cache_write_tokens: int = 0
    """Prompt tokens written to the provider's cache, at a rate of their own."""


class Money(StrEnum):
    """What becomes of the hold of a request that failed."""

    VOID = "void"
    """Certainly nothing was billed."""

    UNKNOWN = "unknown"
    """It may have been billed."""


class ProviderFailure(Exception):  # noqa: N818  (the word of the design)
    """
    A request that brought no reply.

    Args:
        kind: What happened, as one of a few fixed words.
        code: What it is called when no further try is made.
        retry: Whether another try can help.
        money: What becomes of the hold.
        retry_after_s: Wait the provider asked for, in seconds.
        status: HTTP status on the wire, if there was one.
    """

    def __init__(
        self,
        kind: str,
        code: Code,
        *,
        retry: bool,
        money: Money,
        retry_after_s: float | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(kind)
        self.kind = kind
        self.code = code
        self.retry = retry
        self.money = money
        self.retry_after_s = retry_after_s
        self.status = status

    def anew(self, *, money: Money | None = None, retry: bool = True) -> Self:
        """
        Return the same failure for another request.

        Args:
            money: What becomes of its hold; None: the same.
            retry: False: no other try is made, whatever this one says.
        """
        return type(self)(
            self.kind,
            self.code,
            retry=self.retry and retry,
            money=money or self.money,
            retry_after_s=self.retry_after_s,
            status=self.status,
        )

    @property
    def detail(self) -> str:
        """What a message may say: the kind, and the status on the wire."""
        return self.kind if self.status is None else f"{self.kind}, HTTP {self.status}"


class Provider(Protocol):
    """Answers requests."""

    async def send(self, request: ProviderRequest) -> ProviderReply:
        """
        Send one request, once.

        Raises:
            ProviderFailure: There is no reply. Nothing of the prompt, the reply
                or the provider's own message is in it or in its context.
        """
        ...


class RemoteProvider(Provider, Protocol):
    """A provider that must be loaded first, and left in order."""

    async def open(self) -> None:
        """Load what it needs, before the clock of any call runs."""
        ...

    async def close(self) -> None:
        """Give back connections."""
        ...
