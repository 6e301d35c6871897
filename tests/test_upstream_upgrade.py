"""A move to another release, from the first look to the moved pin."""

import json
from pathlib import Path

import pytest

from conftest import REPOSITORY
from published import faults, validator
from toy_drift import add_release
from toy_upstream import CORE, FILES, STRICT, copy_series
from vectorless_rag import cli
from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.upstream import git
from vectorless_rag.upstream.__main__ import main
from vectorless_rag.upstream.check import check_series
from vectorless_rag.upstream.drift_text import stamp
from vectorless_rag.upstream.environment import bare_environment
from vectorless_rag.upstream.export import BASE, IDENTITY, version_of
from vectorless_rag.upstream.pin import read_pin
from vectorless_rag.upstream.releases import look_up, read_releases
from vectorless_rag.upstream.series import read_series
from vectorless_rag.upstream.upgrade import STEPS, Stopped, edit
from vectorless_rag.upstream.workflow import open_shell

# Upstream puts something above everything, and rewrites what the second patch changes.
NEXT_CORE = CORE.replace(
    "\n\ndef load_a(text):\n    text = text.strip()\n    return text",
    "\n\n'a note'\n\n\ndef load_a(text):\n    text = text.strip()\n    return text * 2",
)
PERSON = {"GIT_EDITOR": "true", **IDENTITY}


@pytest.fixture
def toy(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = copy_series(tmp_path / "root", tmp_path_factory.getbasetemp())
    add_release(root, {**FILES, "toy/core.py": NEXT_CORE.encode()})
    return root


@pytest.fixture
def shell(toy: Path) -> Path:
    open_shell(toy, toy / "build" / "patch-shell")
    return toy / "build" / "patch-shell"


def run(root: Path, *args: object) -> int:
    return main(["--root", str(root), *(str(arg) for arg in args)])


def by_hand(shell: Path, *args: str) -> bytes:
    """Run git as the maintainer does."""
    return git.run(shell, *args, env={**bare_environment(), **PERSON})


def subjects(shell: Path) -> list[str]:
    return (
        by_hand(shell, "log", "--format=%s", "--reverse", f"{BASE}..")
        .decode()
        .split("\n")[:-1]
    )


def resolve(file: Path, line: str) -> None:
    """Put *line* where the conflict is, as an editor would."""
    before, _, rest = file.read_text().partition("<<<<<<<")
    after = rest.partition(">>>>>>>")[2].partition("\n")[2]
    file.write_text(before + line + after)


def test_a_pin_moves_in_the_steps_it_names(
    toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Upgrade, edit what conflicts, export: then pin, series and lock are of 1.1."""
    shell = toy / "build" / "patch-shell"
    before = (toy / "upstream.toml").read_bytes()
    assert 0 == run(toy, "upgrade", "1.1")
    assert before == (toy / "upstream.toml").read_bytes()
    assert ("1.1", ["core: refuse to load nothing"]) == (
        version_of(shell),
        subjects(shell),
    )
    left = [
        ("- [ ] `make patch-edit PATCH=0020` and put it where it belongs"),
        "- [ ] `make patch-export`: the pin moves along; then `make patches-check`",
        "- [ ] `make revision`, and read docs/upgrading.md on what follows",
    ]
    listed = (shell / STEPS).read_text().splitlines()
    assert left == [line for line in listed if line.startswith("- [ ]")]
    printed = capsys.readouterr().out.splitlines()
    assert [
        "0010  REFRESH         offset    before FAIL x1, after PASS x1",
        "0020  MISPLACED       offset    before FAIL x1, after -",
        "      conflict in toy/core.py (load_a)",
        "      in another place: toy/core.py::load_a -> toy/core.py::load_b",
        "1.1: 1 REFRESH, 1 MISPLACED",
    ] == printed[:5]
    assert left == printed[-3:]
    assert b"" == by_hand(shell, "status", "--porcelain")

    assert 0 == run(toy, "edit", "0020")
    assert "0020 conflicts in toy/core.py\n" in capsys.readouterr().out
    resolve(shell / "toy" / "core.py", "    return (text * 2).upper()\n")
    by_hand(shell, "add", "toy/core.py")
    by_hand(shell, "rebase", "--continue")
    assert 0 == run(toy, "export")

    assert ("1.1", 3) == (read_pin(toy).version, read_pin(toy).revision)
    assert () == check_series(toy)
    assert 0 == run(toy, "build")


def test_an_edit_stops_at_a_patch(shell: Path) -> None:
    """Later patches wait, and come back on top of it."""
    assert Stopped(number="0010", conflicts=()) == edit(shell, "0010")
    assert ["core: refuse to load nothing"] == subjects(shell)
    with pytest.raises(VectorlessRagError, match="an edit is going on"):
        edit(shell, "0020")
    by_hand(
        shell,
        "commit",
        "--quiet",
        "--amend",
        "-m",
        f"core: new words\n\nPatch-Filename: {STRICT}",
    )
    by_hand(shell, "rebase", "--continue")

    assert ["core: new words", "core: load loudly"] == subjects(shell)


def test_an_edit_says_how_it_goes_on(
    toy: Path, shell: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the patch stands, and the two commands that end it."""
    assert 0 == run(toy, "edit", "0010")

    assert [
        f"0010 stands as the last commit of {shell.relative_to(Path.cwd())}",
        "edit, git commit --all --amend, git rebase --continue",
        "then: make patch-export",
    ] == capsys.readouterr().out.splitlines()


def test_a_lost_patch_comes_back_at_its_place(shell: Path) -> None:
    """What was dropped is taken from where the shell began."""
    by_hand(shell, "reset", "--quiet", "--hard", "HEAD^")
    edit(shell, "0020")
    by_hand(shell, "rebase", "--continue")

    assert ["core: refuse to load nothing", "core: load loudly"] == subjects(shell)


def test_an_edit_risks_nothing(shell: Path) -> None:
    """Unknown numbers and uncommitted lines are refused."""
    with pytest.raises(VectorlessRagError, match="no patch 0030 in patch-shell"):
        edit(shell, "0030")
    (shell / "toy" / "core.py").write_text("lost = True\n")
    with pytest.raises(VectorlessRagError, match="something is not committed"):
        edit(shell, "0010")


@pytest.mark.usefixtures("shell")
def test_a_shell_is_not_written_over(
    toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Someone may be at work in it."""
    assert 10 == run(toy, "upgrade", "1.1")
    assert "patch-shell exists" in capsys.readouterr().err


def test_drift_writes_a_page_and_an_object(
    toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One for people, one for programs; status 20 unless it could move as it is."""
    assert 20 == run(toy, "drift", "--to", "1.1", "--json", "--write", toy / "page.md")
    printed = json.loads(capsys.readouterr().out)
    page = (toy / "page.md").read_text()

    assert [] == faults("upstream-drift-1", printed)
    assert ("toy", "1.0", read_series(toy).patch_sha256, ["1.1"]) == (
        printed["upstream"],
        printed["pin"],
        printed["patch_sha256"],
        [each["version"] for each in printed["releases"]],
    )
    assert stamp(toy, (look_up(toy, "1.1"),)) in page
    assert "| Patch | 1.1 |\n| --- | --- |\n| 0010-strict-load | REFRESH |\n" in page
    assert "\n**1.1**: 1 REFRESH, 1 MISPLACED.\n" in page
    assert "- 0010 REFRESH: text offset\n" in page


@pytest.mark.slow
def test_a_matrix_has_a_column_a_release(
    toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It informs and does not judge; progress goes to standard error."""
    args = ("drift", "--matrix", "1.0..1.1", "--jobs", 2)
    assert 0 == run(toy, *args, "--write", toy / "page.md")

    assert ("", "1.0: 2 KEEP\n1.1: 1 REFRESH, 1 MISPLACED\n") == capsys.readouterr()
    assert "| 0020-loud-load | KEEP | MISPLACED |\n" in (toy / "page.md").read_text()


def test_the_matrix_is_about_this_series() -> None:
    """`make drift-matrix` writes docs/drift.md again after a change of either."""
    page = (REPOSITORY / "docs" / "drift.md").read_text(encoding="utf-8")

    assert stamp(REPOSITORY, read_releases(REPOSITORY)) in page


def test_the_documented_object_fits_its_schema() -> None:
    """What docs/upgrading.md shows is what a program gets; another field is refused."""
    page = (REPOSITORY / "docs" / "upgrading.md").read_text(encoding="utf-8")
    body = page.partition("<!-- example: upstream-drift-1 -->\n```json\n")[2]
    shown = json.loads(body.partition("```")[0])

    assert [] == faults("upstream-drift-1", shown)
    assert not validator("upstream-drift-1").is_valid({**shown, "colour": "red"})


@pytest.mark.parametrize(
    ("args", "status", "said"),
    [
        (("--to", "0.4.6", "--matrix", "0.4.0..0.4.7"), 2, "either --to or --matrix"),
        (("--to", "main"), 2, "'main' is no version; write one as 0.4.7"),
    ],
)
def test_the_operators_command_says_what_it_cannot_do(
    args: tuple[str, ...],
    status: int,
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One line, before anything is fetched."""
    assert status == cli.main(["upstream", "drift", *args])
    assert said in capsys.readouterr().err
