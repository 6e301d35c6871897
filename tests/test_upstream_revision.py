"""A commit that changes behaviour under an old revision is refused."""

from collections.abc import Callable
from pathlib import Path

import pytest

from toy_upstream import copy_series
from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.upstream import COMPANIONS, git
from vectorless_rag.upstream.__main__ import main
from vectorless_rag.upstream.revision import (
    REVISION_FILE,
    Behaviour,
    behaviour,
    check_revision,
    write_revision,
)

STALE = f"{REVISION_FILE} is not of this tree; run `make revision`"
FORGOT = (
    "behaviour differs from the last commit's, and revision is still 3 after 3;"
    " run `make revision`"
)


@pytest.fixture
def tree(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A source tree under git, with its revision recorded and one commit."""
    root = copy_series(tmp_path / "root", tmp_path_factory.getbasetemp())
    package = root / "src" / "vectorless_rag"
    (package / "pageindex_runtime").mkdir(parents=True)
    for name in (*COMPANIONS, "pageindex_runtime/calls.py"):
        (package / name).write_text("old\n")
    write_revision(root)
    git.run(root, "init", "--quiet", "--initial-branch=main", "--template=")
    commit(root)
    return root


def commit(root: Path) -> None:
    names = ("-c", "user.name=t", "-c", "user.email=t@example.invalid")
    git.run(root, "add", "--all")
    git.run(root, *names, "commit", "--quiet", "--allow-empty", "-m", "A change")


def change_runtime(root: Path, text: str = "new\n") -> None:
    path = root / "src" / "vectorless_rag" / "pageindex_runtime" / "calls.py"
    path.write_text(text)


def change_series(root: Path) -> None:
    """Drop the last patch."""
    series = root / "patches" / "series"
    *kept, last = series.read_text().splitlines()
    series.write_text("\n".join(kept) + "\n")
    (root / "patches" / last).unlink()


def record_by_hand(root: Path) -> None:
    """Write the digests down without a new number."""
    (root / REVISION_FILE).write_bytes(behaviour(root).encode())


def test_an_unchanged_tree_is_in_order(tree: Path) -> None:
    """After one commit, after another, and before any."""
    assert [] == check_revision(tree)
    commit(tree)
    assert [] == check_revision(tree)


@pytest.mark.parametrize("change", [change_runtime, change_series])
def test_changed_behaviour_under_an_old_number_is_refused(
    tree: Path, change: Callable[[Path], None]
) -> None:
    """Before the commit and in it; writing the digests by hand does not help."""
    change(tree)

    assert [STALE, FORGOT] == check_revision(tree)
    record_by_hand(tree)
    assert [FORGOT] == check_revision(tree)
    commit(tree)
    assert [FORGOT] == check_revision(tree)


@pytest.mark.parametrize("change", [change_runtime, change_series])
def test_one_command_mends_it(tree: Path, change: Callable[[Path], None]) -> None:
    """The number goes up once a commit, and the next commit starts anew."""
    change(tree)

    assert 4 == write_revision(tree).revision
    assert [] == check_revision(tree)
    change_runtime(tree, "newer\n")
    assert [STALE] == check_revision(tree)
    assert 4 == write_revision(tree).revision
    commit(tree)
    assert [] == check_revision(tree)
    change_runtime(tree, "newest\n")
    assert 5 == write_revision(tree).revision


def test_a_forgotten_commit_is_mended_by_the_next_run(tree: Path) -> None:
    """Once committed, it is judged against the commit before it."""
    change_runtime(tree)
    commit(tree)

    assert [STALE, FORGOT] == check_revision(tree)
    write_revision(tree)
    assert [] == check_revision(tree)


def test_a_branch_raises_it_once(tree: Path) -> None:
    """Its commits are compared with the commit that it left main at."""
    git.run(tree, "checkout", "--quiet", "-b", "topic")
    change_runtime(tree, "one\n")
    assert 4 == write_revision(tree).revision
    commit(tree)
    change_runtime(tree, "two\n")
    assert 4 == write_revision(tree).revision
    commit(tree)

    assert [] == check_revision(tree)


def test_another_release_may_start_anew(tree: Path) -> None:
    """Its version tells the two apart."""
    now = behaviour(tree)
    later = Behaviour(
        version="9.9",
        revision=1,
        patch_sha256=now.runtime_sha256,
        runtime_sha256=now.runtime_sha256,
    )

    assert not later.forgot(now)


def test_without_git_only_the_record_is_compared(
    tmp_path: Path, tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A copy of the files still has to agree with itself."""
    copy = tmp_path / "copy"
    (tree / ".git").rename(tmp_path / "aside")
    tree.rename(copy)

    assert 0 == main(["--root", str(copy), "revision"])
    change_runtime(copy)
    assert 20 == main(["--root", str(copy), "revision"])
    assert 0 == main(["--root", str(copy), "revision", "--write"])
    out = capsys.readouterr().out.splitlines()
    assert [f"FAIL  {STALE}", "revision 3, patch_sha256"] == [out[1], out[2][:24]]


def test_what_cannot_be_read_is_named(tree: Path, tmp_path: Path) -> None:
    """A broken record, a pin with no number to raise, an installed package."""
    (tree / REVISION_FILE).write_text("[]")
    with pytest.raises(VectorlessRagError, match="is no record"):
        check_revision(tree)
    with pytest.raises(VectorlessRagError, match="in a source tree"):
        behaviour(tmp_path)
    pin = tree / "upstream.toml"
    pin.write_text(pin.read_text().replace("revision = 3", "revision=3"))
    change_runtime(tree)
    with pytest.raises(VectorlessRagError, match="0 lines say `revision = N`"):
        write_revision(tree)
