"""A refused request ends a run at its start; later it is one prompt's trouble."""

from pathlib import Path

import pytest

from boundary import Priced, failure, opened, priced, said
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.pageindex_runtime.wiring import is_terminal, use

SUMMARY = '{"summary": "Fruit."}'
REFUSED = failure(Code.BAD_REQUEST, retry=False)


def test_a_refusal_at_the_start_ends_the_run(tmp_path: Path) -> None:
    """A wrong model name or address is not tried again for every section."""
    with opened(tmp_path) as ledger:
        caller = priced(ledger, Priced(REFUSED, said(SUMMARY)))
        with use(caller):
            for _ in range(2):
                with pytest.raises(VectorlessRagError, match="refused the") as error:
                    caller.complete("summary_leaf", "Say.")
                assert is_terminal(error.value)
        with pytest.raises(VectorlessRagError, match="refused the request"):
            caller.close()


def test_a_refusal_after_an_answer_is_that_prompts(tmp_path: Path) -> None:
    """The next prompt is asked, and the run ends well."""
    with opened(tmp_path) as ledger:
        caller = priced(ledger, Priced(said(SUMMARY), REFUSED, said(SUMMARY)))
        with use(caller):
            first = caller.complete("summary_leaf", "One.")
            with pytest.raises(VectorlessRagError, match="refused the") as error:
                caller.complete("summary_leaf", "Two.")
            assert not is_terminal(error.value)
            last = caller.complete("summary_leaf", "Three.")
        caller.close()

    assert (SUMMARY, SUMMARY) == (first.text, last.text)
