"""Named strategies and samples of trees, recipes, artifacts and their records."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from strategies import digests
from vectorless_rag.artifact import (
    Artifact,
    FailureRecord,
    OperationUsage,
    Patch,
    Provenance,
    RunRecord,
    RunUsage,
    artifact_of,
)
from vectorless_rag.canon import sha256
from vectorless_rag.errors import Code, Failure
from vectorless_rag.recipe import Configuration, Recipe
from vectorless_rag.units import NanoUsd, Sha256
from vectorless_rag.wire import Found, Parser

Raw = dict[str, Any]

# A loaded machine is slow, not wrong.
patient = settings(deadline=None, max_examples=50)

marks = st.fixed_dictionaries(
    {
        "code": st.sampled_from([*Code, "bookmark_range"]).map(str),
        "what": st.sampled_from(["summary", "direct_summary", "location"]),
    }
)


# What PDF files put into titles: any text, and the texts that hurt.
texts = st.sampled_from(
    [
        "",
        "Fruit",
        "two\nlines",
        "\x1b[2J",
        "nul\0",
        "\ud800",
        "\ud83d\ude00",
        "\x85",
        "é",
    ]
) | st.text(st.characters(), max_size=6)

fields = st.fixed_dictionaries(
    {"title": texts},
    optional={
        "summary": st.none() | texts,
        "direct_summary": texts,
        "subtree_summary": texts,
        "degraded": st.lists(marks, max_size=2),
        "key_items": st.lists(texts, max_size=2),
    },
)


@st.composite
def sections(draw: st.DrawFn, first: int, last: int, pages: int, depth: int) -> Raw:
    """One section with these pages; its children lie anywhere in the document."""
    node: Raw = {**draw(fields), "start_index": first, "end_index": last}
    if depth > 1:
        node["nodes"] = draw(siblings(pages, depth - 1))
    return node


@st.composite
def siblings(draw: st.DrawFn, pages: int, depth: int) -> list[Raw]:
    """Sections in the order of their first pages."""
    starts = sorted(draw(st.lists(st.integers(1, pages), max_size=2)))
    return [
        draw(sections(first, draw(st.integers(first, pages)), pages, depth))
        for first in starts
    ]


@st.composite
def raw_trees(draw: st.DrawFn) -> tuple[list[Raw], int]:
    """A tree as the child returns it, and the document's number of pages."""
    pages = draw(st.integers(1, 9))
    cuts = sorted({1, *draw(st.lists(st.integers(1, pages), max_size=2))})
    lasts = [*(cut - 1 for cut in cuts[1:]), pages]
    roots = [
        draw(sections(first, last, pages, 3))
        for first, last in zip(cuts, lasts, strict=True)
    ]
    if draw(st.booleans()):
        flat = every(roots)
        ids = draw(st.permutations([f"{n:04d}" for n in range(len(flat))]))
        for node, node_id in zip(flat, ids, strict=True):
            node["node_id"] = node_id
    return roots, pages


def every(nodes: list[Raw]) -> list[Raw]:
    """Every node of a raw tree, in reading order."""
    return [one for node in nodes for one in (node, *every(node.get("nodes", [])))]


configurations = st.builds(
    Configuration,
    pageindex_version=st.integers(1, 99).map("0.4.7+vr{}".format),
    patch_sha256=digests,
    runtime_sha256=digests,
    tree_sha256=digests,
    mode=st.sampled_from(["auto", "flash", "standard"]),
    model=st.sampled_from(["offline/extractive", "openai/a-model"]),
    api_base_sha256=st.none() | digests,
    max_output_tokens=st.integers(64, 131_072),
    call_attempts=st.integers(1, 10),
    pypdf=st.sampled_from(["7.1.1", "7.2.0"]),
    pypdfium2=st.sampled_from(["5.15.2", "5.16.0"]),
)

recipes = st.builds(Recipe, configuration=configurations, document_sha256=digests)


@st.composite
def artifacts(draw: st.DrawFn) -> Artifact:
    """An artifact made from whatever a child may find."""
    tree, pages = draw(raw_trees())
    recipe = draw(recipes)
    found = Found(
        route=draw(st.sampled_from(["flash", "standard", "shortcut"])),
        tree=tuple(tree),
        pages=tuple(draw(st.lists(texts, min_size=pages, max_size=pages))),
        parser=Parser(name="pypdf", version=recipe.configuration.pypdf),
    )
    return artifact_of(
        found,
        recipe=recipe,
        name=draw(texts),
        size_bytes=draw(st.integers(1, 10**9)),
    )


counts = st.integers(0, 10**9)
words = st.text("abcdefghij_", min_size=1, max_size=8)

operation_usages = st.builds(
    OperationUsage,
    calls=counts,
    prompt_tokens=counts,
    completion_tokens=counts,
    cost_nano_usd=counts,
)

usages = st.builds(
    RunUsage.of,
    calls=counts,
    prompt_tokens=counts,
    completion_tokens=counts,
    cost_nano_usd=st.integers(0, 2**53 - 1),
    by_state=st.dictionaries(words, counts, max_size=3),
    by_operation=st.dictionaries(words, operation_usages, max_size=3),
)

failure_records = st.builds(Failure, code=st.sampled_from(Code), detail=words).map(
    FailureRecord.of
)

runs = st.builds(
    RunRecord,
    attempt_id=words,
    run_id=words,
    owner=words,
    recipe_hash=digests,
    started_at=st.just("2026-11-30T09:00:00.000Z"),
    ended_at=st.just("2026-11-30T09:00:01.500Z"),
    wall_ms=counts,
    usage=usages,
    failures=st.lists(failure_records, max_size=2).map(tuple),
    notes=st.dictionaries(words, counts, max_size=3),
)

patches = st.builds(
    Patch,
    name=st.integers(1, 99).map("{:03d}0-a-patch.patch".format),
    sha256=digests,
    upstream_status=st.sampled_from(["Pending", "Inappropriate [ours alone]"]),
    proof=st.lists(words.map("tests/patches/{}.py::test".format), max_size=2).map(
        tuple
    ),
    tree_after=digests,
)

provenances = st.builds(
    Provenance,
    version=st.sampled_from(["0.1.0", "1.0"]),
    upstream_name=st.just("pageindex"),
    upstream_version=st.sampled_from(["0.4.7", "0.4.8"]),
    upstream_sha256=digests,
    patches=st.lists(patches, max_size=3).map(tuple),
    python=st.sampled_from(["3.11.7", "3.14.0"]),
    libraries=st.dictionaries(words, st.sampled_from(["1.0", "2.1.9"]), max_size=3),
)


def sample_recipe(document: str = "a", **options: Any) -> Recipe:
    """A recipe for a document that *document* names, with these options."""
    usual: dict[str, Any] = {
        "pageindex_version": "0.4.7+vr1",
        "patch_sha256": "b" * 64,
        "runtime_sha256": "c" * 64,
        "tree_sha256": "d" * 64,
        "mode": "auto",
        "model": "offline/extractive",
        "api_base_sha256": None,
        "max_output_tokens": 4096,
        "call_attempts": 3,
        "pypdf": "7.1.1",
        "pypdfium2": "5.15.2",
    }
    return Recipe(
        configuration=Configuration(**(usual | options)),
        document_sha256=sha256(document.encode()),
    )


def sample_artifact(
    recipe: Recipe | None = None,
    *,
    summary: str = "Two fruits.",
    name: str = "f.pdf",
    tree: list[Raw] | None = None,
) -> Artifact:
    """A small artifact: two sections over three pages, the last without text."""
    recipe = recipe or sample_recipe()
    tree = tree or [
        {
            "title": "Fruit",
            "start_index": 1,
            "end_index": 2,
            "summary": summary,
            "direct_summary": "An opening.",
            "nodes": [
                {"title": "Apples", "start_index": 1, "end_index": 1, "summary": "A."},
                {
                    "title": "Pears",
                    "start_index": 2,
                    "end_index": 2,
                    "summary": "Pears",
                    "degraded": [{"code": "pageindex_timeout", "what": "summary"}],
                },
            ],
        },
        {"title": "Back cover", "start_index": 3, "end_index": 3, "summary": ""},
    ]
    found = Found(
        route="flash",
        tree=tuple(tree),
        pages=("Fruit\nApples are red.", "Pears are green.", " "),
        parser=Parser(name="pypdf", version=recipe.configuration.pypdf),
    )
    return artifact_of(found, recipe=recipe, name=name, size_bytes=1234)


def sample_run(recipe: Recipe | None = None, attempt: str = "attempt-1") -> RunRecord:
    """The record of a run of two calls."""
    return RunRecord(
        attempt_id=attempt,
        run_id="run-1",
        owner="local",
        recipe_hash=(recipe or sample_recipe()).recipe_hash,
        started_at="2026-11-30T09:00:00.000Z",
        ended_at="2026-11-30T09:00:01.500Z",
        wall_ms=1500,
        usage=RunUsage.of(
            calls=2,
            prompt_tokens=900,
            completion_tokens=80,
            cost_nano_usd=1_250_000,
            by_state={"settled": 2},
            by_operation={
                "summary_leaf": OperationUsage(
                    calls=2,
                    prompt_tokens=900,
                    completion_tokens=80,
                    cost_nano_usd=NanoUsd(1_250_000),
                )
            },
        ),
        failures=(FailureRecord.of(Failure(code=Code.TIMEOUT)),),
        notes={"traces_dropped": 0},
    )


def sample_provenance() -> Provenance:
    """A build with two patches."""
    return Provenance(
        version="0.1.0",
        upstream_name="pageindex",
        upstream_version="0.4.7",
        upstream_sha256=Sha256("e" * 64),
        patches=tuple(
            Patch(
                name=name,
                sha256=sha256(name.encode()),
                upstream_status="Pending [not sent yet]",
                proof=(f"tests/patches/test_{name[:4]}.py::test_it",),
                tree_after=sha256(name[:4].encode()),
            )
            for name in ("0010-accounted-calls.patch", "0060-maintained-parser.patch")
        ),
        python="3.11.7",
        libraries={"litellm": "1.105.7", "pypdf": "7.1.1", "pypdfium2": "5.15.2"},
    )
