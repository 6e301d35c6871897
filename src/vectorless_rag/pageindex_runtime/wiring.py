"""
The names that the patches bind in place of the upstream's own functions.

Each has the upstream's signature, and the operation it serves where it asks a
model. All of them go through the `Caller` that `use` has put in place.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.pageindex_runtime import tokens
from vectorless_rag.pageindex_runtime.calls import Caller
from vectorless_rag.pageindex_runtime.failures import ends_run
from vectorless_rag.pageindex_runtime.providers import Message
from vectorless_rag.pageindex_runtime.replies import parse, unfenced
from vectorless_rag.pageindex_runtime.text_first import text_first

_CALLER: ContextVar[Caller] = ContextVar("vectorless_rag_caller")


@contextmanager
def use(caller: Caller) -> Iterator[Caller]:
    """Let the patched code of this context call models through *caller*."""
    token = _CALLER.set(caller)
    try:
        yield caller
    finally:
        _CALLER.reset(token)


def current() -> Caller:
    """
    Return the caller in use.

    Raises:
        VectorlessRagError: ``internal_error``: upstream code runs outside a run.
    """
    caller = _CALLER.get(None)
    if caller is None:
        raise VectorlessRagError(Code.INTERNAL_ERROR, "no caller is in use")
    return caller


def decides(question: str) -> bool:
    """Tell whether the text may answer a question; without a caller it may not."""
    caller = _CALLER.get(None)
    return caller is not None and question in caller.policy.decides


def concurrency() -> int:
    """Tell how many calls may be in flight."""
    return current().policy.limits.concurrency


def llm_completion(
    model: str | None,
    prompt: str,
    chat_history: Sequence[Mapping[str, str]] | None = None,
    return_finish_reason: bool = False,  # noqa: FBT001, FBT002  (upstream's signature)
    *,
    operation: str,
) -> Any:  # noqa: ANN401  (a text, or a text and a finish reason)
    """
    Ask a model and wait; stands in for the upstream function of that name.

    Returns:
        The text, or the text and ``finished`` or ``max_output_reached``.

    Raises:
        VectorlessRagError: What the call failed with; see `Caller.complete`.
    """
    history = tuple(_message(operation, turn) for turn in chat_history or ())
    asked = text_first(operation, prompt)
    reply = current().complete(operation, asked, history=history, model=model)
    if not return_finish_reason:
        return reply.text
    cut = reply.finish_reason == "length"
    return reply.text, "max_output_reached" if cut else "finished"


async def llm_acompletion(
    model: str | None, prompt: str, *, operation: str, **params: str
) -> str:
    """
    Ask a model; stands in for the upstream function of that name.

    Raises:
        VectorlessRagError: What the call failed with; see `Caller.acomplete`.
    """
    asked = text_first(operation, prompt)
    reply = await current().acomplete(operation, asked, model=model, params=params)
    return reply.text


async def ask_model(
    model: str | None, prompt: str, *, operation: str = "expand"
) -> Any:  # noqa: ANN401  (the operation's shape)
    """Ask a model and return the value read; for ``tree_optimize.ask_model``."""
    reply = await current().acomplete(operation, prompt, model=model)
    return reply.value


def extract_json(content: str) -> Any:  # noqa: ANN401  (any JSON value)
    """
    Read the JSON in a reply; stands in for every parser the upstream has.

    Raises:
        ReplyError: ``pageindex_invalid_json`` or ``pageindex_empty_response``,
            never an empty object in its place.
    """
    return parse(content)


def get_json_content(response: str) -> str:
    """Return a reply without its code fence, closed or not, otherwise unchanged."""
    return unfenced(response)


def count_tokens(text: str | None, model: str | None = None) -> int:
    """Count the tokens of *text* without LiteLLM; 0 for None."""
    return tokens.count_tokens(text or "", model)


def is_terminal(exc: BaseException) -> bool:
    """
    Say whether *exc* ends the run; stands in for ``_is_unrecoverable``.

    False means that only the prompt failed: too long, filtered, or answered with
    nothing usable.
    """
    if not isinstance(exc, VectorlessRagError):
        return False
    caller = _CALLER.get(None)
    return ends_run(exc.code) if caller is None else caller.ends(exc)


def default_summary_reasoning_effort(_model: str | None) -> None:
    """Send no reasoning effort unless asked; the upstream looks it up in LiteLLM."""
    return


def flat_tree_limit(default: int) -> int:
    """
    Return how many nodes a tree without hierarchy may have and be summarised.

    In auto mode none: such a document goes to the standard algorithm, and the
    summaries would be paid for in vain.
    """
    caller = _CALLER.get(None)
    return 0 if caller is not None and caller.policy.mode == "auto" else default


def _message(operation: str, turn: Mapping[str, str]) -> Message:
    # The turn as it was sent, so that its continuation starts the same.
    return Message(turn["role"], text_first(operation, turn["content"]))
