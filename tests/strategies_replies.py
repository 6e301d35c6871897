"""Named strategies of replies: usable, malformed, cut and hostile."""

import json
from typing import Any

from hypothesis import strategies as st

from vectorless_rag.errors import Code
from vectorless_rag.ledger.types import TokenUsage
from vectorless_rag.pageindex_runtime.operations import OPERATIONS
from vectorless_rag.pageindex_runtime.providers import (
    Money,
    ProviderFailure,
    ProviderReply,
)

# Text without lone surrogates: with them a reply is refused.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
words = texts.filter(str.strip)

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)

json_trees = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4)
    ),
    max_leaves=12,
)

fences = st.sampled_from(["", "json", "JSON", "json5", "jsonc", "text", "c++"])
blanks = st.text(" \t\r\n", max_size=4)


@st.composite
def dressed(draw: st.DrawFn, bodies: st.SearchStrategy[str]) -> str:
    """A body in blanks, a byte order mark and perhaps a fence."""
    body = draw(blanks) + draw(bodies) + draw(blanks)
    if draw(st.booleans()):
        body = f"```{draw(fences)}\n{body}\n```" + draw(blanks)
    return draw(st.sampled_from(["", "\ufeff"])) + body


yes_spellings = st.sampled_from(["yes", "Yes", "YES", "yes.", " yes ", "true", True])
no_spellings = st.sampled_from(["no", "No", "NO", "no.", "false", False])


@st.composite
def page_spellings(draw: st.DrawFn) -> tuple[int, Any]:
    """A page, and one of the ways models write it."""
    page = draw(st.integers(0, 99_999))
    spelling = draw(
        st.sampled_from(
            [
                page,
                str(page),
                f"physical_index_{page}",
                f"<physical_index_{page}>",
                f" <physical_index_{page}> ",
                f"<physical_index_{page}> ",
            ]
        )
    )
    return page, spelling


sections = st.fixed_dictionaries(
    {"title": words, "physical_index": page_spellings().map(lambda pair: pair[1])},
    optional={"structure": st.none() | texts | st.integers(0, 99)},
)

good_replies = {
    **{
        name: st.fixed_dictionaries(
            {key: yes_spellings | no_spellings}, optional={"thinking": texts}
        )
        for name, key in {
            "toc_detector_single_page": "toc_detected",
            "detect_page_index": "page_index_given_in_toc",
            "check_if_toc_transformation_is_complete": "completed",
            "check_if_toc_extraction_is_complete": "completed",
            "check_title_appearance": "answer",
            "check_title_appearance_in_start": "start_begin",
        }.items()
    },
    **dict.fromkeys(
        (
            "generate_toc_init",
            "generate_toc_continue",
            "toc_index_extractor",
            "add_page_number_to_toc",
        ),
        st.lists(sections, max_size=4),
    ),
    "toc_transformer": st.fixed_dictionaries(
        {
            "table_of_contents": st.lists(
                st.fixed_dictionaries(
                    {"title": words},
                    optional={
                        "structure": st.none() | texts,
                        "page": st.none() | st.integers(0, 999) | texts,
                    },
                ),
                max_size=4,
            )
        }
    ),
    "single_toc_item_index_fixer": st.fixed_dictionaries(
        {"physical_index": page_spellings().map(lambda pair: pair[1])}
    ),
    "expand": st.fixed_dictionaries(
        {
            "subsections": st.lists(
                st.fixed_dictionaries({"title": words, "page": st.integers(0, 999)}),
                max_size=4,
            )
        }
    ),
    "summary_leaf": st.fixed_dictionaries(
        {"summary": words}, optional={"title": words}
    ),
    "summary_direct": st.fixed_dictionaries({"summary": words}),
    "summary_subtree": st.fixed_dictionaries({"summary": words}),
}
"""Values that answer each question that is read as data."""

data_operations = st.sampled_from(
    sorted(o.name for o in OPERATIONS.values() if o.is_data)
)


@st.composite
def questions_and_answers(draw: st.DrawFn) -> tuple[str, Any]:
    """An operation and a value that answers it."""
    name = draw(data_operations)
    return name, draw(good_replies[name])


_SECTION = '{"structure": "1", "title": "A", "physical_index": 1}'

reply_texts = st.sampled_from(
    [
        '{"answer": "yes"}',
        '```\n{"answer": "no"}\n```',
        f"[{_SECTION}]",
        f"[{_SECTION}, {_SECTION[:30]}",
        "[]",
        "null",
        "Sorry, here is the tree you asked for.",
        "",
        '{"answer": NaN}',
        '{"answer": "yes", "answer": "no"}',
        "[" * 200,
    ]
) | dressed(json_trees.map(json.dumps))

usages = st.none() | st.builds(
    TokenUsage, prompt_tokens=st.integers(1, 500), completion_tokens=st.integers(0, 70)
)

finishes = ["length", "content_filter", "other", None]
problems = [Code.LLM_RETRY_EXHAUSTED, Code.TIMEOUT, Code.AUTH, Code.CONTEXT_OVERFLOW]

provider_replies = st.builds(
    ProviderReply,
    text=st.none() | reply_texts,
    finish_reason=st.just("stop") | st.sampled_from(finishes),
    usage=usages,
)

provider_failures = st.builds(
    ProviderFailure,
    st.just("scripted"),
    st.sampled_from(problems),
    retry=st.booleans(),
    money=st.sampled_from(Money),
    retry_after_s=st.none() | st.just(0.0),
)

provider_turns = provider_replies | provider_replies | provider_failures
"""What a provider may do with a request."""
