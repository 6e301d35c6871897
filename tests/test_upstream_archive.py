"""An archive cannot write outside its folder, nor anything but plain files."""

import io
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.upstream import archive
from vectorless_rag.upstream.archive import unpack


def zipped(path: Path, *members: tuple[str, bytes, int]) -> Path:
    with zipfile.ZipFile(path, "w") as opened:
        for name, data, mode in members:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            opened.writestr(info, data)
    return path


def tarred(path: Path, *members: tarfile.TarInfo, body: bytes = b"") -> Path:
    with tarfile.open(path, "w:gz") as opened:
        for info in members:
            info.size = len(body) if info.isreg() else 0
            opened.addfile(info, io.BytesIO(body))
    return path


def member(
    name: str, kind: bytes = tarfile.REGTYPE, mode: int = 0o644
) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.linkname = kind, mode, "target"
    return info


@pytest.fixture
def into(tmp_path: Path) -> Path:
    (tmp_path / "into").mkdir()
    return tmp_path / "into"


def test_plain_files_come_out(tmp_path: Path, into: Path) -> None:
    """Files, folders and the right to execute survive; other mode bits do not."""
    unpack(
        zipped(
            tmp_path / "a.zip",
            ("p/", b"", stat.S_IFDIR | 0o777),
            ("p/x", b"1", 0),
            ("p/run", b"2", stat.S_IFREG | 0o4777),
        ),
        into,
    )

    assert b"1" == (into / "p" / "x").read_bytes()
    assert (0o644, 0o755) == tuple(
        stat.S_IMODE((into / "p" / n).stat().st_mode) for n in ("x", "run")
    )


def test_tar_files_come_out(tmp_path: Path, into: Path) -> None:
    """A compressed tar archive is as good."""
    unpack(
        tarred(
            tmp_path / "a.tar.gz",
            member("p", tarfile.DIRTYPE),
            member("p/run", mode=0o700),
            body=b"2",
        ),
        into,
    )

    assert b"2" == (into / "p" / "run").read_bytes()
    assert (into / "p" / "run").stat().st_mode & stat.S_IXUSR


@pytest.mark.parametrize(
    ("name", "mode", "why"),
    [
        pytest.param("/etc/x", 0, "leaves the folder", id="absolute"),
        pytest.param("../x", 0, "leaves the folder", id="parent"),
        pytest.param("p/../../x", 0, "leaves the folder", id="parent-inside"),
        pytest.param("p\\..\\x", 0, "leaves the folder", id="backslash"),
        pytest.param("../d/", stat.S_IFDIR, "leaves the folder", id="parent-folder"),
        pytest.param("l", stat.S_IFLNK | 0o777, "no regular file", id="symlink"),
        pytest.param("d", stat.S_IFCHR, "no regular file", id="device"),
    ],
)
def test_zip_attacks_are_refused(
    tmp_path: Path, into: Path, name: str, mode: int, why: str
) -> None:
    """Nothing is written for a member that is not a plain file inside."""
    attack = zipped(tmp_path / "a.zip", (name, b"x", mode))

    with pytest.raises(VectorlessRagError, match=why) as raised:
        unpack(attack, into)
    assert Code.UPSTREAM_TAMPERED is raised.value.code
    assert {into, attack} == set(tmp_path.iterdir())
    assert [] == list(into.iterdir())


@pytest.mark.parametrize(
    ("info", "why"),
    [
        pytest.param(member("/etc/x"), "leaves the folder", id="absolute"),
        pytest.param(member("p/../../x"), "leaves the folder", id="parent"),
        pytest.param(member("../d", tarfile.DIRTYPE), "leaves", id="parent-folder"),
        pytest.param(member("l", tarfile.SYMTYPE), "no regular file", id="symlink"),
        pytest.param(member("l", tarfile.LNKTYPE), "no regular file", id="hard-link"),
        pytest.param(member("d", tarfile.CHRTYPE), "no regular file", id="device"),
        pytest.param(member("f", tarfile.FIFOTYPE), "no regular file", id="fifo"),
    ],
)
def test_tar_attacks_are_refused(
    tmp_path: Path, into: Path, info: tarfile.TarInfo, why: str
) -> None:
    """The same for tar archives."""
    attack = tarred(tmp_path / "a.tar.gz", info)

    with pytest.raises(VectorlessRagError, match=why):
        unpack(attack, into)
    assert [] == list(into.iterdir())


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_comes_once(tmp_path: Path, into: Path) -> None:
    """Two members of one name would let two readers see two packages."""
    attack = zipped(tmp_path / "a.zip", ("x", b"1", 0), ("x", b"2", 0))

    with pytest.raises(VectorlessRagError, match="'x' comes twice"):
        unpack(attack, into)


def test_a_file_is_no_folder(tmp_path: Path, into: Path) -> None:
    """A member below another member that is a file is refused."""
    attack = zipped(tmp_path / "a.zip", ("x", b"1", 0), ("x/y", b"2", 0))

    with pytest.raises(VectorlessRagError, match=r"twice|in a file"):
        unpack(attack, into)


def test_bombs_stop_early(
    tmp_path: Path, into: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Size and count have ceilings."""
    bomb = zipped(tmp_path / "a.zip", ("x", b"1" * 9, 0), ("y", b"2" * 9, 0))
    monkeypatch.setattr(archive, "_MOST_BYTES", 17)

    with pytest.raises(VectorlessRagError, match="unpacks to too much"):
        unpack(bomb, into)

    monkeypatch.undo()
    monkeypatch.setattr(archive, "_MOST_FILES", 1)
    with pytest.raises(VectorlessRagError, match="unpacks to too much"):
        unpack(zipped(tmp_path / "b.zip", ("v", b"", 0), ("w", b"", 0)), into)


def test_broken_archives_are_named(tmp_path: Path, into: Path) -> None:
    """Bytes that are no archive, or a damaged one, say which file it is."""
    plain = tmp_path / "plain.zip"
    plain.write_bytes(b"hello")
    with pytest.raises(VectorlessRagError, match=r"plain\.zip is neither"):
        unpack(plain, into)

    broken = zipped(tmp_path / "broken.zip", ("x", b"12345678", 0))
    broken.write_bytes(broken.read_bytes().replace(b"12345678", b"12345679"))
    with pytest.raises(VectorlessRagError, match=r"broken\.zip: Bad CRC"):
        unpack(broken, into)


def test_an_unwritable_folder_is_said(tmp_path: Path) -> None:
    """What the operating system refuses is unavailable, not tampered."""
    good = zipped(tmp_path / "a.zip", ("x", b"1", 0))

    with pytest.raises(VectorlessRagError, match=r"a\.zip: ") as raised:
        unpack(good, Path("/proc/self/nowhere"))
    assert Code.UPSTREAM_UNAVAILABLE is raised.value.code
