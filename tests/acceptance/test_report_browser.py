"""A real headless browser opens the report, from a file, with no network."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from browser import CHROMIUM, Page, browsing
from strategies_report import HOSTILE, hostile_folder, large_folder
from vectorless_rag.reporting import Trees, make_report
from vectorless_rag.source import displayable

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"no {CHROMIUM}"),
]

TITLES = "[...document.querySelectorAll('.t')].map(t => t.textContent)"
ALL_OPEN = "document.querySelectorAll('details').forEach(d => d.open = true)"
VISIBLE = "[...document.querySelectorAll('.doc')].filter(d => d.checkVisibility())"


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """One browser for all tests; each opens a page of its own."""
    with browsing() as opened:
        yield opened


@pytest.fixture
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)


pytestmark.append(pytest.mark.usefixtures("_no_waiting_for_the_disk"))


@pytest.fixture
def report(tmp_path: Path) -> Path:
    written = make_report(hostile_folder(tmp_path / "data"))
    assert Trees.INLINE is written.trees
    return written.path


@pytest.fixture
def large(tmp_path: Path) -> Path:
    written = make_report(large_folder(tmp_path / "data", documents=9, sections=1000))
    assert Trees.PACKED is written.trees
    return written.path


def filtered(page: Page, text: str) -> None:
    """Type into the filter, and wait until it has said what it found."""
    page.run(
        f"box.value = {text!r}; matches.textContent = '…';"
        "box.dispatchEvent(new Event('input')); undefined"
    )
    page.wait("matches.textContent !== '…'")


def assert_undisturbed(page: Page, path: Path) -> None:
    """Nothing was asked for but the file, nothing complained, nothing ran."""
    assert [path.as_uri()] == page.requests
    assert [] == page.complaints
    assert [None, None] == [page.run("window.pwned"), page.run("document.onload")]


def test_the_page_asks_for_nothing_and_runs_nothing(page: Page, report: Path) -> None:
    """Opened whole, it makes no request, no error, and no trap goes off."""
    page.open(report)
    page.run(ALL_OPEN)

    assert "3 documents." in page.run("document.querySelector('h1').textContent")
    assert_undisturbed(page, report)


def test_the_policy_refuses_what_might_slip_in(page: Page, report: Path) -> None:
    """Even a script that got into the page would not run, nor an image load."""
    page.open(report)
    page.run(
        "document.body.insertAdjacentHTML('beforeend',"
        '\'<img src="https://x.invalid/a.png" onerror="window.pwned = 1">\');'
        "document.body.append(Object.assign(document.createElement('script'),"
        "{textContent: 'window.pwned = 1'})); undefined"
    )
    page.until(lambda: len(page.complaints) > 1, "two refusals")
    said = " ".join(map(str, page.complaints))
    failed = page.named("Network.loadingFailed")

    assert [True, True] == ["image" in said, "script" in said]
    assert ["csp"] == [event["blockedReason"] for event in failed]
    assert page.run("window.pwned") is None


def test_hostile_text_is_text(page: Page, report: Path) -> None:
    """Every trap is shown letter by letter, and made no element."""
    page.open(report)
    titles = page.run(TITLES)

    assert [] == [trap for trap in HOSTILE if displayable(trap) not in titles]
    assert 1 == sum("characters in all" in title for title in titles)
    assert [0, 0, 1, 1] == [
        page.run(f"document.querySelectorAll({name!r}).length")
        for name in ("img", "iframe", "script:not(.packed)", "style")
    ]
    assert "<b>traps & \ufffdtxt.pdf" in page.run("document.body.textContent")


def test_trees_open_by_keyboard(page: Page, report: Path) -> None:
    """Enter on a document shows its tree, with pages and summaries."""
    page.open(report)
    page.run("document.querySelectorAll('.doc > summary')[2].focus()")
    for kind in ("keyDown", "keyUp"):
        page.call(
            "Input.dispatchKeyEvent",
            type=kind,
            key="Enter",
            code="Enter",
            text="\r",
            windowsVirtualKeyCode=13,
        )
    page.wait("document.querySelectorAll('.doc')[2].open")
    shown = page.run("document.querySelectorAll('.doc')[2].innerText")

    assert [True] * 5 == [
        word in shown
        for word in ("All of apples", "1–3", "Everything.", "The opening.", "degraded")
    ]


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_wider_than_the_screen(
    page: Page, report: Path, width: int, *, dark: bool
) -> None:
    """With everything open, only tables scroll, and each in itself."""
    page.open(report, width=width, dark=dark)
    page.run(ALL_OPEN)
    wider = (
        "[...document.querySelectorAll('main *, header *')].filter(e =>"
        " !e.closest('.wide') && !e.closest('.sr')"
        f" && e.getBoundingClientRect().right > {width} + 1).length"
    )

    assert [width, 0] == [
        page.run("document.documentElement.scrollWidth"),
        page.run(wider),
    ]
    paper = page.run("getComputedStyle(document.body).backgroundColor")
    assert dark == (int(paper.removeprefix("rgb(").split(",")[0]) < 128)


def test_the_filter_finds_documents_and_sections(page: Page, report: Path) -> None:
    """A title opens its document and is marked; what matches nothing is said."""
    page.open(report)
    filtered(page, "green")
    found = page.run(f"{VISIBLE}.map(d => d.querySelector('.name').textContent)")

    assert ["apples.pdf"] == found
    assert "1 of 3 documents, 1 matching sections" == page.run("matches.textContent")
    page.wait("document.querySelectorAll('.hit').length === 1")
    assert page.run("document.querySelector('.hit').checkVisibility()")
    filtered(page, "no such thing")
    assert [0, True] == [
        page.run(f"{VISIBLE}.length"),
        page.run("document.getElementById('nothing').checkVisibility()"),
    ]
    filtered(page, "")
    assert 3 == page.run(f"{VISIBLE}.length")


def test_the_page_is_whole_without_scripts(page: Page, report: Path) -> None:
    """Trees are there, and no box that would do nothing."""
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        page.open(report)
        page.run(ALL_OPEN)
        box = page.run("document.getElementById('filter').checkVisibility()")
        titles = page.run(TITLES)
    finally:
        page.call("Emulation.setScriptExecutionDisabled", value=False)

    assert [False, True] == [box, "Green ones" in titles]


def test_plots_have_their_values_as_tables(page: Page, report: Path) -> None:
    """Bars start at zero, and a table beside each says the same."""
    page.open(report)
    page.run(ALL_OPEN)
    bars = page.run("document.querySelectorAll('.plot .bar').length")
    table = page.run("document.querySelectorAll('figure table')[0].innerText")

    # Two operations, one with a part that stands at its hold; three days.
    assert 3 + 3 == bars
    assert ["expand", "$0.13", "$0.09"] == [
        word for word in ("expand", "$0.13", "$0.09") if word in table
    ]
    base = page.run("document.querySelector('.columns .base').getAttribute('y1')")
    ends = page.run(
        "[...document.querySelectorAll('.columns .bar')].map(b =>"
        " +b.getAttribute('y') + +b.getAttribute('height'))"
    )
    assert {float(base)} == set(ends)


def test_large_reports_unpack_a_tree_when_it_is_opened(page: Page, large: Path) -> None:
    """Until then it is data; the filter looks into it all the same."""
    page.open(large, width=360)

    assert 0 == page.run("document.querySelectorAll('.t').length")
    page.run("document.querySelector('.doc').open = true")
    page.wait("document.querySelectorAll('.doc .t').length > 1000")
    titles = page.run(TITLES)
    assert [] == [trap for trap in HOSTILE if displayable(trap) not in titles]
    filtered(page, "part 999 of 3")
    assert 1 == page.run(f"{VISIBLE}.length")
    page.wait("document.querySelectorAll('.hit').length > 0")
    assert 360 == page.run("document.documentElement.scrollWidth")
    assert_undisturbed(page, large)
