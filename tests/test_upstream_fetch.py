"""Every way to the pinned release ends in the same check."""

import io
import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from toy_upstream import CORE, FILES, WHEEL, make_root, pin_text, wheel, write_files
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.upstream import git
from vectorless_rag.upstream.environment import bare_environment
from vectorless_rag.upstream.export import IDENTITY
from vectorless_rag.upstream.fetch import (
    FileSource,
    IndexSource,
    Source,
    fetch,
    keep_wheel,
    obtain,
)
from vectorless_rag.upstream.pin import GitSource, read_pin

RELEASE = {**FILES, "LICENSE": b"MIT\n"}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installation with nothing vendored, and a pip without an index."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    made = make_root(tmp_path / "root")
    (tmp_path / "mirror").mkdir()
    (made / "vendor" / WHEEL).rename(tmp_path / "mirror" / WHEEL)
    return made


def get(root: Path, scratch: Path, source: Source | None = None) -> Path:
    scratch.mkdir()
    obtain(read_pin(root), scratch, source=source, vendor=root / "vendor")
    return scratch / "tree"


def sdist(
    path: Path, files: Mapping[str, bytes] = RELEASE, version: str = "1.0"
) -> Path:
    info = f"Name: toy\nVersion: {version}\n".encode()
    with tarfile.open(path, "w:gz") as opened:
        for name, data in {**files, "PKG-INFO": info}.items():
            member = tarfile.TarInfo(f"toy-{version}/{name}")
            member.size = len(data)
            opened.addfile(member, io.BytesIO(data))
    return path


def repository(folder: Path, files: Mapping[str, bytes] = RELEASE) -> GitSource:
    env = {**bare_environment(), **IDENTITY}
    write_files(folder, files)
    git.run(folder, "init", "--quiet", "--initial-branch=main")
    git.run(folder, "add", "--all")
    git.run(folder, "commit", "--quiet", "-m", "release", env=env)
    commit = git.run(folder, "rev-parse", "HEAD").decode().strip()
    tree = git.run(folder, "rev-parse", "HEAD^{tree}").decode().strip()
    return GitSource(url=str(folder), commit=commit, tree=tree)


def test_the_index_is_reached_through_pip(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user's own pip settings say where the wheel is."""
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "mirror"))
    tree = get(root, tmp_path / "scratch", IndexSource())

    assert CORE.encode() == (tree / "toy" / "core.py").read_bytes()
    assert b"MIT\n" == (tree / "LICENSE").read_bytes()
    assert {"toy", "LICENSE"} == {path.name for path in tree.iterdir()}


def test_paths_may_be_relative(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a person types in a shell means the folder that the shell is in."""
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "mirror"))
    monkeypatch.chdir(tmp_path)
    tree = get(root, Path("scratch"), IndexSource())

    assert CORE.encode() == (tree / "toy" / "core.py").read_bytes()


def test_fetch_leaves_the_wheel_and_needs_no_network_again(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one fetch verified, every later one takes from the vendor folder."""
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "mirror"))
    kept = fetch(root)
    monkeypatch.delenv("PIP_FIND_LINKS")

    assert root / "vendor" / WHEEL == kept
    assert [kept] == list((root / "vendor").iterdir())
    assert kept == fetch(root)
    assert (get(root, tmp_path / "scratch") / "LICENSE").is_file()


def test_no_network_is_said(root: Path) -> None:
    """pip's own complaint, in one line, and nothing is left."""
    with pytest.raises(VectorlessRagError, match="pip could not download it") as raised:
        fetch(root)
    assert Code.UPSTREAM_UNAVAILABLE is raised.value.code
    assert [] == list((root / "vendor").iterdir())


def test_another_wheel_of_the_index_is_refused(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pip itself compares the hash."""
    (tmp_path / "mirror" / WHEEL).write_bytes(wheel({**FILES, "toy/x.py": b"1"}))
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "mirror"))

    with pytest.raises(VectorlessRagError, match="pip could not download it"):
        fetch(root)


def test_a_password_is_not_repeated(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index address may hold one."""
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "nonsense://user:hunter2@127.0.0.1/")
    monkeypatch.setenv("PIP_RETRIES", "0")

    with pytest.raises(VectorlessRagError, match="pip could not") as raised:
        fetch(root)
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    "place",
    [
        pytest.param(lambda t: t / "mirror" / WHEEL, id="wheel"),
        pytest.param(lambda t: sdist(t / "toy-1.0.tar.gz"), id="sdist"),
        pytest.param(lambda t: write_files(t / "folder", RELEASE), id="folder"),
        pytest.param(
            lambda t: (
                write_files(
                    t / "outer" / "toy-1.0", {**RELEASE, "toy/assets/logo": b"x"}
                ).parent
            ),
            id="folder-in-folder",
        ),
    ],
)
def test_every_file_gives_the_same_tree(
    root: Path, tmp_path: Path, place: object
) -> None:
    """Wheel, source archive and folder agree over the listed paths."""
    assert callable(place)
    tree = get(root, tmp_path / "scratch", FileSource(path=place(tmp_path)))

    assert sorted(RELEASE) == sorted(
        p.relative_to(tree).as_posix() for p in tree.rglob("*") if p.is_file()
    )


@pytest.mark.parametrize("source", ["folder", "sdist", "git"])
def test_what_is_no_wheel_is_vendored_as_its_tree(
    root: Path, tmp_path: Path, source: str
) -> None:
    """Later builds need neither the folder nor the repository."""
    made: dict[str, Source] = {
        "folder": FileSource(path=write_files(tmp_path / "folder", RELEASE)),
        "sdist": FileSource(path=sdist(tmp_path / "toy-1.0.tar.gz")),
        "git": repository(tmp_path / "repository"),
    }
    kept = fetch(root, source=made[source])
    first = kept.read_bytes()

    assert f"toy-1.0-{read_pin(root).tree_sha256[:16]}.tar" == kept.name
    assert kept == fetch(root, source=made[source])
    assert first == kept.read_bytes()
    assert (get(root, tmp_path / "scratch") / "toy" / "core.py").is_file()


def test_git_gives_stored_bytes(root: Path, tmp_path: Path) -> None:
    """Attributes that would change line ends on checkout change nothing here."""
    attributes = {".gitattributes": b"*.py text eol=crlf\n"}
    source = repository(tmp_path / "repository", {**RELEASE, **attributes})
    tree = get(root, tmp_path / "scratch", source)

    assert CORE.encode() == (tree / "toy" / "core.py").read_bytes()


def test_git_keeps_modes_and_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Links stay links and what may be executed stays so."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    folder = write_files(tmp_path / "repository", RELEASE)
    (folder / "toy" / "core.py").chmod(0o755)
    (folder / "toy" / "link").symlink_to("core.py")
    source = repository(folder, {})
    root = make_root(tmp_path / "root")
    scratch = tmp_path / "scratch"
    digest = "0" * 64
    (root / "upstream.toml").write_text(pin_text(wheel(FILES), digest))
    with pytest.raises(VectorlessRagError, match="has digest") as raised:
        get(root, scratch, source)
    digest = raised.value.detail.rpartition(" ")[2]
    (root / "upstream.toml").write_text(pin_text(wheel(FILES), digest))

    tree = get(root, tmp_path / "again", source)
    assert (tree / "toy" / "link").is_symlink()
    assert 0o755 == (tree / "toy" / "core.py").stat().st_mode & 0o777
    assert 0o644 == (tree / "toy" / "tools.py").stat().st_mode & 0o777


def test_git_falls_back_to_branches(root: Path, tmp_path: Path) -> None:
    """Servers that do not give out single commits give out branches and tags."""
    source = repository(tmp_path / "repository")
    git.run(tmp_path / "repository", "config", "uploadpack.allowAnySHA1InWant", "false")
    git.run(tmp_path / "repository", "config", "protocol.version", "0")
    env = {**bare_environment(), **IDENTITY}
    git.run(
        tmp_path / "repository", "commit", "-q", "--allow-empty", "-m", "x", env=env
    )

    assert (get(root, tmp_path / "scratch", source) / "LICENSE").is_file()


def test_git_commits_are_checked(root: Path, tmp_path: Path) -> None:
    """A commit that is not there, another tree, a submodule, no repository."""
    source = repository(tmp_path / "repository")
    absent = GitSource(url=source.url, commit="d" * 40)
    other = GitSource(url=source.url, commit=source.commit, tree="e" * 40)
    nowhere = GitSource(url=str(tmp_path / "nowhere"), commit=source.commit)
    git.run(
        tmp_path / "repository",
        *("update-index", "--add", "--cacheinfo"),
        f"160000,{source.commit},toy/module",
    )
    env = {**bare_environment(), **IDENTITY}
    git.run(tmp_path / "repository", "commit", "--quiet", "-m", "x", env=env)
    commit = git.run(tmp_path / "repository", "rev-parse", "HEAD").decode().strip()
    module = GitSource(url=source.url, commit=commit)

    for number, (wrong, why) in enumerate(
        [
            (absent, "git (fetch|cat-file): "),
            (other, "has tree"),
            (nowhere, "git fetch: "),
            (module, "'toy/module' is no file"),
        ]
    ):
        with pytest.raises(VectorlessRagError, match=why):
            get(root, tmp_path / f"scratch{number}", wrong)


def altered(files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {**files, "toy/core.py": b"import os\n"}


@pytest.mark.parametrize(
    ("place", "why"),
    [
        pytest.param(
            lambda t: write_files(t / "f", altered(RELEASE)), "has digest", id="folder"
        ),
        pytest.param(
            lambda t: sdist(t / "s.tar.gz", altered(RELEASE)), "has digest", id="sdist"
        ),
        pytest.param(
            lambda t: sdist(t / "s.tar.gz", version="1.1"),
            "toy-1.1/PKG-INFO is of toy 1.1",
            id="version",
        ),
        pytest.param(
            lambda t: write_files(t, {WHEEL: wheel(altered(FILES))}) / WHEEL,
            rf"{WHEEL} has \d+ bytes of digest",
            id="wheel",
        ),
        pytest.param(
            lambda t: shutil.copy(t / "mirror" / WHEEL, t / "other-1.0.whl"),
            f"other-1.0.whl is not {WHEEL}",
            id="wheel-name",
        ),
    ],
)
def test_other_bytes_are_tampered(
    root: Path, tmp_path: Path, place: object, why: str
) -> None:
    """Nothing of another release is used, whatever it is called."""
    assert callable(place)

    with pytest.raises(VectorlessRagError, match=why) as raised:
        get(root, tmp_path / "scratch", FileSource(path=Path(place(tmp_path))))
    assert Code.UPSTREAM_TAMPERED is raised.value.code


@pytest.mark.parametrize(
    ("files", "why"),
    [
        pytest.param({"x": b""}, "does not hold toy", id="no-tree"),
        pytest.param(FILES, "holds no LICENSE", id="no-licence"),
        pytest.param(None, "No such file", id="nothing"),
    ],
)
def test_half_a_release_is_unavailable(
    root: Path, tmp_path: Path, files: Mapping[str, bytes] | None, why: str
) -> None:
    """What is missing is named."""
    folder = tmp_path / "folder"
    if files is not None:
        write_files(folder, files)

    with pytest.raises(VectorlessRagError, match=why) as raised:
        get(root, tmp_path / "scratch", FileSource(path=folder))
    assert Code.UPSTREAM_UNAVAILABLE is raised.value.code


def test_a_damaged_vendor_file_is_named(tmp_path: Path) -> None:
    """It is not replaced in silence: someone should look."""
    root = make_root(tmp_path / "root")
    (root / "vendor" / WHEEL).write_bytes(b"x")

    with pytest.raises(VectorlessRagError, match=f"{WHEEL} has 1 bytes") as raised:
        fetch(root)
    assert Code.UPSTREAM_TAMPERED is raised.value.code


def test_a_vendor_folder_that_cannot_be_made_is_said(root: Path) -> None:
    """Fetching into nowhere fails; a build only goes without."""
    (root / "vendor").rmdir()
    (root / "vendor").write_bytes(b"")

    with pytest.raises(VectorlessRagError, match="vendor: File exists"):
        fetch(root)
    pin = read_pin(root)
    (root / pin.file).write_bytes(b"x")
    keep_wheel(pin, root, root / "vendor")
    assert b"" == (root / "vendor").read_bytes()
