"""Prompts start with the text that is asked about again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vectorless_rag.pageindex_runtime.framing import CLOSE, OPEN, framed
from vectorless_rag.pageindex_runtime.offline.prompts import PARTS
from vectorless_rag.pageindex_runtime.operations import OPERATIONS
from vectorless_rag.pageindex_runtime.summary_prompts import (
    own_text_prompt,
    subtree_prompt,
)
from vectorless_rag.pageindex_runtime.text_first import (
    ABOVE,
    LEADS,
    text_first,
    text_in_place,
)

WORDS = st.sampled_from([*"ab <>\n", ABOVE, OPEN, CLOSE, OPEN.upper(), "\x85"])
TEXTS = st.lists(WORDS).map("".join)


def asked(texts: list[str]) -> str:
    """Spell a prompt with a frame for each text."""
    frames = [f"Here is\n{framed(text)}" for text in texts]
    return "\n".join(["Do it.", *frames, "Reply."])


@pytest.mark.parametrize("operation", sorted(LEADS))
def test_the_text_is_moved_to_the_start(operation: str) -> None:
    """Its frame opens the prompt; the other parts and the words stay in order."""
    texts = [f"text {n}" for n in range(len(PARTS[operation]))]
    lead = framed(texts[LEADS[operation]])
    found = text_first(operation, asked(texts))

    assert f"{lead}\n\n{asked(texts).replace(lead, ABOVE)}" == found


@pytest.mark.parametrize("operation", sorted(LEADS))
def test_the_text_is_what_the_question_is_about(operation: str) -> None:
    """The long part of the prompt leads, not a title or a list of entries."""
    part = PARTS[operation][LEADS[operation]]

    assert part.name in {"text", "pages", "opening"}


@pytest.mark.parametrize("operation", sorted(OPERATIONS.keys() - LEADS.keys()))
def test_other_prompts_stay_as_they_are(operation: str) -> None:
    """Their instructions are what comes back."""
    prompt = asked(["a", "b", "c"])

    assert prompt == text_first(operation, prompt)


def test_a_prompt_without_the_frame_stays_as_it_is() -> None:
    """A continuation shows no text; what was moved is not moved again."""
    once = text_first("toc_transformer", asked(["a"]))

    assert "Go on." == text_first("toc_transformer", "Go on.")
    assert asked(["a"]) == text_first("check_title_appearance", asked(["a"]))
    assert once == text_first("toc_transformer", once)


@pytest.mark.parametrize("operation", sorted(LEADS))
@given(st.data())
def test_the_move_is_undone_whatever_the_text_says(
    operation: str, data: st.DataObject
) -> None:
    """Text that holds tags of the frame, or the words for it, takes no one in."""
    prompt = asked([data.draw(TEXTS) for _ in PARTS[operation]])

    assert prompt == text_in_place(text_first(operation, prompt))


@pytest.mark.parametrize("prompt", ["", "Foo", f"{framed('a')}\n\nFoo", asked(["a"])])
def test_a_prompt_that_was_not_moved_is_read_as_it_is(prompt: str) -> None:
    assert prompt == text_in_place(prompt)


def test_questions_about_the_same_text_share_it() -> None:
    """A section's own summary, and that of all of it, start with the same bytes."""
    direct = text_first("summary_direct", own_text_prompt("Foo.", max_words=9))
    whole = subtree_prompt("Bar", "Foo.", [("Baz", "Foo.")], max_words=9)
    shared = f"{framed('Foo.')}\n\nSummarise the "

    assert direct.startswith(shared)
    assert direct == own_text_prompt("Foo.", max_words=9)
    assert text_first("summary_subtree", whole).startswith(shared)
