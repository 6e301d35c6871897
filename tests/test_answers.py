"""Usable answers, and asking once more for one."""

from pathlib import Path

import pytest

from boundary import (
    ASK,
    WORDS,
    YES,
    Scripted,
    bench,
    failure,
    said,
)
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.pageindex_runtime.providers import (
    Message,
    ProviderFailure,
    ProviderReply,
)


def test_an_unusable_reply_is_asked_again_once(tmp_path: Path) -> None:
    """The second request says what was wrong, and quotes nothing of it."""
    provider = Scripted([said(WORDS), YES])
    with bench(tmp_path, offline=provider) as run:
        assert {"answer": "yes"} == run.caller.complete(ASK, "question").value

        assert ["settled", "settled"] == run.states
        assert ["attempt-1:1", "attempt-1:2"] == [row.hold_id for row in run.rows]
        assert 1 == run.caller.counts.reasks
    first, second = (request.messages for request in provider.requests)
    assert first == second[:1]
    assert ["user", "assistant", "user"] == [m.role for m in second]
    assert "not valid JSON" in second[-1].content
    assert not any("CANARY" in message.content for message in second)


@pytest.mark.parametrize(
    ("operation", "reply", "code"),
    [
        pytest.param(ASK, said("no json"), Code.INVALID_JSON, id="prose"),
        pytest.param(ASK, said('{"answer": "maybe"}'), Code.INVALID_JSON, id="shape"),
        pytest.param(ASK, said(None), Code.EMPTY_RESPONSE, id="none"),
        pytest.param(ASK, said(" \n"), Code.EMPTY_RESPONSE, id="blank"),
        pytest.param(ASK, said("{", "length"), Code.TRUNCATED_RESPONSE, id="cut"),
        pytest.param(ASK, said("{}", "other"), Code.INVALID_JSON, id="odd-end"),
        pytest.param(
            "generate_doc_description", said(" "), Code.EMPTY_RESPONSE, id="blank-text"
        ),
        pytest.param(
            "generate_doc_description",
            said("a", "other"),
            Code.EMPTY_RESPONSE,
            id="odd-end-text",
        ),
        pytest.param(
            "toc_transformer",
            said(" ", "length"),
            Code.TRUNCATED_RESPONSE,
            id="all-cut",
        ),
    ],
)
def test_a_reply_that_stays_unusable_is_a_failure_of_that_prompt(
    operation: str, reply: ProviderReply, code: Code, tmp_path: Path
) -> None:
    """Two requests at most, a classified failure, and the run goes on."""
    provider = Scripted([reply, reply, said("a text")])
    with bench(tmp_path, offline=provider) as run:
        with pytest.raises(VectorlessRagError, match=operation) as caught:
            run.caller.complete(operation, "question")

        assert (code, 2) == (caught.value.code, len(provider.requests))
        assert "a text" == run.caller.complete("generate_doc_description", "q").text
        run.caller.close()


def test_a_filtered_reply_is_not_asked_again(tmp_path: Path) -> None:
    """The same question gets the same refusal; only that prompt is lost."""
    provider = Scripted([said("x", "content_filter")])
    with bench(tmp_path, offline=provider) as run:
        with pytest.raises(VectorlessRagError, match="content policy") as caught:
            run.caller.complete(ASK, "question")

        assert (Code.CONTENT_FILTER, ["settled"]) == (caught.value.code, run.states)
        run.caller.close()


@pytest.mark.parametrize("operation", ["toc_transformer", "extract_toc_content"])
def test_a_cut_reply_that_may_be_continued_is_handed_on(
    operation: str, tmp_path: Path
) -> None:
    """The upstream sees the text and that it was cut."""
    with bench(tmp_path, offline=Scripted([said('{"table_of', "length")])) as run:
        reply = run.caller.complete(operation, "question")

    assert ('{"table_of', "length", None) == (
        reply.text,
        reply.finish_reason,
        reply.value,
    )


def test_a_continuation_is_a_piece_and_not_read(tmp_path: Path) -> None:
    """What continues a cut reply need not be JSON by itself."""
    history = (Message("user", "q"), Message("assistant", '{"table_of'))
    with bench(tmp_path, offline=Scripted([said('_contents": []}')])) as run:
        reply = run.caller.complete("toc_transformer", "go on", history=history)

    assert ('_contents": []}', "stop", None) == (
        reply.text,
        reply.finish_reason,
        reply.value,
    )


def test_all_requests_of_a_call_count_towards_its_tries(tmp_path: Path) -> None:
    """With one request allowed there is no second question either."""
    provider = Scripted([said("prose")])
    with (
        bench(tmp_path, offline=provider, changes={"call_attempts": 1}) as run,
        pytest.raises(VectorlessRagError, match="not_json"),
    ):
        run.caller.complete(ASK, "question")

    assert 1 == len(provider.requests)


@pytest.mark.parametrize("second", [failure(), failure(Code.TIMEOUT)])
def test_a_second_question_that_gets_no_answer_leaves_the_first_failure(
    second: ProviderFailure, tmp_path: Path
) -> None:
    """The reply was unusable: that is what went wrong, and it ends no run."""
    provider = Scripted([said("prose"), second])
    with bench(tmp_path, offline=provider) as run:
        with pytest.raises(VectorlessRagError, match="not_json"):
            run.caller.complete(ASK, "question")

        assert ["settled", "voided", "voided"] == run.states
        run.caller.close()


def test_a_second_question_that_is_refused_ends_the_run(tmp_path: Path) -> None:
    """A refusal is a refusal, whichever request it meets."""
    provider = Scripted([said("prose"), failure(Code.AUTH, retry=False)])
    with bench(tmp_path, offline=provider) as run:
        with pytest.raises(VectorlessRagError, match="scripted"):
            run.caller.complete(ASK, "question")
        with pytest.raises(VectorlessRagError, match="credentials"):
            run.caller.close()
