"""The bill of materials names the release, each patch and what it resolves."""

import json
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest

from conftest import REPOSITORY
from strategies_tree import sample_provenance, sample_recipe
from vectorless_rag.artifact import Manifest, Patch
from vectorless_rag.audit import cyclonedx
from vectorless_rag.canon import sha256
from vectorless_rag.upstream.mailbox import Patch as Header
from vectorless_rag.upstream.series import read_series


@pytest.fixture(scope="module")
def series() -> tuple[Header, ...]:
    return read_series(REPOSITORY).patches


def manifest_of(patches: tuple[Patch, ...] = ()) -> Manifest:
    provenance = sample_provenance()
    return Manifest(
        artifact_id=sha256(b"artifact"),
        run_sha256=sha256(b"run"),
        attempt_id="attempt-1",
        recipe=sample_recipe(),
        provenance=replace(provenance, patches=patches or provenance.patches),
    )


def applied(header: Header, status: str = "Pending [x]") -> Patch:
    return Patch(
        name=header.file,
        sha256=header.sha256,
        upstream_status=status,
        proof=(),
        tree_after=sha256(b""),
    )


def bill(manifest: Manifest, known: tuple[Header, ...] = ()) -> Any:
    return json.loads(json.dumps(cyclonedx(manifest, known)))


def patches_of(made: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = made["components"][0]["pedigree"]["patches"]
    return found


def test_the_upstream_is_the_release_with_our_patches() -> None:
    """The component is the patched one; its ancestor is what was fetched."""
    upstream = bill(manifest_of())["components"][0]
    (ancestor,) = upstream["pedigree"]["ancestors"]

    assert ("pageindex", "0.4.7+vr1") == (upstream["name"], upstream["version"])
    assert ("pkg:pypi/pageindex@0.4.7", [{"alg": "SHA-256", "content": "e" * 64}]) == (
        ancestor["purl"],
        ancestor["hashes"],
    )


def test_libraries_and_python_are_components() -> None:
    """In the versions that ran."""
    names = {(c["name"], c["version"]) for c in bill(manifest_of())["components"]}

    assert {
        ("litellm", "1.105.7"),
        ("pypdf", "7.1.1"),
        ("pypdfium2", "5.15.2"),
        ("python", "3.11.7"),
    } < names


def test_patches_name_what_they_resolve(series: tuple[Header, ...]) -> None:
    """By the header of the very patch that was applied."""
    manifest = manifest_of(tuple(map(applied, series)))
    found = patches_of(bill(manifest, series))

    assert [f"patches/{header.file}" for header in series] == [
        patch["diff"]["url"] for patch in found
    ]
    assert ["https://github.com/VectifyAI/PageIndex/issues/326"] == (
        found[0]["resolves"][0]["references"]
    )
    without = [patch for patch in found if "resolves" not in patch]
    assert sum(header.values("Bug") == ("none",) for header in series) == len(without)


def test_a_reworded_patch_resolves_nothing_here(series: tuple[Header, ...]) -> None:
    """Its header may say something else than that of the one applied."""
    other = replace(applied(series[0]), sha256=sha256(b"other"))
    (patch,) = patches_of(bill(manifest_of((other,)), series))

    assert {"type", "diff"} == set(patch)


def test_a_backport_and_a_cve_are_called_so(series: tuple[Header, ...]) -> None:
    """The standard has words for both."""
    header = replace(series[0], trailers=(("Bug", "none"), ("CVE", "CVE-2026-1234")))
    backport = applied(header, "Backport [https://example.invalid/1]")
    (patch,) = patches_of(bill(manifest_of((backport,)), (header,)))

    assert "backport" == patch["type"]
    assert [("security", "CVE-2026-1234")] == [
        (issue["type"], issue["id"]) for issue in patch["resolves"]
    ]


def test_one_manifest_has_one_bill() -> None:
    """Nothing in it is drawn by lot, or read from a clock."""
    assert bill(manifest_of()) == bill(manifest_of())


def test_references_lead_somewhere() -> None:
    """Every dependency is a component, and no reference stands twice."""
    made = bill(manifest_of())
    parts = [made["metadata"]["component"], *made["components"]]
    known = [part["bom-ref"] for part in parts]
    used = {ref for d in made["dependencies"] for ref in (d["ref"], *d["dependsOn"])}

    assert sorted(set(known)) == sorted(known)
    assert used <= set(known)


def test_the_bill_fits_the_standards_own_schema(series: tuple[Header, ...]) -> None:
    """Where a package that ships it is installed."""
    pytest.importorskip("cyclonedx.schema")
    made = import_module("cyclonedx.validation.json")
    version = import_module("cyclonedx.schema").SchemaVersion.V1_6
    text = json.dumps(bill(manifest_of(tuple(map(applied, series))), series))

    assert made.JsonStrictValidator(version).validate_str(text) is None
