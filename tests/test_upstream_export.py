"""Patches become commits and commits the same patches, under anyone's settings."""

from pathlib import Path

import pytest

from toy_upstream import (
    CORE,
    FILES,
    LOUD,
    LOUD_CORE,
    STRICT,
    TOOLS,
    TRAILERS,
    WHY,
    commit,
    copy_series,
    make_root,
    message,
)
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.upstream import git
from vectorless_rag.upstream.environment import bare_environment
from vectorless_rag.upstream.export import IDENTITY, export_patches
from vectorless_rag.upstream.series import read_series
from vectorless_rag.upstream.workflow import open_shell, write_lock, write_series

QUIET = "0030-quiet-load.patch"
QUIET_CORE = LOUD_CORE.replace("Loads things.", "Loads things, quietly.")


@pytest.fixture
def toy(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_series(tmp_path / "root", tmp_path_factory.getbasetemp())


@pytest.fixture
def shell(toy: Path, tmp_path: Path) -> Path:
    open_shell(toy, tmp_path / "shell")
    return tmp_path / "shell"


def files_of(root: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes()
        for path in (root / "patches").iterdir()
        if path.is_file()
    }


def test_a_shell_has_one_commit_a_patch(shell: Path) -> None:
    """The base is marked, and the work tree is the patched one."""
    subjects = git.run(shell, "log", "--format=%s", "--reverse").decode().split("\n")

    assert [
        "upstream 1.0",
        "core: refuse to load nothing",
        "core: load loudly",
        "",
    ] == subjects
    assert LOUD_CORE == (shell / "toy" / "core.py").read_text()
    assert b"" == git.run(shell, "status", "--porcelain")


def test_nothing_edited_exports_the_same_bytes(toy: Path, shell: Path) -> None:
    """Files, series and lock are byte for byte what they were."""
    before = files_of(toy)
    write_series(toy, shell)

    assert before == files_of(toy)


SETTINGS = {
    "diff.noprefix": "true",
    "diff.mnemonicPrefix": "true",
    "diff.context": "7",
    "diff.interHunkContext": "9",
    "diff.suppressBlankEmpty": "true",
    "diff.algorithm": "patience",
    "diff.indentHeuristic": "false",
    "diff.renames": "copies",
    "diff.external": "/bin/false",
    "diff.python.textconv": "cat -n",
    "diff.python.xfuncname": "^zzz",
    "core.abbrev": "4",
    "core.autocrlf": "true",
    "color.ui": "always",
    "format.signOff": "true",
    "format.attach": "true",
    "format.thread": "deep",
    "format.from": "true",
    "format.to": "a@example.invalid",
    "format.cc": "a@example.invalid",
    "format.headers": "X-Mine: 1",
    "format.subjectPrefix": "MINE",
    "format.numbered": "true",
    "format.coverLetter": "true",
    "format.useAutoBase": "whenAble",
    "format.notes": "true",
    "format.signature": "mine",
    "log.showSignature": "true",
    "log.diffMerges": "on",
    "i18n.logOutputEncoding": "latin-1",
}


def test_settings_of_others_change_nothing(toy: Path, shell: Path) -> None:
    """Whatever a maintainer's repository is set to, the bytes are the same."""
    before = files_of(toy)
    for name, value in SETTINGS.items():
        git.run(shell, "config", name, value)
    (shell / ".git" / "info").mkdir(exist_ok=True)
    # xfuncname belongs to the attribute, which the export brings with it.
    git.run(shell, "config", "--unset", "diff.python.xfuncname")
    write_series(toy, shell)

    assert before == files_of(toy)


def test_environment_of_others_changes_nothing(
    toy: Path, shell: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """``GIT_DIFF_OPTS`` beats the command line; it does not reach the export."""
    before = files_of(toy)
    (tmp_path / "config").write_text("[diff]\n\tnoprefix = true\n")
    for name, value in {
        "GIT_DIFF_OPTS": "-u5",
        "GIT_CONFIG_GLOBAL": str(tmp_path / "config"),
        "GIT_DIR": str(tmp_path / "nowhere"),
        "GIT_EXTERNAL_DIFF": "/bin/false",
    }.items():
        monkeypatch.setenv(name, value)
    write_series(toy, shell)

    assert before == files_of(toy)


def test_a_new_commit_is_a_new_patch(toy: Path, shell: Path) -> None:
    """Its name comes from a trailer that the file does not show."""
    commit(shell, {"toy/core.py": QUIET_CORE}, message(QUIET, "Proof: a::b"))
    lock = write_series(toy, shell)
    (*_, patch) = read_series(toy).patches

    assert (STRICT, LOUD, QUIET) == tuple(p.file for p in lock.patches)
    assert "Patch-Filename" not in patch.raw.decode()
    assert ("a::b",) == patch.values("Proof")
    assert ["# The order.", STRICT, LOUD, QUIET] == (
        toy / "patches" / "series"
    ).read_text().splitlines()


def test_words_of_any_script_survive(toy: Path, shell: Path) -> None:
    """Subject, prose and changed lines are UTF-8."""
    text = message(QUIET, title="core: größer, 漢字 and a title that has to be folded")
    core = LOUD_CORE.replace("Loads things.", "Lädt 漢字.")
    commit(shell, {"toy/core.py": core}, text.replace("Nothing", "Nïchts"))
    write_series(toy, shell)
    before = files_of(toy)
    (*_, patch) = read_series(toy).patches

    assert "core: größer, 漢字 and a title that has to be folded" == patch.title
    assert patch.prose.startswith("Nïchts")
    open_shell(toy, shell.parent / "again")
    write_series(toy, shell.parent / "again")
    assert before == files_of(toy)


def test_comments_of_the_series_stay(toy: Path, shell: Path) -> None:
    """They stand in front of the name they stood in front of."""
    series = toy / "patches" / "series"
    series.write_text(f"# head\n{STRICT}\n# loud\n{LOUD}\n# end\n")
    commit(shell, {"toy/core.py": QUIET_CORE}, message(QUIET))
    write_series(toy, shell)

    assert f"# head\n{STRICT}\n# loud\n{LOUD}\n{QUIET}\n# end\n" == series.read_text()


def test_a_dropped_patch_must_be_retired(toy: Path, shell: Path) -> None:
    """Its number is kept from reuse before its file goes."""
    env = {**bare_environment(), **IDENTITY}
    git.run(shell, "reset", "--quiet", "--hard", "refs/patches/upstream-head")
    commit(shell, {"toy/core.py": CORE.replace("Loads", "Load")}, message(LOUD))
    before = files_of(toy)
    with pytest.raises(
        VectorlessRagError, match="no commit for 0010; list it"
    ) as raised:
        write_series(toy, shell)
    assert Code.UPSTREAM_DRIFT is raised.value.code
    assert before == files_of(toy)

    with (toy / "patches" / "RETIRED.md").open("a") as file:
        file.write("| 0010 | strict | 1.0 | no more | none |\n")
    write_series(toy, shell)
    assert STRICT not in files_of(toy)
    assert b"# The order.\n0020-loud-load.patch\n" == files_of(toy)["series"]

    git.run(shell, "commit", "--amend", "-qm", message(STRICT), env=env)
    with pytest.raises(VectorlessRagError, match="0010 was retired"):
        write_series(toy, shell)


@pytest.mark.parametrize(
    ("edits", "text", "why"),
    [
        pytest.param(
            {"toy/core.py": QUIET_CORE}, "core: x\n", "has no Patch-Filename", id="name"
        ),
        pytest.param(
            {"toy/core.py": QUIET_CORE},
            message("0015-early.patch"),
            "numbers do not ascend: 0010; 0020; 0015",
            id="order",
        ),
        pytest.param(
            {"toy/core.py": QUIET_CORE},
            message("30.patch"),
            "NNNN-kebab-title",
            id="form",
        ),
        pytest.param(
            {"toy/core.py": QUIET_CORE},
            message(QUIET, f"Replaces: toy/core.py::load_b sha256:{'0' * 64}"),
            "the source of toy/core.py::load_b has digest [0-9a-f]{64}",
            id="replaces",
        ),
        pytest.param(
            {"toy/core.py": QUIET_CORE.replace("def load_a(text)", "def load_a(")},
            message(QUIET),
            "is no Python",
            id="syntax",
        ),
        pytest.param(
            {"toy/assets/x": "1"}, message(QUIET), "other files than", id="excluded"
        ),
    ],
)
def test_a_commit_that_is_no_patch_writes_nothing(
    toy: Path, shell: Path, edits: dict[str, str], text: str, why: str
) -> None:
    """The series on disk stays whole until the new one is."""
    before = files_of(toy)
    commit(shell, edits, text)

    with pytest.raises(VectorlessRagError, match=why):
        write_series(toy, shell)
    assert before == files_of(toy)


def test_merges_and_empty_commits_are_no_patches(toy: Path, shell: Path) -> None:
    """A series is a straight line of changes."""
    env = {**bare_environment(), **IDENTITY}
    text = message(QUIET)
    git.run(shell, "commit", "-q", "--allow-empty", "-m", text, env=env)
    with pytest.raises(VectorlessRagError, match="without a change"):
        write_series(toy, shell)

    git.run(shell, "reset", "-q", "--hard", "HEAD^")
    git.run(shell, "checkout", "-q", "-b", "side", "HEAD^")
    commit(shell, {"toy/tools.py": TOOLS + "\n# x\n"}, message(QUIET))
    git.run(shell, "merge", "-q", "--no-edit", "patches", env=env)
    with pytest.raises(VectorlessRagError, match="merge commit"):
        write_series(toy, shell)


def test_any_repository_can_be_exported(toy: Path, tmp_path: Path) -> None:
    """A base can be named where the scratch repository is not ours."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(VectorlessRagError, match="git rev-parse: ") as raised:
        export_patches(tmp_path / "empty")
    assert Code.UPSTREAM_UNAVAILABLE is raised.value.code
    with pytest.raises(VectorlessRagError, match=r"git in .*No such file"):
        export_patches(tmp_path / "nowhere")

    open_shell(toy, tmp_path / "shell")
    git.run(tmp_path / "shell", "update-ref", "-d", "refs/patches/upstream-head")
    assert (LOUD,) == tuple(
        p.file for p in export_patches(tmp_path / "shell", base="HEAD^")
    )


def test_a_shell_starts_in_a_new_folder(toy: Path, tmp_path: Path) -> None:
    """Someone's edits are not written over."""
    with pytest.raises(VectorlessRagError, match="starts in a new folder"):
        open_shell(toy, tmp_path)


def test_a_patch_that_does_not_merge_is_named(toy: Path, tmp_path: Path) -> None:
    """git am says where it stopped."""
    path = toy / "patches" / LOUD
    path.write_text(path.read_text().replace("-    return text", "-    return test"))

    with pytest.raises(VectorlessRagError, match=f"{LOUD}: git am: "):
        open_shell(toy, tmp_path / "shell")


def test_an_empty_series_round_trips(tmp_path: Path) -> None:
    """A project begins without patches, and its first export has one."""
    root = make_root(tmp_path / "root")
    write_lock(root)
    open_shell(root, tmp_path / "shell")
    before = files_of(root)
    write_series(root, tmp_path / "shell")
    assert before == files_of(root)

    commit(
        tmp_path / "shell",
        {"toy/core.py": CORE.replace("Loads", "Load")},
        message(LOUD),
    )
    write_series(root, tmp_path / "shell")
    assert b"# The order.\n0020-loud-load.patch\n" == files_of(root)["series"]


PUBLISHED = f"""\
--- a/toy/tools.py
+++ b/toy/tools.py
@@ -6,3 +6,3 @@ def two(self):
         a = 1
-        return a
+        return a + 1
{" "}
"""


def test_the_form_is_the_published_one(tmp_path: Path) -> None:
    """One line of context, whole ids, and the method's name after the @@."""
    tools = (
        "class A:\n    def one(self):\n        return 1\n\n"
        "    def two(self):\n        a = 1\n        return a\n\n\nX = 1\n"
    )
    files = {**FILES, "toy/tools.py": tools.encode()}
    root = make_root(tmp_path / "root", files)
    write_lock(root)
    open_shell(root, tmp_path / "shell")
    edits = {"toy/tools.py": tools.replace("return a\n", "return a + 1\n")}
    commit(tmp_path / "shell", edits, message(LOUD, title="tools: more"))
    write_series(root, tmp_path / "shell")
    head, _, diff = files_of(root)[LOUD].decode().partition("\ndiff --git ")

    assert diff.endswith(PUBLISHED)
    assert [
        f"From {'0' * 40} Mon Sep 17 00:00:00 2001",
        "From: Upstream <upstream@example.invalid>",
        "Date: Sat, 1 Jan 2000 00:00:00 +0000",
        "Subject: [PATCH] tools: more",
        "",
        *f"{WHY}\n\n".splitlines(),
        *TRAILERS,
    ] == head.splitlines()
