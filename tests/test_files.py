"""Only regular files are opened, and under allowed folders only without links."""

import contextlib
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.files import opened


def read(path: Path, *roots: Path) -> bytes:
    with opened(path, "a.pdf", roots) as file:
        return os.read(file, 100)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root" / "in").mkdir(parents=True)
    (tmp_path / "root" / "in" / "a.pdf").write_bytes(b"inside")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a.pdf").write_bytes(b"outside")
    return tmp_path / "root"


def test_without_roots_a_link_is_followed(root: Path) -> None:
    """Whoever named it meant what it leads to."""
    (root / "link").symlink_to(root.parent / "out")

    assert b"outside" == read(root / "link" / "a.pdf")


def test_what_lies_under_a_root_is_read(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by a relative path, with detours, and where the root itself is a link."""
    monkeypatch.chdir(root / "in")
    (root.parent / "way").symlink_to(root)
    way = root.parent / "way"

    assert {b"inside"} == {
        read(root / "in" / "a.pdf", root),
        read(Path("a.pdf"), root.parent / "out", root),
        read(root / "in" / ".." / "in" / "a.pdf", root),
        read(way / "in" / "a.pdf", way),
        read(root / "in" / "a.pdf", way),
    }


def _outside(root: Path) -> Path:
    return root.parent / "out" / "a.pdf"


def _upwards(root: Path) -> Path:
    return root / ".." / "out" / "a.pdf"


def _similar(root: Path) -> Path:
    (root.parent / "root-2").mkdir()
    (root.parent / "root-2" / "a.pdf").touch()
    return root.parent / "root-2" / "a.pdf"


def _the_root(root: Path) -> Path:
    return root


def _file_link(root: Path) -> Path:
    (root / "a.pdf").symlink_to(root.parent / "out" / "a.pdf")
    return root / "a.pdf"


def _inner_link(root: Path) -> Path:
    (root / "a.pdf").symlink_to(root / "in" / "a.pdf")
    return root / "a.pdf"


def _folder_link(root: Path) -> Path:
    (root / "link").symlink_to(root.parent / "out")
    return root / "link" / "a.pdf"


def _link_in(root: Path) -> Path:
    (root.parent / "way-in").symlink_to(root)
    return root.parent / "way-in" / "in" / "a.pdf"


@pytest.mark.parametrize(
    "make",
    [
        _outside, _upwards, _similar, _the_root, _file_link, _inner_link,
        _folder_link, _link_in,
    ],
)  # fmt: skip
def test_outside_the_roots_and_through_links_is_forbidden(
    root: Path, make: Callable[[Path], Path]
) -> None:
    """Whether or not the link stays inside."""
    with pytest.raises(
        VectorlessRagError, match=r"a\.pdf: (outside the allowed|reached by a link)"
    ) as caught:
        read(make(root), root)
    assert Code.SOURCE_FORBIDDEN == caught.value.code


def _folder(folder: Path) -> Path:
    return folder


def _pipe(folder: Path) -> Path:
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


def _socket(folder: Path) -> Path:
    with contextlib.chdir(folder), socket.socket(socket.AF_UNIX) as end:
        end.bind("socket")
    return folder / "socket"


def _device(_folder: Path) -> Path:
    return Path("/dev/zero")


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (_folder, "a folder"),
        (_pipe, "no file but a pipe"),
        (_socket, "no file but a socket"),
        (_device, "no file but a device"),
    ],
)
def test_what_is_no_file_is_refused_at_once(
    tmp_path: Path, make: Callable[[Path], Path], kind: str
) -> None:
    """With roots and without, and nothing waits for a writer."""
    path = make(tmp_path)
    for roots in ((), (path.parent,)):
        with pytest.raises(VectorlessRagError, match=f"a.pdf: {kind}") as caught:
            read(path, *roots)
        assert Code.SOURCE_UNREADABLE == caught.value.code


def _to_a_link(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize(
    ("swap", "why"),
    [(os.mkfifo, "no file but a pipe"), (_to_a_link, "reached by a link")],
)
def test_what_is_exchanged_between_look_and_opening_is_refused(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    swap: Callable[[Path], None],
    why: str,
) -> None:
    """The second look is at what was opened."""
    path, look = root / "in" / "a.pdf", os.stat

    def exchange(name: str, **options: Any) -> os.stat_result:
        status = look(name, **options)
        if name == path.name and path.is_file():
            path.unlink()
            swap(path)
        return status

    monkeypatch.setattr(os, "stat", exchange)
    with pytest.raises(VectorlessRagError, match=why):
        read(path, root)


def test_a_missing_file_and_a_file_as_a_folder_are_unreadable(root: Path) -> None:
    """Below a root, too, the system's reason is given."""
    for path, why in ((root / "no.pdf", "no such"), (root / "in/a.pdf/b", "not a dir")):
        with pytest.raises(VectorlessRagError, match=why) as caught:
            read(path, root)
        assert Code.SOURCE_UNREADABLE == caught.value.code


def test_no_descriptor_stays_open(root: Path) -> None:
    """Neither after a read nor after a refusal."""
    before = sorted(Path("/proc/self/fd").iterdir())
    read(root / "in" / "a.pdf", root)
    with pytest.raises(VectorlessRagError, match="reached by a link"):
        read(_folder_link(root), root)

    assert before == sorted(Path("/proc/self/fd").iterdir())
