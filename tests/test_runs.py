"""What became of every document is kept, and can be asked for."""

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from published import faults
from vectorless_rag.errors import Code, Failure, VectorlessRagError
from vectorless_rag.results import IngestResult, Spend, Status
from vectorless_rag.runs import RunFolder, Totals, unfinished
from vectorless_rag.units import NanoUsd

BUILT = IngestResult(
    source=Path("a.pdf"),
    status=Status.BUILT,
    pages=20,
    nodes=3,
    spend=Spend(calls=4, prompt_tokens=10, completion_tokens=5, cost=NanoUsd(10**9)),
)
FAILED = IngestResult(
    source=Path("b.pdf"),
    status=Status.FAILED,
    failure=Failure(code=Code.SOURCE_NO_TEXT),
    spend=Spend(calls=1, cost=NanoUsd(10**9)),
)
SKIPPED = IngestResult(
    source=Path("c.pdf"), status=Status.SKIPPED, skipped=Code.BUDGET_EXCEEDED
)

results = st.lists(
    st.builds(
        replace,
        st.sampled_from([BUILT, FAILED, SKIPPED]),
        source=st.sampled_from(["a.pdf", "b.pdf", "c.pdf"]).map(Path),
    ),
    max_size=8,
)


def test_totals_say_what_a_thousand_would_cost() -> None:
    """Two dollars for one document of twenty pages; what failed is paid for too."""
    totals = Totals.of([BUILT, FAILED, SKIPPED]).to_json()

    assert {
        "built": 1, "reused": 0, "failed": 1, "skipped": 1, "pages_built": 20,
        "calls": 5, "prompt_tokens": 10, "completion_tokens": 5, "cost_usd": "2",
        "cost_usd_per_1000_documents": "2000", "cost_usd_per_1000_pages": "100",
    } == totals  # fmt: skip


def test_with_nothing_built_there_is_no_rate() -> None:
    """No division by zero, and no rate of nothing."""
    totals = Totals.of([FAILED])

    assert (None, None) == (totals.cost_per_1000_documents, totals.cost_per_1000_pages)


def test_the_manifest_accounts_for_every_input(tmp_path: Path) -> None:
    """In the order they were given, whatever order they ended in."""
    path = RunFolder(tmp_path, "r").finish(
        [BUILT, FAILED, SKIPPED], mode="auto", model="m", ended="complete"
    )
    written = json.loads(path.read_bytes())

    assert ("corpus-run/1", "r", "m") == (
        written["schema"],
        written["run_id"],
        written["model"],
    )
    assert ["a.pdf", "b.pdf", "c.pdf"] == [d["source"] for d in written["documents"]]
    assert [] == faults("corpus-run-1", written)
    assert [path] == list(path.parent.iterdir())


@given(first=results, second=results)
def test_the_last_run_decides(
    tmp_path_factory: pytest.TempPathFactory,
    first: list[IngestResult],
    second: list[IngestResult],
) -> None:
    """A document is left over if its last ingest of all runs left no artifact."""
    folder = tmp_path_factory.mktemp("runs")
    last: dict[Path, IngestResult] = {}
    for run, ended in (("z", first), ("a", second)):
        for result in ended:
            with closing(RunFolder(folder, run)) as records:
                records.begin(result.source)
                records.add(result)
            last[result.source.absolute()] = result
    expected = {p: r for p, r in last.items() if r.status is not Status.BUILT}
    left = unfinished(folder)

    assert sorted(expected) == [ended.path for ended in left]
    for document in left:
        failed = expected[document.path]
        code = failed.failure.code if failed.failure else failed.skipped
        assert code == document.code
        assert document.retryable is (failed.failure is None)


def test_what_was_in_work_is_left_over_once_its_program_is_gone(
    tmp_path: Path,
) -> None:
    """Not while it is at it, and not where it ended after all."""
    with closing(RunFolder(tmp_path, "r")) as run:
        for name in ("a.pdf", "b.pdf"):
            run.begin(Path(name))
        run.add(replace(BUILT, source=Path("a.pdf")))
        assert [] == unfinished(tmp_path)
    left = unfinished(tmp_path)

    assert [("b.pdf", "child_killed", True)] == [
        (ended.path.name, ended.code, ended.retryable) for ended in left
    ]


def test_half_a_line_of_a_killed_writer_spoils_nothing(tmp_path: Path) -> None:
    """The document was not done then; what comes after it stands."""
    run = RunFolder(tmp_path, "r")
    run.add(FAILED)
    with (tmp_path / "r" / "documents.jsonl").open("ab") as file:
        file.write(b'{"at": "2026')
    run.add(replace(FAILED, source=Path("c.pdf")))

    assert ["b.pdf", "c.pdf"] == [ended.path.name for ended in unfinished(tmp_path)]


def test_names_that_are_no_text_come_back(tmp_path: Path) -> None:
    """So that the very file can be tried again."""
    RunFolder(tmp_path, "r").add(replace(FAILED, source=Path("\udcff.pdf")))

    assert ["\udcff.pdf"] == [ended.path.name for ended in unfinished(tmp_path)]


def test_a_folder_that_takes_nothing_is_named(tmp_path: Path) -> None:
    """The caller decides what a lost record is worth."""
    (tmp_path / "runs").touch()
    run = RunFolder(tmp_path / "runs", "r")

    for write in (lambda: run.add(BUILT), lambda: run.finish([BUILT])):
        with pytest.raises(VectorlessRagError, match=r"json.*: Not a directory") as got:
            write()
        assert Code.STORE_UNWRITABLE == got.value.code


def test_two_spellings_of_a_path_are_one_document(tmp_path: Path) -> None:
    """What was built under one of them is not left over under the other."""
    run = RunFolder(tmp_path, "r")
    run.add(replace(FAILED, source=tmp_path / "x" / ".." / "a.pdf"))
    run.add(replace(BUILT, source=tmp_path / "a.pdf"))

    assert [] == unfinished(tmp_path)


def test_no_run_has_left_nothing(tmp_path: Path) -> None:
    """A data folder that nobody used is no failure."""
    assert [] == unfinished(tmp_path / "runs")
