"""Which pages are part of a table of contents, told by their lines or left open."""

from typing import Any

import pytest

from vectorless_rag.pageindex_runtime.toc_lines import (
    has_page_numbers,
    holds_all,
    is_toc,
    may_be_toc,
    may_go_on,
)

PROSE = "The quick brown fox jumps over the lazy dog, again and again and again.\n" * 12
NAMES = ("Alpha", "Beta", "Gamma", "Delta", "Epsilon", "Zeta")
LEADERS = "\n".join(f"{n} {name} ..... {3 * n}" for n, name in enumerate(NAMES, 1))
COLONS = LEADERS.replace(" .....", " :")
BARE = LEADERS.replace(" .....", "")
INDEX = "\n".join(f"{name}, see {other} ..... {n}" for n, name, other in
                  zip((9, 2, 8, 1, 7, 3), NAMES, NAMES[::-1], strict=True))  # fmt: skip
CODE = "\n".join(f"[{n},] {n / 7:.2f} {n / 3:.2f}" for n in range(30))


@pytest.mark.parametrize(
    ("may_be", "surely", "text"),
    [
        (True, True, LEADERS),
        (True, False, BARE),
        (True, False, f"Contents\n{PROSE}"),
        (True, False, "\n".join(NAMES)),
        (True, False, "\n".join(f"{n}. {name}" for n, name in enumerate(NAMES, 1))),
        (True, False, INDEX),
        (True, False, "\n".join([*NAMES, *map(str, range(1, 7))])),
        (False, False, PROSE),
        (False, False, f"{PROSE}Total of 1998\n"),
        (False, False, CODE),
        (False, False, ""),
    ],
    ids=[
        "leaders", "bare", "heading", "titles", "numbered", "index", "columns", "prose",
        "a number", "code", "blank",
    ],
)  # fmt: skip
def test_which_pages_may_be_a_table(*, may_be: bool, surely: bool, text: str) -> None:
    """Only rising numbers behind leaders leave no doubt."""
    assert (may_be, surely) == (may_be_toc(text), is_toc(text))


def test_a_table_may_go_on_at_the_top_of_a_page() -> None:
    """One last entry is enough, where the page before was part of it."""
    assert (True, False, False) == (
        may_go_on(f"7 Eta 21\n{PROSE}"), may_be_toc(f"7 Eta 21\n{PROSE}"),
        may_go_on(PROSE),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("expected", "text"),
    [(True, COLONS), (True, BARE), (False, "\n".join(NAMES)), (False, INDEX)],
    ids=["colons", "bare", "titles", "falling"],
)
def test_page_numbers_are_seen(*, expected: bool, text: str) -> None:
    """Five or more that go up."""
    assert expected == has_page_numbers(text)


ENTRIES: list[dict[str, Any]] = [
    {"title": f"{n} {name}", "page": 3 * n} for n, name in enumerate(NAMES, 1)
]
BROKEN = [{**e, "title": e["title"].replace("Gamma", "Gamma and rho")} for e in ENTRIES]
AROUND = f"A paper\nContents\n{COLONS}\nA line.\nSome text of 1998\n{PROSE}"


@pytest.mark.parametrize(
    ("expected", "entries", "toc"),
    [
        (True, ENTRIES, COLONS),
        (True, ENTRIES, AROUND),
        (True, [{**e, "title": e["title"][2:]} for e in ENTRIES], COLONS),
        (True, BROKEN, COLONS.replace("3 Gamma", "3 Gamma\nand rho")),
        (False, ENTRIES[:-1], COLONS),
        (False, ENTRIES[:2] + ENTRIES[3:], COLONS),
        (False, [{**e, "page": e["page"] + 1} for e in ENTRIES], COLONS),
        (False, ENTRIES[:4], "\n".join(COLONS.splitlines()[:4])),
        (False, [], COLONS),
        (False, [], ""),
    ],
    ids=[
        "all", "text around", "no labels", "broken line", "last missing",
        "one missing", "other pages", "too few", "none", "nothing",
    ],
)  # fmt: skip
def test_whether_all_of_a_table_is_there(
    *, expected: bool, entries: list[dict[str, Any]], toc: str
) -> None:
    """Every line with a number must be an entry, title and page."""
    assert expected == holds_all(entries, toc)
