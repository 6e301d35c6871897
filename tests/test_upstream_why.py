"""Every line of the patched tree names the patch that wrote it."""

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import REPOSITORY
from toy_upstream import copy_series
from vectorless_rag import cli
from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.upstream import git
from vectorless_rag.upstream.checkout import build
from vectorless_rag.upstream.series import Series, read_series
from vectorless_rag.upstream.why import Cell, trace, why
from vectorless_rag.upstream.workflow import open_shell


@pytest.fixture(scope="module")
def series() -> Series:
    return read_series(REPOSITORY)


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with one commit for each of our patches."""
    folder = tmp_path_factory.mktemp("why") / "shell"
    open_shell(REPOSITORY, folder)
    return folder


def blamed(shell: Path, path: str, titles: dict[str, str]) -> list[str | None]:
    """Ask git which patch each line is of."""
    log = git.run(shell, "log", "--format=%H %s").decode().splitlines()
    subjects = dict(line.split(" ", 1) for line in log)
    # By newlines alone, as git counts lines.
    lines = git.run(shell, "blame", "-s", "-l", "--root", path).split(b"\n")[:-1]
    commits = [line.split(b" ", 1)[0].decode() for line in lines]
    return [titles.get(subjects[commit]) for commit in commits]


def test_every_line_is_of_the_patch_that_git_blames(
    series: Series, shell: Path
) -> None:
    """In every file that a patch touches, added lines and upstream's own."""
    titles = {patch.title: patch.id for patch in series.patches}
    paths = sorted({c.path for patch in series.patches for c in patch.changes})
    for path in paths:
        expected = blamed(shell, path, titles)
        cells = trace(series, path, len(expected))

        assert expected == [cell.writer and cell.writer.id for cell in cells], path


def test_every_added_line_that_is_left_is_found(series: Series, shell: Path) -> None:
    """The last patch's added lines stand where it says."""
    last = series.patches[-1]
    for change in last.changes:
        count = (shell / change.path).read_bytes().count(b"\n")
        cells = trace(series, change.path, count)
        mine = {n for n, cell in enumerate(cells, start=1) if cell.writer == last}

        assert change.added_lines == mine


def printed(argv: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert 0 == cli.main([*argv, "--json"])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


FILE = REPOSITORY / "build" / "pageindex" / "pageindex" / "page_index_classic.py"


def line_of(start: bytes) -> int:
    """Number the first line of the patched file that begins with *start*."""
    lines = FILE.read_bytes().split(b"\n")
    return next(n for n, line in enumerate(lines, start=1) if line.startswith(start))


GROUPED = b"from vectorless_rag.pageindex_runtime.grouping import"
REPLACED = b"def page_list_to_group_text("


def test_an_added_line_names_its_patch(capsys: pytest.CaptureFixture[str]) -> None:
    """What breaks without it, and the tests that prove it."""
    place = f"page_index_classic.py:{line_of(GROUPED)}"
    found = printed(["upstream", "why", place], capsys)

    assert ("0030", "Groups of pages pass the cap by up to 150 percent") == (
        found["patch"]["id"],
        found["patch"]["why"][:49],
    )
    assert found["patch"]["proofs"][0].startswith("tests/patches/test_0030_")
    assert "pageindex/page_index_classic.py" == found["file"]
    assert found["text"].startswith(GROUPED.decode())


def test_a_line_of_upstreams_own_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """And that a patch has bound its function anew."""
    place = f"pageindex/page_index_classic.py:{line_of(REPLACED)}"
    found = printed(["upstream", "why", place], capsys)

    assert (None, "page_list_to_group_text", ["0030"]) == (
        found["patch"],
        found["place"],
        [patch["id"] for patch in found["superseded"]],
    )
    assert 0 == cli.main(["upstream", "why", place])
    out = capsys.readouterr().out
    assert "none: the line is upstream's own" in out
    assert "page_list_to_group_text is bound anew" in out


def test_patches_around_a_line_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Of a function that several patches changed, each with a hand in it."""
    place = f"{FILE}:{line_of(b'def page_index_main(')}"
    found = printed(["upstream", "why", place], capsys)

    assert ["0010", "0050", "0120", "0130"] == [p["id"] for p in found["around"]]
    assert 0 == cli.main(["upstream", "why", place])
    assert "around   0120  assembly" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("page_index_classic.py", "a place is FILE:LINE"),
        ("page_index_classic.py:0", "a place is FILE:LINE"),
        ("page_index_classic.py:99999", "has lines 1 to"),
        ("__init__.py:1", "files of the build go by"),
        ("nowhere.py:1", "0 files of the build go by"),
        ("/nowhere.py:1", "0 files of the build go by"),
    ],
)
def test_a_place_that_is_none_is_refused(
    place: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says what would be one."""
    assert 2 == cli.main(["upstream", "why", place])
    assert why in capsys.readouterr().err


@pytest.fixture
def toy(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = copy_series(tmp_path / "root", tmp_path_factory.getbasetemp())
    build(root, root / "build" / "toy")
    return root


def test_an_altered_build_is_refused(toy: Path) -> None:
    """Lines are counted in the tree that the patches made."""
    path = toy / "build" / "toy" / "toy" / "core.py"
    path.write_bytes(path.read_bytes() + b"\n")

    with pytest.raises(VectorlessRagError, match="was changed"):
        why(toy, toy / "build" / "toy", "toy/core.py", 1)


def test_a_file_that_is_no_python_has_no_place() -> None:
    """A licence, for example."""
    found = why(REPOSITORY, FILE.parents[1], "LICENSE", 1)

    assert (None, None, ()) == (found.place, found.patch, found.around)


def test_removed_lines_are_told_below_them(series: Series) -> None:
    """A patch that only removes has no line of its own, but its place."""
    patch, change, run = next(
        (patch, change, run)
        for patch in series.patches
        for change in patch.changes
        for run in change.runs
        if run.old and not run.new
    )
    cells = trace(Series(patches=(patch,)), change.path, 9999)

    assert Cell(touched=frozenset({patch.id})) == cells[run.new_start - 1]
