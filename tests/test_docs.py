"""Documents that lie fail."""

import re

import pytest

from conftest import REPOSITORY
from vectorless_rag.errors import FAILURES

DOCS = REPOSITORY / "docs"


def test_the_failures_table_is_the_list_of_failures() -> None:
    """Every code has its row, in its own words, and nothing else has one."""
    text = (DOCS / "failures.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| `(\w+)` \| (\w+) \| (\d+) \| (yes|no) \| (.+?) \| (.+?) \|$",
        text,
        re.MULTILINE,
    )
    table = [
        (
            code.value,
            kind.phase,
            str(kind.exit_status),
            "yes" if kind.retryable else "no",
            kind.meaning,
            kind.advice,
        )
        for code, kind in FAILURES.items()
    ]

    assert table == rows


def test_the_readme_has_exactly_two_commands_to_start_with() -> None:
    """One does the main job, one passes the tests."""
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    block = readme.split("## Two commands")[1].split("```sh\n")[1].split("```")[0]
    commands = [line.split("#")[0].strip() for line in block.splitlines()]

    assert ["make demo", "make test"] == commands


@pytest.mark.parametrize(
    "document",
    [
        *("README.md", "CONTRIBUTING.md", "patches/README.md"),
        *("docs/flow.md", "docs/formats.md", "docs/defects.md", "docs/upgrading.md"),
    ],
)
def test_links_lead_somewhere(document: str) -> None:
    """Every relative link names a file that is there."""
    path = REPOSITORY / document
    links = re.findall(r"\]\(([^)#:]+)\)", path.read_text(encoding="utf-8"))

    assert [] == [link for link in links if not (path.parent / link).exists()]


@pytest.mark.parametrize("where", ["tests", "scripts"])
def test_paths_named_in_the_flow_exist(where: str) -> None:
    """The flow names the test that guards each arrow."""
    text = (DOCS / "flow.md").read_text(encoding="utf-8")
    named = re.findall(rf"`({where}/[\w/*.]+)`", text)

    assert [] == [n for n in named if not list(REPOSITORY.glob(n.rstrip("/")))]


# All that were handed over; numbers in between were never given out.
DEFECTS = re.findall(
    r"\d\d",
    "02 03 04 05 06 09 11 12 14 15 16 18 22 23 25 29 31 34 35 39 41 42 44 45 46 47 48 "
    "51 52 53 54 55 56 58 59 62 64 66 68 69 70 72 74 75 77 78 79 80 82 83 85 87",
)


def test_every_defect_has_tests_that_exist() -> None:
    """One row each, the patch is in the series, and each test is defined."""
    text = (DOCS / "defects.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| d(\d\d) \| (\d{4}) \| .+ \| (.+) \|$", text, re.MULTILINE)
    missing = [
        f"d{number}: {node}"
        for number, patch, tests in rows
        for node in re.findall(r"`(.+?)`", tests) or ["no test"]
        if not _is_defined(patch, node)
    ]

    assert [f"d{number}" for number in DEFECTS] == [f"d{row[0]}" for row in rows]
    assert [] == missing


def _is_defined(patch: str, node: str) -> bool:
    """Find a test by its file and name, or by its name among the patch's proofs."""
    path, _, name = node.rpartition("::")
    if node.endswith(".py"):
        path, name = node, ""
    files = (
        [REPOSITORY / path]
        if path
        else REPOSITORY.glob(f"tests/patches/test_{patch}_*.py")
    )
    return any(
        file.is_file() and (not name or f"def {name}(" in file.read_text("utf-8"))
        for file in files
    )
