"""Each verdict on a patch, from a real change of upstream beneath it."""

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from toy_drift import CASES, NEW, NEXT, make_root
from toy_upstream import copy_series
from vectorless_rag.upstream.__main__ import main
from vectorless_rag.upstream.drift import report
from vectorless_rag.upstream.landing import Landing, Text
from vectorless_rag.upstream.places import source_sha256
from vectorless_rag.upstream.proofs import Outcome
from vectorless_rag.upstream.proofs import Verdict as Proved
from vectorless_rag.upstream.releases import look_up
from vectorless_rag.upstream.upgrade import steps
from vectorless_rag.upstream.verdicts import Change, Fate, Report, Row, Verdict, judge

GREET_NOW = source_sha256(NEW["toy/replaced.py"], "greet")


@pytest.fixture(scope="module")
def drifted(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """One series, tried once on a release that changed something under each patch."""
    root = make_root(tmp_path_factory.mktemp("drift"), tmp_path_factory.getbasetemp())
    return report(root, look_up(root, NEXT))


def row_of(drifted: Report, number: str) -> Row:
    return next(row for row in drifted.rows if row.patch.id == number)


@pytest.mark.parametrize(
    ("number", "verdict", "text", "reasons"),
    [
        pytest.param("0010", Verdict.KEEP, Text.CLEAN, [], id="changed-below"),
        pytest.param(
            "0020", Verdict.REFRESH, Text.OFFSET,
            ["Drop-When is met: upstream>=1.0.5"],
            id="moved-down",
        ),
        pytest.param(
            "0030", Verdict.RETIRE, Text.CLEAN,
            ["Drop-When is met: proof-passes-on-upstream"],
            id="cured-in-another-way",
        ),
        pytest.param(
            "0040", Verdict.OBSOLETE, Text.CONFLICT,
            [
                "conflict in toy/gone.py",
                "gone: toy/gone.py",
                (
                    "test_it before it is INCONCLUSIVE: "
                    "ModuleNotFoundError: No module named 'toy.gone'"
                ),
                "Drop-When is met: upstream-lacks toy/gone.py::load",
            ],
            id="file-removed",
        ),
        pytest.param(
            "0050", Verdict.MISPLACED, Text.CLEAN,
            [
                "conflict in toy/twins.py (load_b)",
                (
                    "in another place: "
                    "toy/twins.py::load_c -> toy/twins.py::load_d"
                ),
            ],
            id="siblings-swapped",
        ),
        pytest.param(
            "0060", Verdict.SEMANTIC_DRIFT, Text.CLEAN,
            ["test_it after it is FAIL: AssertionError: assert 'a' == 'A'"],
            id="helper-changed",
        ),
        pytest.param(
            "0070", Verdict.SEMANTIC_DRIFT, Text.CLEAN,
            ["toy/replaced.py::greet: upstream changed it"],
            id="replaced-function-changed",
        ),
        pytest.param(
            "0080", Verdict.REFRESH, Text.CONFLICT,
            ["conflict in toy/rewritten.py (load)"],
            id="same-line-rewritten",
        ),
        pytest.param(
            "0090", Verdict.BLOCKED, Text.CONFLICT,
            ["conflict in toy/rewritten.py (load)", "waits for 0080"],
            id="needs-one-that-conflicts",
        ),
        pytest.param(
            "0100", Verdict.UNDECIDED, Text.CLEAN,
            [
                f"test_it {side} it is INCONCLUSIVE: ImportError: "
                "cannot import name 'enter' from 'toy.api' (api.py)"
                for side in ("before", "after")
            ],
            id="entry-point-renamed",
        ),
    ],
)  # fmt: skip
def test_a_change_of_upstream_has_its_verdict(
    drifted: Report, number: str, verdict: Verdict, text: Text, reasons: list[str]
) -> None:
    """What upstream did to a patch decides what is to be done with it."""
    row = row_of(drifted, number)
    # Newer Pythons add what may have been meant.
    said = [re.sub(r"\. Did you mean: '\w+'\?", "", each) for each in row.reasons()]

    assert (verdict, text, reasons) == (
        row.verdict,
        row.landing.text,
        said,
    )


def test_no_patch_stops_the_rest(drifted: Report) -> None:
    """After the first that does not land, every later one is tried too."""
    assert [case.number for case in CASES] == [row.patch.id for row in drifted.rows]
    assert not drifted.good


def test_what_is_not_needed_is_left_out(drifted: Report) -> None:
    """A patch that merges, and whose proofs pass without it, does not stay."""
    assert () == row_of(drifted, "0030").with_it


def test_what_holds_up_what_is_said(drifted: Report) -> None:
    """The patch to begin with, and those that wait for it."""
    assert ["0080 holds up 0090"] == list(drifted.holding())


def test_what_became_of_a_replaced_function_is_said(drifted: Report) -> None:
    """For each one, whether upstream changed it."""
    assert (
        Fate(
            path="toy/replaced.py",
            qualname="greet",
            change=Change.CHANGED,
            now=GREET_NOW,
        ),
    ) == row_of(drifted, "0070").replaced


def test_a_report_is_spelled_as_an_object(drifted: Report) -> None:
    """A program reads verdict, text, proofs and conditions."""
    spelled = drifted.to_json()
    rows = spelled["patches"]
    assert isinstance(rows, list)

    assert NEXT == spelled["version"]
    assert {
        "id": "0070",
        "file": "0070-change.patch",
        "title": "core: a change",
        "verdict": "SEMANTIC DRIFT",
        "text": "clean",
        "without": {"FAIL": 1},
        "with": {"PASS": 1},
        "conflicts": [],
        "elsewhere": [],
        "gone": [],
        "blocked_by": [],
        "replaces": [
            {
                "path": "toy/replaced.py",
                "qualname": "greet",
                "upstream": "changed",
                "sha256": GREET_NOW,
            }
        ],
        "drop_when": {"condition": "never [a toy]", "met": False},
        "reasons": ["toy/replaced.py::greet: upstream changed it"],
    } == rows[6]


def test_what_is_left_is_a_list_of_steps(drifted: Report) -> None:
    """What landed as it was asks for nothing; the rest, one step each, in order."""
    edit = "- [ ] `make patch-edit PATCH="
    retire = "list {} in patches/RETIRED.md: "
    look = "`: read what upstream changed, renew the code or the proof, and say so"

    assert [
        f"- [ ] {retire.format('0030')}its proofs pass without it",
        f"- [ ] {retire.format('0040')}what it touches is gone",
        f"{edit}0050` and put it where it belongs",
        f"{edit}0060{look} in the message (`git commit --amend`)",
        f"{edit}0070{look} in the message (`git commit --amend`)",
        f"{edit}0080` and merge it by hand",
        f"{edit}0090` once 0080 stands",
        "- [ ] 0100: find out why its proofs do not run, and try again",
        "- [ ] `make patch-export`: the pin moves along; then `make patches-check`",
        "- [ ] `make revision`, and read docs/upgrading.md on what follows",
    ] == [line for line in steps(drifted) if line.startswith("- [ ]")]


def test_a_changed_function_comes_with_its_new_trailer(drifted: Report) -> None:
    """And with the command that shows what upstream did."""
    lines = list(steps(drifted))

    assert f"  Replaces: toy/replaced.py::greet sha256:{GREET_NOW}" in lines
    assert (
        "  git diff refs/patches/pinned/upstream refs/patches/upstream-head "
        "-- toy/replaced.py"
    ) in lines


P, F, X = (Outcome(verdict=v) for v in (Proved.PASS, Proved.FAIL, Proved.INCONCLUSIVE))
CLEAN, TAKEN, CONFLICT = (
    Landing(text=text) for text in (Text.CLEAN, Text.TAKEN, Text.CONFLICT)
)


@pytest.mark.parametrize(
    ("verdict", "landing", "proofs", "other"),
    [
        pytest.param("KEEP", CLEAN, ((F, F), (P, P)), {}, id="as-it-is"),
        pytest.param("REFRESH", CLEAN, ((F, P), (P, P)), {}, id="one-proof-overtaken"),
        pytest.param("REFRESH", CLEAN, ((F, X), (P, P)), {}, id="one-proof-broken"),
        pytest.param("UNDECIDED", CLEAN, ((X, P), (P, P)), {}, id="nothing-fails"),
        pytest.param("SEMANTIC DRIFT", CLEAN, ((F, F), (P, X)), {}, id="breaks-after"),
        pytest.param(
            "BLOCKED",
            CLEAN,
            ((F,), (F,)),
            {"lacks": ("0010",)},
            id="lacks-another",
        ),
        pytest.param(
            "KEEP", CLEAN, ((F,), (P,)), {"lacks": ("0010",)}, id="fine-without-another"
        ),
        pytest.param("RETIRE", CONFLICT, ((P,), ()), {}, id="cured-where-it-conflicts"),
        pytest.param("RETIRE", TAKEN, ((P,), ()), {}, id="taken-by-upstream"),
        pytest.param("SEMANTIC DRIFT", TAKEN, ((F,), ()), {}, id="taken-and-no-cure"),
        pytest.param("UNDECIDED", CONFLICT, ((X,), ()), {}, id="conflict-and-broken"),
        pytest.param(
            "REFRESH", CONFLICT, ((F,), ()), {"nothing_left": True}, id="moved-away"
        ),
    ],
)
def test_verdicts_weigh_behaviour_first(
    drifted: Report,
    verdict: str,
    landing: Landing,
    proofs: tuple[tuple[Outcome, ...], tuple[Outcome, ...]],
    other: dict[str, Any],
) -> None:
    """A proof that passes without the patch, or fails with it, outweighs the text."""
    row = dataclasses.replace(
        row_of(drifted, "0010"),
        landing=landing,
        without=proofs[0],
        with_it=proofs[1],
        **other,
    )

    assert verdict == judge(row)


@pytest.mark.parametrize("verb", ["drift --to", "upgrade"])
def test_drift_needs_the_proofs(
    verb: str,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An installed package holds the series, but no tests; nothing is looked up."""
    root = copy_series(tmp_path / "root", tmp_path_factory.getbasetemp())
    (root / "tests").rename(root / "elsewhere")

    assert 10 == main(["--root", str(root), *verb.split(), "9.9"])
    assert "is in source trees only" in capsys.readouterr().err
