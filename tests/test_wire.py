"""What parent and child say survives the pipe, and nothing else passes for it."""

import hashlib
import json
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import answers, progresses, requests
from vectorless_rag.errors import Code, Failure, VectorlessRagError
from vectorless_rag.wire import HEAD_BYTES, Answer, Progress, Request


@given(requests)
def test_a_request_reads_back(request_: Request) -> None:
    """Every field arrives as it was sent."""
    assert request_ == Request.decode(request_.encode())


@given(answers)
def test_an_answer_reads_back(answer: Answer) -> None:
    """Every field arrives as it was sent, lone surrogates included."""
    assert answer == Answer.decode(answer.encode())


@given(progresses)
def test_a_progress_line_reads_back(progress: Progress) -> None:
    """A report is one line and arrives as it was sent."""
    line = progress.encode()

    assert (progress, 1) == (Progress.decode(line), line.count(b"\n"))


@given(answers, st.data())
def test_half_an_answer_is_none(answer: Answer, data: st.DataObject) -> None:
    """A child that dies while it answers has not answered."""
    frame = answer.encode()
    cut = data.draw(st.integers(0, len(frame) - 1))

    with pytest.raises(VectorlessRagError, match="without one whole answer"):
        Answer.decode(frame[:cut])


@given(answers, st.data())
def test_an_altered_answer_is_refused(answer: Answer, data: st.DataObject) -> None:
    """Whatever else writes into the frame is noticed."""
    frame = bytearray(answer.encode())
    frame[data.draw(st.integers(0, len(frame) - 1))] ^= 1

    with pytest.raises(VectorlessRagError, match="without one whole answer"):
        Answer.decode(bytes(frame))


def test_more_than_an_answer_is_refused() -> None:
    """Something behind the frame means that two wrote."""
    with pytest.raises(VectorlessRagError, match="half an answer"):
        Answer.decode(Answer().encode() + b"x")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        pytest.param(b"", "JSON", id="nothing"),
        pytest.param(b"[]", "JSON", id="list"),
        pytest.param(b'{"schema": 2}', "schema", id="schema"),
        pytest.param(b'{"schema": 1}', "request fields", id="fields"),
    ],
)
def test_a_foreign_request_is_refused(data: bytes, why: str) -> None:
    """A child started by something else says so."""
    with pytest.raises(VectorlessRagError, match=why):
        Request.decode(data)


@pytest.mark.parametrize("line", [b"", b"[]", b"{}", b'{"stages": 1}'])
def test_a_foreign_progress_line_is_refused(line: bytes) -> None:
    """Only the child's own reports count."""
    with pytest.raises(VectorlessRagError, match="progress line"):
        Progress.decode(line)


def test_an_answer_with_unknown_fields_is_refused() -> None:
    """Parent and child of two versions do not guess."""
    frame = Answer(notes={}).encode()
    body = frame[HEAD_BYTES:].replace(b'"notes"', b'"votes"')

    head = struct.pack(">4sQ32s", b"VLR1", len(body), hashlib.sha256(body).digest())

    with pytest.raises(VectorlessRagError, match="answer fields"):
        Answer.decode(head + body)


WHOLE: dict[str, Any] = {
    "schema": 1,
    "found": {
        "route": "flash",
        "tree": [],
        "pages": ["text"],
        "parser": {"name": "pypdf", "version": "7"},
    },
    "failure": None,
    "notes": {"retries": 1},
}
CONFUSED = (None, True, 1.5, "x", [1], {"x": [1]}, [[["deep"]]])


def places(value: Any, *path: Any) -> Iterator[tuple[Any, ...]]:
    """Every place in a JSON value, by the way that leads to it."""
    yield path
    if isinstance(value, dict):
        for key, below in value.items():
            yield from places(below, *path, key)
    if isinstance(value, list):
        for key, below in enumerate(value):
            yield from places(below, *path, key)


def framed(value: Any) -> bytes:
    body = json.dumps(value).encode()
    head = struct.pack(">4sQ32s", b"VLR1", len(body), hashlib.sha256(body).digest())
    return head + body


@pytest.mark.parametrize("path", list(places(WHOLE)))
@pytest.mark.parametrize("value", CONFUSED)
def test_a_child_that_lies_about_types_is_refused(
    path: tuple[Any, ...], value: Any
) -> None:
    """Whatever stands at any place: an answer of the right types, or none."""
    whole = {"": json.loads(json.dumps(WHOLE))}
    place: Any = whole
    for step in ("", *path)[:-1]:
        place = place[step]
    place[("", *path)[-1]] = value
    assert right_types(framed(whole[""]))


def right_types(frame: bytes) -> bool:
    """Whether an answer is refused, or holds what its fields promise."""
    try:
        answer = Answer.decode(frame)
    except VectorlessRagError as error:
        return error.code is Code.CHILD_PROTOCOL
    found = answer.found
    if found is None:
        return {int} >= set(map(type, answer.notes.values()))
    texts = (*found.pages, found.route, found.parser.name, found.parser.version)
    return {str} == set(map(type, texts))


@pytest.mark.parametrize(
    "line",
    [
        b'{"stage": 1}',
        b'{"stage": "x", "calls": "many"}',
        b'{"stage": "x", "cost_nano_usd": true}',
        b"[" * 60_000,
    ],
)
def test_a_progress_line_that_lies_is_refused(line: bytes) -> None:
    """A display never meets a type it does not expect."""
    with pytest.raises(VectorlessRagError, match="progress line"):
        Progress.decode(line)


def test_an_answer_nested_too_deeply_is_refused() -> None:
    """A parser's stack is no limit to build on."""
    body = b"[" * 100_000 + b"]" * 100_000
    head = struct.pack(">4sQ32s", b"VLR1", len(body), hashlib.sha256(body).digest())

    with pytest.raises(VectorlessRagError, match="JSON"):
        Answer.decode(head + body)


def test_what_a_child_says_of_its_failure_is_short_and_shows() -> None:
    """A message can neither break a terminal nor carry a document."""
    failure = Failure(code=Code.AUTH, detail="\x1b[2J\ud800" + "x" * 10_000)
    answer = Answer.decode(Answer(failure=failure).encode())

    assert answer.failure is not None
    assert ("?[2J?" + "x" * 295) == answer.failure.detail
