"""The digest of a tree is the published one and names every byte that counts."""

import os
import socket
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies_upstream import names, trees
from toy_upstream import write_files
from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.upstream.tree import Entry, blob_id, digest, read_entry, scan

VECTOR = "744bb8ced8a9166c8708cc6586c0123bcf0609b7944164f98971314232f535b1"


def tree(folder: Path) -> Path:
    write_files(
        folder,
        {"pkg/B.py": b"", "pkg/a.py": b"x = 1\n", "pkg/run": b"#!/bin/sh\n"},
    )
    (folder / "pkg" / "link").symlink_to("a.py")
    (folder / "pkg" / "run").chmod(0o755)
    return folder


def test_published_vector(tmp_path: Path) -> None:
    """The reference's four files give the reference's digest."""
    entries = scan(tree(tmp_path), include=["pkg"])

    assert VECTOR == digest(entries)
    assert (
        b"100644 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 "
        b"8:pkg/B.py\n"
    ) == entries[0].line()


def test_caches_and_excluded_paths_do_not_count(tmp_path: Path) -> None:
    """Bytecode, git's own folder and excluded paths leave the digest alone."""
    write_files(
        tree(tmp_path),
        {
            "pkg/__pycache__/a.pyc": b"1",
            "pkg/a.pyc": b"1",
            "pkg/.git/config": b"1",
            "pkg/assets/x": b"1",
            "other/x": b"1",
        },
    )

    assert VECTOR == digest(scan(tmp_path, include=["pkg"], exclude=["pkg/assets"]))


def edit(folder: Path) -> None:
    (folder / "a.py").write_bytes(b"x = 2\n")


def retarget(folder: Path) -> None:
    (folder / "link").unlink()
    (folder / "link").symlink_to("B.py")


def rename(folder: Path) -> None:
    (folder / "a.py").rename(folder / "c.py")


def forbid(folder: Path) -> None:
    (folder / "run").chmod(0o644)


def add(folder: Path) -> None:
    (folder / "new").write_bytes(b"")


@pytest.mark.parametrize("change", [edit, retarget, rename, forbid, add])
def test_every_change_changes_the_digest(tmp_path: Path, change: object) -> None:
    """Bytes, link targets, names, the right to execute and presence all count."""
    assert callable(change)
    change(tree(tmp_path) / "pkg")

    assert VECTOR != digest(scan(tmp_path, include=["pkg"]))


def listen(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


@pytest.mark.parametrize(
    ("make", "why"),
    [
        pytest.param(
            lambda f: (f / "a\nb").write_bytes(b""), "line break", id="newline"
        ),
        pytest.param(
            lambda f: Path(os.fsdecode(bytes(f / "x") + b"\xff")).write_bytes(b""),
            "not UTF-8",
            id="latin-1",
        ),
        pytest.param(lambda f: os.mkfifo(f / "pipe"), "neither file", id="fifo"),
        pytest.param(lambda f: listen(f / "sock"), "neither file", id="socket"),
    ],
)
def test_what_has_no_digest_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: object, why: str
) -> None:
    """Names and kinds that two machines could read differently are refused."""
    (tmp_path / "pkg").mkdir()
    monkeypatch.chdir(tmp_path)
    assert callable(make)
    make(Path("pkg"))

    with pytest.raises(VectorlessRagError, match=why):
        scan(tmp_path, include=["pkg"])


def test_missing_paths_are_refused(tmp_path: Path) -> None:
    """A listed path that is not there is not an empty tree."""
    with pytest.raises(VectorlessRagError, match="'pkg' is missing"):
        scan(tmp_path, include=["pkg"])
    assert None is read_entry(tmp_path, "pkg")


def test_blob_id_is_gits() -> None:
    """The id of an empty file is the one everyone knows."""
    assert "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391" == blob_id(b"")


@settings(deadline=None, max_examples=30)
@given(trees, st.data())
def test_digest_names_the_tree(
    tree: dict[str, tuple[bytes, int]], data: st.DataObject
) -> None:
    """The order of making does not count; every file's bytes, mode and name do."""

    def make(files: dict[str, tuple[bytes, int]]) -> str:
        with tempfile.TemporaryDirectory() as folder:
            for name, (body, mode) in files.items():
                write_files(Path(folder), {f"p/{name}": body})
                (Path(folder) / "p" / name).chmod(mode)
            return digest(scan(Path(folder), include=["p"]))

    shuffled = dict(data.draw(st.permutations(list(tree.items()))))
    name = data.draw(st.sampled_from(sorted(tree)))
    body, mode = tree[name]
    fresh = data.draw(names.filter(lambda n: n not in {k.split("/")[0] for k in tree}))
    rest = {k: v for k, v in tree.items() if k != name}
    others = [
        {**rest, name: (body + b"!", mode)},
        {**rest, name: (body, mode ^ 0o111)},
        {**rest, fresh: (body, mode)},
        {**tree, fresh: (b"", 0o644)},
    ]

    assert make(tree) == make(shuffled)
    assert make(tree) not in {make(other) for other in others}


def test_lines_cannot_be_forged() -> None:
    """The length before the path keeps one path from reading as two lines."""
    entry = Entry(path="é", mode="100644", sha256=digest([]))

    assert entry.line().endswith(b" 2:\xc3\xa9\n")
