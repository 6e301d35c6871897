"""The order of the modules is a fact, so it is a test."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from conftest import REPOSITORY

SRC = REPOSITORY / "src" / "vectorless_rag"

# A part may import only parts that stand above it; a folder is one part.
ORDER = [
    "errors", "units", "canon", "estimates", "batching", "wire_json", "wire",
    "landlock", "events", "process", "supervision", "fork_messages", "forked",
    "variables", "store_settings", "fleet_settings", "batch_settings", "settings",
    "environment", "files", "forks", "source", "rates", "prices", "ledger",
    "tracing_ids", "pageindex_runtime", "confinement", "run_pageindex", "fork_server",
    "upstream", "records", "recipe", "tree", "tree_matching", "tree_diff",
    "artifact", "store", "audit", "workspace", "prefork", "child_settings", "launch",
    "results", "runs", "running", "reuse", "attempts", "pipeline", "funds", "plan",
    "pageindex_adapter", "corpus", "inputs", "engine", "reporting", "cli", "__main__",
]  # fmt: skip

# The parent talks to the child through pipes, never through an import.
CHILD_ONLY = {"pageindex_runtime", "confinement", "run_pageindex", "fork_server"}
SHARED = {"errors", "units", "canon", "wire", "events", "source", "prices", "ledger"}
SHARED |= {"files", "forks", "landlock", "tracing_ids", "estimates", "wire_json"}
SHARED |= {"fork_messages", "batching", "rates"}
PARENT_ONLY = set(ORDER) - CHILD_ONLY - SHARED


def name_of(path: Path) -> str:
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(p for p in parts if p != "__init__")


FILES = {name_of(p): p for p in SRC.rglob("*.py") if name_of(p)}


def part_of(module: str) -> str:
    return module.split(".", maxsplit=1)[0]


def imports_of(path: Path) -> set[str]:
    """Every import in the file: at the top, in a function, under an if."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                found |= {a.name for a in names}
            case ast.ImportFrom(module=str(module), names=names, level=0):
                # "from vectorless_rag import store" names a module just as well.
                found |= {module} | {f"{module}.{a.name}" for a in names}
            case ast.ImportFrom():
                pytest.fail(f"{path.name}:{node.lineno} is a relative import")
            case _:
                pass
    ours = {m.removeprefix("vectorless_rag.") for m in found}
    return ours & set(FILES)


def test_every_part_has_a_place() -> None:
    """Adding a module means deciding where in the flow it stands."""
    assert set(ORDER) == {part_of(name) for name in FILES}


@pytest.mark.parametrize("module", sorted(FILES))
def test_imports_point_one_way(module: str) -> None:
    """A module imports only what stands above its part, or lies in it."""
    allowed = set(ORDER[: ORDER.index(part_of(module)) + 1])

    assert set() == {part_of(name) for name in imports_of(FILES[module])} - allowed


def test_no_module_imports_itself_round_a_corner() -> None:
    """Inside a part, too, imports form no cycle."""
    graph = {name: imports_of(path) - {name} for name, path in FILES.items()}
    # A package's own __init__ re-exports what lies in it.
    bare = {name: above - packages_of(name) for name, above in graph.items()}

    assert set(FILES) == set(TopologicalSorter(bare).static_order())


def packages_of(module: str) -> set[str]:
    parts = module.split(".")
    return {".".join(parts[:i]) for i in range(1, len(parts))}


@pytest.mark.parametrize("module", sorted(FILES))
def test_parent_and_child_share_only_words(module: str) -> None:
    """The parent never imports the child, nor the child the parent."""
    other = {True: PARENT_ONLY, False: set()}[part_of(module) in CHILD_ONLY]
    other = CHILD_ONLY if part_of(module) in PARENT_ONLY else other

    assert set() == {part_of(name) for name in imports_of(FILES[module])} & other


# A table has one reason to change, however long it is.
TABLES = {"errors"}


@pytest.mark.parametrize("module", sorted(set(FILES) - TABLES))
def test_modules_are_short(module: str) -> None:
    """Past about 300 lines a module is two modules."""
    assert len(FILES[module].read_text(encoding="utf-8").splitlines()) <= 320


@pytest.mark.parametrize(
    ("package", "door"),
    [
        ("subprocess", {"process"}),
        ("pypdf", {"source"}),
        ("pypdfium2", {"source"}),
        ("litellm", {"pageindex_runtime.litellm_provider"}),
        ("langfuse", {"pageindex_runtime.tracing"}),
        ("sqlalchemy", {m for m in FILES if part_of(m) == "ledger"}),
        ("pageindex", {"pageindex_runtime.indexing"}),
        ("obstore", {"store.bucket"}),
        ("dbos", {"engine.dbos_engine"}),
    ],
)
def test_each_dependency_has_one_door(package: str, door: set[str]) -> None:
    """What comes from outside comes in at one place."""
    users = set()
    for name, path in FILES.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [a.name for a in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [str(node.module)]
            if any(n.split(".")[0] == package for n in names):
                users.add(name)

    assert set() == users - door
