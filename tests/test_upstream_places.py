"""Where a change lands, and who binds a name last, is read from the syntax."""

import pytest
from hypothesis import given

from strategies_upstream import modules
from toy_upstream import CORE
from vectorless_rag.canon import sha256
from vectorless_rag.upstream.diff import FileChange, Run
from vectorless_rag.upstream.places import last_binding, places, source_sha256

SOURCE = b"""import x


class A:
    def one(self):
        return 1

    @property
    def two(self):
        return 2


@x.y
def f():
    return 3
"""


def test_source_runs_from_decorator_to_last_line() -> None:
    """The digest is that of the bytes, decorators included."""
    assert sha256(b"@x.y\ndef f():\n    return 3\n") == source_sha256(SOURCE, "f")
    assert sha256(
        b"    @property\n    def two(self):\n        return 2\n"
    ) == source_sha256(SOURCE, "A.two")


@pytest.mark.parametrize(
    ("source", "name", "why"),
    [
        (SOURCE, "g", "g is defined 0 times"),
        (SOURCE, "A.three", r"A\.three is defined 0 times"),
        (SOURCE + b"\n\ndef f(): pass\n", "f", "f is defined 2 times"),
        (b"def f(:", "f", "invalid syntax|closing|was never closed"),
    ],
)
def test_a_name_means_one_definition(source: bytes, name: str, why: str) -> None:
    """None, or two of one name, cannot be digested."""
    with pytest.raises((ValueError, SyntaxError), match=why):
        source_sha256(source, name)


@pytest.mark.parametrize(
    ("source", "name", "line"),
    [
        pytest.param("def f(): pass\nf = 1\n", "f", 2, id="assignment"),
        pytest.param("f = 1\ndef f(): pass\n", "f", 2, id="definition"),
        pytest.param("def f(): pass\nfrom m import f\n", "f", 2, id="import"),
        pytest.param("def f(): pass\nimport f.g\n", "f", 2, id="submodule"),
        pytest.param("def f(): pass\nimport g as f\n", "f", 2, id="import-as"),
        pytest.param("def f(): pass\nimport f as g\n", "f", 1, id="import-away"),
        pytest.param("f = 1\nfrom m import *\n", "f", 2, id="star"),
        pytest.param("f = 1\ndel f\n", "f", 2, id="delete"),
        pytest.param("f = 1\nf += 1\n", "f", 2, id="augmented"),
        pytest.param("f = 1\nf: int = 2\n", "f", 2, id="annotated"),
        pytest.param("f = 1\n(g, [f]) = 1, [2]\n", "f", 2, id="unpacking"),
        pytest.param("f = 1\nfor f in []: pass\n", "f", 2, id="loop"),
        pytest.param("f = 1\nf[0] = 2\n", "f", 1, id="item"),
        pytest.param("f = 1\nif f:\n    pass\nelse:\n    f = 2\n", "f", 5, id="else"),
        pytest.param(
            "f = 1\ntry:\n    pass\nexcept E:\n    f = 2\n", "f", 5, id="handler"
        ),
        pytest.param(
            "f = 1\nmatch f:\n    case 1:\n        f = 2\n", "f", 4, id="case"
        ),
        pytest.param("f = 1\ndef g():\n    f = 2\n", "f", 1, id="local"),
        pytest.param("class A:\n    def f(s): pass\n    f = 1\n", "A.f", 3, id="body"),
        pytest.param(
            "class A:\n    def f(s): pass\nA.f = 1\n", "A.f", 3, id="attribute"
        ),
        pytest.param(
            "class A:\n    def f(s): pass\nA = other\n", "A.f", 3, id="class-again"
        ),
    ],
)
def test_last_binding_wins(source: str, name: str, line: int) -> None:
    """Whatever statement binds the name last, at the level that counts."""
    assert line == last_binding(source.encode(), name)


def test_an_unbound_name_has_no_binding() -> None:
    """A patch that removes a function and puts nothing there replaces nothing."""
    with pytest.raises(ValueError, match="nothing binds f"):
        last_binding(b"g = 1\n", "f")


@given(modules)
def test_last_binding_is_what_python_does(statements: list[str]) -> None:
    """A marker after the binding sees it; one before it sees another value."""
    source = "".join(statements) + "f = 'ours'\n"
    line = source.count("\n")

    assert line == last_binding(source.encode(), "f")
    if any(s.startswith(("def f", "class f", "import f")) for s in statements):
        again = source + "def f():\n    pass\n"
        assert line + 1 == last_binding(again.encode(), "f")


def change(path: str, *runs: Run) -> FileChange:
    return FileChange(path=path, before="", after="", mode="100644", runs=runs)


def run(old_start: int, old: int, new_start: int, new: int) -> Run:
    return Run(
        old_start=old_start,
        old=(b"x\n",) * old,
        new_start=new_start,
        new=(b"x\n",) * new,
    )


def test_places_name_the_outermost_definition() -> None:
    """Inside a definition its name, outside the one it follows, in a run's order."""
    found = places(
        change(
            "a.py", run(1, 0, 1, 1), run(9, 1, 9, 1), run(11, 0, 11, 1), run(9, 1, 9, 1)
        ),
        SOURCE,
        SOURCE,
    )

    assert ("<module>", "A", "<module> after A") == found


def test_places_show_a_move() -> None:
    """Where a line leaves one function for another, both are named."""
    swapped = CORE.replace("load_c", "load_x")

    assert ("load_c -> load_x",) == places(
        change("a.py", run(17, 1, 17, 1)), CORE.encode(), swapped.encode()
    )
    assert ("load_a, load_b, load_c",) == places(
        change("a.py", run(6, 12, 6, 0)), CORE.encode(), b""
    )


def test_other_files_have_one_place() -> None:
    """A prompt or a data file has no functions."""
    assert ("<file>",) == places(change("a.yaml", run(1, 1, 1, 1)), b"x", b"y")
