"""Flash spends nothing on a document whose layout shows no structure."""

from pathlib import Path

from patches.scripted import MODEL, provider
from patches.tree_under_test import flash
from pdfs import pdf

ANSWERS = {"summary_leaf": {"summary": "All work."}, "expand": {"subsections": []}}


def prose(tmp_path: Path) -> str:
    """Three pages of lines of one size: no heading in sight."""
    pages = [
        "\n".join(f"page {n} line {m} says that all work is no play" for m in range(30))
        for n in range(3)
    ]
    return str(pdf(tmp_path / "a.pdf", pages))


def test_auto_mode_asks_no_model_without_a_structure(tmp_path: Path) -> None:
    """The caller goes on to standard mode and has paid for nothing."""
    with provider(mode="auto", **ANSWERS) as script:
        result = flash.page_index_flash(prose(tmp_path), summary_model=MODEL)

    assert [] == script.asked
    assert ("pages", 3) == (result["toc_source"], len(result["structure"]))


def test_flash_mode_still_summarises_a_short_flat_tree(tmp_path: Path) -> None:
    """Who asked for flash gets the pages as nodes, with summaries (holds before too)"""
    with provider(mode="flash", **ANSWERS) as script:
        result = flash.page_index_flash(prose(tmp_path), summary_model=MODEL)

    assert 3 == len(script.to("summary_leaf"))
    assert ["All work."] * 3 == [node["summary"] for node in result["structure"]]
