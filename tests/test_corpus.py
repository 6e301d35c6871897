"""Many documents at a time: each has a result, and none decides over another."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from pdfs import pdf
from vectorless_rag.corpus import Corpus
from vectorless_rag.errors import Code
from vectorless_rag.pageindex_adapter import PageIndexAdapter
from vectorless_rag.results import IngestResult, Status
from vectorless_rag.settings import Settings
from vectorless_rag.wire import Progress

BODY = "\n".join(f"Line {n} says a little about fruit." for n in range(20))


class Heard:
    """Keeps what it is told, and is interrupted where it is told to be."""

    def __init__(self, interrupt_at: int | None = None) -> None:
        self.begun: list[int] = []
        self.ended: dict[int, IngestResult] = {}
        self.reports = 0
        self._interrupt_at = interrupt_at

    def started(self, number: int, path: Path) -> None:
        assert path.name
        self.begun.append(number)
        if number == self._interrupt_at:
            raise KeyboardInterrupt

    def progressed(self, _number: int, _progress: Progress) -> None:
        self.reports += 1

    def done(self, number: int, result: IngestResult) -> None:
        self.ended[number] = result


def corpus(folder: Path, jobs: int = 2, **settings: object) -> Corpus:
    chosen = Settings.load(data_dir=folder / "data", **settings)
    return Corpus(adapter=PageIndexAdapter(chosen), jobs=jobs, rebuild=False)


def paper(folder: Path, name: str, topic: str) -> Path:
    return pdf(folder / name, [f"1 {topic}\n{BODY}"])


def statuses(results: Sequence[IngestResult]) -> list[str]:
    return [result.status.value for result in results]


def test_each_document_has_its_result(tmp_path: Path) -> None:
    """In the order given; the same bytes are built once, a bad file fails alone."""
    one = paper(tmp_path, "one.pdf", "Apples")
    twin = tmp_path / "twin.pdf"
    twin.write_bytes(one.read_bytes())
    bad = tmp_path / "bad.pdf"
    bad.write_bytes(b"no PDF")
    other = paper(tmp_path, "other.pdf", "Pears")
    heard, run = Heard(), corpus(tmp_path, jobs=3)
    results = run.run([one, bad, twin, other], heard)
    ended = statuses(results)

    assert ["built", "reused"] == sorted([ended[0], ended[2]])
    assert ["failed", "built"] == [ended[1], ended[3]]
    assert results[0].artifact_id == results[2].artifact_id
    assert (results, [0, 1, 2, 3]) == (
        [heard.ended[number] for number in range(4)],
        sorted(heard.begun),
    )
    assert heard.reports
    assert run.ended is None


def test_what_every_document_would_meet_ends_the_run(tmp_path: Path) -> None:
    """Without a build the first failure says so, and the rest is not begun."""
    paths = [tmp_path / f"{number}.pdf" for number in range(5)]
    run = corpus(tmp_path, jobs=1, build_dir=tmp_path / "nothing")
    heard = Heard()
    results = run.run(paths, heard)

    assert Code.UPSTREAM_UNAVAILABLE == run.ended
    assert set(range(5)) == set(heard.ended)
    assert [Status.FAILED, *[Status.SKIPPED] * 4] == [r.status for r in results]
    assert {None, Code.UPSTREAM_UNAVAILABLE} == {r.skipped for r in results}


def test_an_interrupt_accounts_for_every_document(tmp_path: Path, sample: Path) -> None:
    """What was being built says cancelled, what was not begun says so."""
    paths = [sample, *(paper(tmp_path, f"{n}.pdf", f"Topic {n}") for n in range(2))]
    heard, run = Heard(interrupt_at=0), corpus(tmp_path, jobs=1)

    with pytest.raises(KeyboardInterrupt):
        run.run(paths, heard)
    first, *others = [heard.ended[number] for number in range(3)]

    assert Code.CANCELLED == run.ended
    assert first.failure is not None
    assert Code.CANCELLED == first.failure.code
    assert [(Status.SKIPPED, Code.CANCELLED)] * 2 == [
        (result.status, result.skipped) for result in others
    ]


def test_a_defect_of_ours_passes(tmp_path: Path) -> None:
    """What no code foresees is not hidden in a result."""
    run = corpus(tmp_path)
    run.adapter.settings = None  # type: ignore[attr-defined]

    with pytest.raises(AttributeError, match="NoneType"):
        run.run([tmp_path / "a.pdf"], Heard())
