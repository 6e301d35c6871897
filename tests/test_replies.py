"""Replies are read strictly: exactly the shape asked for, or a classified failure."""

import json
import pickle
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies_replies import (
    dressed,
    json_trees,
    no_spellings,
    page_spellings,
    questions_and_answers,
    texts,
    words,
    yes_spellings,
)
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.pageindex_runtime import answers
from vectorless_rag.pageindex_runtime.operations import (
    OPERATIONS,
    Reads,
    operation_named,
    read,
)
from vectorless_rag.pageindex_runtime.providers import Message
from vectorless_rag.pageindex_runtime.replies import (
    ReplyError,
    invalid,
    parse,
    spelled,
    unfenced,
)

DEEP = "[" * 64 + "]" * 64

READ = [
    pytest.param('{"a": 1}', {"a": 1}, id="plain"),
    pytest.param(' \r\n\t{"a": 1}\n', {"a": 1}, id="blanks"),
    pytest.param('\ufeff{"a": 1}', {"a": 1}, id="byte-order-mark"),
    pytest.param('```json\n{"a": 1}\n```', {"a": 1}, id="fence"),
    pytest.param('```\n{"a": 1}\n```', {"a": 1}, id="plain-fence"),
    pytest.param('```JSON\r\n{"a": 1}\r\n```', {"a": 1}, id="shouting-fence"),
    pytest.param('```jsonc {"a": 1}```', {"a": 1}, id="fence-on-one-line"),
    pytest.param('\ufeff ```json\n{"a": 1}\n``` ', {"a": 1}, id="fence-in-blanks"),
    pytest.param('{"a": "```json\\n{}``` x"}', {"a": "```json\n{}``` x"}, id="inner"),
    pytest.param(
        '```json\n{"a": "```py\\nx```"}\n```', {"a": "```py\nx```"}, id="fence-in-fence"
    ),
    pytest.param('{"a": "None, \\n [1,2,]"}', {"a": "None, \n [1,2,]"}, id="kept"),
    pytest.param('{"a": "\\ud83d\\ude00"}', {"a": "\U0001f600"}, id="pair"),
    pytest.param('{"a": "x\\u0000y"}', {"a": "x\x00y"}, id="nul"),
    pytest.param('{"a": -0, "b": 1.5, "c": 1e3}', {"a": 0, "b": 1.5, "c": 1e3}, id="n"),
    pytest.param("1" * 400, int("1" * 400), id="400-digits"),
    pytest.param(DEEP, json.loads(DEEP), id="64-deep"),
    pytest.param('"[[["', "[[[", id="brackets-in-a-text"),
    pytest.param("null", None, id="null"),
]


@pytest.mark.parametrize(("text", "value"), READ)
def test_json_is_read_as_it_stands(text: str, value: object) -> None:
    """One fence and blanks around it are no part of it; nothing inside is changed."""
    assert value == parse(text)


REFUSED = [
    pytest.param("", "empty", "", id="nothing"),
    pytest.param(" \n\ufeff", "empty", "", id="blank"),
    pytest.param("```json\n```", "not_json", "0", id="empty-fence"),
    pytest.param('```json\n{"a": 1}', "not_json", "0", id="open-fence"),
    pytest.param('Here it is: {"a": 1}', "not_json", "0", id="words-before"),
    pytest.param('{"a": 1}\nDone.', "trailing_data", "8", id="words-after"),
    pytest.param('{"a": 1} {"a": 2}', "trailing_data", "8", id="two-objects"),
    pytest.param(
        '```json\n{"a": 1}\n```\nor\n```json\n{"a": 2}\n```',
        "trailing_data",
        "8",
        id="two-fences",
    ),
    pytest.param('<think>{"a": 0}</think>{"a": 1}', "not_json", "0", id="thoughts"),
    # Python 3.13 and later point at the comma, earlier ones after it.
    pytest.param(
        '{"a": [1, 2, ]}',
        "not_json",
        "11" if sys.version_info >= (3, 13) else "13",
        id="trailing-comma",
    ),
    pytest.param('{"a": True}', "not_json", "6", id="python-true"),
    pytest.param('{"a": None}', "not_json", "6", id="python-none"),
    pytest.param("{'a': 1}", "not_json", "1", id="single-quotes"),
    pytest.param("{a: 1}", "not_json", "1", id="bare-key"),
    pytest.param('{"a": "x"\n"b": "y"}', "not_json", "10", id="missing-comma"),
    pytest.param('{"a": 1 // note\n}', "not_json", "8", id="comment"),
    pytest.param('{"a": "x\ny"}', "not_json", "8", id="raw-newline"),
    pytest.param('{"a": "he said "hi""}', "not_json", "16", id="inner-quotes"),
    pytest.param('{"a": "hello wor', "not_json", "6", id="cut-text"),
    pytest.param('{"a": [1, 2', "not_json", "11", id="cut-list"),
    pytest.param('{"a": 007}', "not_json", "7", id="leading-zeros"),
    pytest.param('{"a": 1, "a": 2}', "duplicate_key", "", id="duplicate-key"),
    pytest.param('{"a": NaN}', "non_finite", "", id="nan"),
    pytest.param("-Infinity", "non_finite", "", id="infinity"),
    pytest.param('{"a": 1e999}', "non_finite", "", id="overflow"),
    pytest.param("1" * 401, "int_too_long", "", id="401-digits"),
    pytest.param("9" * 5000, "int_too_long", "", id="5000-digits"),
    pytest.param('"\\ud800"', "lone_surrogate", "", id="half-a-pair"),
    pytest.param('{"\\udfff": 1}', "lone_surrogate", "", id="half-a-pair-in-key"),
    pytest.param('[{"a": ["\\ud800"]}]', "lone_surrogate", "", id="half-inside"),
    pytest.param("[" + DEEP + "]", "too_deep", "64", id="65-deep"),
    pytest.param("[" * 100_000, "too_deep", "64", id="hostile-depth"),
    pytest.param('{"a":' * 100 + "}" * 100, "too_deep", "320", id="deep-objects"),
    pytest.param(" " + "x" * 2_000_000, "too_large", "", id="too-large"),
    pytest.param('"' + '\\"' * 100_000, "not_json", "0", id="hostile-quotes"),
    pytest.param('"' + "\\" * 100_001, "not_json", "0", id="hostile-backslashes"),
    pytest.param("``````", "not_json", "0", id="fence-of-fences"),
    pytest.param("```", "not_json", "0", id="one-fence"),
    pytest.param("I cannot help with that.", "not_json", "0", id="refusal"),
]


@pytest.mark.parametrize(("text", "reason", "where"), REFUSED)
def test_anything_else_is_refused(text: str, reason: str, where: str) -> None:
    """No repair and no choice between two values: a reason, and an offset."""
    with pytest.raises(ReplyError, match=reason) as caught:
        parse(text)

    error = caught.value
    code = Code.EMPTY_RESPONSE if reason == "empty" else Code.INVALID_JSON
    assert (code, reason, where) == (error.code, error.reason, error.where)
    assert error.__cause__ is error.__context__ is None


@given(json_trees)
def test_what_is_spelled_is_read_back(value: Any) -> None:
    """Any JSON value survives, in ASCII or not."""
    assert value == parse(json.dumps(value))
    assert value == parse(json.dumps(value, ensure_ascii=False))


@given(value=json_trees, data=st.data())
def test_dress_is_no_part_of_the_value(value: Any, data: st.DataObject) -> None:
    """Blanks, a byte order mark and one fence change nothing."""
    text = data.draw(dressed(st.just(json.dumps(value, indent=1))))

    assert value == parse(text)


@given(text=st.text(st.characters(), max_size=60))
def test_any_text_is_a_value_or_a_failure(text: str) -> None:
    """Hostile text is no crash, and what the standard parser refuses is refused."""
    try:
        value = parse(text)
    except ReplyError:
        return
    assert value == json.loads(unfenced(text).removeprefix("\ufeff"))


@given(value=json_trees.filter(lambda v: isinstance(v, dict | list)), data=st.data())
def test_a_cut_reply_is_never_read(value: Any, data: st.DataObject) -> None:
    """Half an object is not completed."""
    text = json.dumps(value)
    end = data.draw(st.integers(0, len(text) - 1))
    with pytest.raises(ReplyError, match=r"not_json|empty"):
        parse(text[:end])


def test_a_number_keeps_its_spelling_where_that_matters() -> None:
    """Section 1.10 is not section 1.1."""
    assert ["1.10"] == [str(x) for x in spelled("[1.10]")]  # type: ignore[attr-defined]
    with pytest.raises(ReplyError, match="non_finite"):
        spelled("[1e999]")


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        pytest.param("plain ", "plain ", id="plain"),
        pytest.param("```json\n[1]\n```", "[1]", id="closed"),
        pytest.param('```json\n[1, {"a', '[1, {"a', id="cut"),
        pytest.param("[1]\n```", "[1]\n```", id="closed-alone"),
        pytest.param("```", "", id="fence-alone"),
    ],
)
def test_a_fence_comes_off_a_cut_reply_too(text: str, bare: str) -> None:
    """Without a fence the text is not touched."""
    assert bare == unfenced(text)


# The shapes.


def failure_of(name: str, value: Any) -> ReplyError | None:
    try:
        read(OPERATIONS[name], json.dumps(value))
    except ReplyError as error:
        return error
    return None


@given(questions_and_answers())
def test_a_good_reply_is_read_and_read_again(pair: tuple[str, Any]) -> None:
    """What the upstream is handed reads back as itself, by any parser."""
    name, value = pair
    operation = OPERATIONS[name]
    got = read(operation, json.dumps(value))

    assert got.value == json.loads(got.text) == parse(got.text)
    assert got == read(operation, got.text)


@given(pair=questions_and_answers(), other=json_trees)
def test_a_reply_is_its_shape_or_a_failure(pair: tuple[str, Any], other: Any) -> None:
    """Any JSON at all: the shape asked for comes out, or a classified failure."""
    operation = OPERATIONS[pair[0]]
    failed = failure_of(operation.name, other)
    if failed is not None:
        assert Code.INVALID_JSON == failed.code
        assert failed.detail.startswith(f"{operation.name}: ")
        return
    got = read(operation, json.dumps(other))
    kind = list if operation.reads is Reads.ENTRIES else dict
    assert isinstance(got.value, kind)


VERDICTS = [
    ("toc_detector_single_page", "toc_detected"),
    ("detect_page_index", "page_index_given_in_toc"),
    ("check_if_toc_transformation_is_complete", "completed"),
    ("check_if_toc_extraction_is_complete", "completed"),
    ("check_title_appearance", "answer"),
    ("check_title_appearance_in_start", "start_begin"),
]


@pytest.mark.parametrize(("name", "key"), VERDICTS)
@given(yes=yes_spellings, no=no_spellings)
def test_a_verdict_is_yes_or_no_in_any_spelling(
    name: str, key: str, yes: Any, no: Any
) -> None:
    """The upstream compares with "yes" and "no" alone."""
    for spelling, word in ((yes, "yes"), (no, "no")):
        text = json.dumps({"thinking": ["a"], key: spelling})
        assert {key: word} == read(OPERATIONS[name], text).value


@pytest.mark.parametrize(("name", "key"), VERDICTS)
@pytest.mark.parametrize(
    ("value", "reason"),
    [
        pytest.param(None, "not_an_object", id="null"),
        pytest.param([], "not_an_object", id="list"),
        pytest.param("yes", "not_an_object", id="text"),
        pytest.param(1, "not_an_object", id="number"),
        pytest.param({}, "missing_key", id="nothing"),
        pytest.param({"KEY": "perhaps"}, "not_yes_or_no", id="perhaps"),
        pytest.param({"KEY": "yes or no"}, "not_yes_or_no", id="both"),
        pytest.param({"KEY": 1}, "not_yes_or_no", id="one"),
        pytest.param({"KEY": None}, "not_yes_or_no", id="none"),
        pytest.param({"KEY": ["yes"]}, "not_yes_or_no", id="in-a-list"),
    ],
)
def test_a_verdict_of_another_shape_is_refused(
    name: str, key: str, value: Any, reason: str
) -> None:
    """Nothing but an object with a verdict is one; it never reads as no."""
    text = json.dumps(value).replace("KEY", key)
    with pytest.raises(ReplyError, match=f"^.*{name}: {reason}"):
        read(OPERATIONS[name], text)


SECTIONS = ["generate_toc_init", "generate_toc_continue", "toc_index_extractor"]


@pytest.mark.parametrize("name", [*SECTIONS, "add_page_number_to_toc"])
@given(pair=page_spellings(), title=words)
def test_a_page_is_a_page_in_any_spelling(
    name: str, pair: tuple[int, Any], title: str
) -> None:
    """7, "7", "physical_index_7" and "<physical_index_7>" are the same page."""
    page, spelling = pair
    reply = [{"structure": "1", "title": title, "physical_index": spelling}]
    marker = f"<physical_index_{page}>"

    assert [{"structure": "1", "title": title, "physical_index": marker}] == read(
        OPERATIONS[name], json.dumps(reply)
    ).value
    fixed = read(
        OPERATIONS["single_toc_item_index_fixer"],
        json.dumps({"thinking": "x", "physical_index": spelling}),
    )
    assert {"physical_index": marker} == fixed.value


@pytest.mark.parametrize("name", SECTIONS)
@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        pytest.param(3, r"not_an_object at \[1\]", id="number"),
        pytest.param([], r"not_an_object at \[1\]", id="list"),
        pytest.param({"physical_index": 1}, r"missing_key at \[1\]\.title", id="bare"),
        pytest.param(
            {"title": " ", "physical_index": 1}, r"blank at \[1\]\.title", id="blank"
        ),
        pytest.param(
            {"title": None, "physical_index": 1},
            r"not_a_text at \[1\]\.title",
            id="null",
        ),
        pytest.param(
            {"title": True, "physical_index": 1},
            r"not_a_text at \[1\]\.title",
            id="true",
        ),
        pytest.param(
            {"title": "A", "structure": [1], "physical_index": 1},
            r"not_a_text at \[1\]\.structure",
            id="structure",
        ),
        pytest.param(
            {"title": "A", "physical_index": "page 3"},
            r"not_a_page at \[1\]\.physical_index",
            id="words",
        ),
        pytest.param(
            {"title": "A", "physical_index": "<physical_index_X>"},
            r"not_a_page at \[1\]\.physical_index",
            id="template",
        ),
        pytest.param(
            {"title": "A", "physical_index": -1},
            r"not_a_page at \[1\]\.physical_index",
            id="negative",
        ),
        pytest.param(
            {"title": "A", "physical_index": True},
            r"not_a_page at \[1\]\.physical_index",
            id="true-page",
        ),
        pytest.param(
            {"title": "A", "physical_index": 1.5},
            r"not_a_page at \[1\]\.physical_index",
            id="half-a-page",
        ),
        pytest.param(
            {"title": "A", "physical_index": [1]},
            r"not_a_page at \[1\]\.physical_index",
            id="list-of-pages",
        ),
        pytest.param(
            {"title": "A", "physical_index": 1, "nodes": [{"title": "B"}]},
            r"nested_entries at \[1\]",
            id="nested",
        ),
    ],
)
def test_a_section_of_another_shape_is_refused(
    name: str, entry: Any, reason: str
) -> None:
    """One bad entry spoils the reply: dropping it would lose a section."""
    good = {"title": "A", "physical_index": 1}
    with pytest.raises(ReplyError, match=reason):
        read(OPERATIONS[name], json.dumps([good, entry]))


@pytest.mark.parametrize("value", [None, {}, {"table_of_contents": []}, "x", 1])
def test_sections_come_in_a_list(value: Any) -> None:
    """An object in place of the list flows on nowhere."""
    with pytest.raises(ReplyError, match="not_a_list"):
        read(OPERATIONS["generate_toc_init"], json.dumps(value))


def test_sections_are_read_with_their_own_words() -> None:
    """Titles stay as they are; numbers that stand for texts become texts."""
    text = (
        '[{"structure": 1.10, "title": " None\\n of  it ", "physical_index": null,'
        ' "note": "x", "nodes": []},'
        ' {"structure": "None", "title": 2024, "physical_index": "none"},'
        ' {"title": "C", "physical_index": 3.0}]'
    )

    assert [
        {"structure": "1.10", "title": " None\n of  it ", "physical_index": None},
        {"structure": None, "title": "2024", "physical_index": None},
        {"structure": None, "title": "C", "physical_index": "<physical_index_3>"},
    ] == read(OPERATIONS["generate_toc_init"], text).value


def test_a_generated_section_says_where_it_is() -> None:
    """A section without a place is refused where the place was the question."""
    text = '[{"title": "A"}]'
    for name in ("generate_toc_init", "generate_toc_continue"):
        with pytest.raises(ReplyError, match=r"missing_key at \[0\]\.physical_index"):
            read(OPERATIONS[name], text)

    entry = {"structure": None, "title": "A", "physical_index": None}
    assert [entry] == read(OPERATIONS["toc_index_extractor"], text).value


def test_whether_a_section_starts_is_kept() -> None:
    """The upstream takes that key out by itself."""
    text = '[{"title": "A", "start": "Yes"}, {"title": "B", "start": null}]'

    assert ["yes", None] == [
        entry["start"]
        for entry in read(OPERATIONS["add_page_number_to_toc"], text).value
    ]


def test_printed_pages_are_numbers_or_labels() -> None:
    """Roman and section-local labels are pages too."""
    labels = [7, "7", "xii", "A-4", None, "None", 9.0]
    reply = {"table_of_contents": [{"title": "A", "page": label} for label in labels]}
    got = read(OPERATIONS["toc_transformer"], json.dumps(reply)).value

    assert [7, "7", "xii", "A-4", None, None, 9] == [
        entry["page"] for entry in got["table_of_contents"]
    ]


@pytest.mark.parametrize("page", [[1], {"a": 1}, True, 1.5])
def test_printed_pages_of_another_kind_are_refused(page: Any) -> None:
    """A page is no list and no truth."""
    reply = {"table_of_contents": [{"title": "A", "page": page}]}
    with pytest.raises(ReplyError, match="not_a_page_label"):
        read(OPERATIONS["toc_transformer"], json.dumps(reply))


def test_subsections_have_whole_pages() -> None:
    """The upstream wants an integer."""
    reply = {"subsections": [{"title": "A", "page": "7"}, {"title": "B", "page": 8}]}

    assert {
        "subsections": [{"title": "A", "page": 7}, {"title": "B", "page": 8}]
    } == read(OPERATIONS["expand"], json.dumps(reply)).value
    with pytest.raises(ReplyError, match=r"not_a_page at \.subsections\[0\]\.page"):
        read(OPERATIONS["expand"], '{"subsections": [{"title": "A", "page": null}]}')


@pytest.mark.parametrize("name", ["summary_leaf", "summary_direct", "summary_subtree"])
@given(text=words)
def test_a_summary_is_a_text_kept_as_it_is(name: str, text: str) -> None:
    """No word of it is rewritten."""
    got = read(OPERATIONS[name], json.dumps({"summary": text, "more": 1}))

    assert {"summary": text} == got.value


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        pytest.param({}, "missing_key", id="none"),
        pytest.param({"summary": "\n "}, "blank", id="blank"),
        pytest.param({"summary": []}, "blank", id="empty-list"),
        pytest.param({"summary": None}, "not_a_text", id="null"),
        pytest.param({"summary": ["a", 1]}, "not_a_text", id="mixed-list"),
        pytest.param({"summary": {"a": "b"}}, "not_a_text", id="object"),
        pytest.param({"summary": "a", "title": ""}, "blank", id="blank-title"),
        pytest.param({"summary": "a", "title": 1}, "not_a_text", id="number-title"),
        pytest.param("a summary", "not_an_object", id="text"),
    ],
)
def test_a_summary_of_another_shape_is_refused(value: Any, reason: str) -> None:
    """An unusable summary is a failure, not an empty one."""
    with pytest.raises(ReplyError, match=reason):
        read(OPERATIONS["summary_leaf"], json.dumps(value))


def test_a_summary_in_points_is_one_text() -> None:
    """A list of texts says the same; a title that is null is none."""
    reply = {"summary": ["One. ", "Two."], "title": None}

    assert {"summary": "One. Two.", "title": None} == read(
        OPERATIONS["summary_leaf"], json.dumps(reply)
    ).value


@given(text=texts.filter(str.strip))
def test_a_text_is_handed_on_as_it_came(text: str) -> None:
    """What is not read as data is not touched."""
    got = read(OPERATIONS["generate_doc_description"], text)

    assert (text, None) == (got.text, got.value)


def test_a_blank_text_is_empty() -> None:
    """Nothing said is no answer."""
    with pytest.raises(ReplyError, match="generate_node_summary: empty"):
        read(OPERATIONS["generate_node_summary"], " \n")


def test_every_question_of_the_upstream_has_a_shape() -> None:
    """Eleven structured questions of the standard algorithm, and the others."""
    assert {
        *(name for name, _ in VERDICTS),
        *SECTIONS,
        "add_page_number_to_toc",
        "single_toc_item_index_fixer",
        "toc_transformer",
        "expand",
        "summary_leaf",
        "summary_direct",
        "summary_subtree",
    } == {o.name for o in OPERATIONS.values() if o.is_data}
    assert {"toc_transformer", "extract_toc_content"} == {
        o.name for o in OPERATIONS.values() if o.may_truncate
    }
    assert all(name == operation.name for name, operation in OPERATIONS.items())


def test_an_unknown_question_is_a_defect_of_ours() -> None:
    """A patch that names no operation is found at once."""
    with pytest.raises(VectorlessRagError, match="no operation chat"):
        operation_named("chat")


def test_a_failed_reply_survives_the_trip_between_processes() -> None:
    """Reason, place and question come along."""
    error = invalid("blank", "[1].title").asked("expand")
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301  (our own bytes)

    assert (error.code, error.detail, error.reason, error.where, error.operation) == (
        copy.code,
        copy.detail,
        copy.reason,
        copy.where,
        copy.operation,
    )


@pytest.mark.parametrize("reason", sorted(answers._WORDS))
def test_every_reason_can_be_told_to_the_model(reason: str) -> None:
    """A second question says in words what was wrong and where."""
    first = (Message("user", "question"),)
    asked = answers.asked_again(first, invalid(reason, "[3].title"))

    assert answers._WORDS[reason] in asked[-1].content
    assert "(at [3].title)" in asked[-1].content
    assert first == asked[:1]


@given(questions_and_answers(), json_trees)
def test_no_reason_is_without_words(pair: tuple[str, Any], other: Any) -> None:
    """Whatever a reply fails by, there is a sentence for it."""
    failed = failure_of(pair[0], other)

    assert failed is None or failed.reason in answers._WORDS
