"""Where a patch lands on another release, told by its innermost function."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from toy_upstream import CORE, FILES, LOUD_CORE, STRICT_CORE, copy_series, write_files
from vectorless_rag.upstream import git
from vectorless_rag.upstream.landing import Ground, Landing, Text
from vectorless_rag.upstream.pin import read_pin
from vectorless_rag.upstream.places import MODULE, enclosing
from vectorless_rag.upstream.series import Series, read_series
from vectorless_rag.upstream.workflow import unpatched

Land = Callable[[dict[str, str]], list[Landing]]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("landing") / "root"
    return copy_series(folder, tmp_path_factory.getbasetemp())


@pytest.fixture(scope="module")
def series(root: Path) -> Series:
    return read_series(root)


@pytest.fixture(scope="module")
def ground(root: Path, series: Series) -> Ground:
    """One repository for all: each release starts from nothing."""
    tree = root.parent / "ground"
    with unpatched(root, read_pin(root)) as bare:
        shutil.copytree(bare, tree)
    return Ground.open(tree, "1.0", series)


@pytest.fixture
def land(tmp_path: Path, ground: Ground, series: Series) -> Land:
    """Put both patches onto a release that differs in the given files."""

    def landed(edits: dict[str, str]) -> list[Landing]:
        changed = {name: text.encode() for name, text in edits.items()}
        release = write_files(tmp_path / "release", {**FILES, **changed})
        ground.start("1.1", release)
        return [ground.land(patch) for patch in series.patches]

    return landed


# The second patch changes `load_a`, the first binds `load_c` anew below it.
LOAD = "def load_{}(text):\n    text = text.strip()\n    return text\n\n\n"
SWAPPED = CORE.replace(
    LOAD.format("c") + LOAD.format("d").rstrip(),
    LOAD.format("d") + LOAD.format("c").rstrip(),
)
INSERTED = CORE.replace("def load_a", f"{LOAD.format('x')}def load_a")
BOUND_AGAIN = f"{CORE}\n\nload_c = load_a\n"
NOTED = CORE.replace("\n\ndef load_a", '\n\n"a note"\n\n\ndef load_a')


@pytest.mark.parametrize(
    ("core", "first", "second"),
    [
        pytest.param(
            CORE, Landing(text=Text.CLEAN), Landing(text=Text.CLEAN), id="the-same"
        ),
        pytest.param(
            NOTED, Landing(text=Text.OFFSET), Landing(text=Text.OFFSET), id="lower"
        ),
        pytest.param(
            STRICT_CORE, Landing(text=Text.TAKEN), Landing(text=Text.CLEAN), id="taken"
        ),
        pytest.param(
            LOUD_CORE, Landing(text=Text.TAKEN), Landing(text=Text.TAKEN), id="both"
        ),
        pytest.param(
            CORE.replace(
                "    return text\n\n\ndef load_b", "    return 1\n\n\ndef load_b"
            ),
            Landing(text=Text.CLEAN),
            Landing(
                text=Text.OFFSET,
                conflicts=("toy/core.py (load_a)",),
                elsewhere=("toy/core.py::load_a -> toy/core.py::load_b",),
            ),
            id="rewritten-and-a-sibling-fits",
        ),
        pytest.param(
            CORE.replace("    return text\n", "    return 1\n"),
            Landing(text=Text.CLEAN),
            Landing(text=Text.CONFLICT, conflicts=("toy/core.py (load_a)",)),
            id="rewritten",
        ),
        pytest.param(
            INSERTED,
            Landing(text=Text.OFFSET),
            Landing(text=Text.MERGED),
            id="sibling-above-that-the-text-fits-too",
        ),
        pytest.param(
            BOUND_AGAIN,
            Landing(
                text=Text.CLEAN,
                elsewhere=("toy/core.py::load_c: upstream binds it last",),
            ),
            Landing(text=Text.CLEAN),
            id="bound-again-below",
        ),
    ],
)
def test_a_release_and_how_the_patches_land(
    land: Land, core: str, first: Landing, second: Landing
) -> None:
    """The text fits as it is, further down, by a merge, or not at all."""
    assert [first, second] == land({"toy/core.py": core})


def test_a_binding_above_its_function_is_misplaced(land: Land) -> None:
    """The text fits without a word, and the patch would do nothing."""
    first, second = land({"toy/core.py": SWAPPED})

    assert not first.applied
    assert "toy/core.py::load_c: upstream binds it last" in first.elsewhere
    assert second.applied


def test_what_does_not_land_leaves_nothing(ground: Ground, land: Land) -> None:
    """The next patch meets the tree as it was."""
    land({"toy/core.py": SWAPPED})
    listed = git.run(ground.folder, "log", "--format=%s", "HEAD").decode()

    assert ["core: load loudly", "upstream 1.1", "upstream 1.0"] == listed.split("\n")[
        :3
    ]
    assert b"" == git.run(ground.folder, "status", "--porcelain")


def test_a_patch_that_follows_a_moved_file_is_misplaced(
    tmp_path: Path, ground: Ground, series: Series
) -> None:
    """It lands there, but what its header names is elsewhere now."""
    files = {**FILES, "toy/moved.py": CORE.encode()}
    del files["toy/core.py"]
    ground.start("1.1", write_files(tmp_path / "release", files))
    landed = ground.land(series.patches[1])

    assert (Text.MERGED, False) == (landed.text, landed.applied)
    assert ("toy/core.py::load_a -> toy/moved.py::load_a",) == landed.elsewhere


NESTED = b"""
class A:
    @property
    def one(self):
        def inner():
            return 1
        return inner()

    x = 1


if True:
    def two():
        return 2
"""


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        ((6, 6), "A.one.inner"),
        ((5, 7), "A.one"),
        ((3, 3), "A.one"),
        ((4, 9), "A"),
        ((9, 9), "A"),
        ((10, 10), MODULE),
        ((7, 14), MODULE),
        ((14, 14), "two"),
    ],
)
def test_the_innermost_definition_around_lines(
    lines: tuple[int, int], name: str
) -> None:
    """A method of a class is another place than its neighbour."""
    assert name == enclosing(NESTED, *lines)
