"""The provider ``offline/extractive``: deterministic, in process, without network."""

import json
from hashlib import sha256

from vectorless_rag.errors import Code
from vectorless_rag.ledger.types import TokenUsage
from vectorless_rag.pageindex_runtime.offline import literals
from vectorless_rag.pageindex_runtime.offline.answers import ANSWERS
from vectorless_rag.pageindex_runtime.offline.descriptions import DESCRIPTIONS
from vectorless_rag.pageindex_runtime.offline.prompts import instructions, parts_of
from vectorless_rag.pageindex_runtime.providers import (
    Message,
    Money,
    ProviderFailure,
    ProviderReply,
    ProviderRequest,
)
from vectorless_rag.pageindex_runtime.tokens import count_tokens

MODEL = "offline/extractive"
"""The one model of this provider."""


class OfflineProvider:
    """
    Answers every operation from the text that its prompt shows.

    Summaries are sentences of that text, titles are its headings, pages are those
    marked in it. The same request always has the same reply, and takes time in
    proportion to the length of the prompt.

    Args:
        counted_as: The model whose tokens are counted.
    """

    def __init__(self, counted_as: str = MODEL) -> None:
        self._model = counted_as

    async def send(self, request: ProviderRequest) -> ProviderReply:
        """
        Answer one request.

        Raises:
            ProviderFailure: ``bad_request`` if the operation is unknown or there is
                no prompt. Nothing was billed.
        """
        text = answer(request.operation, request.messages)
        head = _head(text, request.max_tokens, self._model)
        prompt = sum(count_tokens(m.content, self._model) for m in request.messages)
        return ProviderReply(
            text=head,
            finish_reason="stop" if head == text else "length",
            usage=TokenUsage(
                prompt_tokens=prompt, completion_tokens=count_tokens(head, self._model)
            ),
            response_id=_id(request),
        )


def answer(operation: str, messages: tuple[Message, ...]) -> str:
    """
    Give the whole answer to a conversation.

    Where an assistant's turn is part of it, the answer is what that turn leaves out.

    Raises:
        ProviderFailure: As `OfflineProvider.send` says.
    """
    asked = next((m.content for m in messages if m.role == "user"), None)
    if asked is None or operation not in ANSWERS.keys() | DESCRIPTIONS.keys():
        raise ProviderFailure(
            "bad_request", Code.BAD_REQUEST, retry=False, money=Money.VOID
        )
    parts = parts_of(operation, asked)
    if operation in DESCRIPTIONS:
        return DESCRIPTIONS[operation](parts, instructions(operation, asked))
    whole = ANSWERS[operation](parts)
    told = "".join(m.content for m in messages if m.role == "assistant")
    return _rest(operation, whole, told) if told else whole


def _rest(operation: str, whole: str, told: str) -> str:
    if operation != "toc_transformer":
        return whole.removeprefix(told)
    rows = json.loads(whole)["table_of_contents"]
    done = {
        (str(row.get("structure")), row["title"])
        for row in literals.records(literals.read(told).value)
        if "page" in row
    }
    left = [row for row in rows if (str(row["structure"]), row["title"]) not in done]
    return json.dumps({"table_of_contents": left}, ensure_ascii=False)


def _head(text: str, most: int, model: str) -> str:
    """Cut *text* to *most* tokens, as a provider does at its output limit."""
    if count_tokens(text, model) <= most:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if count_tokens(text[:middle], model) <= most:
            low = middle
        else:
            high = middle - 1
    return text[:low]


def _id(request: ProviderRequest) -> str:
    digest = sha256(request.operation.encode())
    for message in request.messages:
        digest.update(message.content.encode("utf-8", "surrogatepass"))
    return f"offline-{digest.hexdigest()[:24]}"
