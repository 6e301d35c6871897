"""``python -m vectorless_rag.upstream``: one line an answer, an honest status."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import REPOSITORY
from toy_upstream import FILES, LOUD, WHEEL, copy_series, write_files
from vectorless_rag.upstream.__main__ import main


@pytest.fixture
def toy(
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    return copy_series(tmp_path / "root", tmp_path_factory.getbasetemp())


def run(root: Path, *args: object) -> int:
    return main(["--root", str(root), *(str(arg) for arg in args)])


def test_build_and_verify_say_what_was_built(
    toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both print the same line; the folder is the usual one."""
    assert (0, 0) == (run(toy, "build"), run(toy, "verify"))
    first, second = capsys.readouterr().out.splitlines()
    assert first == second
    assert first.startswith("pageindex 1.0+vr3, 2 patches, tree ")
    assert first.endswith(str(toy / "build" / "pageindex"))


def test_failures_are_one_line(toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Code and message on standard error, the status of the design."""
    assert 10 == run(toy, "verify")
    run(toy, "build")
    (toy / "build" / "pageindex" / "toy" / "core.py").write_bytes(b"")
    assert 20 == run(toy, "verify")

    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("upstream: upstream_unavailable: ")
    assert "toy/core.py was changed" in second


def test_maintainers_verbs(toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Shell, export, lock, status and fetch answer in a line or two."""
    verbs = ("fetch", "shell", "export", "lock", "status")
    assert [0] * 5 == [run(toy, verb) for verb in verbs]

    out = capsys.readouterr().out.splitlines()
    assert str(toy / "vendor" / WHEEL) == out[0]
    assert str(toy / "build" / "patch-shell") == out[1]
    assert out[2].startswith("2 patches, patch_sha256 ")
    assert out[2] == out[3]
    assert [
        "upstream toy 1.0, revision 3",
        (
            "0010  core: refuse to load nothing  |  Pending [not sent]  "
            "|  drop when proof-passes-on-upstream"
        ),
        (
            "0020  core: load loudly  |  Pending [not sent]  "
            "|  drop when proof-passes-on-upstream"
        ),
    ] == out[4:]


def test_check_says_one_line_a_finding(
    toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 0 without findings, 20 with one."""
    assert 0 == run(toy, "check", "--no-proofs")
    assert "ok    2 patches apply, lock and export agree\n" == capsys.readouterr().out

    patch = toy / "patches" / LOUD
    patch.write_text(patch.read_text().replace("Bug: none\n", ""))
    run(toy, "lock")
    capsys.readouterr()
    assert 20 == run(toy, "check", "--no-proofs")
    assert f"FAIL  {LOUD}: 0 Bug trailers\n" == capsys.readouterr().out


@pytest.mark.slow
def test_check_runs_the_proofs(toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A proof that passes without its patch fails the check."""
    write_files(
        toy,
        {"tests/patches/test_0020_loud.py": b"def test_it_is_loud():\n    pass\n"},
    )
    assert 20 == run(toy, "check", "--repeat", 1, "--only", "0020")

    assert [
        "ok    2 patches apply, lock and export agree",
        "FAIL  0020-loud-load: before PASS x1, after PASS x1, full PASS x1",
        "      test_it_is_loud before is PASS",
        "      retire it: its proofs pass on the bare upstream",
    ] == capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("args", "status", "said"),
    [
        (("--source", "index"), 10, "pip could not download"),
        (("--source", "file"), 10, "--source file needs --file"),
        (("--source", "git"), 10, "no [git] in upstream.toml"),
        (("--git-url", "x"), 10, "no [git] in upstream.toml"),
        (("--git-url", "x", "--git-commit", "main"), 10, "not a 40-hex git id"),
        (("--file", "nowhere.whl"), 10, "nowhere.whl: No such file"),
    ],
)
def test_sources_can_be_named(
    toy: Path,
    capsys: pytest.CaptureFixture[str],
    args: tuple[str, ...],
    status: int,
    said: str,
) -> None:
    """What is missing for a source is told."""
    assert status == run(toy, "build", *args)
    assert said in capsys.readouterr().err


def test_the_pinned_git_source_is_taken(
    toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a url on the command line, the one beside the pin."""
    with (toy / "upstream.toml").open("a") as file:
        file.write(f'[git]\nurl = "/nonexistent"\ncommit = "{"c" * 40}"\n')

    assert 10 == run(toy, "build", "--source", "git")
    assert "git fetch: " in capsys.readouterr().err


def test_the_root_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    """Without --root it is this repository."""
    assert 0 == main(["status"])
    assert capsys.readouterr().out.startswith("upstream pageindex 0.4.7")


SCRIPTS = REPOSITORY / "scripts"


def test_install_needs_nothing_installed(toy: Path, tmp_path: Path) -> None:
    """A bare interpreter with git builds: no pydantic, no site packages."""
    copy = tmp_path / "bare"
    shutil.copytree(toy, copy)
    shutil.copytree(REPOSITORY / "src", copy / "src")
    (copy / "scripts").mkdir()
    shutil.copy(SCRIPTS / "install-pageindex.sh", copy / "scripts")
    bare = copy / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(bare.stat().st_mode | stat.S_IXUSR)
    env = {"PATH": os.environ["PATH"], "PYTHON": str(bare), "HOME": "/nonexistent"}
    argv = [copy / "scripts" / "install-pageindex.sh", tmp_path / "dest"]

    first, again = (
        subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
        for _ in range(2)
    )
    assert (0, "") == (first.returncode, first.stderr)
    assert first.stdout == again.stdout
    assert first.stdout.startswith("pageindex 1.0+vr3, 2 patches")


def test_the_regression_script_refuses_what_is_no_checkout(tmp_path: Path) -> None:
    """Usage is status 2, never 0."""
    script = SCRIPTS / "test_pageindex_patch.py"
    write_files(tmp_path / "other", FILES)
    ended = [
        subprocess.run(
            [sys.executable, script, *args], capture_output=True, check=False
        )
        for args in ([], [tmp_path / "other"])
    ]

    assert [2, 2] == [done.returncode for done in ended]
