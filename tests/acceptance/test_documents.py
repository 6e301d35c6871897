"""
Every command that a document shows is run, and prints what the document says.

Each document has a folder of its own with the sample paper under the names that it
uses, and its commands are typed there one after another, in a real shell. What is
not run is listed with the reason.
"""

import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from acceptance.program import environment, run
from acceptance.test_provider import KEY, sensible
from conftest import REPOSITORY
from documented import DOCUMENTS, Command, blocks, commands
from fault_server import FaultServer, serving
from pdfs import pdf
from vectorless_rag.prices import Prices

pytestmark = [pytest.mark.loopback, pytest.mark.slow]

BASH = shutil.which("bash") or "bash"

NOT_RUN = {
    r"make test": "it is what CI starts with",
    r"make (patches|image|compose)-check": "CI runs it",
    r"make patch-(shell|edit|export).*": "test_upstream_export.py walks it",
    r"make (drift|upgrade|revision).*": "it moves the pin; test_upstream_*.py walk it",
    r"make docker-build": "it takes long; make image-check builds the same",
    r"git (commit|clone|rebase) .*|git commit": "a person's own repository",
    r"\. \.venv/bin/activate": "the program is on the path of this test",
    r"(python3 -m venv|\S*pip install|\S+/bin/pip) .*": "takes packages from an index",
    r"export (VECTORLESS_RAG_STORE|AWS)_.*": "no bucket here; test_bucket.py has one",
    r"export VECTORLESS_RAG_LEDGER_URL=.*": "no server here; make test-fleet has one",
    r"vectorless-rag worker .* --listen .*": "goes on; test_fleet.py runs such a one",
    r"docker .*": "make compose-check types the fleet's; the rest needs an engine",
    r"\S+/python -m llama_cpp\.server .*": "test_local_model.py starts it",
}
"""Commands, as whole lines, and why no test types them."""

GPT = "openai/gpt-4o-mini"
ELSEWHERE = "http://localhost:8080"
"""An address in documents; a server of the test stands there."""


def why_not(command: Command) -> str | None:
    """Say why *command* is not run; None: it is."""
    if command.why_not is not None:
        return command.why_not
    text = command.text.partition("#")[0].strip()
    found = [why for line, why in NOT_RUN.items() if re.fullmatch(line, text)]
    return found[0] if found else None


RUNNABLE = [
    document
    for document in DOCUMENTS
    if any(why_not(command) is None for command in commands(document))
]


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with serving() as server:
        server.script = sensible
        yield server


@pytest.fixture
def folder(tmp_path: Path, sample: Path) -> Path:
    """A reader's folder: a paper, some more, and the program on the path."""
    home = tmp_path / "reader"
    (home / "papers").mkdir(parents=True)
    (home / "tests" / "samples").mkdir(parents=True)
    for name in ("paper.pdf", "sp-intro.pdf", "tests/samples/sp-intro.pdf"):
        shutil.copy(sample, home / name)
    lines = "\n".join("A line that says a little about fruit." for _ in range(30))
    for title in ("Apples", "Pears"):
        pdf(
            home / "papers" / f"{title}.pdf", [f"1 {title}\n{lines}", f"2 End\n{lines}"]
        )
    program = tmp_path / "bin" / "vectorless-rag"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable}\nfrom vectorless_rag.cli import entrypoint\nentrypoint()\n"
    )
    program.chmod(0o755)
    return home


def type_in(text: str, home: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Type *text* into a shell of its own."""
    inherited = environment(home, **more)
    program = home.parent / "bin"
    return subprocess.run(
        [BASH, "-uo", "pipefail", "-c", text],
        cwd=home,
        env={**inherited, "PATH": f"{program}:{inherited['PATH']}"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )


_ELIDED = re.compile(r"…|\b[0-9a-f]{8,64}\b|\d+(?:\.\d+)? s\b|\s+")


def pattern(output: str) -> str:
    """
    Spell what a document shows as a pattern for what is printed.

    ``…`` stands for anything. Digests and seconds differ from run to run, and
    widths from folder to folder.
    """

    def spelled(found: re.Match[str]) -> str:
        if found[0] == "…":
            return r"[\s\S]*?"
        if found[0].isspace():
            return r"\s+"
        return r"[\d.]+ s" if found[0].endswith(" s") else r"[0-9a-f]{8,64}"

    parts, at = [], 0
    for found in _ELIDED.finditer(output.strip()):
        parts += [re.escape(output.strip()[at : found.start()]), spelled(found)]
        at = found.end()
    return "".join([*parts, re.escape(output.strip()[at:])])


def shows(output: str, printed: str) -> bool:
    """
    Whether a document shows what was printed.

    Findings come in the order of digests, which is another with every revision: the
    same lines in another order will do.
    """
    if re.fullmatch(pattern(output), printed.strip()):
        return True
    left = [line.strip() for line in printed.strip().splitlines()]
    for line in map(str.strip, output.strip().splitlines()):
        found = [n for n, said in enumerate(left) if re.fullmatch(pattern(line), said)]
        if not found:
            return False
        del left[found[0]]
    return not left


def demo(home: Path) -> dict[str, str]:
    """Let ``make demo`` stand for what the Makefile does after the set-up."""
    made = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    recipe = made.partition("\ndemo:")[2].partition("\n\n")[0].splitlines()[1:]
    lines = [line.strip("\t@").replace("$(BIN)/", "") for line in recipe]
    assert len(lines) == 2
    text = " && ".join(lines).replace("$(SAMPLE)", f"{home}/sp-intro.pdf")
    # The document shows the first time.
    return {"make demo": f"rm -rf data && {text}"}


def nothing_yet(home: Path) -> dict[str, str]:
    """Leave what a checkout has."""
    shutil.rmtree(home / "papers")
    (home / "paper.pdf").unlink()
    return demo(home)


def audited(home: Path) -> dict[str, str]:
    """
    Prepare what docs/auditing.md asks about: two artifacts, and an altered copy.

    Returns:
        What its names stand for here.
    """
    standing = {}
    for mode, shown in (("flash", "c902e7cc"), ("standard", "c515621f")):
        done = run("ingest", "sp-intro.pdf", "--mode", mode, "--json", home=home)
        standing[shown] = str(done.object["recipe_hash"])[:8]
    # A line that moves with the series.
    place = "page_index_classic.py"
    built = REPOSITORY / "build" / "pageindex" / "pageindex" / place
    lines = built.read_text(encoding="utf-8").splitlines()
    (line,) = (n for n, text in enumerate(lines, 1) if ".grouping import" in text)
    standing[f"{place}:567"] = f"{place}:{line}"
    altered = home / "altered"
    shutil.copytree(home / "data", altered)
    (record,) = altered.glob(f"store/artifacts/{standing['c515621f']}*/0/run.json")
    record.chmod(0o644)
    record.write_bytes(record.read_bytes().replace(b'"calls":', b'"CALLS":', 1))
    with sqlite3.connect(altered / "ledger.sqlite3") as ledger:
        ledger.execute(
            "update holds set prompt_tokens = prompt_tokens + 1 where hold_id ="
            " (select hold_id from holds join attempts using (attempt_id) where"
            " recipe_hash like ? and operation = 'summary_leaf' limit 1)",
            (f"{standing['c902e7cc']}%",),
        )
    return standing


def ingested(home: Path) -> dict[str, str]:
    """Make the data folder that a document about looking at one takes for granted."""
    assert 0 == run("ingest", "paper.pdf", home=home).status
    return {}


PREPARED: dict[str, Callable[[Path], dict[str, str]]] = {
    "README.md": demo,
    "docs/first-hour.md": nothing_yet,
    "docs/auditing.md": audited,
    "docs/report.md": ingested,
}


COLUMNS = {"README.md": "80"}
"""Width of the terminal that a document shows; 120 where none is named."""


@pytest.mark.parametrize("document", RUNNABLE)
def test_what_a_document_tells_works(
    document: str, folder: Path, server: FaultServer
) -> None:
    """Each command ends well, and prints what the document shows, if it shows it."""
    prepare = PREPARED.get(document)
    standing = {} if prepare is None else prepare(folder)
    standing[ELSEWHERE] = server.base.removesuffix("/v1")
    exported, wrong = "", []
    for command in commands(document):
        if why_not(command) is not None:
            continue
        text, more = command.text, {"COLUMNS": COLUMNS.get(document, "120")}
        output = command.output
        for shown, here in standing.items():
            text = text.replace(shown, here)
            output = output and output.replace(shown, here)
        if text.startswith("export "):
            exported += f"{text}\n"
            continue
        asks = GPT in text and " ingest " in text
        if asks and "--api-base" not in text:
            more |= {"VECTORLESS_RAG_API_BASE": server.base, "OPENAI_API_KEY": KEY}
        done = type_in(exported + text, folder, **more)
        if done.returncode != 0:
            wrong.append(f"{command}: exit status {done.returncode}\n{done.stdout}")
        elif output is not None and not shows(output, done.stdout):
            wrong.append(f"{command}: prints\n{done.stdout}")

    assert not wrong, "\n".join(wrong)


def test_what_the_readme_says_it_costs(folder: Path) -> None:
    """The tokens of both algorithms, at the price that is known for the model."""
    price = Prices("{}").find(GPT)
    assert price is not None
    told = re.findall(
        r"^\| (flash|standard) .*\| (\d+) \| ([\d,]+) \| ([\d,]+) \| \$([\d.]+) \|$",
        (REPOSITORY / "README.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    spent = []
    for mode in ("flash", "standard"):
        done = run("ingest", "paper.pdf", "--mode", mode, "--json", home=folder)
        usage = done.object["usage"]
        asked, answered = usage["prompt_tokens"], usage["completion_tokens"]
        nano = price.actual(prompt_tokens=asked, completion_tokens=answered)
        counts = (str(usage["calls"]), f"{asked:,}", f"{answered:,}")
        spent.append((mode, *counts, f"{nano / 10**9:.4f}"))

    assert spent == told


def python_blocks() -> list[str]:
    found = [block for document in DOCUMENTS for block in blocks(document)]
    return [str(block) for block in found if block.language == "python"]


@pytest.mark.parametrize("place", python_blocks())
def test_what_a_document_programs_runs(place: str, folder: Path) -> None:
    """A block of Python is a program."""
    document = place.rpartition(":")[0]
    (body,) = (b.body for b in blocks(document) if str(b) == place)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", body],
        cwd=folder, env=environment(folder), capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip

    assert (0, "") == (done.returncode, done.stderr)
