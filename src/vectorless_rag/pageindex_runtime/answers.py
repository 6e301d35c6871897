"""From what a provider sent to what the upstream is handed, or asked again."""

from dataclasses import dataclass
from typing import Any

from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.pageindex_runtime.operations import Operation, read
from vectorless_rag.pageindex_runtime.providers import Message, ProviderReply
from vectorless_rag.pageindex_runtime.replies import ReplyError

_SHORTER = "It was cut off at the output limit; answer more briefly."
_WORDS = {
    "bad_finish": "It did not end in the ordinary way.",
    "blank": "A text in it is empty.",
    "duplicate_key": "A key occurs twice in one object.",
    "empty": "It was empty.",
    "int_too_long": "A number in it is too long.",
    "lone_surrogate": "A text in it is not valid Unicode.",
    "missing_key": "A required key is missing.",
    "nested_entries": "Entries stand inside one another; the list must be flat.",
    "non_finite": "A number in it is not finite.",
    "not_a_list": "A list was expected.",
    "not_a_page": "A page number was expected.",
    "not_a_page_label": "A printed page number was expected.",
    "not_a_text": "A text was expected.",
    "not_an_object": "An object was expected.",
    "not_json": "It was not valid JSON.",
    "not_yes_or_no": 'Exactly "yes" or "no" was expected.',
    "too_deep": "It is nested too deeply.",
    "too_large": "It is too long.",
    "trailing_data": "Something follows the JSON.",
    "truncated": _SHORTER,
}


@dataclass(frozen=True, kw_only=True, repr=False)
class Reply:
    """A usable answer of a model."""

    text: str
    """For data: JSON in the spellings the upstream compares with. Else as it came."""

    finish_reason: str
    """``stop``, or ``length`` for a text that was cut and may be continued."""

    value: Any = None
    """For data: what `text` says, parsed. Else None."""


def judge(operation: Operation, reply: ProviderReply, *, continues: bool) -> Reply:
    """
    Read a provider's reply as *operation* expects it.

    Args:
        operation: What was asked.
        reply: What came.
        continues: The reply goes on from an earlier, cut one: it is a piece of
            data and not data itself.

    Raises:
        ReplyError: It is empty, cut, or not the shape asked for.
        VectorlessRagError: ``pageindex_content_filter``.
    """
    text, finish = reply.text or "", reply.finish_reason or "stop"
    if finish == "content_filter":
        raise VectorlessRagError(Code.CONTENT_FILTER, operation.name)
    if finish == "length":
        if operation.may_truncate and text.strip():
            return Reply(text=text, finish_reason="length")
        raise ReplyError(Code.TRUNCATED_RESPONSE, "truncated", "", operation.name)
    if not text.strip():
        raise ReplyError(Code.EMPTY_RESPONSE, "empty", "", operation.name)
    if finish != "stop":
        code = Code.INVALID_JSON if operation.is_data else Code.EMPTY_RESPONSE
        raise ReplyError(code, "bad_finish", "", operation.name)
    if continues and operation.may_truncate:
        return Reply(text=text, finish_reason="stop")
    got = read(operation, text)
    return Reply(text=got.text, finish_reason="stop", value=got.value)


def asked_again(
    messages: tuple[Message, ...], error: ReplyError
) -> tuple[Message, ...]:
    """
    Return the conversation that asks once more.

    The notice says what was wrong and where, and quotes nothing: what a reply
    holds may come from a hostile document. The turn before it keeps user and
    assistant in alternation, which some providers insist on.
    """
    where = f" (at {error.where})" if error.where else ""
    notice = (
        f"Your previous reply could not be used{where}. {_WORDS[error.reason]}"
        " Answer the question again, completely, in exactly the format asked for,"
        " and output nothing else."
    )
    withheld = Message("assistant", "(reply withheld)")
    return (*messages, withheld, Message("user", notice))
