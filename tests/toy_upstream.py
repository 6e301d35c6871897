"""A tiny upstream with a patch series, made from nothing, for tests."""

import io
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path

from vectorless_rag.canon import sha256
from vectorless_rag.upstream import git
from vectorless_rag.upstream.environment import bare_environment
from vectorless_rag.upstream.export import IDENTITY
from vectorless_rag.upstream.places import source_sha256
from vectorless_rag.upstream.tree import digest, scan
from vectorless_rag.upstream.workflow import open_shell, write_series

METADATA = "Metadata-Version: 2.1\nName: toy\nVersion: {version}\n"
WHEEL = "toy-1.0-py3-none-any.whl"

# Four siblings of one body: a hunk fits into each of them.
CORE = '''"""Loads things."""

from toy.tools import strict


def load_a(text):
    text = text.strip()
    return text


def load_b(text):
    text = text.strip()
    return text


def load_c(text):
    text = text.strip()
    return text


def load_d(text):
    text = text.strip()
    return text
'''
TOOLS = '''"""Helps to load."""


def strict(load):
    def checked(text):
        if not load(text):
            raise ValueError("nothing")
        return load(text)

    return checked


"a note"
'''
FILES = {
    "toy/__init__.py": b"",
    "toy/core.py": CORE.encode(),
    "toy/tools.py": TOOLS.encode(),
}

STRICT = "0010-strict-load.patch"
LOUD = "0020-loud-load.patch"

WHY = "Nothing is refused.\n\nWhy not without a patch: it is called by name."
TRAILERS = (
    "Origin: vendor",
    "Bug: none",
    "Upstream-Status: Pending [not sent]",
    "Drop-When: proof-passes-on-upstream",
)

# What the two patches of the series do to the files.
STRICT_CORE = CORE.replace(
    "\n\ndef load_d", "\n\nload_c = strict(load_c)\n\n\ndef load_d"
)
LOUD_CORE = STRICT_CORE.replace(
    "return text\n\n\ndef load_b", "return text.upper()\n\n\ndef load_b"
)

PROOFS = {
    "test_0010_strict.py": """
import pytest

from toy.core import load_c


def test_nothing_is_refused():
    try:
        load_c(" ")
    except ValueError:
        return
    pytest.fail("it was loaded")
""",
    "test_0020_loud.py": """
from toy.core import load_a


def test_it_is_loud():
    assert load_a("a") == "A"
""",
}


def message(name: str, *trailers: str, title: str = "core: a change") -> str:
    """Word a commit that becomes the patch *name*."""
    lines = [*TRAILERS, *trailers, f"Patch-Filename: {name}"]
    return f"{title}\n\n{WHY}\n\n" + "\n".join(lines) + "\n"


def wheel(files: Mapping[str, bytes], version: str = "1.0") -> bytes:
    """Pack a wheel."""
    info = f"toy-{version}.dist-info"
    members = {
        **files,
        f"{info}/METADATA": METADATA.format(version=version).encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nTag: py3-none-any\n",
        f"{info}/RECORD": b"",
        f"{info}/licenses/LICENSE": b"MIT\n",
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as opened:
        for name, data in members.items():
            opened.writestr(zipfile.ZipInfo(name), data)
    return packed.getvalue()


def write_files(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Write *files* below *folder*."""
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def pin_text(archive: bytes, tree: str, /, **other: str) -> str:
    """Spell an ``upstream.toml``."""
    fields = {
        "name": '"toy"',
        "version": '"1.0"',
        "revision": "3",
        "file": f'"{WHEEL}"',
        "size": str(len(archive)),
        "sha256": f'"{sha256(archive)}"',
        "tree_sha256": f'"{tree}"',
        "include": '["toy"]',
        "exclude": '["toy/assets"]',
        **other,
    }
    return "".join(f"{name} = {value}\n" for name, value in fields.items())


def tree_digest(files: Mapping[str, bytes], scratch: Path) -> str:
    """Digest the tree that *files* make."""
    folder = write_files(scratch / "digested", files)
    try:
        return digest(scan(folder, include=["toy"]))
    finally:
        shutil.rmtree(folder)


def make_root(root: Path, files: Mapping[str, bytes] = FILES) -> Path:
    """Make an installation with a vendored wheel and an empty series."""
    archive = wheel(files)
    root.mkdir(parents=True, exist_ok=True)
    tree = tree_digest(files, root)
    write_files(
        root,
        {
            "upstream.toml": pin_text(archive, tree).encode(),
            f"vendor/{WHEEL}": archive,
            "patches/series": b"# The order.\n",
            "patches/RETIRED.md": b"| Number | Title |\n| --- | --- |\n",
            **{f"tests/patches/{n}": t.encode() for n, t in PROOFS.items()},
        },
    )
    return root


def commit(repository: Path, edits: Mapping[str, str], text: str) -> None:
    """Commit new texts of files."""
    write_files(repository, {name: body.encode() for name, body in edits.items()})
    env = {**bare_environment(), **IDENTITY}
    git.run(repository, "add", "--all")
    git.run(repository, "commit", "--quiet", "-F", "-", stdin=text.encode(), env=env)


def make_series(root: Path) -> Path:
    """Make an installation with two patches."""
    make_root(root)
    shell = root / "build" / "shell"
    open_shell(root, shell)
    replaces = f"toy/core.py::load_c sha256:{source_sha256(CORE.encode(), 'load_c')}"
    commit(
        shell,
        {"toy/core.py": STRICT_CORE},
        message(
            STRICT,
            f"Replaces: {replaces}",
            "Proof: tests/patches/test_0010_strict.py::test_nothing_is_refused",
            title="core: refuse to load nothing",
        ),
    )
    commit(
        shell,
        {"toy/core.py": LOUD_CORE},
        message(
            LOUD,
            "Proof: tests/patches/test_0020_loud.py::test_it_is_loud",
            title="core: load loudly",
        ),
    )
    write_series(root, shell)
    return root


def copy_series(root: Path, base: Path) -> Path:
    """Copy an installation with two patches, made once below *base*."""
    template = base / "toy-series"
    if not template.exists():
        make_series(template)
    shutil.copytree(template, root)
    share_bytecode(root, base)
    return root


def share_bytecode(root: Path, base: Path) -> None:
    """Let proofs of many installations compile pytest once."""
    (base / "bytecode").mkdir(exist_ok=True)
    (root / "build").mkdir(parents=True, exist_ok=True)
    (root / "build" / "proof-bytecode").symlink_to(base / "bytecode")
