"""A store in a bucket keeps what a store in a folder keeps."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from object_server import (
    SECRET,
    VARIABLES,
    forgetful,
    make_bucket,
    object_server,
    opened,
    without_conditions,
)
from pdfs import pdf
from published import faults
from strategies_tree import sample_artifact
from test_store import publish
from vectorless_rag import cli
from vectorless_rag.audit import Verdict, verify_store
from vectorless_rag.canon import sha256
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.store import Outcome, Store
from vectorless_rag.store.blobs import blob_name
from vectorless_rag.store.bucket import Bucket, parse
from vectorless_rag.store.bucket_promises import try_bucket
from vectorless_rag.store.garbage import unreached

pytestmark = pytest.mark.loopback

KEY = sample_artifact().recipe.recipe_hash
WRITERS = 4

_numbers = count()


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """A server in a process of its own."""
    with object_server() as address:
        yield address


@pytest.fixture
def url(endpoint: str) -> str:
    """A prefix of a fresh bucket."""
    return make_bucket(endpoint, f"bucket-{os.getpid()}-{next(_numbers)}") + "/a/b"


@pytest.fixture
def bucket(url: str, endpoint: str, tmp_path: Path) -> Bucket:
    return opened(url, endpoint, tmp_path)


@pytest.fixture
def store(bucket: Bucket) -> Store:
    return Store(bucket)


def wrong(store: Store) -> list[str]:
    found = verify_store(store)
    return [f"{f.file}: {f.what}" for f in found if f.verdict is not Verdict.NOTE]


def test_what_was_published_is_found_and_read(store: Store, url: str) -> None:
    """From anywhere; an audit finds nothing, and nothing is left over."""
    assert store.find(KEY) is None
    first = publish(store)
    again = publish(store, attempt="attempt-2")
    rebuilt = publish(store, attempt="attempt-3", rebuild=True)

    assert [Outcome.CREATED, Outcome.SUPERSEDED, Outcome.CREATED] == [
        first.outcome,
        again.outcome,
        rebuilt.outcome,
    ]
    assert [0, 1] == store.generations(KEY)
    assert (
        rebuilt.stored
        == store.find(KEY)
        == store.current(rebuilt.stored.document_sha256)
    )
    assert sample_artifact() == store.read(first.stored)
    assert [] == verify_store(store)
    assert [] == unreached(store)
    # The address of an artifact is one of its names.
    address = f"{url}/artifacts/{KEY}/0"
    assert address == str(first.stored.folder)
    assert first.stored == store.resolve(address)
    assert rebuilt.stored == store.resolve(KEY[:8])
    with pytest.raises(VectorlessRagError, match="No artifact goes by"):
        store.resolve("s3://elsewhere/artifacts/" + KEY)
    with pytest.raises(TypeError, match="no file"):
        (first.stored.folder / "artifact.json").read_bytes()
    # Other activations of the chain go on behind the last.
    assert store.activate(first.stored)
    assert not store.activate(first.stored)
    assert [0, 1, 2] == store.chain.numbers(first.stored.document_sha256)


def test_other_content_under_one_recipe_is_a_conflict(store: Store) -> None:
    """The first stays."""
    publish(store)
    other = sample_artifact(summary="Other.")

    with pytest.raises(VectorlessRagError, match="A different artifact") as caught:
        publish(store, other, attempt="attempt-2")
    assert Code.STORE_CONFLICT == caught.value.code
    assert sample_artifact() == store.read(store.stored(KEY, 0))


def test_altered_bytes_are_found_and_set_aside(store: Store, bucket: Bucket) -> None:
    """An audit names the object; a rebuild puts the right bytes in its place."""
    stored = publish(store).stored
    name = blob_name(stored.artifact_id)
    bucket.remove(name)
    bucket.create(name, b"altered")

    assert f"{name}: altered" in wrong(store)
    with pytest.raises(VectorlessRagError, match="altered"):
        store.read(stored)
    publish(store, attempt="attempt-2", rebuild=True)
    assert sha256(b"altered") == sha256(
        bucket.read(f"quarantine/{bucket.names('quarantine')[0]}") or b""
    )
    assert [] == wrong(store)
    assert 7 == bucket.size(f"quarantine/{bucket.names('quarantine')[0]}")
    bucket.remove(name)
    assert f"{name}: missing" in wrong(store)
    assert 0 == bucket.size(name)


WRITER = """
import sys
from pathlib import Path
from strategies_tree import sample_artifact, sample_provenance, sample_run
from test_store import publish
from object_server import opened
from vectorless_rag.store import Store

url, endpoint, folder, me = sys.argv[1:]
store = Store(opened(url, endpoint, Path(folder)))
artifact = sample_artifact()
run = sample_run(artifact.recipe, "attempt-" + me)
print("ready", flush=True)
sys.stdin.readline()
published = store.publish(artifact, run, sample_provenance())
print(published.outcome, published.stored.manifest.attempt_id)
"""


def test_of_many_processes_one_publishes(
    store: Store, url: str, endpoint: str, tmp_path: Path
) -> None:
    """The same recipe at once from several machines: one artifact, known to all."""
    writers = [
        subprocess.Popen(
            [
                sys.executable,
                "-c",
                WRITER,
                url,
                endpoint,
                str(tmp_path / f"{me}"),
                f"{me}",
            ],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for me in range(WRITERS)
    ]
    for writer in writers:
        assert writer.stdout
        assert "ready\n" == writer.stdout.readline()
    said = [writer.communicate("go\n", timeout=120)[0].split() for writer in writers]

    assert {"created": 1, "superseded": WRITERS - 1} == Counter(o for o, _ in said)
    stored = store.find(KEY)
    assert stored
    assert {stored.manifest.attempt_id} == {attempt for _, attempt in said}
    assert [0] == store.generations(KEY)
    assert [] == wrong(store)


def test_a_second_name_is_a_copy(bucket: Bucket) -> None:
    """It is refused where the name is taken, be it by the same bytes."""
    bucket.create("blob", b"mine")

    assert bucket.link("blob", "name")
    assert not bucket.link("blob", "name")
    bucket.create("taken", b"another's")
    assert not bucket.link("blob", "taken")
    assert b"another's" == bucket.read("taken")
    with pytest.raises(VectorlessRagError, match="gone: missing"):
        bucket.link("gone", "other")


def test_a_lost_answer_is_no_lost_race(
    url: str, endpoint: str, tmp_path: Path, bucket: Bucket
) -> None:
    """A put that is tried again meets its own object: the name is this call's."""
    with forgetful(endpoint) as losing:
        unlucky = opened(url, losing, tmp_path)
        assert Outcome.CREATED == publish(Store(unlucky)).outcome
        bucket.create("blob", b"mine")
        assert unlucky.link("blob", "name")

    assert [] == wrong(Store(bucket))
    assert [0] == Store(bucket).generations(KEY)


@pytest.fixture
def configured(url: str, endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The bucket's URL, with the settings that lead there."""
    given = {"STORE_URL": url, "STORE_ENDPOINT": endpoint}
    named = {f"VECTORLESS_RAG_{name}": value for name, value in given.items()}
    for name, value in (VARIABLES | named).items():
        monkeypatch.setenv(name, value)
    return url


def test_a_machine_builds_and_another_reuses(
    configured: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Every command works on the bucket; no key is in anything that is said."""
    url, sample = configured, pdf(tmp_path / "one.pdf", ["A page of words."])

    def said(*arguments: str, status: int = 0) -> Any:
        assert status == cli.main([*arguments, "--json"])
        out, err = capfd.readouterr()
        assert SECRET not in out + err
        return json.loads(out)

    built = said("ingest", str(sample), "--data-dir", "here")
    reused = said("ingest", str(sample), "--data-dir", "there")
    assert ["built", "reused"] == [built["status"], reused["status"]]
    assert built["artifact_id"] == reused["artifact_id"]
    assert f"{url}/artifacts/{built['recipe_hash']}/0" == built["artifact_path"]
    assert not (tmp_path / "here" / "store").exists()
    plan = said("plan", str(sample), "--data-dir", "there")
    assert "stored" == plan["documents"][0]["answered"]
    shown = said("show", built["artifact_path"])
    assert built["recipe_hash"] == shown["recipe"]["recipe_hash"]
    found = said("audit", "verify", "--data-dir", "here")
    assert (url, "sound") == (found["store"], found["verdict"])
    assert 1 == said("audit", "stale", "--data-dir", "here")["current"]
    assert 0 == said("store", "gc", "--dry-run", "--data-dir", "here")["count"]
    promises = said("store", "doctor", "--data-dir", "here")
    assert [] == faults("store-doctor-1", promises)
    assert (url, True) == (promises["folder"], promises["kept"])


def test_a_bucket_that_loses_conditions_is_refused(
    configured: str,
    endpoint: str,
    bucket: Bucket,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A server that passes over ``If-None-Match`` overwrites; the doctor says so."""
    with without_conditions(endpoint) as spoiled:
        monkeypatch.setenv("VECTORLESS_RAG_STORE_ENDPOINT", spoiled)
        assert 10 == cli.main(["store", "doctor", "--json"])

    broken = {
        p["name"]: p["broken"] for p in json.loads(capsys.readouterr().out)["promises"]
    }
    assert "an object was overwritten" == broken["create"]
    assert "of 8 writers at once 8 made the object" == broken["race"]
    assert (None, None) == (broken["read"], broken["list"])
    # What was tried leaves nothing behind.
    assert configured == str(bucket.root)
    assert [] == bucket.names("")


def test_a_server_that_is_not_there_is_said_in_one_line(
    tmp_path: Path, endpoint: str, bucket: Bucket
) -> None:
    """The kind of error and the object; no address, no key."""
    closed = opened("s3://bucket", "http://127.0.0.1:9", tmp_path)
    with pytest.raises(VectorlessRagError, match=r"blob: \w+Error") as caught:
        closed.read("blob")
    assert "127.0.0.1" not in str(caught.value)
    assert SECRET not in str(caught.value)
    assert {"GenericError"} == {p.broken for p in try_bucket(closed)}
    nowhere = opened("s3://no-such-bucket", endpoint, tmp_path)
    with pytest.raises(VectorlessRagError, match=r"blob: no such bucket"):
        nowhere.create("blob", b"")
    assert bucket.read("blob") is None


@pytest.mark.parametrize(
    "url", ["s3://", "s3://ab", "s3://bucket/../up", "s3://bucket//x", "http://x/y"]
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    """By name; a value is not repeated."""
    with pytest.raises(VectorlessRagError, match="STORE_URL: s3://bucket/prefix"):
        parse(url)


def test_a_bucket_needs_its_library(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes with an extra, and whoever lacks it is told which."""
    monkeypatch.setitem(sys.modules, "obstore", None)

    with pytest.raises(VectorlessRagError, match="needs the extra s3"):
        bucket.read("blob")
