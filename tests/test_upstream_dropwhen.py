"""When a patch may go is a condition that is evaluated."""

from pathlib import Path

import pytest

from conftest import REPOSITORY
from toy_upstream import FILES, copy_series, write_files
from vectorless_rag.upstream.check import check_series
from vectorless_rag.upstream.dropwhen import DropWhen, drop_when
from vectorless_rag.upstream.series import read_series
from vectorless_rag.upstream.workflow import write_lock


def condition(text: str) -> DropWhen:
    found = DropWhen.parse(text)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "passes", "met"),
    [
        pytest.param("upstream>=1.10.0", None, False, id="later"),
        pytest.param("upstream>=1.9.0", None, True, id="reached"),
        pytest.param("upstream>=1.2.0", None, True, id="passed"),
        pytest.param("proof-passes-on-upstream", True, True, id="passes"),
        pytest.param("proof-passes-on-upstream", False, False, id="fails"),
        pytest.param("proof-passes-on-upstream", None, None, id="not-told"),
        pytest.param("upstream-lacks toy/core.py", None, False, id="file-there"),
        pytest.param("upstream-lacks toy/gone.py", None, True, id="file-gone"),
        pytest.param("upstream-lacks toy/core.py::load_a", None, False, id="name"),
        pytest.param("upstream-lacks toy/core.py::load_z", None, True, id="no-name"),
        pytest.param("upstream-lacks toy/core.py::strict", None, False, id="imported"),
        pytest.param("upstream-lacks toy/gone.py::load_a", None, True, id="neither"),
        pytest.param("never [it is ours]", True, False, id="never"),
    ],
)
def test_conditions_are_evaluated(
    tmp_path: Path, text: str, *, passes: bool | None, met: bool | None
) -> None:
    """Each kind of condition has an answer for a release, or says it has none."""
    tree = write_files(tmp_path, FILES)

    assert met is condition(text).met("1.9.0", tree, passes=passes)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "never",
            "never []",
            "upstream>=1.9",
            "upstream>1.9.0",
            "when it is fixed",
        ),
        *("upstream-lacks ", "upstream-lacks a b", "upstream-lacks a.py::"),
    ],
)
def test_what_cannot_be_evaluated_is_no_condition(text: str) -> None:
    """A reader's hint is refused: no one would follow it."""
    assert DropWhen.parse(text) is None


def test_every_patch_says_when_it_goes() -> None:
    """Each header of our series has one condition that parses."""
    patches = read_series(REPOSITORY).patches

    assert [] == [patch.file for patch in patches if drop_when(patch) is None]


def test_a_patch_whose_function_is_gone_is_a_finding(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The check turns red once the pin lacks what the condition names."""
    root = copy_series(tmp_path / "root", tmp_path_factory.getbasetemp())
    for patch in (root / "patches").glob("0020-*.patch"):
        text = patch.read_text().replace(
            "Drop-When: proof-passes-on-upstream",
            "Drop-When: upstream-lacks toy/core.py::load_z",
        )
        patch.write_text(text)
    digest = read_series(root).patch_sha256
    lock = write_lock(root)

    assert digest == lock.patch_sha256
    found = "retire it: the pin meets upstream-lacks toy/core.py::load_z"
    assert (f"0020-loud-load.patch: {found}",) == check_series(root)
