"""A build is whole, repeatable and checkable, or it is not there."""

import json
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from conftest import REPOSITORY
from toy_upstream import (
    LOUD,
    LOUD_CORE,
    STRICT,
    WHEEL,
    copy_series,
    make_root,
    write_files,
)
from vectorless_rag.canon import canonical
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.upstream import differences, read_record, verify
from vectorless_rag.upstream.checkout import build
from vectorless_rag.upstream.fetch import FileSource
from vectorless_rag.upstream.lock import read_lock
from vectorless_rag.upstream.pin import read_pin
from vectorless_rag.upstream.workflow import write_lock


@pytest.fixture
def toy(
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """An installation with two patches and no network."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    return copy_series(tmp_path / "root", tmp_path_factory.getbasetemp())


@pytest.fixture
def dest(tmp_path: Path) -> Path:
    return tmp_path / "build" / "toy"


def beside(dest: Path) -> set[str]:
    return {path.name for path in dest.parent.iterdir()}


def test_a_build_is_the_patched_tree(toy: Path, dest: Path) -> None:
    """The tree, the licence and the record, and nothing else anywhere."""
    record = build(toy, dest)

    assert {"toy", "LICENSE", "build-record.json"} == {p.name for p in dest.iterdir()}
    assert LOUD_CORE == (dest / "toy" / "core.py").read_text()
    assert {"toy", ".toy.lock"} == beside(dest)
    assert "1.0+vr3" == record.pageindex_version
    assert read_pin(toy).sha256 == record.upstream_sha256
    assert read_lock(toy).patch_sha256 == record.patch_sha256
    assert read_lock(toy).tree_sha256 == record.tree_sha256
    assert ("0010", "0020") == tuple(patch.id for patch in record.patches)
    assert record == read_record(dest) == verify(toy, dest) == verify(None, dest)


def test_the_record_is_a_statement(toy: Path, dest: Path) -> None:
    """It reads as in-toto and SLSA say, in canonical bytes."""
    record = build(toy, dest)
    raw = (dest / "build-record.json").read_bytes()
    statement = json.loads(raw)
    upstream, first, _ = statement["predicate"]["buildDefinition"][
        "resolvedDependencies"
    ]

    assert canonical(statement) == raw
    assert [
        {"name": "patched-tree", "digest": {"tree_sha256": record.tree_sha256}}
    ] == statement["subject"]
    assert {
        "name": "upstream",
        "uri": "pkg:pypi/toy@1.0",
        "digest": {"sha256": record.upstream_sha256},
    } == upstream
    assert {
        "name": "patch/0010",
        "uri": f"patches/{STRICT}",
        "digest": {"sha256": record.patches[0].sha256},
        "annotations": {
            "upstreamStatus": "Pending [not sent]",
            "proof": ["tests/patches/test_0010_strict.py::test_nothing_is_refused"],
            "treeAfter": record.patches[0].tree_after,
        },
    } == first


def test_an_intact_build_is_left_alone(toy: Path, dest: Path) -> None:
    """The second build touches nothing and needs no archive."""
    first = build(toy, dest)
    shutil.rmtree(toy / "vendor")
    inode = dest.stat().st_ino

    assert first == build(toy, dest)
    assert inode == dest.stat().st_ino


def test_two_builds_at_once_are_one(toy: Path, dest: Path) -> None:
    """Whoever comes second waits and finds the build."""
    start = threading.Barrier(3)

    def run(_: int) -> object:
        start.wait()
        return build(toy, dest)

    with ThreadPoolExecutor(3) as pool:
        first, second, third = pool.map(run, range(3))

    assert first == second == third == verify(toy, dest)
    assert {"toy", ".toy.lock"} == beside(dest)


def test_a_build_of_another_series_is_replaced(toy: Path, dest: Path) -> None:
    """Dropping a patch and building again gives the shorter series."""
    build(toy, dest)
    (toy / "patches" / LOUD).unlink()
    (toy / "patches" / "series").write_text(f"{STRICT}\n")
    write_lock(toy)

    with pytest.raises(VectorlessRagError, match="of another patch_sha256, tree_sha"):
        verify(toy, dest)
    assert ("0010",) == tuple(patch.id for patch in build(toy, dest).patches)
    assert "0010" == verify(toy, dest).patches[0].id
    assert {"toy", ".toy.lock"} == beside(dest)


def test_a_record_can_be_what_is_expected(toy: Path, dest: Path) -> None:
    """A run compares the build before it with the build after it."""
    before = build(toy, dest)
    assert before == verify(before, dest)

    (toy / "upstream.toml").write_text(
        (toy / "upstream.toml").read_text().replace("revision = 3", "revision = 4")
    )
    with pytest.raises(VectorlessRagError, match="another pageindex_version") as raised:
        verify(toy, dest)
    assert Code.UPSTREAM_DRIFT is raised.value.code
    build(toy, dest)
    with pytest.raises(VectorlessRagError, match="another pageindex_version"):
        verify(before, dest)


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        pytest.param(
            lambda d: (d / "toy/core.py").write_bytes(b"x"),
            r": toy/core\.py was changed\. ",
            id="edited",
        ),
        pytest.param(
            lambda d: (d / "toy/core.py").chmod(0o755),
            r": toy/core\.py was changed\. ",
            id="mode",
        ),
        pytest.param(
            lambda d: (d / "toy/core.py").unlink(),
            r": toy/core\.py is missing\. ",
            id="removed",
        ),
        pytest.param(
            lambda d: (d / "json.py").write_bytes(b""),
            r": json\.py was added\. ",
            id="added",
        ),
        pytest.param(
            lambda d: write_files(d, {"toy/assets/x.py": b"", "toy/y.pyc": b""}),
            r": toy/assets/x\.py was added; toy/y\.pyc was added\. ",
            id="added-where-nothing-counts",
        ),
        pytest.param(
            lambda d: (d / "os").symlink_to(d / "toy"), r": os was added\. ", id="link"
        ),
        pytest.param(
            lambda d: (d / "LICENSE").write_bytes(b"mine"),
            r": LICENSE was changed\. ",
            id="licence",
        ),
    ],
)
def test_every_changed_file_is_named(
    toy: Path, dest: Path, damage: object, why: str
) -> None:
    """Verify names it, and build does not paper over it."""
    build(toy, dest)
    assert callable(damage)
    damage(dest)

    for act in (verify, build):
        with pytest.raises(VectorlessRagError, match=why) as raised:
            act(toy, dest)
        assert Code.UPSTREAM_TAMPERED is raised.value.code


def test_many_changed_files_are_counted(toy: Path, dest: Path) -> None:
    """One line names the first and counts the rest."""
    build(toy, dest)
    write_files(dest, {f"toy/new{k:02}.py": b"" for k in range(11)})

    assert 11 == len(differences(dest))
    with pytest.raises(VectorlessRagError, match=r"new07\.py was added; and 3 more"):
        verify(toy, dest)


def test_bytecode_caches_are_pythons_own(toy: Path, dest: Path) -> None:
    """Runs use a prefix elsewhere; a cache beside the source is no tampering."""
    build(toy, dest)
    write_files(dest, {"toy/__pycache__/core.cpython-311.pyc": b"x"})

    assert "0020" == verify(toy, dest).patches[1].id


def forge(dest: Path, change: object) -> None:
    path = dest / "build-record.json"
    raw = json.loads(path.read_bytes())
    assert callable(change)
    change(raw)
    path.write_bytes(canonical(raw))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        pytest.param(
            lambda r: r["subject"][0]["digest"].update(tree_sha256="0" * 64),
            "tree_sha256 is not that of its files",
            id="digest",
        ),
        pytest.param(lambda r: r.update(_type="x"), "no build record", id="type"),
        pytest.param(
            lambda r: r["predicate"]["buildDefinition"].update(buildType="x"),
            "another kind of build",
            id="build-type",
        ),
        pytest.param(
            lambda r: r["predicate"]["buildDefinition"]["externalParameters"].update(
                debug="1"
            ),
            "unknown external parameters",
            id="parameters",
        ),
        pytest.param(lambda r: r.pop("predicate"), "no build record", id="half"),
    ],
)
def test_forged_records_are_refused(
    toy: Path, dest: Path, change: object, why: str
) -> None:
    """A record that does not fit its files, or is of another shape."""
    build(toy, dest)
    forge(dest, change)

    with pytest.raises(VectorlessRagError, match=why) as raised:
        verify(toy, dest)
    assert Code.UPSTREAM_TAMPERED is raised.value.code


def test_no_build_is_unavailable(toy: Path, dest: Path) -> None:
    """Missing is not damaged; a record that is no JSON is."""
    with pytest.raises(
        VectorlessRagError, match=r"build-record\.json: No such"
    ) as raised:
        verify(toy, dest)
    assert Code.UPSTREAM_UNAVAILABLE is raised.value.code

    write_files(dest, {"build-record.json": b"{"})
    with pytest.raises(VectorlessRagError, match="is no JSON"):
        verify(toy, dest)


def test_a_strangers_folder_is_left_alone(toy: Path, dest: Path) -> None:
    """Build never deletes what it did not build; an empty folder is fine."""
    write_files(dest, {"thesis.txt": b"x"})
    with pytest.raises(VectorlessRagError, match="toy is there and is no build"):
        build(toy, dest)
    assert b"x" == (dest / "thesis.txt").read_bytes()

    (dest / "thesis.txt").unlink()
    assert "0010" == build(toy, dest).patches[0].id


def corrupt_patch(root: Path) -> None:
    path = root / "patches" / LOUD
    path.write_text(path.read_text().replace("upper", "lower"))


def corrupt_lock(root: Path) -> None:
    path = root / "patches" / "series.lock.json"
    path.write_bytes(path.read_bytes().replace(b'"load_a"', b'"load_b"'))


def corrupt_wheel(root: Path) -> None:
    (root / "vendor" / WHEEL).write_bytes(b"x")


def corrupt_end(root: Path) -> None:
    path = root / "patches" / "series.lock.json"
    lock = json.loads(path.read_bytes())
    lock["tree_sha256"] = "0" * 64
    path.write_text(json.dumps(lock))


@pytest.mark.parametrize(
    ("corrupt", "why"),
    [
        (corrupt_patch, f"{LOUD} is not the patch in"),
        (corrupt_lock, f"{LOUD}: files is not as locked"),
        (corrupt_wheel, f"{WHEEL} has 1 bytes"),
        (corrupt_end, "not the digest of the lock"),
        (lambda root: shutil.rmtree(root / "vendor"), "pip could not download"),
    ],
)
@pytest.mark.parametrize("standing", [False, True])
def test_a_failure_leaves_nothing(
    toy: Path, dest: Path, corrupt: object, why: str, *, standing: bool
) -> None:
    """No half build; and a build of other patches stays what it was."""
    other = make_root(toy.parent / "other")
    write_lock(other)
    if standing:
        build(other, dest)
    assert callable(corrupt)
    corrupt(toy)

    with pytest.raises(VectorlessRagError, match=why):
        build(toy, dest)
    if not dest.parent.exists():
        return
    assert ({"toy", ".toy.lock"} if standing else {".toy.lock"}) == beside(dest)
    if standing:
        assert () == verify(other, dest).patches


def test_a_killed_build_is_cleaned_up(toy: Path, dest: Path) -> None:
    """What a killed one left goes with the next."""
    write_files(dest.parent, {".toy-build-abc/tree/x": b"", "kept": b""})
    build(toy, dest)

    assert {"toy", ".toy.lock", "kept"} == beside(dest)


def test_no_room_is_said(toy: Path, tmp_path: Path) -> None:
    """What the operating system refuses is one line."""
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(VectorlessRagError, match=r"toy: (Not a directory|File exists)"):
        build(toy, tmp_path / "file" / "toy")


def test_a_failed_rename_puts_the_old_build_back(
    toy: Path, dest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the last step fails, the earlier build stands again."""
    other = make_root(toy.parent / "other")
    write_lock(other)
    build(other, dest)
    rename = Path.rename

    def fail(self: Path, target: Path) -> Path:
        if self.name == "tree":
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(VectorlessRagError, match="No space left on device"):
        build(toy, dest)
    monkeypatch.undo()

    assert () == verify(other, dest).patches


def test_a_source_can_be_chosen(toy: Path, dest: Path, tmp_path: Path) -> None:
    """A folder builds the same identity, and the record says where from."""
    wheel = toy / "vendor" / WHEEL
    shutil.unpack_archive(wheel, tmp_path / "folder", "zip")
    wheel.unlink()
    record = build(toy, dest, source=FileSource(path=tmp_path / "folder"))

    assert read_lock(toy).tree_sha256 == record.tree_sha256
    assert ("file:folder", "tree_sha256") == (
        record.origin.uri,
        record.origin.algorithm,
    )
    assert [] == list((toy / "vendor").iterdir())


def test_build_code_has_no_forgiving_flag() -> None:
    """Nothing that builds may ask git to look away."""
    forbidden = (
        "--ignore-whitespace", "--ignore-space-change", "--reject", "--3way",
        "--recount", "--unidiff-zero", "--unsafe-paths", "--allow-empty",
        "--whitespace=fix", '"-C',
    )  # fmt: skip
    sources = REPOSITORY / "src" / "vectorless_rag" / "upstream"
    found = [
        (path.name, flag)
        for path in sources.glob("*.py")
        for flag in forbidden
        if flag in path.read_text(encoding="utf-8")
    ]

    assert [] == found
