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
        *("docs/flow.md", "docs/formats.md"),
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
