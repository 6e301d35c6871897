"""The series, its lint and its lock name the first patch that is wrong."""

import json
from pathlib import Path

import pytest

from conftest import REPOSITORY
from toy_upstream import LOUD, STRICT, copy_series, make_root
from vectorless_rag.canon import sha256
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.upstream.check import check_series
from vectorless_rag.upstream.checkout import read_locked
from vectorless_rag.upstream.dropwhen import version
from vectorless_rag.upstream.lint import lint, questions
from vectorless_rag.upstream.lock import read_lock
from vectorless_rag.upstream.pin import read_pin
from vectorless_rag.upstream.series import Series, read_series
from vectorless_rag.upstream.verifying import agreeing
from vectorless_rag.upstream.workflow import write_lock


@pytest.fixture
def toy(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_series(tmp_path / "root", tmp_path_factory.getbasetemp())


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def linted(root: Path, old: str, new: str) -> list[str]:
    """Lint the series with one word of its first patch changed."""
    edit(root / "patches" / STRICT, old, new)
    return [
        line.removeprefix(f"{STRICT}: ")
        for line in lint(root, read_pin(root), read_series(root))
    ]


def test_patch_sha256_is_order_and_diffs(toy: Path) -> None:
    """The digest is the published formula, so prose and names do not count."""
    series = read_series(toy)
    first, second = (p.diff for p in series.patches)

    assert (
        sha256(b"patch/1\0%d:%s%d:%s" % (len(first), first, len(second), second))
        == series.patch_sha256
    )
    edit(toy / "patches" / STRICT, "Nothing is refused.", "All is taken.")
    assert series.patch_sha256 == read_series(toy).patch_sha256
    assert series.patch_sha256 != Series(patches=series.patches[::-1]).patch_sha256


def test_an_empty_series_is_a_series(tmp_path: Path) -> None:
    """No patch yet: the tree is upstream's own."""
    root = make_root(tmp_path)
    lock = write_lock(root)

    assert () == read_series(root).patches
    assert lock == read_lock(root)
    assert read_pin(root).tree_sha256 == lock.tree_sha256
    assert () == check_series(root)


def test_a_sound_series_has_no_findings(toy: Path) -> None:
    """What the export wrote passes the check."""
    assert () == check_series(toy)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (STRICT, f"not both in patches/ and in series: {LOUD}"),
        (f"{STRICT}\n{LOUD}\n0030-a.patch", "in series: 0030-a.patch"),
        (f"{LOUD}\n{STRICT}", "0010 does not ascend from 0020"),
        (f"{STRICT}\n{STRICT}\n{LOUD}", "0010 does not ascend from 0010"),
    ],
)
def test_series_and_folder_agree(toy: Path, text: str, why: str) -> None:
    """Every patch is listed once, in the order of its number, and no other."""
    (toy / "patches" / "series").write_text(f"# order\n{text}\n")

    with pytest.raises(VectorlessRagError, match=why):
        read_series(toy)


def test_a_retired_number_never_returns(toy: Path) -> None:
    """RETIRED.md keeps numbers out of use."""
    with (toy / "patches" / "RETIRED.md").open("a") as file:
        file.write("| 0020 | loud | 0.4.7 | upstream is loud | #1 |\n")

    with pytest.raises(VectorlessRagError, match="0020 was retired"):
        read_series(toy)


def test_a_missing_series_is_unavailable(tmp_path: Path) -> None:
    """Half an installation is not a wrong one."""
    with pytest.raises(VectorlessRagError, match=r"series: No such file") as raised:
        read_series(tmp_path)
    assert Code.UPSTREAM_UNAVAILABLE is raised.value.code


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("Bug: none\n", "", "0 Bug trailers"),
        ("Bug: none\n", "Bug: none\nBug: none\n", "2 Bug trailers"),
        ("Bug: none", "Bug: see the tracker", "Bug: 'see the tracker' is not allowed"),
        ("Bug: none", "Bug: none\nColour: red", "unknown trailer Colour"),
        ("Origin: vendor", "Origin: us", "Origin: 'us' is not allowed"),
        ("Pending [not sent]", "Pending", "Upstream-Status: 'Pending' is not allowed"),
        (
            "Pending [not sent]",
            "Submitted [soon]",
            "Upstream-Status: 'Submitted [soon]' is not allowed",
        ),
        ("proof-passes-on-upstream", "never", "Drop-When: 'never' is not allowed"),
        (
            "proof-passes-on-upstream",
            "upstream>=1.0.0",
            None,
        ),
        (
            "proof-passes-on-upstream",
            "upstream>=0.9.9",
            "retire it: the pin is at 1.0, Drop-When is upstream>=0.9.9",
        ),
        (
            "Why not without a patch:",
            "Because",
            "no paragraph begins with 'Why not without a patch:'",
        ),
        ("Bug: none", "Bug: none\nDepends-On: 0005", "depends on 0005, which no"),
        (
            "test_0010_strict.py::test_nothing_is_refused",
            "test_0010_strict.py::test_it",
            "test_it does not exist",
        ),
        (
            "test_0010_strict.py::test_nothing_is_refused",
            "test_0010_no.py::TestIt::test_it",
            "test_it does not exist",
        ),
        (
            "test_0010_strict.py::test_nothing_is_refused",
            "test_0020_loud.py::test_it_is_loud",
            "is not in tests/patches/test_0010_*.py",
        ),
        ("Proof: tests/", "Proof: none of tests/", "is not allowed"),
    ],
)
def test_lint_names_each_defect(toy: Path, old: str, new: str, why: str | None) -> None:
    """Headers are complete, their values allowed, their references alive."""
    found = linted(toy, old, new)

    assert ([] if why is None else [why]) == [
        why if why is not None and why in line else line for line in found[:1]
    ]


def test_versions_compare_as_numbers() -> None:
    """1.10 comes after 1.9."""
    assert version("1.10") > version("1.9")


def test_lint_keeps_patches_inside_the_upstream(toy: Path) -> None:
    """A patch touches the pinned paths only."""
    patch = toy / "patches" / STRICT
    patch.write_text(patch.read_text().replace("toy/core.py b/", "setup.py b/"))
    patch.write_text(
        patch.read_text()
        .replace("b/toy/core.py", "b/setup.py")
        .replace("a/toy/core.py", "a/setup.py")
    )

    assert f"{STRICT}: setup.py is not a path of the upstream" in lint(
        toy, read_pin(toy), read_series(toy)
    )


def test_large_patches_are_asked_about(toy: Path) -> None:
    """More than forty added lines are a question, not a failure."""
    assert () == questions(read_series(toy))

    patch = toy / "patches" / LOUD
    added = "".join(f"+# {k}\n" for k in range(40))
    text = patch.read_text().replace("@@ -7,3 +7,3 @@", "@@ -7,3 +7,43 @@")
    patch.write_text(text.replace("+    return", f"{added}+    return"))

    assert (
        f"{LOUD}: 41 added lines; should this live in pageindex_runtime?",
    ) == questions(read_series(toy))


def test_lock_is_written_as_published(toy: Path) -> None:
    """Field for field what the reference shows."""
    lock = json.loads((toy / "patches" / "series.lock.json").read_bytes())
    first, second = lock["patches"]

    assert [
        "schema", "git", "upstream", "patches", "patch_sha256", "tree_sha256"
    ] == list(lock)  # fmt: skip
    assert ["name", "version", "file", "size", "sha256", "tree_sha256"] == list(
        lock["upstream"]
    )
    assert ["id", "file", "sha256", "files", "replaces", "tree_after"] == list(first)
    assert [["<module> after load_c"], ["load_a"]] == [
        patch["files"][0]["places"] for patch in (first, second)
    ]
    assert first["files"][0]["after"] == second["files"][0]["before"]
    assert lock["tree_sha256"] == second["tree_after"]


def relock(root: Path, change: object) -> None:
    path = root / "patches" / "series.lock.json"
    lock = json.loads(path.read_bytes())
    assert callable(change)
    change(lock)
    path.write_text(json.dumps(lock))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda lock: lock["upstream"].update(size=1), "made for another pin"),
        (
            lambda lock: lock["patches"][1].update(sha256="0"),
            f"{LOUD} is not the patch in",
        ),
        (lambda lock: lock["patches"].pop(), f"{LOUD} is not in both"),
        (
            lambda lock: lock["patches"].append(
                {**lock["patches"][0], "file": "0030-x.patch"}
            ),
            "0030-x.patch is not in both",
        ),
        (lambda lock: lock.update(patch_sha256="0"), "patch_sha256 is not that"),
        (lambda lock: lock.update(schema=2), "schema 2"),
        (lambda lock: lock.pop("git"), "is no lock"),
        (lambda lock: lock["patches"][0].update(new=1), "is no lock"),
    ],
)
def test_lock_that_differs_names_the_first_patch(
    toy: Path, change: object, why: str
) -> None:
    """Pin, order, patch bytes and the digest over them are compared."""
    relock(toy, change)

    for read in (read_locked, agreeing):
        with pytest.raises(VectorlessRagError, match=why) as raised:
            read(toy)
        assert Code.UPSTREAM_DRIFT is raised.value.code


def test_a_lock_is_of_these_very_bytes(toy: Path) -> None:
    """Then no patch need be parsed; one more byte in any, and it must."""
    pin, _, lock = read_locked(toy)
    assert lock.is_of(pin, toy)
    assert (pin, lock) == agreeing(toy)

    path = toy / "patches" / LOUD
    path.write_bytes(path.read_bytes() + b" ")
    assert not lock.is_of(pin, toy)
    with pytest.raises(VectorlessRagError, match=f"{LOUD}: .*after the last hunk"):
        agreeing(toy)


def test_a_missing_lock_is_unavailable(tmp_path: Path) -> None:
    """It is generated; the message says which file."""
    with pytest.raises(VectorlessRagError, match=r"series\.lock\.json: No such"):
        read_lock(make_root(tmp_path))


def test_check_derives_the_lock_again(toy: Path) -> None:
    """A lock edited by hand is found, with the first patch it concerns."""
    path = toy / "patches" / "series.lock.json"
    whole = path.read_bytes()
    path.write_bytes(whole + b"\n")
    assert ("series.lock.json is not what it is when derived again",) == check_series(
        toy
    )

    path.write_bytes(whole.replace(b'"load_a"', b'"load_b"'))
    assert (
        f"{LOUD}: derived again, its part of series.lock.json differs",
    ) == check_series(toy)


def test_check_exports_again(toy: Path) -> None:
    """A patch edited by hand applies, locks, and is found all the same."""
    edit(toy / "patches" / STRICT, " def load_d(text):", " def load_d(text):")
    patch = toy / "patches" / STRICT
    patch.write_bytes(patch.read_bytes().replace(b"@@ def load_c(text):", b"@@"))
    write_lock(toy)

    assert (
        f"{STRICT}: export writes other bytes; run make patch-export",
    ) == check_series(toy)


def test_our_own_series_is_in_order() -> None:
    """Every patch we ship has complete headers, and the lock is theirs."""
    pin, series, _ = read_locked(REPOSITORY)

    assert () == lint(REPOSITORY, pin, series)
