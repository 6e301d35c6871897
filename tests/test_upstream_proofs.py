"""A proof fails for its patch alone, or it is no proof."""

import os
import shutil
from pathlib import Path

import pytest

from toy_upstream import (
    FILES,
    LOUD,
    LOUD_CORE,
    TOOLS,
    WHEEL,
    commit,
    copy_series,
    message,
    share_bytecode,
    wheel,
    write_files,
)
from vectorless_rag.canon import sha256
from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.upstream.changes import Weighed, Weight
from vectorless_rag.upstream.check import Wanted, check_proofs
from vectorless_rag.upstream.dropping import Dropped
from vectorless_rag.upstream.mailbox import Patch, Proof
from vectorless_rag.upstream.proofs import (
    Outcome,
    Runner,
    Session,
    Verdict,
    old_parser,
    run_suite,
)
from vectorless_rag.upstream.prove import Proven
from vectorless_rag.upstream.series import read_series
from vectorless_rag.upstream.workflow import open_shell, write_series

pytest_plugins = ["pytester"]

ENDINGS = """
import os
import socket
import time

import pytest


def test_passes():
    pass


def test_asserts():
    assert 1 == 2, "one is not two"


def test_fails():
    pytest.fail("told")


def test_raises():
    raise KeyError("x")


def test_raises_a_group():
    raise ExceptionGroup("g", [AssertionError("a"), AssertionError("b")])


def test_raises_a_mixed_group():
    raise ExceptionGroup("g", [AssertionError("a"), KeyError("b")])


def test_is_skipped():
    pytest.skip("not today")


@pytest.mark.xfail
def test_is_expected_to_fail():
    assert False


@pytest.fixture
def broken():
    raise AssertionError("in the fixture")


def test_has_a_broken_fixture(broken):
    pass


@pytest.fixture
def breaks_later():
    yield
    raise AssertionError("in the end")


def test_has_a_broken_end(breaks_later):
    pass


@pytest.mark.parametrize("n", [1, 2])
def test_fails_for_one(n):
    assert n == 1


class TestIn:
    def test_class(self):
        pass


def test_has_no_network():
    with pytest.raises(ConnectionRefusedError, match="a proof has no network"):
        socket.socket().connect(("192.0.2.1", 80))
    with pytest.raises(socket.gaierror, match="a proof has no network"):
        socket.getaddrinfo("example.invalid", 80)
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()
    assert socket.getaddrinfo("localhost", 80)


def test_has_a_fixed_surrounding():
    assert "OPENAI_API_KEY" not in os.environ
    assert ("0", "UTC") == (os.environ["PYTHONHASHSEED"], time.tzname[0])


def test_sees_the_tree():
    import toy

    assert os.environ["VECTORLESS_RAG_CHECKOUT"] in toy.__file__
"""
STRICT_PROOF = "tests/patches/test_0010_strict.py::test_nothing_is_refused"
HERE = "tests/patches/test_0010_endings.py"


@pytest.fixture
def toy(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_series(tmp_path / "root", tmp_path_factory.getbasetemp())


@pytest.fixture
def runner(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Runner:
    (tmp_path / "scratch").mkdir()
    share_bytecode(tmp_path / "root", tmp_path_factory.getbasetemp())
    return Runner(root=tmp_path / "root", scratch=tmp_path / "scratch")


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """One run of tests that end in every way there is."""
    folder = tmp_path_factory.mktemp("endings")
    write_files(
        folder,
        {
            HERE: ENDINGS.encode(),
            "tests/patches/test_0020_broken.py": b"import nothing_like_it\n",
            **{f"tree/{name}": data for name, data in FILES.items()},
        },
    )
    (folder / "scratch").mkdir()
    share_bytecode(folder, tmp_path_factory.getbasetemp())
    os.environ["OPENAI_API_KEY"] = "sk-not-for-proofs"
    try:
        return Runner(root=folder, scratch=folder / "scratch").run(
            folder / "tree", ["tests/patches"]
        )
    finally:
        del os.environ["OPENAI_API_KEY"]


PASS = Outcome(verdict=Verdict.PASS)


def failed(reason: str) -> Outcome:
    return Outcome(verdict=Verdict.FAIL, reason=reason)


def unclear(reason: str) -> Outcome:
    return Outcome(verdict=Verdict.INCONCLUSIVE, reason=reason)


@pytest.mark.parametrize(
    ("trailer", "outcome"),
    [
        ("test_passes", PASS),
        ("test_asserts", failed("AssertionError: one is not two")),
        ("test_fails", failed("Failed: told")),
        ("test_raises", unclear("KeyError: 'x'")),
        ("test_raises [KeyError]", failed("KeyError: 'x'")),
        ("test_asserts [KeyError]", unclear("AssertionError: one is not two")),
        ("test_raises_a_group", failed("ExceptionGroup: g (2 sub-exceptions)")),
        ("test_raises_a_mixed_group", unclear("ExceptionGroup: g (2 sub-exceptions)")),
        ("test_is_skipped", unclear("setup passed, call skipped")),
        ("test_is_expected_to_fail", unclear("call xfail: ")),
        ("test_has_a_broken_fixture", unclear("setup failed: ")),
        ("test_has_a_broken_end", unclear("teardown failed: ")),
        ("test_fails_for_one", failed("assert 2 == 1")),
        ("test_fails_for_one[1]", PASS),
        ("TestIn::test_class", PASS),
        ("TestIn", PASS),
        ("test_is_not_there", unclear("it was not collected")),
        ("test_has_no_network", PASS),
        ("test_has_a_fixed_surrounding", PASS),
        ("test_sees_the_tree", PASS),
    ],
)
def test_every_ending_is_judged(
    session: Session, trailer: str, outcome: Outcome
) -> None:
    """Only the declared exception, in the call phase, is a FAIL."""
    proof = Proof.parse(f"{HERE}::{trailer}")
    assert proof is not None
    found = session.outcome(proof)

    assert outcome.verdict is found.verdict
    last = outcome.reason.rpartition(", ")[2]
    assert last in found.reason


def test_a_file_that_cannot_be_imported_proves_nothing(session: Session) -> None:
    """An import error is inconclusive, and says what was missing."""
    found = session.outcome(Proof(node="tests/patches/test_0020_broken.py::test_x"))

    assert unclear("ModuleNotFoundError: No module named 'nothing_like_it'") == found


def test_a_same_size_edit_is_seen(runner: Runner, tmp_path: Path) -> None:
    """
    Bytecode of an edited tree is not run again, whatever size and time say.

    Nor does a proof that is not there stop the others.
    """
    test = b"import toy.core\n\n\ndef test_it():\n    assert toy.core.N == 1\n"
    write_files(tmp_path / "root", {"tests/patches/test_x.py": test})
    tree = write_files(tmp_path / "tree", FILES)
    proof = Proof(node="tests/patches/test_x.py::test_it")
    nodes = [proof.node, "tests/patches/test_x.py::test_no", "tests/test_no.py::no"]
    verdicts = []
    for number in (b"1", b"2"):
        (tree / "toy" / "core.py").write_bytes(b"N = %s\n" % number)
        os.utime(tree / "toy" / "core.py", (1_000_000_000, 1_000_000_000))
        verdicts.append(runner.run(tree, nodes).outcome(proof).verdict)

    assert [Verdict.PASS, Verdict.FAIL] == verdicts


def test_a_pytest_that_does_not_run_is_said(runner: Runner, tmp_path: Path) -> None:
    """No report is no result."""
    write_files(tmp_path / "root", {"tests/conftest.py": b"raise SystemExit(3)\n"})

    with pytest.raises(VectorlessRagError, match="pytest ended with 3"):
        runner.run(write_files(tmp_path / "tree", FILES), ["tests"])


def test_the_whole_check(toy: Path) -> None:
    """Before FAIL as often as asked, after PASS, full PASS."""
    lines = [line.text for line in check_proofs(toy, Wanted(repeat=2, changes=False))]

    assert [
        "ok    0010-strict-load: before FAIL x2, after PASS x1, full PASS x1",
        "ok    0020-loud-load: before FAIL x2, after PASS x1, full PASS x1",
    ] == lines


@pytest.mark.slow
def test_what_no_proof_needs_is_found(toy: Path, tmp_path: Path) -> None:
    """An untested change, an inert one, an exempt one, and a real dependence."""
    shell = tmp_path / "shell"
    open_shell(toy, shell)
    core = LOUD_CORE.replace("Loads things.", "Loads things. Loudly.")
    core = core.replace(
        "from toy.tools import strict\n", "from toy.tools import strict  # both\n"
    )
    core = core.replace("return text.upper()", "return text.upper() + '!'")
    # Neither of these two lines can go back without the other.
    tools = TOOLS.replace('"a note"\n', 'NOTE = (\n"a note"\n)\n')
    proof = "tests/patches/test_0030_more.py"
    write_files(
        toy,
        {
            proof: b"from toy.core import load_a\n\n\n"
            b"def test_it():\n    assert load_a('a') == 'A!'\n",
            "tests/patches/test_0020_loud.py": b"from toy.core import load_a\n\n\n"
            b"def test_it_is_loud():\n    assert load_a('a')[0] == 'A'\n",
        },
    )
    commit(
        shell,
        {"toy/core.py": core, "toy/notes.txt": "hello\n", "toy/tools.py": tools},
        message(
            "0030-more.patch",
            f"Proof: {proof}::test_it",
            "Proof-Exempt: run 3 [checked by hand]",
            "Proof-Exempt: run 4 [a note]",
        ),
    )
    # This one no longer merges where 0010 is left out.
    last = core.replace("load_c = strict(load_c)", "load_c = strict(load_c)  # x")
    conflicting = message(
        "0040-last.patch", "Depends-On: 0010", f"Proof: {STRICT_PROOF}"
    )
    commit(shell, {"toy/core.py": last}, conflicting)
    write_series(toy, shell)
    wanted = Wanted(only=frozenset({"0030"}), repeat=1, leave_one_out=True)
    lines = [(line.text, line.good) for line in check_proofs(toy, wanted)]

    assert [
        ("ok    0030-more: before FAIL x1, after PASS x1, full PASS x1", True),
        (
            "FAIL  0030 runs of changed lines: 1 inert, 1 load-bearing, 4 untested",
            False,
        ),
        ("      run 1 toy/core.py:1: untested; no proof needs it", False),
        (
            "      run 3 toy/core.py:8: load-bearing; its Proof-Exempt is stale",
            False,
        ),
        ("      run 5 toy/tools.py:13: untested; no proof needs it", False),
        ("      run 6 toy/tools.py:15: untested; no proof needs it", False),
        ("ok    without 0010: 0040 depends on it", True),
        (
            "FAIL  without 0020: 0030 depends on it; 0030 needs Depends-On: 0020",
            False,
        ),
        ("ok    without 0030: no one depends on it", True),
        (
            "FAIL  without 0040: no one depends on it; its own proofs pass without it",
            False,
        ),
    ] == lines


@pytest.fixture
def patch(toy: Path) -> Patch:
    return read_series(toy).patches[0]


@pytest.mark.parametrize(
    ("sides", "line"),
    [
        (([failed("")] * 3, [PASS], [PASS], []), ()),
        (([failed("")], [PASS], [PASS], [failed("")]), ()),
        (([failed(""), PASS], [PASS], [PASS], []), ("before is PASS",)),
        (([unclear("why")], [PASS], [PASS], []), ("before is INCONCLUSIVE: why",)),
        (([failed("")], [failed("x")], [PASS], []), ("after is FAIL: x",)),
        (([failed("")], [PASS], [unclear("x")], []), ("full is INCONCLUSIVE: x",)),
        (
            ([failed("")], [PASS], [PASS], [PASS]),
            ("retire it: its proofs pass on the bare upstream",),
        ),
        (([], [], [], []), ("it has no proof",)),
    ],
)
def test_problems_of_a_proof(
    patch: Patch, sides: tuple[list[Outcome], ...], line: tuple[str, ...]
) -> None:
    """Each side that is not as it must be is told, with the reason."""
    before, after, full, upstream = (tuple(side) for side in sides)
    proven = Proven(
        patch=patch, before=before, after=after, full=full, upstream=upstream
    )

    told = tuple(p.removeprefix("test_nothing_is_refused ") for p in proven.problems)
    assert line == told
    assert ("FAIL" if line else "ok  ") == proven.line()[:4]


def test_a_stale_exemption_is_a_problem(patch: Patch) -> None:
    """Exemptions go when a proof comes."""
    made = {
        (weight, exempt): Weighed(
            patch=patch, number=1, path="x", line_number=1, weight=weight, exempt=exempt
        ).problem
        for weight in Weight
        for exempt in (False, True)
    }

    assert {
        (Weight.UNTESTED, False): "no proof needs it",
        (Weight.LOAD_BEARING, True): "its Proof-Exempt is stale",
    } == {key: problem for key, problem in made.items() if problem}


def test_stale_dependences_are_problems(toy: Path) -> None:
    """A Depends-On needs a conflict or a failing proof; so does its absence."""
    loud = toy / "patches" / LOUD
    first, second = read_series(toy).patches
    loud.write_text(loud.read_text().replace("Bug:", "Depends-On: 0010\nBug:"))
    declared = read_series(toy).patches[1]

    def problems(**fields: object) -> tuple[str, ...]:
        base = {"conflicts": (), "failing": (), "proven": True, "declared": ()}
        return Dropped(patch=first, **{**base, **fields}).problems  # type: ignore[arg-type]

    assert () == problems()
    assert ("its own proofs pass without it",) == problems(proven=False)
    assert ("0020 needs Depends-On: 0010",) == problems(conflicts=(second,))
    assert () == problems(failing=(declared,), declared=(declared,))
    assert ("Depends-On: 0010 of 0020 is stale",) == problems(declared=(declared,))


def test_the_suite_says_what_it_saw(
    toy: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Status 0 needs at least one proof, and every proof passed."""
    bare = write_files(tmp_path / "bare", FILES)
    patched = write_files(
        tmp_path / "patched", {**FILES, "toy/core.py": LOUD_CORE.encode()}
    )

    assert (0, 1) == (run_suite(toy, patched), run_suite(toy, bare))
    assert "2 passed" in capfd.readouterr().out
    shutil.rmtree(toy / "tests")
    (toy / "tests" / "patches").mkdir(parents=True)
    assert 1 == run_suite(toy, patched)


def test_the_old_parser_is_seen_by_old_trees_only(
    toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is installed once, from its hashed list, beside the build."""
    data = wheel({"toy_parser.py": b"N = 1\n"})
    write_files(tmp_path / "mirror", {WHEEL: data})
    new = write_files(tmp_path / "new", FILES)
    old = write_files(tmp_path / "old", {"toy/core.py": b"import PyPDF2\n"})
    assert () == old_parser(toy, old)

    listed = f"toy==1.0 --hash=sha256:{sha256(data)}\n".encode()
    write_files(toy, {"requirements/proofs.txt": listed})
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(VectorlessRagError, match=r"pip did not install proofs\.txt"):
        old_parser(toy, old)
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "mirror"))
    (place,) = old_parser(toy, old)
    monkeypatch.delenv("PIP_FIND_LINKS")

    assert b"N = 1\n" == (place / "toy_parser.py").read_bytes()
    assert (place,) == old_parser(toy, old)
    assert () == old_parser(toy, new)


def test_the_plugin_is_quiet_unless_asked(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loaded without a place for outcomes it changes nothing."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(test_x="def test_it():\n    assert False\n")
    plugin = ("-p", "vectorless_rag.upstream.proof_plugin")

    assert 1 == pytester.runpytest_inprocess(*plugin).ret
    pytester.runpytest_inprocess(*plugin, "--proof-outcomes=out.json")
    assert '"raised": ["AssertionError"]' in (pytester.path / "out.json").read_text()
