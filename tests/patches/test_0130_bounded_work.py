"""What any document can cost has a ceiling."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patches.good_model import GOOD, headings, options, pages_of, printed
from patches.scripted import MODEL, NO_KEY, TOO_LONG, Asked, outcome, provider, turns
from patches.tree_under_test import classic, utils
from pdfs import pdf


def toc_pages(texts: list[str], detector: Any) -> tuple[Any, Any]:
    given = {"page_index_given_in_toc": "yes"}
    answers = {**GOOD, "toc_detector_single_page": detector, "detect_page_index": given}
    with provider(**answers) as script:
        found = outcome(lambda: classic.check_toc(pages_of(texts), options()))
    return found, script


def is_toc(asked: Asked) -> Any:
    return {
        "toc_detected": "yes" if "TOC" in asked.prompt.split("Given text")[1] else "no"
    }


def test_a_document_that_looks_like_a_table_of_contents_is_bounded() -> None:
    """A hundred and twenty pages of numbered rules are not one table of contents."""
    texts = [f"{n}. Rule {n}\n" + "x" * 1000 for n in range(1, 121)]

    found, script = toc_pages(texts, {"toc_detected": "yes"})

    assert isinstance(found, dict)
    assert len(found["toc_page_list"]) <= 20
    assert len(script.asked) <= 45
    assert max(len(asked.text) for asked in script.asked) <= 40_000


def test_whether_pages_are_given_is_told_by_a_sample() -> None:
    """Twenty dense pages are not sent to see whether they hold numbers."""
    texts = ["TOC " + "entry 1\n" * 500] * 20 + ["body"]

    _, script = toc_pages(texts, is_toc)

    (asked,) = script.to("detect_page_index")
    assert len(asked.text) <= 15_000


def test_a_blank_page_ends_no_table_of_contents() -> None:
    """What stands behind it belongs to it too, and it costs no question."""
    texts = ["cover", "TOC part 1: Ch1 .... 1", "", "TOC part 2: Ch9 .... 90"]
    texts += ["body"] * 10

    found, script = toc_pages(texts, is_toc)

    assert isinstance(found, dict)
    assert [1, 3] == found["toc_page_list"]
    assert {"part 1", "part 2"} == {
        part for part in ("part 1", "part 2") if part in found["toc_content"]
    }
    assert 4 == len(script.to("toc_detector_single_page"))


def test_a_page_that_cannot_be_asked_about_is_no_table_of_contents() -> None:
    """One refused page does not cost the document its table of contents."""
    texts = ["cover", "TOC Ch1 .... 1", "body"]

    found, _ = toc_pages(
        texts, turns(TOO_LONG, {"toc_detected": "yes"}, {"toc_detected": "no"})
    )

    assert isinstance(found, dict)
    assert [1] == found["toc_page_list"]


def test_refused_credentials_end_the_search() -> None:
    """A failure of every call is no "no" (holds before too)"""
    found, _ = toc_pages(["TOC"], NO_KEY)

    assert "pageindex_auth" == found


@given(st.lists(st.sampled_from(["TOC", "", "body"]), max_size=40))
def test_the_pages_found_are_one_run(texts: list[str]) -> None:
    """At most twenty, and only blank pages stand between (holds before too)"""
    with provider(**{**GOOD, "toc_detector_single_page": is_toc}) as script:
        found = classic.find_toc_pages(0, pages_of(texts), options())

    assert len(found) <= 20
    assert len(script.asked) <= 41
    if found:
        between = {texts[n] for n in range(found[0], found[-1])} | {"TOC"}
        assert between <= {"TOC", ""}
        assert found[0] < 20
    assert "TOC" not in texts[:20] or found


@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")
def test_the_entry_point_runs_inside_a_loop(tmp_path: Path) -> None:
    """A caller that is itself asynchronous can index, through the same boundary."""
    path = pdf(tmp_path / "a.pdf", ["Alpha"])
    opts = utils.ConfigLoader().load({"model": MODEL, "if_add_node_summary": "no"})

    async def inside() -> Any:
        return outcome(
            lambda: classic.page_index_main(str(path), opts, page_list=[("Alpha", 1)])
        )

    with provider(**{**GOOD, "generate_toc_init": headings(("Alpha", 1))}):
        found = asyncio.run(inside())

    assert isinstance(found, dict)
    assert ["Alpha"] == [node["title"] for node in found["structure"]]


def test_a_log_is_written_line_by_line_to_a_file_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two runs of one file share nothing, and nothing is written twice."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "elsewhere"))
    (tmp_path / "elsewhere").mkdir()
    wrote = 0

    logs = [utils.JsonLogger("a.pdf") for _ in range(2)]
    for _ in range(200):
        for log in logs:
            log.info("x" * 100)
        wrote = sum(f.stat().st_size for f in (tmp_path / "elsewhere").iterdir())

    assert not (tmp_path / "logs").exists()
    assert logs[0].filename != logs[1].filename
    assert 2 * 200 * 100 <= wrote <= 2 * 200 * 200


def test_the_whole_of_a_large_table_of_contents_is_transformed() -> None:
    """Bounding the questions loses no entry (holds before too)"""
    lines = "\n".join(f"{n} Section {n} .... {n}" for n in range(1, 40))

    with provider(
        **{
            **GOOD,
            "toc_transformer": printed(
                *((str(n), f"Section {n}", n) for n in range(1, 40))
            ),
        }
    ):
        found = classic.toc_transformer(lines, MODEL)

    assert 39 == len(found)
