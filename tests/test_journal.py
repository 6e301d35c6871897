"""What was paid for is kept, for its owner alone, and never asked for twice."""

import os
import stat
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boundary import ATTEMPT, Priced, failure, opened, priced, said
from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.ledger.book import Ledger
from vectorless_rag.ledger.types import Attempt, TokenUsage
from vectorless_rag.pageindex_runtime.journal import FileJournal, NoJournal, sweep
from vectorless_rag.pageindex_runtime.observations import Observation
from vectorless_rag.pageindex_runtime.providers import (
    Message,
    ProviderReply,
    ProviderRequest,
)
from vectorless_rag.units import Sha256

KEY = Sha256("ab" * 32)

replies = st.builds(
    ProviderReply,
    text=st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=50),
    finish_reason=st.sampled_from(["stop", "length", None]),
    usage=st.none()
    | st.builds(
        TokenUsage,
        prompt_tokens=st.integers(0, 9),
        completion_tokens=st.integers(0, 9),
    ),
    response_id=st.none() | st.text("ab", max_size=5),
    cache_write_tokens=st.integers(0, 9),
)

ONE = ProviderReply(
    text="canary",
    finish_reason="stop",
    usage=TokenUsage(prompt_tokens=1, completion_tokens=1),
)


def request(content: str = "hi", **changes: Any) -> ProviderRequest:
    usual: dict[str, Any] = {
        "operation": "summary_leaf",
        "model": "openai/x",
        "messages": (Message("user", content),),
        "max_tokens": 64,
        "timeout_s": 1.0,
        "params": {},
    }
    return ProviderRequest(**(usual | changes))


def journal(folder: Path, **more: Any) -> FileJournal:
    return FileJournal(folder / "journal", **({"server": None, "replay": True} | more))


@given(reply=replies)
def test_a_reply_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, reply: ProviderReply
) -> None:
    """Every field survives."""
    kept = journal(tmp_path_factory.mktemp("j"))
    kept.keep(KEY, reply)

    assert vars(reply) == vars(kept.find(KEY))


def test_nobody_else_may_read_it(tmp_path: Path) -> None:
    """Folders are 0700 and files 0600, whatever the umask."""
    old = os.umask(0)
    try:
        journal(tmp_path).keep(KEY, ONE)
    finally:
        os.umask(old)
    modes = {
        stat.S_IMODE(p.stat().st_mode) for p in (tmp_path / "journal").rglob("*")
    } | {stat.S_IMODE((tmp_path / "journal").stat().st_mode)}

    assert {0o700, 0o600} == modes


@pytest.mark.parametrize("data", [b"", b"nonsense", b"0\n{}", b"\xff\n\xff"])
def test_an_altered_file_counts_as_none(tmp_path: Path, data: bytes) -> None:
    """A reply that is not what was kept is asked for again."""
    kept = journal(tmp_path)
    kept.keep(KEY, ONE)
    (tmp_path / "journal" / KEY[:2] / KEY).write_bytes(data)

    assert kept.find(KEY) is None


def test_a_folder_that_takes_nothing_is_no_failure(tmp_path: Path) -> None:
    """Without a journal a run pays as before."""
    (tmp_path / "journal").touch()
    kept = journal(tmp_path)
    kept.keep(KEY, ONE)

    assert kept.find(KEY) is None


def test_replies_are_kept_even_where_none_are_used(tmp_path: Path) -> None:
    """A rebuild asks anew, and what it paid for serves the next run."""
    journal(tmp_path, replay=False).keep(KEY, ONE)

    assert journal(tmp_path, replay=False).find(KEY) is None
    assert journal(tmp_path).find(KEY) is not None


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "openai/y"},
        {"max_tokens": 65},
        {"params": {"reasoning_effort": "low"}},
        {"messages": (Message("user", "ho"),)},
        {"messages": (Message("system", "hi"),)},
    ],
)
def test_another_request_has_another_key(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    """All that the provider is told is in the key."""
    assert journal(tmp_path).key(request()) != journal(tmp_path).key(request(**changes))


def test_what_the_provider_is_not_told_is_not_in_the_key(tmp_path: Path) -> None:
    """How long one waits, and what for, changes nothing."""
    assert journal(tmp_path).key(request()) == journal(tmp_path).key(
        request(timeout_s=9.0, operation="expand")
    )


def test_another_server_has_another_key(tmp_path: Path) -> None:
    """The same model name on two servers is two models."""
    assert journal(tmp_path).key(request()) != journal(tmp_path, server="b").key(
        request()
    )


def test_asking_twice_in_one_run_wants_two_answers(tmp_path: Path) -> None:
    """A repetition has its own key, the same one in every run."""
    one, two = journal(tmp_path), journal(tmp_path)
    keys = [one.key(request()), one.key(request())]

    assert keys == [two.key(request()), two.key(request())]
    assert 2 == len(set(keys))


def test_old_replies_are_swept_once_a_day(tmp_path: Path) -> None:
    """Retention deletes what is older, and looks again a day later."""
    kept = journal(tmp_path)
    kept.keep(KEY, ONE)
    folder = tmp_path / "journal"
    assert 0 == sweep(folder, keep_days=1)
    old = time.time() - 2 * 86_400
    os.utime(folder / KEY[:2] / KEY, (old, old))

    assert 0 == sweep(folder, keep_days=1)
    os.utime(folder / ".swept", (old, old))
    assert 1 == sweep(folder, keep_days=1)
    assert kept.find(KEY) is None


def test_no_journal_keeps_nothing() -> None:
    """The off switch."""
    none = NoJournal()
    none.keep(none.key(request()), ONE)
    none.reject(none.key(request()))
    none.forget_rejected()

    assert none.find(none.key(request())) is None


SUMMARY = '{"summary": "Fruit."}'


def again(ledger: Ledger, name: str = "second") -> str:
    """Start a further attempt at the same document."""
    ledger.start_attempt(
        Attempt(
            attempt_id=name,
            run_id="run",
            owner="local",
            document_sha256=Sha256("0" * 64),
            recipe_hash=Sha256("1" * 64),
            model="fake/x",
        )
    )
    return name


def states(ledger: Ledger, attempt: str) -> list[tuple[str, int, bool]]:
    return [(r.state, r.amount_nano or 0, r.replayed) for r in ledger.holds(attempt)]


def test_a_second_run_pays_for_nothing_that_was_settled(tmp_path: Path) -> None:
    """The reply is the same, no request leaves, and the row says replayed at 0."""
    with opened(tmp_path) as ledger:
        provider = Priced(said(SUMMARY))
        with priced(ledger, provider, journal=journal(tmp_path)) as caller:
            first = caller.complete("summary_leaf", "Say.")
        second_id = again(ledger)
        with priced(
            ledger, provider, journal=journal(tmp_path), attempt_id=second_id
        ) as caller:
            second = caller.complete("summary_leaf", "Say.")
            counts = caller.counts
        (paid,), (free,) = states(ledger, ATTEMPT), states(ledger, second_id)

    assert first == second
    assert (1, 0) == (counts.replayed, counts.requests)
    assert paid[1] > 0
    assert ("settled", 0, True) == free


def test_an_unusable_reply_that_was_paid_for_is_not_paid_for_again(
    tmp_path: Path,
) -> None:
    """A run that was cut off goes the same way again, the second question included."""
    with opened(tmp_path) as ledger:
        provider = Priced(said("no JSON"), said(SUMMARY))
        for attempt in (ATTEMPT, again(ledger)):
            with priced(
                ledger, provider, journal=journal(tmp_path), attempt_id=attempt
            ) as caller:
                assert SUMMARY == caller.complete("summary_leaf", "Say.").text

    assert 2 == len(provider.inner.requests)


FILTERED = said("no", "content_filter")


@pytest.mark.parametrize(
    ("turns", "what"),
    [
        ([said("no JSON"), said("none again")], "not the JSON"),
        ([FILTERED], "content policy"),
    ],
)
def test_a_failed_run_forgets_what_it_failed_for(
    tmp_path: Path, turns: list[ProviderReply], what: str
) -> None:
    """Otherwise the next would fail the same way; until then the replies count."""
    with opened(tmp_path) as ledger:
        provider, kept = Priced(*turns, said(SUMMARY)), journal(tmp_path)
        for attempt in (ATTEMPT, again(ledger)):
            kept = journal(tmp_path)
            with (
                priced(ledger, provider, journal=kept, attempt_id=attempt) as caller,
                pytest.raises(VectorlessRagError, match=what),
            ):
                caller.complete("summary_leaf", "Say.")
        assert len(turns) == len(provider.inner.requests)
        kept.forget_rejected()
        with priced(
            ledger, provider, journal=journal(tmp_path), attempt_id=again(ledger, "3")
        ) as caller:
            assert SUMMARY == caller.complete("summary_leaf", "Say.").text


def test_a_kept_reply_that_no_longer_fits_is_asked_for_again(tmp_path: Path) -> None:
    """What counts as usable may change between two versions."""
    with opened(tmp_path) as ledger:
        provider, kept = Priced(said(SUMMARY)), journal(tmp_path)
        with priced(ledger, provider, journal=kept) as caller:
            caller.complete("summary_leaf", "Say.")
        for path in (tmp_path / "journal").glob("??/*"):
            kept.keep(Sha256(path.name), ONE)
        with priced(
            ledger, provider, journal=journal(tmp_path), attempt_id=again(ledger)
        ) as caller:
            assert SUMMARY == caller.complete("summary_leaf", "Say.").text


class Listener:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.heard: list[Observation] = []
        self.notes: dict[str, int] = {}

    def observe(self, observation: Observation) -> None:
        self.heard.append(observation)

    def close(self) -> None:
        """Nothing is left to deliver."""


@pytest.mark.parametrize("content", [False, True])
def test_every_closed_row_is_told(tmp_path: Path, content: bool) -> None:  # noqa: FBT001
    """State, price and code of each row; its content only where that is on."""
    listener = Listener()
    with opened(tmp_path) as ledger:
        provider = Priced(failure(), said(SUMMARY))
        with priced(ledger, provider, observer=listener, content=content) as caller:
            caller.complete("summary_leaf", "Say canary.")
        rows = ledger.holds(ATTEMPT)

    assert [(str(r.state), r.amount_nano, r.hold_id) for r in rows] == [
        (o.state, o.amount, o.hold_id) for o in listener.heard
    ]
    assert ["pageindex_llm_retry_exhausted", None] == [o.code for o in listener.heard]
    assert [content] * 2 == [o.prompt is not None for o in listener.heard]
    assert [None, SUMMARY if content else None] == [o.reply for o in listener.heard]
    assert "canary" not in repr(listener.heard)
