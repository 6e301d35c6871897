"""A repeated ingest is answered from a memo, and nobody can tell."""

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acceptance.program import Done, environment
from conftest import REPOSITORY
from pdfs import pdf
from vectorless_rag.canon import sha256
from vectorless_rag.cli import memos
from vectorless_rag.cli.direct import Command
from vectorless_rag.cli.memos import Memo, sealed, unsealed
from vectorless_rag.recipe import Asked
from vectorless_rag.records import decode, encode
from vectorless_rag.settings import Settings

HEAVY = (
    *("pydantic", "pydantic_settings", "typer", "rich", "sqlalchemy", "structlog"),
    *("vectorless_rag.upstream.mailbox", "vectorless_rag.launch"),
)
"""What reads settings and command lines, draws, counts, reports, patches and builds."""

PROGRAM = f"""
import atexit, os, sys
def tell():
    with open(os.environ["SEEN"], "w") as file:
        file.write(" ".join(name for name in {HEAVY} if name in sys.modules))
atexit.register(tell)
from vectorless_rag.cli import entrypoint
entrypoint()
"""

PAGES = ["1 Apples\nApples are red.", "2 Pears\nPears are green."]


@dataclass(frozen=True, kw_only=True)
class Desk:
    """A folder with documents, and the program in it."""

    home: Path
    argv: tuple[str, ...] = ("ingest", "a.pdf")
    env: dict[str, str] = field(default_factory=dict)

    def started(
        self, out: int = subprocess.PIPE, before: str = ""
    ) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [sys.executable, "-c", before + PROGRAM, *self.argv],
            cwd=self.home,
            env=environment(self.home, SEEN=str(self.seen), **self.env),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.PIPE,
        )

    def run(self) -> Done:
        process = self.started()
        out, err = process.communicate(timeout=120)
        return Done(process.returncode, out.decode(), err.decode())

    @property
    def seen(self) -> Path:
        return self.home / ".seen"

    @property
    def heavy(self) -> list[str]:
        """What the last run has loaded of the heavy modules."""
        return self.seen.read_text().split()

    @property
    def memos(self) -> list[Path]:
        folder = self.home / ".cache" / "vectorless-rag" / "direct"
        return sorted(folder.iterdir()) if folder.is_dir() else []

    def forget(self) -> None:
        shutil.rmtree(self.home / ".cache", ignore_errors=True)

    def records(self) -> list[dict[str, Any]]:
        """The records of all runs, without names of runs and times."""
        found = []
        for run in sorted((self.home / "data" / "runs").iterdir()):
            lines = (run / "documents.jsonl").read_text().splitlines()
            manifest = json.loads((run / "manifest.json").read_text())
            assert run.name == manifest.pop("run_id")
            assert manifest.pop("ended_at")
            documents = [json.loads(line) for line in lines]
            assert all(document.pop("at") for document in documents)
            found.append({"documents": documents, "manifest": manifest})
        return found


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose documents have artifacts."""
    home = tmp_path_factory.mktemp("built")
    for name in ("a.pdf", "b.pdf"):
        pdf(home / name, [*PAGES, name])
    assert 0 == Desk(home=home, argv=("ingest", "a.pdf", "b.pdf")).run().status
    shutil.rmtree(home / ".cache")
    shutil.rmtree(home / "data" / "runs")
    return home


@pytest.fixture
def desk(built: Path, tmp_path: Path) -> Desk:
    """A copy of it."""
    home = tmp_path / "home"
    shutil.copytree(built, home)
    return Desk(home=home)


def remembered(desk: Desk) -> Done:
    """Run it the ordinary way, and see that it leaves a memo."""
    done = desk.run()
    assert "typer" in desk.heavy
    assert 1 == len(desk.memos)
    return done


@pytest.mark.parametrize(
    "argv",
    [
        ("ingest", "a.pdf"),
        ("ingest", "a.pdf", "--json"),
        ("ingest", "--quiet", "b.pdf", "./a.pdf", "--json", "--jobs", "2"),
        ("ingest", "a.pdf", "--mode", "auto", "--data-dir", "../home/data"),
    ],
)
def test_nobody_can_tell_how_it_was_answered(desk: Desk, argv: tuple[str, ...]) -> None:
    """The same bytes, status and record, with none of the heavy modules loaded."""
    asked = replace(desk, argv=argv)
    first = remembered(asked)
    second = asked.run()

    assert [] == asked.heavy
    one, other = desk.records()
    by_path = [sorted(r["documents"], key=json.dumps) for r in (one, other)]
    assert by_path[0] == by_path[1]
    assert one["manifest"] == other["manifest"]
    assert said(first) == said(second)
    assert 0 == second.status


def said(done: Done) -> tuple[int, list[str], list[str]]:
    """What was printed, whatever the run is called; two at a time end in any order."""
    err = re.sub(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{12}", "RUN", done.err)
    order = sorted if "2 documents" in err else list
    return done.status, order(done.out.splitlines()), order(err.splitlines())


def test_colours_are_those_of_the_ordinary_way(desk: Desk) -> None:
    """Rich draws them, and it alone is loaded for it."""
    # Quiet: how often a spinner turns depends on the machine.
    argv = ("ingest", "a.pdf", "--quiet")
    env = {"FORCE_COLOR": "1", "TERM": "xterm-256color"}
    coloured = replace(desk, argv=argv, env=env)
    first, second = remembered(coloured), coloured.run()

    assert ["rich"] == desk.heavy
    assert "\x1b[36mreused" in second.err
    assert first == second


@pytest.mark.parametrize(("reader", "status"), [("nobody", 141), ("a full disk", 10)])
def test_what_nobody_can_read_ends_alike(desk: Desk, reader: str, status: int) -> None:
    """With the same status, and the same word of it."""
    asked = replace(desk, argv=("ingest", "a.pdf", "--json"))
    ordinary = unread(asked, reader)
    desk.forget()
    remembered(asked)
    repeated = unread(asked, reader)

    assert [] == asked.heavy
    assert status == repeated[0]
    assert ordinary == repeated


def unread(desk: Desk, reader: str) -> tuple[int, bytes]:
    end, out = os.pipe()
    os.close(end)
    if reader == "a full disk":
        os.close(out)
        out = os.open("/dev/full", os.O_WRONLY)
    process = desk.started(out)
    os.close(out)
    _, err = process.communicate(timeout=120)
    return process.returncode, err


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 5)]
)
def test_a_direct_answer_can_be_interrupted(
    desk: Desk, number: signal.Signals, status: int
) -> None:
    """As any command: while it reads a document, for one."""
    remembered(desk)
    slow = f"""
import os
from vectorless_rag.cli import direct
def identify(*args, **options):
    os.kill(os.getpid(), {int(number)})
direct.identify = identify
"""
    process = desk.started(before=slow)
    _, err = process.communicate(timeout=120)

    assert [] == desk.heavy
    assert status == process.returncode
    assert 1 == len(err.splitlines())


def test_a_memo_is_its_owners_alone_and_holds_no_address(desk: Desk) -> None:
    """Passwords stand in addresses; neither is kept."""
    secret = "hunter2"  # noqa: S105
    env = {
        "VECTORLESS_RAG_API_BASE": f"http://me:{secret}@127.0.0.1:9/v1",
        "VECTORLESS_RAG_LEDGER_URL": f"postgresql://me:{secret}@127.0.0.1:9/ledger",
        "OPENAI_API_KEY": secret,
    }
    remembered(replace(desk, env=env))
    (memo,) = desk.memos

    assert secret not in memo.read_text()
    assert "Apples" not in memo.read_text()
    assert 0o600 == stat.S_IMODE(memo.stat().st_mode)
    assert 0o700 == stat.S_IMODE(memo.parent.stat().st_mode)
    assert 0 == replace(desk, env=env).run().status
    assert [] == desk.heavy


Change = Callable[[Desk], Desk]


def _another_option(desk: Desk) -> Desk:
    return replace(desk, argv=(*desk.argv, "--json"))


def _a_setting(desk: Desk) -> Desk:
    return replace(desk, env={"VECTORLESS_RAG_MAX_PAGES": "1"})


def _a_wrong_setting(desk: Desk) -> Desk:
    return replace(desk, env={"VECTORLESS_RAG_MODE": "fast"})


def _a_misspelt_setting(desk: Desk) -> Desk:
    return replace(desk, env={"vectorless_rag_modle": "offline/extractive"})


def _another_mode(desk: Desk) -> Desk:
    return replace(desk, env={"VECTORLESS_RAG_MODE": "standard"})


def _another_folder(desk: Desk) -> Desk:
    other = desk.home / "other"
    other.mkdir()
    shutil.copy(desk.home / "a.pdf", other)
    return replace(desk, home=other, env={"HOME": str(desk.home)})


def _other_bytes(desk: Desk) -> Desk:
    pdf(desk.home / "a.pdf", ["1 Plums\nPlums are blue.", "2 Figs\nFigs are brown."])
    return desk


def _another_document_that_is_built(desk: Desk) -> Desk:
    shutil.copy(desk.home / "b.pdf", desk.home / "a.pdf")
    return desk


def _no_document(desk: Desk) -> Desk:
    (desk.home / "a.pdf").unlink()
    return desk


def _a_folder_for_a_document(desk: Desk) -> Desk:
    (desk.home / "a.pdf").unlink()
    (desk.home / "a.pdf").mkdir()
    shutil.copy(desk.home / "b.pdf", desk.home / "a.pdf")
    return desk


def _a_pipe_for_a_document(desk: Desk) -> Desk:
    (desk.home / "a.pdf").unlink()
    os.mkfifo(desk.home / "a.pdf")
    return desk


def artifacts(desk: Desk) -> list[Path]:
    return sorted(desk.home.glob("data/store/artifacts/*/0/artifact.json"))


def _no_artifacts(desk: Desk) -> Desk:
    shutil.rmtree(desk.home / "data" / "store" / "artifacts")
    return desk


def _altered_artifacts(desk: Desk) -> Desk:
    for path in artifacts(desk):
        path.chmod(0o644)
        path.write_bytes(path.read_bytes().replace(b"Apples", b"Lemons"))
    return desk


def _no_blobs(desk: Desk) -> Desk:
    shutil.rmtree(desk.home / "data" / "store" / "blobs")
    return desk


def _moved_data(desk: Desk) -> Desk:
    (desk.home / "data").rename(desk.home / "moved")
    return desk


def _a_memo_cut_short(desk: Desk) -> Desk:
    for memo in desk.memos:
        memo.write_bytes(memo.read_bytes()[:-5])
    return desk


def _an_altered_memo(desk: Desk) -> Desk:
    for memo in desk.memos:
        memo.write_bytes(memo.read_bytes().replace(b'"auto"', b'"flash"'))
    return desk


def _a_memo_of_another_command(desk: Desk) -> Desk:
    (memo,) = desk.memos
    remembered_too = replace(desk, argv=("ingest", "b.pdf"))
    remembered_too.run()
    (other,) = set(desk.memos) - {memo}
    other.replace(memo)
    return desk


def _a_memo_that_others_may_write(desk: Desk) -> Desk:
    for memo in desk.memos:
        memo.chmod(0o622)
    return desk


def _a_folder_that_others_may_write(desk: Desk) -> Desk:
    desk.memos[0].parent.chmod(0o777)
    return desk


def _a_memo_by_a_link(desk: Desk) -> Desk:
    (memo,) = desk.memos
    memo.rename(desk.home / "memo")
    memo.symlink_to(desk.home / "memo")
    return desk


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (_another_option, 0),
        (_a_setting, 0),
        (_a_wrong_setting, 2),
        (_a_misspelt_setting, 2),
        (_another_mode, 0),
        (_another_folder, 0),
        (_other_bytes, 0),
        (_another_document_that_is_built, 0),
        (_no_document, 3),
        (_a_folder_for_a_document, 0),
        (_a_pipe_for_a_document, 3),
        (_no_artifacts, 0),
        (_altered_artifacts, 20),
        (_no_blobs, 20),
        (_moved_data, 0),
        (_a_memo_cut_short, 0),
        (_an_altered_memo, 0),
        (_a_memo_of_another_command, 0),
        (_a_memo_that_others_may_write, 0),
        (_a_folder_that_others_may_write, 0),
        (_a_memo_by_a_link, 0),
    ],
)
def test_what_is_not_as_it_was_goes_the_ordinary_way(
    desk: Desk, change: Change, status: int
) -> None:
    """And comes to what it would come to without any memo."""
    remembered(desk)
    changed = change(desk)
    done = changed.run()

    assert status == done.status
    assert "typer" in changed.heavy


def _altered_build(folder: Path) -> None:
    path = folder / "build" / "pageindex" / "pageindex" / "utils.py"
    path.write_text(path.read_text() + "\n")


def _altered_patch(folder: Path) -> None:
    path = max((folder / "patches").glob("*.patch"))
    path.write_text(path.read_text() + "\n")


def _altered_runtime(folder: Path) -> None:
    path = folder / "src" / "vectorless_rag" / "pageindex_runtime" / "pieces.py"
    path.write_text(path.read_text() + "\n")


def _touched_code(folder: Path) -> None:
    path = folder / "src" / "vectorless_rag" / "settings.py"
    path.touch()


def _replaced_code(folder: Path) -> None:
    path = folder / "src" / "vectorless_rag" / "settings.py"
    its = path.stat()
    path.write_bytes(path.read_bytes().replace(b"5000", b"5001"))
    os.utime(path, ns=(its.st_atime_ns, its.st_mtime_ns))


@pytest.mark.parametrize(
    ("alter", "status"),
    [
        (_altered_build, 20),
        (_altered_patch, 10),
        (_altered_runtime, 0),
        (_touched_code, 0),
        (_replaced_code, 0),
    ],
)
def test_other_code_answers_for_itself(
    desk: Desk, tmp_path: Path, alter: Callable[[Path], None], status: int
) -> None:
    """A program that was upgraded in place, or altered, has no memos."""
    folder = tmp_path / "installed"
    left_out = shutil.ignore_patterns("__pycache__")
    for name in ("src", "patches", "build/pageindex"):
        shutil.copytree(REPOSITORY / name, folder / name, ignore=left_out)
    shutil.copy(REPOSITORY / "upstream.toml", folder)
    there = replace(desk, env={"PYTHONPATH": str(folder / "src")})
    remembered(there)
    assert (0, []) == (there.run().status, there.heavy)
    alter(folder)
    done = there.run()

    assert status == done.status
    assert "typer" in there.heavy


@pytest.mark.parametrize(
    "argv",
    [
        ("ingest", "."),
        ("ingest", "[ab].pdf"),
        ("ingest", "@list"),
        ("ingest", "a.pdf", "--rebuild"),
        ("ingest", "a.pdf", "--run", "night"),
        ("ingest", "a.pdf", "missing.pdf"),
        ("ingest", *(f"{number}.pdf" for number in range(17))),
    ],
)
def test_what_may_mean_something_else_is_not_remembered(
    desk: Desk, argv: tuple[str, ...]
) -> None:
    """Folders, patterns, lists, rebuilds, named runs, failures, and many at once."""
    (desk.home / "list").write_text("a.pdf\n")
    for number in range(17):
        shutil.copy(desk.home / "a.pdf", desk.home / f"{number}.pdf")
    replace(desk, argv=argv).run()

    assert "typer" in desk.heavy
    assert [] == desk.memos


def test_many_at_once_are_answered_alike(desk: Desk) -> None:
    """No one disturbs another, whether there is a memo yet or not."""
    first = [desk.started() for _ in range(3)]
    said = [process.communicate(timeout=120) for process in first]
    assert 1 == len(desk.memos)
    second = [desk.started() for _ in range(3)]
    said += [process.communicate(timeout=120) for process in second]

    assert [0] * 6 == [process.returncode for process in (*first, *second)]
    assert 1 == len(set(said))
    assert 6 == len(desk.records())
    assert [] == desk.heavy


@pytest.mark.parametrize("what", ["a file", "closed", "no home"])
def test_a_cache_that_takes_nothing_disturbs_nobody(desk: Desk, what: str) -> None:
    """The ordinary way needs none."""
    cache = desk.home / ".cache"
    env = {}
    match what:
        case "a file":
            cache.write_text("")
        case "closed":
            cache.mkdir(mode=0o500)
            (cache / "vectorless-rag").write_text("")
        case _:
            env = {"XDG_CACHE_HOME": "\udc80/\n", "HOME": "/nowhere"}
    there = replace(desk, env=env)

    assert (0, 0) == (there.run().status, there.run().status)


def test_old_memos_are_removed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """There are never more than some, and none is older than a month."""
    remembered(desk)
    (memo,) = desk.memos
    for number in range(5):
        shutil.copy(memo, memo.with_name(f"{number}"))
    os.utime(memo.with_name("0"), (0, 0))
    monkeypatch.setattr(memos, "MOST_MEMOS", 4)
    memos.tidy(memo.parent)

    assert 4 == len(desk.memos)
    assert "0" not in [path.name for path in desk.memos]


texts = st.sampled_from(["a.pdf", "b.pdf", "/etc/passwd", "data", "", "auto", "a" * 64])
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | texts,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)

TRUSTED = {"as_json", "quiet"}
"""How the answer is shown; what it is, no memo says."""


@given(
    data=st.binary(max_size=200) | anything.map(lambda raw: json.dumps(raw).encode())
)
def test_what_is_no_memo_is_none(data: bytes) -> None:
    """Whatever lies there, with a seal or without."""
    seal = sha256(b"key" + data).encode() + b"\n"

    assert unsealed("key", data) is None
    assert unsealed("key", seal + data) is None


@given(place=st.integers(0, 300), bit=st.integers(0, 7))
def test_a_seal_is_of_these_bytes_under_this_name(place: int, bit: int) -> None:
    """One bit of them, or another name, and it is no memo."""
    memo = Memo(
        asked=Asked.of(Settings()),
        build_dir="/build",
        data_dir="/data",
        source_roots=(),
        max_source_bytes=1,
        log_level="warning",
        jobs=1,
        as_json=False,
        quiet=True,
        documents=(),
    )
    whole = bytearray(sealed("key", memo))
    assert memo == unsealed("key", bytes(whole))
    assert unsealed("other", bytes(whole)) is None

    whole[place] ^= 1 << bit
    assert unsealed("key", bytes(whole)) is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_hostile_memo_changes_no_answer(
    desk: Desk,
    data: st.DataObject,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Even one that is sealed by who knows how: it is answered so, or not at all."""
    monkeypatch.chdir(desk.home)
    monkeypatch.setenv("XDG_CACHE_HOME", str(desk.home / ".cache"))
    command = Command.of(desk.argv)
    key, memo = command._key, true_memo(desk)
    assert key is not None
    raw = json.loads(encode(memo))
    name = data.draw(st.sampled_from(sorted(raw.keys() - TRUSTED)))
    if name == "documents" and data.draw(st.booleans()):
        raw[name] = raw[name] * data.draw(st.integers(0, 3))
    elif name in {"asked", "documents"} and data.draw(st.booleans()):
        inner = raw[name] if name == "asked" else raw[name][0]
        inner[data.draw(st.sampled_from(sorted(inner)))] = data.draw(anything)
    else:
        raw[name] = data.draw(anything)
    body = json.dumps(raw, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    whole = body.encode("utf-8", "surrogatepass")
    place = desk.home / ".cache" / "vectorless-rag" / "direct" / key
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    place.write_bytes(sha256(key.encode() + whole).encode() + b"\n" + whole)
    place.chmod(0o600)
    capsys.readouterr()
    status = command.answer()
    said = capsys.readouterr()

    (built,) = {r for r in artifacts(desk) if recipe_of_a(desk) in str(r)}
    if status is None:
        assert ("", "") == (said.out, said.err)
    else:
        assert f"artifact {built.parent}" in said.err
        assert said.err.startswith("reused  a.pdf  3 pages, 2 nodes\n")


def true_memo(desk: Desk) -> Memo:
    """The one that the program leaves for this desk."""
    if not (desk.home / "true").exists():
        remembered(desk)
        (desk.home / "true").write_bytes(desk.memos[0].read_bytes())
        desk.forget()
    name = (desk.home / "true").read_bytes()
    memo = decode(Memo, name.partition(b"\n")[2], "memo")
    assert sealed("key", memo) != sealed("other", memo)
    return memo


def recipe_of_a(desk: Desk) -> str:
    return true_memo(desk).documents[0].recipe_hash
