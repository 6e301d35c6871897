"""A hunk lands where it was written, or the patch is refused."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from conftest import REPOSITORY
from toy_upstream import (
    CORE,
    FILES,
    LOUD,
    STRICT,
    STRICT_CORE,
    copy_series,
    write_files,
)
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.upstream import git
from vectorless_rag.upstream.apply import apply_series
from vectorless_rag.upstream.lock import LockedPatch, read_lock
from vectorless_rag.upstream.mailbox import parse_patch
from vectorless_rag.upstream.pin import read_pin
from vectorless_rag.upstream.series import read_series
from vectorless_rag.upstream.tree import blob_id


@pytest.fixture
def toy(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_series(tmp_path / "root", tmp_path_factory.getbasetemp())


def apply(
    root: Path, tree: Path, files: Mapping[str, bytes] = FILES, *, locked: bool = False
) -> tuple[LockedPatch, ...]:
    write_files(tree, files)
    lock = read_lock(root).patches if locked else None
    return apply_series(tree, read_pin(root), read_series(root).patches, lock)


def renumbered(root: Path, core: str, *, before: str = CORE) -> None:
    """Make the first patch believe that it was written for another file."""
    path = root / "patches" / STRICT
    text = path.read_text()
    assert f"index {blob_id(before.encode())}" in text
    path.write_text(text.replace(blob_id(before.encode()), blob_id(core.encode())))


def swapped() -> str:
    """Upstream exchanged two siblings of one body."""
    core = CORE.replace("load_c", "load_x").replace("load_d", "load_c")
    return core.replace("load_x", "load_d")


def test_series_applies_and_is_derived_alike(toy: Path, tmp_path: Path) -> None:
    """Deriving the lock and applying against it find the same."""
    found = apply(toy, tmp_path / "tree")

    assert read_lock(toy).patches == found
    assert found == apply(toy, tmp_path / "again", locked=True)
    assert STRICT_CORE != (tmp_path / "tree" / "toy" / "core.py").read_text()


def test_swapped_siblings_are_refused(toy: Path, tmp_path: Path) -> None:
    """
    The blob ids see what the context cannot.

    git alone applies the patch to the other function, with status 0.
    """
    tree = write_files(tmp_path / "alone", {**FILES, "toy/core.py": swapped().encode()})
    diff = read_series(toy).patches[1].diff
    upstream = CORE.replace("load_a", "load_x").replace("load_b", "load_a")
    (tree / "toy" / "core.py").write_text(upstream.replace("load_x", "load_b"))
    git.run(tree, "init", "--quiet")
    git.run(tree, "apply", "-", stdin=diff)
    wrong = (tree / "toy" / "core.py").read_text()
    assert (
        "def load_b(text):\n    text = text.strip()\n    return text.upper()" in wrong
    )

    with pytest.raises(
        VectorlessRagError, match=rf"{STRICT}: toy/core.py is "
    ) as raised:
        apply(toy, tmp_path / "tree", {**FILES, "toy/core.py": swapped().encode()})
    assert Code.UPSTREAM_DRIFT is raised.value.code


def test_a_binding_above_the_def_is_refused(toy: Path, tmp_path: Path) -> None:
    """
    Even with blob ids made to fit, the last binding must be ours.

    Where upstream moved the function down, our line lands above its ``def``,
    the ``def`` wins, and the patch would do nothing.
    """
    core = swapped()
    renumbered(toy, core)
    path = toy / "patches" / STRICT
    new = core.replace("\n\ndef load_c", "\n\nload_c = strict(load_c)\n\n\ndef load_c")
    diff = path.read_text().replace(
        blob_id(STRICT_CORE.encode()), blob_id(new.encode())
    )
    path.write_text(diff.replace(" def load_d(text):", " def load_c(text):"))

    with pytest.raises(
        VectorlessRagError, match=r"last binding of toy/core.py::load_c is upstream's"
    ):
        apply(toy, tmp_path / "tree", {**FILES, "toy/core.py": core.encode()})


@pytest.mark.parametrize("shift", [-1, 1, 3])
def test_an_offset_is_refused(toy: Path, tmp_path: Path, shift: int) -> None:
    """A hunk whose numbers were edited by hand still applies for git, not here."""
    path = toy / "patches" / STRICT
    path.write_text(
        re.sub(
            r"@@ -(\d+),(\d+) \+(\d+),",
            lambda m: f"@@ -{int(m[1]) + shift},{m[2]} +{int(m[3]) + shift},",
            path.read_text(),
        )
    )

    with pytest.raises(VectorlessRagError, match=rf"{STRICT}: git apply says 'offset'"):
        apply(toy, tmp_path / "tree")


def test_inside_another_repository_nothing_is_skipped(
    toy: Path, tmp_path: Path
) -> None:
    """git skips hunks in silence there; the tree is a repository of its own."""
    git.run(tmp_path, "init", "--quiet")
    inner = write_files(tmp_path / "inner" / "tree", FILES)
    diff = read_series(toy).patches[0].diff.replace(b"toy/", b"x/toy/")
    skipped = git.attempt(inner, "apply", "-v", "-", stdin=diff)
    assert (0, True) == (skipped.status, b"Skipped" in skipped.stderr)

    apply(toy, tmp_path / "inner" / "tree")
    assert "load_c = strict(load_c)" in (inner / "toy" / "core.py").read_text()


def test_whatever_git_skips_is_refused(
    toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were the tree not its own repository, the build would still stop."""
    git.run(tmp_path, "init", "--quiet")
    run = git.run
    monkeypatch.setattr(
        git,
        "run",
        lambda cwd, *args, **more: b"" if "init" in args else run(cwd, *args, **more),
    )
    # From a folder of the outer repository, git looks only below it.
    monkeypatch.setattr(
        "vectorless_rag.upstream.environment.bare_environment",
        lambda: {"PATH": "/usr/bin:/bin"},
    )

    with pytest.raises(VectorlessRagError, match=STRICT):
        apply(toy, tmp_path / "tree" / "deep")


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        pytest.param(
            "+load_c = strict(load_c)", "+load_c = strict(load_d)", "after", id="bytes"
        ),
        pytest.param(
            "+load_c = strict(load_c)",
            "+load_c = strict(load_c) ",
            "whitespace",
            id="trailing-space",
        ),
        pytest.param(
            " def load_d(text):", " def load_e(text):", "git apply: ", id="context"
        ),
        pytest.param("sha256:", "sha256:00", None, id="digest"),
        pytest.param("::load_c sha", "::load_x sha", "defined 0 times", id="name"),
        pytest.param(
            "toy/core.py::load_c",
            "toy/tools.py::strict",
            "not changed by it",
            id="file",
        ),
        pytest.param("100644", "100755", "has another mode", id="mode"),
    ],
)
def test_an_edited_patch_is_refused(
    toy: Path, tmp_path: Path, old: str, new: str, why: str | None
) -> None:
    """Whatever the hand-edit, the patch is named."""
    path = toy / "patches" / STRICT
    text = path.read_text()
    if why is None:
        text = re.sub(r"sha256:[0-9a-f]{64}", f"sha256:{'0' * 64}", text)
        why = "the source of toy/core.py::load_c has digest"
    else:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)

    with pytest.raises(VectorlessRagError, match=rf"{STRICT}: .*{why}"):
        apply(toy, tmp_path / "tree")


def test_the_lock_is_held_to(toy: Path, tmp_path: Path) -> None:
    """A landing that differs from the lock names the part that differs."""
    lock = toy / "patches" / "series.lock.json"
    lock.write_bytes(lock.read_bytes().replace(b'"load_a"', b'"load_b"'))

    with pytest.raises(VectorlessRagError, match=rf"{LOUD}: files is not as locked"):
        apply(toy, tmp_path / "tree", locked=True)


def test_a_patch_touches_only_what_it_names(toy: Path, tmp_path: Path) -> None:
    """A change outside the counted paths is no change of the tree."""
    path = toy / "patches" / STRICT
    path.write_text(path.read_text().replace("toy/core.py", "other/core.py"))
    path.write_text(path.read_text().replace("other/core.py::", "toy/core.py::"))
    path.write_text(re.sub(r"Replaces: .*\n", "", path.read_text()))

    with pytest.raises(VectorlessRagError, match="changed other files than it names"):
        apply(toy, tmp_path / "tree", {**FILES, "other/core.py": CORE.encode()})


def test_a_patch_that_leaves_no_python_is_refused(toy: Path, tmp_path: Path) -> None:
    """Placement cannot be told in a file that does not parse."""
    path = toy / "patches" / LOUD
    broken = STRICT_CORE.replace(
        "return text\n\n\ndef load_b", "return (\n\n\ndef load_b"
    )
    text = path.read_text().replace("+    return text.upper()", "+    return (")
    path.write_text(re.sub(r"\.\.[0-9a-f]{40}", f"..{blob_id(broken.encode())}", text))

    with pytest.raises(VectorlessRagError, match=rf"{LOUD}: toy/core.py is no Python"):
        apply(toy, tmp_path / "tree")


def test_a_function_that_is_gone_is_not_replaced(toy: Path, tmp_path: Path) -> None:
    """Replacing means that something of ours is bound in the end."""
    path = toy / "patches" / STRICT
    gone = STRICT_CORE.replace("load_c = strict(load_c)", "load_x = strict(load_d)")
    text = path.read_text().replace(
        "+load_c = strict(load_c)", "+load_x = strict(load_d)"
    )
    path.write_text(re.sub(r"\.\.[0-9a-f]{40}", f"..{blob_id(gone.encode())}", text))

    with pytest.raises(VectorlessRagError, match=r"last binding of .* is upstream's"):
        apply(toy, tmp_path / "tree")


def test_a_function_taken_out_has_no_binding(toy: Path, tmp_path: Path) -> None:
    """Removing a function and binding nothing is not replacing it."""
    path = toy / "patches" / STRICT
    function = "def load_c(text):\n    text = text.strip()\n    return text\n"
    gone = CORE.replace(f"\n\n{function}", "")
    removed = "".join(f"-{line}\n" for line in f"\n\n{function}".splitlines())
    head = re.sub(
        r"\.\.[0-9a-f]{40}", f"..{blob_id(gone.encode())}", path.read_text()
    ).partition("@@")[0]
    hunk = f"@@ -13,7 +13,2 @@\n     return text\n{removed} \n"
    path.write_text(head + hunk)

    with pytest.raises(VectorlessRagError, match="nothing binds load_c"):
        apply(toy, tmp_path / "tree")


def test_the_published_example_gives_the_published_digests(tmp_path: Path) -> None:
    """The reference's patch 0010 on the real 0.4.7, where the wheel is at hand."""
    vendored = REPOSITORY / "vendor" / "pageindex-0.4.7-py3-none-any.whl"
    if not vendored.is_file():
        pytest.skip("the wheel has not been fetched")
    tree = tmp_path / "tree"
    shutil.unpack_archive(vendored, tree, "zip")
    patch = parse_patch("0010-refuse-bad-replies.patch", EXAMPLE.encode())

    (found,) = apply_series(tree, read_pin(REPOSITORY), [patch])
    assert (
        "ba860f9267cd416e2700ac438b90b5b84e5f74de93421aa82db8ff66471ba105"
        == found.tree_after
    )
    assert ("<module> after extract_json",) == found.files[0].places


EXAMPLE = f"""\
From {"0" * 40} Mon Sep 17 00:00:00 2001
From: A Maintainer <maintainer@example.invalid>
Date: Mon, 30 Nov 2026 09:00:00 +0000
Subject: [PATCH] replies: refuse a reply that is not JSON

Origin: vendor
Replaces: pageindex/utils.py::extract_json sha256:\
dfd97a0a97e9e6848495b7180209b04fd3a303274815e4a06727d5b436bf5ba7

diff --git a/pageindex/utils.py b/pageindex/utils.py
index c2dfbbb1097724b0f41860e357362800a1364e18..\
0e3272de39b36f20eb111b674b61ff5b7b57687f 100644
--- a/pageindex/utils.py
+++ b/pageindex/utils.py
@@ -331,2 +331,4 @@ def extract_json(content):
{" "}
+from vectorless_rag.pageindex_runtime.replies import extract_json  # noqa: E402
+
 def write_node_id(data, node_id=0):
"""
