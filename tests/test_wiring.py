"""The names that the patches bind, with the upstream's own signatures."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given

from boundary import Scripted, caller_for, opened, said
from strategies_replies import json_trees
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.pageindex_runtime import wiring
from vectorless_rag.pageindex_runtime.plans import DECIDED
from vectorless_rag.pageindex_runtime.providers import Money, ProviderFailure
from vectorless_rag.pageindex_runtime.replies import ReplyError, invalid

if TYPE_CHECKING:
    from vectorless_rag.pageindex_runtime.calls import Caller

MODEL = "offline/scripted"
YES = said('{"answer": "Yes"}')


@contextmanager
def using(tmp_path: Path, *turns: Any, mode: str = "auto") -> Iterator[Scripted]:
    provider = Scripted(list(turns))
    with (
        opened(tmp_path) as ledger,
        caller_for(ledger, offline=provider, mode=mode) as caller,
        wiring.use(caller) as used,
    ):
        assert used is wiring.current() is caller
        yield provider


def test_a_question_is_asked_by_its_operation(tmp_path: Path) -> None:
    """The text comes back in the spelling the upstream compares with."""
    with using(tmp_path, YES) as provider:
        text = wiring.llm_completion(
            model=MODEL, prompt="p", operation="check_title_appearance"
        )

    assert '{"answer": "yes"}' == text
    assert "check_title_appearance" == provider.requests[0].operation


def test_without_a_model_the_runs_own_is_asked(tmp_path: Path) -> None:
    """Upstream passes None where no model was configured."""
    with using(tmp_path, YES) as provider:
        wiring.llm_completion(None, "p", operation="check_title_appearance")

    assert MODEL == provider.requests[0].model


@pytest.mark.parametrize(
    ("finish", "word"), [("stop", "finished"), ("length", "max_output_reached")]
)
def test_the_finish_reason_is_the_upstreams_word(
    finish: str, word: str, tmp_path: Path
) -> None:
    """Upstream continues what was cut."""
    with using(tmp_path, said("1 Introduction", finish)):
        got = wiring.llm_completion(
            MODEL, "p", return_finish_reason=True, operation="extract_toc_content"
        )

    assert ("1 Introduction", word) == got


def test_a_conversation_goes_along(tmp_path: Path) -> None:
    """Earlier turns stand before the question."""
    history = [
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": "second"},
    ]
    with using(tmp_path, said("third")) as provider:
        wiring.llm_completion(MODEL, "q", history, operation="extract_toc_content")

    assert [("user", "first"), ("assistant", "second"), ("user", "q")] == [
        (m.role, m.content) for m in provider.requests[0].messages
    ]


def test_coroutines_ask_the_same_way(tmp_path: Path) -> None:
    """The caller in use is known inside tasks, and parameters go along."""

    async def both() -> tuple[Any, Any]:
        ask, expand = wiring.llm_acompletion, wiring.ask_model
        summary, children = await asyncio.gather(
            ask(MODEL, "p", operation="summary_leaf", reasoning_effort="none"),
            expand(MODEL, "p"),
        )
        return summary, children

    class ByOperation(Scripted):
        async def send(self, request: Any) -> Any:
            self.requests.append(request)
            replies = {
                "expand": '{"subsections": []}',
                "summary_leaf": '{"summary": "s"}',
            }
            return said(replies[request.operation])

    provider = ByOperation([])
    with (
        opened(tmp_path) as ledger,
        caller_for(ledger, offline=provider) as caller,
        wiring.use(caller),
    ):
        assert ('{"summary": "s"}', {"subsections": []}) == asyncio.run(both())
    params = {r.operation: dict(r.params) for r in provider.requests}
    assert {"summary_leaf": {"reasoning_effort": "none"}, "expand": {}} == params


def test_outside_a_run_nothing_is_asked(tmp_path: Path) -> None:
    """Upstream code that runs without an account is a defect, and spends nothing."""
    with using(tmp_path, YES):
        pass
    with pytest.raises(VectorlessRagError, match="no caller is in use"):
        wiring.llm_completion(MODEL, "p", operation="check_title_appearance")


@given(json_trees)
def test_the_upstreams_parsers_are_the_strict_one(value: Any) -> None:
    """One parser stands in for all of them."""
    assert value == wiring.extract_json(f"```json\n{json.dumps(value)}\n```")


@pytest.mark.parametrize("reply", ["", "Sorry.", '{"a": 1,}', '{"a": None}', '{"a'])
def test_an_unusable_reply_is_never_an_empty_object(reply: str) -> None:
    """What the upstream turned into {} is an error."""
    with pytest.raises(ReplyError, match=r"empty|not_json"):
        wiring.extract_json(reply)


def test_a_cut_reply_loses_its_fence_alone() -> None:
    """Newlines, None and quotes stay."""
    assert '[{"title": "None\\n"' == wiring.get_json_content(
        '```json\n[{"title": "None\\n"'
    )


def test_tokens_are_counted_here() -> None:
    """Upstream counts pages that may be None."""
    assert (0, 0, 4) == (
        wiring.count_tokens(None),
        wiring.count_tokens("", model="x"),
        wiring.count_tokens("Hello, world!", model="openai/gpt-4o-mini"),
    )


ONE_PROMPT = {
    Code.CONTEXT_OVERFLOW,
    Code.CONTENT_FILTER,
    Code.EMPTY_RESPONSE,
    Code.TRUNCATED_RESPONSE,
    Code.INVALID_JSON,
}


@pytest.mark.parametrize("code", list(Code))
def test_what_ends_a_run(code: Code) -> None:
    """A bad prompt does not; everything else does."""
    error = VectorlessRagError(code)

    assert (code not in ONE_PROMPT) == wiring.is_terminal(error)
    assert getattr(error, "status_code", None) is None


@pytest.mark.parametrize("error", [KeyError("x"), RuntimeError("x"), invalid("blank")])
def test_what_does_not_end_a_run(error: Exception) -> None:
    """An error of the upstream's own is handled where the upstream handles it."""
    assert not wiring.is_terminal(error)


@pytest.mark.parametrize("code", [Code.AUTH, Code.CONTEXT_OVERFLOW])
def test_failures_reach_the_upstream_as_ours(code: Code, tmp_path: Path) -> None:
    """Code and end of the run agree."""
    failure = ProviderFailure("scripted", code, retry=False, money=Money.VOID)
    provider = Scripted([failure])
    with opened(tmp_path) as ledger:
        caller = caller_for(ledger, offline=provider)
        with (
            wiring.use(caller),
            pytest.raises(VectorlessRagError, match="scripted") as caught,
        ):
            wiring.llm_completion(MODEL, "p", operation="check_title_appearance")
        caller._shut_down()

    assert (code, code is Code.AUTH) == (
        caught.value.code,
        wiring.is_terminal(caught.value),
    )


def test_no_reasoning_effort_is_sent_by_default() -> None:
    """Upstream would look the model up in LiteLLM."""
    wiring.default_summary_reasoning_effort("openai/gpt-5")


@pytest.mark.parametrize(("mode", "limit"), [("auto", 0), ("flash", 40)])
def test_a_flat_tree_is_not_summarised_before_the_standard_algorithm(
    mode: str, limit: int, tmp_path: Path
) -> None:
    """In auto mode its summaries would be thrown away."""
    with using(tmp_path, YES, mode=mode):
        assert limit == wiring.flat_tree_limit(40)
    assert 40 == wiring.flat_tree_limit(40)


@pytest.mark.parametrize("question", sorted(DECIDED))
def test_each_question_is_left_to_the_text_by_itself(question: str) -> None:
    """One may be asked of the model again, and the others stay as they are."""
    policy = SimpleNamespace(decides=DECIDED - {question})
    assert not wiring.decides(question)

    with wiring.use(cast("Caller", SimpleNamespace(policy=policy))):
        assert DECIDED - {question} == set(filter(wiring.decides, DECIDED))
