"""
Feed altered PDFs to the pipeline until the time is up.

Most go to the stage that reads pages, in a process of its own with limits; every so
often one goes through the whole program. Each must end in an artifact or a known
failure, in time, with nothing left running. The seed is printed: the same seed and
documents give the same altered files.
"""

import argparse
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import bombs  # noqa: E402
import pdfs  # noqa: E402
from vectorless_rag.errors import Code, VectorlessRagError  # noqa: E402
from vectorless_rag.pageindex_adapter import PageIndexAdapter  # noqa: E402
from vectorless_rag.settings import Settings  # noqa: E402
from vectorless_rag.source import copy, identify, read_pages  # noqa: E402

# What a document may be blamed for. Anything else is ours.
BLAMED = {
    Code.SOURCE_UNREADABLE, Code.SOURCE_NO_TEXT, Code.SOURCE_TOO_LARGE,
    Code.SOURCE_ENCRYPTED, Code.CHILD_TIMEOUT, Code.CHILD_MEMORY, Code.CHILD_KILLED,
    Code.CHILD_LIMIT, Code.NO_STRUCTURE, Code.INVALID_TREE,
}  # fmt: skip

LARGEST_BYTES = 400_000
PAGES_S = 20
"""CPU time that reading the pages of one altered file may take."""

WHOLE_S = 90
READABLE = 0.8
MEMORY_BYTES = 2 * 1024**3

# Words that steer a parser; one in the wrong place matters more than any byte.
WORDS = (
    b"/Count", b"/Kids", b"/Length", b"/Type", b"/Pages", b"/Page", b"/Parent",
    b"/Contents", b"/Filter", b"/FlateDecode", b"/LZWDecode", b"/ASCII85Decode",
    b"/DecodeParms", b"/Predictor 15", b"/Columns 99999999", b"/Encrypt", b"/Root",
    b"/Prev 0", b"/XRefStm", b"/ObjStm", b"/N 99999999", b"/First", b"/W[9 9 9]",
    b"/Index[0 99999999]", b"/ToUnicode", b"/Font", b"/Encoding", b"endobj", b"obj",
    b"endstream", b"stream\n", b"xref", b"trailer", b"startxref", b"%%EOF", b"0 R",
    b"1 0 R", b"2 0 R", b"<<", b">>", b"[", b"]", b"(", b")", b"<", b">", b"null",
    b"-1", b"0", b"2147483648", b"99999999999999999999", b"1e999", b"BT", b"ET", b"Tj",
    b"BI", b"ID", b"EI", b"Do", b"begincmap", b"beginbfrange", b"\0", b"\xff" * 8,
)  # fmt: skip


DIGITS = b"0123456789"


def altered(data: bytes, rng: random.Random) -> bytes:
    """Return *data* with one to a few changes of one kind each."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 3, 8, 40))):
        at = rng.randrange(len(out) + 1)
        length = min(rng.choice((1, 4, 30, 300, 5000)), len(out) - at)
        match rng.randrange(8):
            case 0:
                out[at : at + 1] = bytes((rng.randrange(256),))
            case 1:
                word = rng.choice(WORDS)
                out[at : at + len(word)] = word
            case 2:
                out[at:at] = rng.choice(WORDS)
            case 3:
                del out[at : at + length]
            case 4:
                out[at:at] = out[at : at + length]
            case 5:
                other = rng.randrange(len(out) + 1)
                out[at : at + length] = out[other : other + length]
            case 6:
                _change_a_number(out, rng)
            case _:
                del out[rng.choice((at, len(out) // 2, len(out) - 20)) :]
        if not out:
            break
    # What the first look already refuses teaches little.
    return bytes(out) if b"%PDF-" in out[:1024] else b"%PDF-1.7\n" + bytes(out)


def _change_a_number(out: bytearray, rng: random.Random) -> None:
    digits = [i for i in range(min(len(out), 50_000)) if out[i] in DIGITS]
    if digits:
        at = rng.choice(digits)
        out[at : at + 1] = str(rng.choice((0, 1, 7, 65_536, 10**9, -1))).encode()


def read(path: Path) -> str:
    """Take the file as the parent does, and read its pages as the child does."""
    try:
        source = identify(path, max_bytes=10**8)
        copy(source, path.with_suffix(".copy"))
        read_pages(path.with_suffix(".copy"), max_pages=5000)
    except VectorlessRagError as error:
        return error.code
    except MemoryError:
        return Code.CHILD_MEMORY
    finally:
        path.with_suffix(".copy").unlink(missing_ok=True)
    return "ok"


def batch(files: list[Path], report: Path) -> int:
    """Read *files* in a process of its own; return how many were done."""
    if (pid := os.fork()) == 0:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        with report.open("a", encoding="utf-8", buffering=1) as lines:
            for path in files:
                signal.setitimer(signal.ITIMER_PROF, PAGES_S)
                lines.write(f"{read(path)}\n")
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    done = len(report.read_text(encoding="utf-8").splitlines())
    if status == -signal.SIGPROF:
        with report.open("a", encoding="utf-8") as lines:
            lines.write(f"{Code.CHILD_TIMEOUT}\n")
        return done + 1
    if status == 0 and done == len(files):
        return done
    name = signal.Signals(-status).name if status < 0 else f"exit status {status}"
    with report.open("a", encoding="utf-8") as lines:
        lines.write(f"{name if status > 0 else Code.CHILD_KILLED}\n")
    return done + 1


class Fuzz:
    """The documents, what became of the altered ones, and what should not have."""

    def __init__(self, seeds: list[bytes], seed: int, keep: Path) -> None:
        self.seeds = seeds
        self.rng = random.Random(seed)  # noqa: S311
        self.keep = keep
        self.pages: Counter[str] = Counter()
        self.whole: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.readable = b""

    def files(self, folder: Path, count: int) -> Iterator[Path]:
        """Write *count* altered documents."""
        for number in range(count):
            path = folder / f"{number}.pdf"
            # Small ones are read by the thousand; every one gets its turn.
            weights = [len(data) ** -0.7 for data in self.seeds]
            (data,) = self.rng.choices(self.seeds, weights)
            path.write_bytes(altered(data, self.rng))
            yield path

    def read_some(self, count: int) -> None:
        """Read the pages of *count* altered documents."""
        with tempfile.TemporaryDirectory() as name:
            left = list(self.files(Path(name), count))
            while left:
                report = Path(name) / "report"
                report.write_text("", encoding="utf-8")
                done = batch(left, report)
                told = report.read_text(encoding="utf-8").splitlines()
                for path, code in zip(left, told, strict=False):
                    self.note(self.pages, path, code)
                left = left[done:]

    def ingest_one(self, home: Path) -> None:
        """Take one altered document through the whole program."""
        (path,) = self.files(home, 1)
        # Most altered documents end early; one whose pages can be read goes further.
        if self.readable and self.rng.random() < READABLE:
            path.write_bytes(self.readable)
        settings = Settings.load(
            data_dir=home / "data", child_timeout_s=WHOLE_S, grace_s=1,
            child_memory_bytes=MEMORY_BYTES, child_cpu_s=WHOLE_S,
        )  # fmt: skip
        began = time.monotonic()
        try:
            failure = PageIndexAdapter(settings).ingest(path).failure
        except Exception as error:  # noqa: BLE001  (that is what is looked for)
            code = f"the parent raised {type(error).__name__}"
        else:
            code = failure.code.value if failure else "ok"
            if failure and failure.code not in BLAMED:
                code = f"{code}: {failure.detail}"
        if time.monotonic() - began > 2 * WHOLE_S:
            code = f"too late: {code}"
        self.note(self.whole, path, code)

    def note(self, counter: Counter[str], path: Path, code: str) -> None:
        """Count how a document ended, and keep it if it should not have."""
        counter[code] += 1
        if code == "ok":
            self.readable = path.read_bytes()
        if code != "ok" and code not in BLAMED:
            self.keep.mkdir(parents=True, exist_ok=True)
            kept = self.keep / f"{len(self.wrong)}.pdf"
            kept.write_bytes(path.read_bytes())
            self.wrong.append(f"{kept}: {code}")


def documents(places: list[Path]) -> list[bytes]:
    """Return tiny PDFs of every kind, and those below *places* that are not large."""
    found = sorted(path for place in places for path in place.rglob("*.pdf"))
    read = [p.read_bytes() for p in found if p.stat().st_size <= LARGEST_BYTES]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made.pdf"
        kinds = (
            bombs.broken_font, bombs.cyclic_outline, bombs.cyclic_page_tree,
            bombs.self_drawing_form, bombs.wide_font_map,
            lambda path: pdfs.pdf(path, ["1 Title\nSome words.", "", "2 More\nWords."]),
            lambda path: pdfs.encrypted(path, user=""),
            lambda path: pdfs.encrypted(path, user="secret"),
        )  # fmt: skip
        made = [make(path).read_bytes() for make in kinds]
    return made + read


def main() -> int:
    """Alter and read until the time is up; return 1 if anything ended badly."""
    parser = argparse.ArgumentParser(description="Feed altered PDFs to the pipeline.")
    parser.add_argument("documents", nargs="*", type=Path, help="folders of PDFs")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--rounds", type=int, help="instead: the very same every time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=ROOT / "build" / "fuzz")
    given = parser.parse_args()
    places = [ROOT / "tests" / "samples", *given.documents]
    fuzz = Fuzz(documents(places), given.seed, given.keep)
    end, rounds = time.monotonic() + given.seconds, 0
    with tempfile.TemporaryDirectory() as home:
        while rounds < given.rounds if given.rounds else time.monotonic() < end:
            rounds += 1
            fuzz.read_some(200)
            fuzz.ingest_one(Path(home))
    print(f"seed {given.seed}, {len(fuzz.seeds)} documents")
    for what, counter in (("pages", fuzz.pages), ("whole", fuzz.whole)):
        print(f"{what}: {counter.total()} altered: {dict(counter.most_common())}")
    for line in fuzz.wrong:
        print(f"WRONG {line}")
    return 1 if fuzz.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
