"""Failures have a code, a phase and one line that says what to do."""

import pickle

import pytest
from hypothesis import given

from strategies import failures
from vectorless_rag.errors import FAILURES, Code, Failure, VectorlessRagError

# The exit statuses of design section 9 that a failure may have.
STATUSES = {1, 2, 3, 4, 5, 10, 20}


def test_every_code_is_in_the_table_once() -> None:
    """The table is the one list."""
    assert set(Code) == set(FAILURES)


@pytest.mark.parametrize("code", Code)
def test_every_failure_says_what_happened_and_what_to_do(code: Code) -> None:
    """Two sentences on one line, and a known exit status."""
    kind = FAILURES[code]

    assert STATUSES >= {kind.exit_status}
    assert [True, True] == [
        text.endswith(".") and "\n" not in text for text in (kind.meaning, kind.advice)
    ]


def test_the_detail_stands_inside_the_sentence() -> None:
    """What is particular to the case comes before what to do."""
    assert (
        "The PDF needs a password: a.pdf. Remove the password and run again."
        == Failure(code=Code.SOURCE_ENCRYPTED, detail="a.pdf").message
    )


@given(failures)
def test_a_message_is_one_line(failure: Failure) -> None:
    """A detail may hold line breaks, for example a file's name; a message may not."""
    assert 1 == len(str(VectorlessRagError.of(failure)).splitlines())


@given(failures)
def test_an_error_survives_a_process_boundary(failure: Failure) -> None:
    """Code and detail come out of a pickle as they went in."""
    error = VectorlessRagError.of(failure)
    again = pickle.loads(pickle.dumps(error))  # noqa: S301  (our own bytes)

    assert (error.code, error.detail) == (again.code, again.detail)
