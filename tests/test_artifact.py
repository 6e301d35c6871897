"""What is written can be read, and what was not written so is refused."""

import dataclasses
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import published
from conftest import REPOSITORY
from published import validator
from strategies_tree import (
    artifacts,
    patient,
    provenances,
    recipes,
    runs,
    sample_artifact,
    sample_provenance,
    sample_recipe,
    sample_run,
)
from vectorless_rag.artifact import (
    Artifact,
    FailureRecord,
    Manifest,
    Provenance,
    Route,
    RunRecord,
    RunUsage,
    artifact_of,
    read_artifact,
    read_manifest,
    read_run,
    timestamp,
)
from vectorless_rag.canon import canonical, sha256
from vectorless_rag.errors import Code, Failure, VectorlessRagError
from vectorless_rag.recipe import Recipe
from vectorless_rag.store import Store
from vectorless_rag.tree import MAX_DEPTH
from vectorless_rag.wire import Found, Parser

KINDS = ["artifact-2", "manifest-2", "run-1", "activation-1"]

Alter = Callable[[dict[str, Any]], object]


def faults(kind: str, data: bytes) -> list[str]:
    return published.faults(kind, json.loads(data))


def manifest_of(recipe: Recipe, provenance: Provenance) -> Manifest:
    return Manifest(
        artifact_id=sha256(b"artifact"),
        run_sha256=sha256(b"run"),
        attempt_id="attempt-1",
        recipe=recipe,
        provenance=provenance,
    )


manifests = st.builds(manifest_of, recipes, provenances)


@patient
@given(artifacts())
def test_an_artifact_reads_back(artifact: Artifact) -> None:
    """Everything in it survives, and it fits the published schema."""
    assert (artifact, []) == (
        read_artifact(artifact.encoded),
        faults("artifact-2", artifact.encoded),
    )


@patient
@given(runs)
def test_a_run_record_reads_back(run: RunRecord) -> None:
    """Everything in it survives, and it fits the published schema."""
    assert (run, []) == (read_run(run.encoded), faults("run-1", run.encoded))


@patient
@given(manifests)
def test_a_manifest_reads_back(manifest: Manifest) -> None:
    """Everything in it survives, and it fits the published schema."""
    assert (manifest, []) == (
        read_manifest(manifest.encoded),
        faults("manifest-2", manifest.encoded),
    )


SAMPLES: dict[str, tuple[bytes, Callable[[bytes], object]]] = {
    "artifact": (sample_artifact().encoded, read_artifact),
    "run": (sample_run().encoded, read_run),
    "manifest": (
        manifest_of(sample_recipe(), sample_provenance()).encoded,
        read_manifest,
    ),
}


@pytest.mark.parametrize("kind", SAMPLES)
@patient
@given(data=st.data())
def test_any_altered_byte_is_read_as_another_value_or_refused(
    kind: str, data: st.DataObject
) -> None:
    """Two files never say the same; and no damage ends in anything but its code."""
    good, read = SAMPLES[kind]
    place = data.draw(st.integers(0, len(good) - 1))
    bit = data.draw(st.integers(0, 7))
    bad = bytearray(good)
    bad[place] ^= 1 << bit

    outcome = outcome_of(read, bytes(bad))

    assert read(good) != outcome
    assert Code.STORE_CORRUPT == outcome or not isinstance(outcome, Code)


def outcome_of(read: Callable[[bytes], object], data: bytes) -> object:
    try:
        return read(data)
    except VectorlessRagError as error:
        return error.code


@pytest.mark.parametrize("kind", SAMPLES)
@pytest.mark.parametrize(
    "garbage",
    [b"", b"{}", b"[]", b"null", b"\xff", b"[" * 100_000, b'{"subject": [1, 2]}'],
)
def test_garbage_is_refused(kind: str, garbage: bytes) -> None:
    """Whatever is in the file, it is corrupt and nothing worse."""
    with pytest.raises(VectorlessRagError, match="no longer match") as caught:
        SAMPLES[kind][1](garbage)

    assert Code.STORE_CORRUPT == caught.value.code


@pytest.mark.parametrize("kind", SAMPLES)
def test_another_spelling_is_refused(kind: str) -> None:
    """One value has one spelling; spaces, order and escapes are not free."""
    good, read = SAMPLES[kind]
    for other in (good + b"\n", b" " + good, json.dumps(json.loads(good)).encode()):
        with pytest.raises(VectorlessRagError, match="not in canonical form"):
            read(other)


def test_the_bytes_are_pinned() -> None:
    """
    The same inputs give the same bytes in every release.

    If this fails, layout or cleaning changed: raise the schema version.
    """
    assert "d33c8a47a1b7b8b58581d0099ce8c9cce91f7c5b470c1fd5cf444ef963bc2005" == (
        sample_artifact().artifact_id
    )


def _page_numbers(raw: dict[str, Any]) -> None:
    raw["pages"].reverse()


def _a_page_less(raw: dict[str, Any]) -> None:
    raw["pages"].pop()


def _count(raw: dict[str, Any]) -> None:
    raw["degraded"]["nodes"] = 7


def _no_tree(raw: dict[str, Any]) -> None:
    raw["tree"] = []


def _summary(raw: dict[str, Any]) -> None:
    raw["tree"][0]["summary"] = "Another."


def _title(raw: dict[str, Any]) -> None:
    raw["tree"][0]["title"] = "two\nlines"


def _unknown_in_node(raw: dict[str, Any]) -> None:
    raw["tree"][0]["colour"] = "red"


def _hash(raw: dict[str, Any]) -> None:
    raw["recipe"]["recipe_hash"] = "0" * 64


def _model(raw: dict[str, Any]) -> None:
    raw["recipe"]["inputs"]["configuration"]["model"] = "openai/x"


def _parser(raw: dict[str, Any]) -> None:
    raw["parser"]["version"] = "9"


def _document(raw: dict[str, Any]) -> None:
    raw["document"]["sha256"] = "0" * 64


def _version(raw: dict[str, Any]) -> None:
    raw["schema_version"] = 3


def _no_pages(raw: dict[str, Any]) -> None:
    raw.update(pages=[], tree=[])


def _nul(raw: dict[str, Any]) -> None:
    raw["pages"][0]["text"] = 7


@pytest.mark.parametrize(
    ("alter", "why"),
    [
        (_page_numbers, "a derived field disagrees"),
        (_a_page_less, r"artifact\.json: tree\[1\] \(node 0003\): pages 3 to 3 of 2"),
        (_count, "a derived field disagrees"),
        (_no_tree, r"artifact\.json: no tree"),
        (_no_pages, r"artifact\.json: no tree"),
        (_summary, "a derived field disagrees"),
        (_title, "a derived field disagrees"),
        (_unknown_in_node, "a derived field disagrees"),
        (_hash, "a derived field disagrees"),
        (_model, "a derived field disagrees"),
        (_parser, "another parser version than the recipe's"),
        (_document, "another document than the recipe's"),
        (_version, r"artifact\.json: schema_version"),
        (_nul, r"artifact\.json: pages\.0\.text"),
    ],
)
def test_an_artifact_that_contradicts_itself_is_refused(alter: Alter, why: str) -> None:
    """What can be computed from the rest must agree with it."""
    raw = json.loads(sample_artifact().encoded)
    alter(raw)

    with pytest.raises(VectorlessRagError, match=why):
        read_artifact(canonical(raw))


def test_the_deepest_tree_can_be_stored() -> None:
    """Whatever `read_tree` lets through, the file holds."""
    node: dict[str, Any] = {"title": "t", "start_index": 1, "end_index": 1}
    for _ in range(MAX_DEPTH - 1):
        node = {"title": "t", "start_index": 1, "end_index": 1, "nodes": [node]}
    artifact = artifact_of(
        found(tree=(node,), pages=("x",)),
        recipe=sample_recipe(),
        name="f.pdf",
        size_bytes=1,
    )

    assert artifact == read_artifact(artifact.encoded)


def found(**changes: Any) -> Found:
    usual: dict[str, Any] = {
        "route": "flash",
        "tree": ({"title": "t", "start_index": 1, "end_index": 1},),
        "pages": ("text",),
        "parser": Parser(name="pypdf", version="7.1.1"),
    }
    return Found(**(usual | changes))


@pytest.mark.parametrize(
    ("changes", "code", "why"),
    [
        ({"route": "magic"}, Code.CHILD_PROTOCOL, "no such route"),
        (
            {"parser": Parser(name="pypdf", version="9")},
            Code.CHILD_PROTOCOL,
            "another parser version than the recipe's",
        ),
        (
            {"parser": Parser(name="other", version="7.1.1")},
            Code.CHILD_PROTOCOL,
            "another parser version than the recipe's",
        ),
        ({"tree": ()}, Code.NO_STRUCTURE, "No sections were found"),
        ({"pages": ()}, Code.INVALID_TREE, "pages 1 to 1 of 0"),
        ({"pages": ("a", "b")}, Code.INVALID_TREE, "no node reaches pages 2"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused(
    changes: dict[str, Any], code: Code, why: str
) -> None:
    """A child of another installation cannot slip its findings in."""
    with pytest.raises(VectorlessRagError, match=why) as caught:
        artifact_of(
            found(**changes), recipe=sample_recipe(), name="f.pdf", size_bytes=1
        )

    assert code == caught.value.code


def test_an_artifact_has_pages() -> None:
    """Nothing can be an index of nothing."""
    with pytest.raises(ValueError, match="no pages"):
        dataclasses.replace(sample_artifact(), pages=())


@pytest.mark.parametrize(
    ("expected", "name"),
    [
        ("a paper.pdf", "/home/me/a paper.pdf"),
        ("two lines.pdf", "two\nlines.pdf"),
        ("caf\ufffd.pdf", "caf\udce9.pdf"),
    ],
)
def test_any_file_name_can_be_stored(expected: str, name: str) -> None:
    """Folders stay out; bytes that are not UTF-8 become marks."""
    artifact = sample_artifact(name=name)

    assert expected == artifact.document.name
    assert artifact == read_artifact(artifact.encoded)


def test_the_name_is_no_content() -> None:
    """The same document under another name is the same document."""
    one, other = sample_artifact(name="a.pdf"), sample_artifact(name="b.pdf")

    assert (True, one.recipe.recipe_hash) == (
        one.same_but_name(other),
        other.recipe.recipe_hash,
    )
    assert not one.same_but_name(sample_artifact(summary="Other words."))


def test_the_artifact_says_who_wrote_it() -> None:
    """Offline summaries are marked as such."""
    raw = json.loads(sample_artifact().encoded)

    assert ("offline/extractive", "flash") == (raw["provider"], raw["route"])
    assert Route.FLASH == sample_artifact().route


def test_nothing_of_the_run_is_in_the_artifact() -> None:
    """Time, cost and owner would make the same content another artifact."""
    keys = set(re.findall(rb'"([a-z_]+)":', sample_artifact().encoded))
    run = set(re.findall(rb'"([a-z_]+)":', sample_run().encoded))

    assert {b"recipe_hash", b"schema_version", b"code"} == keys & run


def test_amounts_are_exact() -> None:
    """Dollars are the nano-dollars, to the last digit."""
    usage = RunUsage.of(
        calls=0, prompt_tokens=0, completion_tokens=0, cost_nano_usd=10**15 + 1
    )

    assert "1000000.000000001" == usage.cost_usd


def test_two_amounts_that_differ_are_refused() -> None:
    """The dollars in a record cannot say another thing than its nano-dollars."""
    raw = json.loads(sample_run().encoded)
    raw["usage"]["cost_usd"] = "0.5"

    with pytest.raises(VectorlessRagError, match=r"run\.json: usage"):
        read_run(canonical(raw))


def test_a_number_no_reader_can_hold_is_refused() -> None:
    """Past 2**53 - 1 another reader would see another number."""
    data = sample_run().encoded.replace(
        b'"wall_ms":1500', b'"wall_ms":9007199254740993'
    )

    with pytest.raises(VectorlessRagError, match="not in canonical form"):
        read_run(data)


def test_times_are_utc_to_the_millisecond() -> None:
    """Two hosts write the same moment the same way."""
    moment = datetime(2026, 11, 30, 9, 0, 0, 1999, UTC)

    assert "2026-11-30T09:00:00.001Z" == timestamp(moment)
    assert timestamp(moment) == timestamp(
        moment.astimezone(timezone(timedelta(hours=5)))
    )


def test_a_failure_is_recorded_in_full() -> None:
    """A reader needs no table of codes."""
    assert FailureRecord(
        code="source_no_text",
        phase="source",
        retryable=False,
        message=Failure(code=Code.SOURCE_NO_TEXT).message,
    ) == FailureRecord.of(Failure(code=Code.SOURCE_NO_TEXT))


def test_the_manifest_names_what_it_was_made_from() -> None:
    """Every input has its digest or its version, patches in their order."""
    manifest = manifest_of(sample_recipe(), sample_provenance())
    definition = json.loads(manifest.encoded)["predicate"]["buildDefinition"]

    assert [
        "upstream",
        "patch/0010",
        "patch/0060",
        "patch-series",
        "patched-tree",
        "runtime",
        "document",
        "library/litellm",
        "library/pypdf",
        "library/pypdfium2",
    ] == [item["name"] for item in definition["resolvedDependencies"]]
    assert sample_recipe().inputs() == definition["externalParameters"]
    assert ["0010-accounted-calls.patch", "0060-maintained-parser.patch"] == list(
        manifest.patches
    )


def _unknown_parameter(raw: dict[str, Any]) -> None:
    raw["predicate"]["buildDefinition"]["externalParameters"]["colour"] = "red"


def _recipe_hash(raw: dict[str, Any]) -> None:
    raw["predicate"]["buildDefinition"]["internalParameters"]["recipe_hash"] = "0" * 64


def _builder(raw: dict[str, Any]) -> None:
    raw["predicate"]["runDetails"]["builder"]["id"] = "pkg:generic/another"


def _status(raw: dict[str, Any]) -> None:
    patch = raw["predicate"]["buildDefinition"]["resolvedDependencies"][1]
    patch["annotations"]["upstreamStatus"] = 7


def _subject(raw: dict[str, Any]) -> None:
    raw["subject"][0]["name"] = "other.json"


def _uri(raw: dict[str, Any]) -> None:
    raw["predicate"]["buildDefinition"]["resolvedDependencies"][0]["uri"] = 7


@pytest.mark.parametrize(
    ("alter", "why"),
    [
        (_unknown_parameter, "not in canonical form"),
        (_recipe_hash, "not in canonical form"),
        (_builder, "not in canonical form"),
        (_status, r"provenance\.patches\.0\.upstream_status"),
        (_subject, "not in canonical form"),
        (_uri, "not a Statement"),
    ],
)
def test_a_manifest_that_is_not_ours_is_refused(alter: Alter, why: str) -> None:
    """Unknown parameters too: nobody has decided what they would mean."""
    raw = json.loads(manifest_of(sample_recipe(), sample_provenance()).encoded)
    alter(raw)

    with pytest.raises(VectorlessRagError, match=why):
        read_manifest(canonical(raw))


@pytest.mark.parametrize("kind", KINDS)
def test_schemas_are_schemas(kind: str) -> None:
    """What is published is valid, and refuses an unknown field."""
    checked = validator(kind)
    checked.check_schema(checked.schema)

    assert not checked.is_valid({**documented()[kind], "colour": "red"})


def documented() -> dict[str, Any]:
    page = (REPOSITORY / "docs" / "formats.md").read_text(encoding="utf-8")
    found_ = re.findall(
        r"<!-- example: ([\w-]+) -->\n```json\n(.*?)```", page, re.DOTALL
    )
    return {kind: json.loads(text) for kind, text in found_}


def test_the_examples_in_the_docs_are_what_is_written(tmp_path: Path) -> None:
    """A reader of docs/formats.md sees real files, and they fit their schemas."""
    store = Store(tmp_path, now=lambda: datetime(2026, 11, 30, 9, 0, 2, tzinfo=UTC))
    stored = store.publish(sample_artifact(), sample_run(), sample_provenance()).stored
    activation = tmp_path / "activations" / stored.document_sha256 / "0.json"
    written = {
        "artifact-2": stored.path,
        "manifest-2": stored.folder / "manifest.json",
        "run-1": stored.folder / "run.json",
        "activation-1": activation,
    }

    assert {kind: json.loads(path.read_bytes()) for kind, path in written.items()} == (
        documented()
    )
    assert [[], [], [], []] == [
        faults(kind, path.read_bytes()) for kind, path in written.items()
    ]
