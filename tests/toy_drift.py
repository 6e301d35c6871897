"""A tiny upstream whose next release changes something beneath each patch."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toy_upstream import (
    TRAILERS,
    WHEEL,
    WHY,
    commit,
    share_bytecode,
    tree_digest,
    wheel,
    write_files,
)
from toy_upstream import make_root as make_installation
from vectorless_rag.canon import sha256
from vectorless_rag.units import Sha256
from vectorless_rag.upstream.places import source_sha256
from vectorless_rag.upstream.releases import RELEASES_FILE, Release
from vectorless_rag.upstream.workflow import open_shell, write_series

NEXT = "1.1"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """One patch, and what upstream does beneath it."""

    number: str
    path: str
    old: str

    patched: str
    """The file once the patch stands, if no earlier one changed it."""

    new: str | None
    """The file in the next release; None: it is gone."""

    proof: str
    """Body of the one test."""

    drop_when: str = "never [a toy]"
    trailers: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name of the patch's file."""
        return f"{self.number}-change.patch"

    @property
    def test(self) -> str:
        """Path of its proof."""
        return f"tests/patches/test_{self.number}_change.py"


def function(name: str, line: str) -> str:
    """Spell a function of two lines, as each of its siblings is spelled."""
    return f"def {name}(text):\n    text = text.strip()\n    return {line}\n"


def module(*functions: str) -> str:
    """Spell a module."""
    return "\n\n".join(functions)


ABOVE = function("above", "text + '?'")
BELOW = function("below", "text + '!'")


def case(
    number: str,
    stem: str,
    *,
    new: str | None,
    patched: str = "text.upper()",
    proof: str = 'assert load("a") == "A"',
    old: str = "text",
    **other: Any,
) -> Case:
    """Make a patch of ``load`` in a module of its own."""

    def spelled(line: str) -> str:
        return module(ABOVE, function("load", line), BELOW)

    return Case(
        number=number,
        path=f"toy/{stem}.py",
        old=spelled(old),
        patched=spelled(patched),
        new=new,
        proof=f"from toy.{stem} import load\n\n\ndef test_it():\n    {proof}\n",
        **other,
    )


GREET = 'def greet(name):\n    return "hi " + name\n'

CASES = (
    case(
        "0010", "kept",
        new=module(ABOVE, function("load", "text"), BELOW, "VERSION = 2\n"),
        drop_when="upstream>=2.0.0",
    ),
    case(
        "0020", "moved",
        new=module(
            function("quite_new", "None"), ABOVE, function("load", "text"), BELOW
        ),
        drop_when="upstream>=1.0.5",
    ),
    case(
        "0030", "fixed",
        new=module(
            ABOVE, function("load", "text"), BELOW, "quiet = load\n",
            "def load(text):\n    return quiet(text).upper()\n",
        ),
        drop_when="proof-passes-on-upstream",
    ),
    case("0040", "gone", new=None, drop_when="upstream-lacks toy/gone.py::load"),
    Case(
        number="0050",
        path="toy/twins.py",
        old=module(*(function(f"load_{c}", "text") for c in "abcd")),
        patched=module(
            *(function(f"load_{c}", "text") for c in "ab"),
            function("load_c", "text.upper()"),
            function("load_d", "text"),
        ),
        new=module(*(function(f"load_{c}", "text") for c in "abdc")),
        proof='from toy.twins import load_c\n\n\n'
        'def test_it():\n    assert load_c("a") == "A"\n',
    ),
    case(
        "0060", "helped",
        old="text",
        patched="__import__('toy.helper').helper.loud(text)",
        new=module(ABOVE, function("load", "text"), BELOW),
    ),
    Case(
        number="0070",
        path="toy/replaced.py",
        old=module(GREET, BELOW),
        patched=module(GREET, "greet = str.upper\n", BELOW),
        new=module(GREET.replace("hi ", "hello "), BELOW),
        proof='from toy.replaced import greet\n\n\n'
        'def test_it():\n    assert greet("a") == "A"\n',
        trailers=(
            "Replaces: toy/replaced.py::greet sha256:"
            + source_sha256(GREET.encode(), "greet"),
        ),
    ),
    case("0080", "rewritten", new=module(ABOVE, function("load", "text * 2"), BELOW)),
    case(
        "0090", "rewritten",
        old="text.upper()",
        patched="text.upper().title()",
        proof='assert load("ab") == "Ab"',
        new=module(ABOVE, function("load", "text * 2"), BELOW),
        trailers=("Depends-On: 0080",),
    ),
    Case(
        number="0100",
        path="toy/inner.py",
        old=module(ABOVE, function("load", "text")),
        patched=module(ABOVE, function("load", "text.upper()")),
        new=module(ABOVE, function("load", "text")),
        proof='from toy.api import enter\n\n\n'
        'def test_it():\n    assert enter("a") == "A"\n',
    ),
)  # fmt: skip

API = "from toy.inner import load as {name}\n"
HELPER = "def loud(text):\n    return text.{how}()\n"
OLD = {
    "toy/__init__.py": b"",
    "toy/api.py": API.format(name="enter").encode(),
    "toy/helper.py": HELPER.format(how="upper").encode(),
    **{c.path: c.old.encode() for c in reversed(CASES)},
}
NEW = {
    "toy/__init__.py": b"",
    "toy/api.py": API.format(name="come_in").encode(),
    "toy/helper.py": HELPER.format(how="lower").encode(),
    **{c.path: c.new.encode() for c in CASES if c.new is not None},
}


def make_root(root: Path, base: Path) -> Path:
    """Make an installation with one patch a case, and its next release."""
    make_installation(root, OLD)
    share_bytecode(root, base)
    write_files(root, {c.test: c.proof.encode() for c in CASES})
    shell = root / "build" / "patch-shell"
    open_shell(root, shell)
    for each in CASES:
        trailers = [t for t in TRAILERS if not t.startswith("Drop-When")]
        lines = [
            *trailers,
            f"Drop-When: {each.drop_when}",
            *each.trailers,
            f"Proof: {each.test}::test_it",
            f"Patch-Filename: {each.name}",
        ]
        text = f"core: a change\n\n{WHY}\n\n" + "\n".join(lines) + "\n"
        commit(shell, {each.path: each.patched}, text)
    write_series(root, shell)
    add_release(root, NEW)
    return root


def add_release(root: Path, files: Mapping[str, bytes], version: str = NEXT) -> Release:
    """Vendor another release and enter it into the table."""
    archive = wheel(files, version)
    release = Release(
        version=version,
        file=WHEEL.replace("1.0", version),
        size=len(archive),
        sha256=sha256(archive),
        tree_sha256=Sha256(tree_digest(files, root)),
    )
    table = {"schema": 1, "releases": [dataclasses.asdict(release)]}
    write_files(
        root,
        {
            f"vendor/{release.file}": archive,
            RELEASES_FILE: json.dumps(table).encode(),
        },
    )
    return release
