#!/usr/bin/env python3
"""
Compare the flash trees of real PDF files just before and just after a patch.

    scripts/compare_flash_trees.py --with PyPDF2-3.0.1.whl PDF|FOLDER...

No model is asked: the trees are what the layout shows. Without files, those of the
folder that VECTORLESS_RAG_CORPUS names are compared. Exit status 0: every tree and
every span of text is the same, byte for byte.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from vectorless_rag.upstream.apply import apply_series  # noqa: E402
from vectorless_rag.upstream.pin import read_pin  # noqa: E402
from vectorless_rag.upstream.series import read_series  # noqa: E402
from vectorless_rag.upstream.workflow import unpatched  # noqa: E402

TIMEOUT_S = 300

# Runs in a process of its own: two trees have modules of the same name.
CHILD = """
import hashlib, json, logging, sys
logging.disable(logging.CRITICAL)
from pageindex.flash import main, page_index_flash

parse = main.parse_charlevel_meta_parallel
parsed = []

def kept(*args, **options):
    pages, meta = parse(*args, **options)
    for page in pages:
        parsed.append([spelled(span) for span in page])
    return pages, meta

def spelled(span):
    box = span.secondary_slot
    corners = [getattr(box, name) for name in type(box).__slots__]
    names = ("text", "font_family", "font_name", "font_size", "previous_slot")
    return [getattr(span, name) for name in names] + corners

def nodes(tree):
    return sum(1 + nodes(node.get("nodes") or []) for node in tree)

main.parse_charlevel_meta_parallel = kept
try:
    result = page_index_flash(sys.argv[1], summary=False, optimize=False)
    found = {"pages": len(parsed), "spans": sum(map(len, parsed)),
             "spans_sha256": hashlib.sha256(repr(parsed).encode()).hexdigest(),
             "source": result["toc_source"], "title": result["doc_title"],
             "nodes": nodes(result["structure"]), "tree": result["structure"]}
except Exception as error:
    found = {"refused": type(error).__name__}
print("\\n" + json.dumps(found))
"""


def main() -> int:
    """Print one line a file, and say whether all are equal."""
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    asked.add_argument("--patch", default="0060", help="the patch to look at")
    asked.add_argument(
        "--with",
        dest="extra",
        action="append",
        default=[],
        help="folder or wheel that the tree before the patch needs",
    )
    asked.add_argument("files", nargs="*", type=Path)
    options = asked.parse_args()
    files = list(pdf_files(options.files or [Path(corpus())]))
    with tempfile.TemporaryDirectory(prefix="compare-") as name:
        before, after = trees(Path(name), options.patch)
        return compare(files, before, after, options.extra)


def corpus() -> str:
    """Return the folder of real documents, or say that none was named."""
    folder = os.environ.get("VECTORLESS_RAG_CORPUS")
    if folder is None:
        sys.exit("name files, or a folder by VECTORLESS_RAG_CORPUS")
    return folder


def pdf_files(given: list[Path]) -> Iterator[Path]:
    """Yield the files, and those in the folders."""
    for path in given:
        yield from sorted(path.rglob("*.pdf")) if path.is_dir() else [path]


def trees(folder: Path, patch: str) -> tuple[Path, Path]:
    """Make the trees before and after *patch* in *folder*."""
    pin, series = read_pin(ROOT), read_series(ROOT)
    ids = [each.id for each in series.patches]
    if patch not in ids:
        sys.exit(f"no patch {patch} in the series")
    place = ids.index(patch)
    for name, count in (("before", place), ("after", place + 1)):
        with unpatched(ROOT, pin) as tree:
            apply_series(tree, pin, series.patches[:count])
            tree.rename(folder / name)
    return folder / "before", folder / "after"


def compare(files: list[Path], before: Path, after: Path, extra: list[str]) -> int:
    """Print the table; return 1 if any file differs, or none could be compared."""
    print(f"{'file':44} {'pages':>5} {'spans':>7} {'nodes':>5} {'source':10} same")
    verdicts = []
    for path in files:
        old, new = flash(path, before, extra), flash(path, after, [])
        verdicts.append(verdict := judged(old, new))
        columns = (new.get(k, "-") for k in ("pages", "spans", "nodes", "source"))
        pages, spans, nodes, source = columns
        print(f"{path.name:44} {pages:>5} {spans:>7} {nodes:>5} {source:10} {verdict}")
    same, different = verdicts.count("yes"), verdicts.count("NO")
    print(f"{same} the same, {different} different")
    return 0 if same and not different else 1


def judged(old: dict[str, Any], new: dict[str, Any]) -> str:
    """Say how a file's two results compare."""
    if "refused" in old and "refused" not in new:
        return f"only after (before: {old['refused']})"
    if old != new:
        return "NO"
    return f"refused by both: {new['refused']}" if "refused" in new else "yes"


def flash(path: Path, tree: Path, extra: list[str]) -> dict[str, Any]:
    """Return what flash finds in *path* with the package in *tree*."""
    folders = [str(tree), *extra, str(ROOT / "src")]
    try:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", CHILD, str(path)],
            env={
                "PYTHONPATH": os.pathsep.join(folders),
                "PYTHONDONTWRITEBYTECODE": "1",
                "PATH": os.defpath,
            },
            cwd=tree,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"refused": f"no end in {TIMEOUT_S} s"}
    lines = done.stdout.decode().splitlines()
    if done.returncode or not lines:
        return {"refused": f"exit {done.returncode}"}
    found: dict[str, Any] = json.loads(lines[-1])
    return found


if __name__ == "__main__":
    sys.exit(main())
