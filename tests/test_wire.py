"""What parent and child say survives the pipe, and nothing else passes for it."""

import hashlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import answers, progresses, requests
from vectorless_rag.errors import VectorlessRagError
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
