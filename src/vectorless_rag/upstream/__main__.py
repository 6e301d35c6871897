"""``python -m vectorless_rag.upstream``: needs Python and git, nothing else."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.upstream.check import Wanted, check_proofs, check_series
from vectorless_rag.upstream.checkout import build, read_locked
from vectorless_rag.upstream.export import BASE
from vectorless_rag.upstream.faults import unavailable
from vectorless_rag.upstream.fetch import FileSource, IndexSource, Source, fetch
from vectorless_rag.upstream.lint import questions
from vectorless_rag.upstream.moving import SHELL, add_verbs
from vectorless_rag.upstream.pin import GitSource, read_pin
from vectorless_rag.upstream.record import BuildRecord
from vectorless_rag.upstream.resources import resources_root
from vectorless_rag.upstream.revision import check_revision, write_revision
from vectorless_rag.upstream.verifying import verify
from vectorless_rag.upstream.workflow import open_shell, write_lock, write_series

_DEFECT = 20


def main(argv: Sequence[str]) -> int:
    """Run one verb; return its exit status (design section 9)."""
    arguments = _parser().parse_args(argv)
    try:
        if arguments.root is None:
            arguments.root = resources_root()
        run: Callable[[argparse.Namespace], int] = arguments.run
        return run(arguments)
    except VectorlessRagError as error:
        sys.stderr.write(f"upstream: {error.code}: {error}\n")
        return error.failure.exit_status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="upstream", description=__doc__)
    parser.add_argument("--root", type=Path, help="folder of upstream.toml")
    verbs = parser.add_subparsers(required=True)
    for name, run, text in (
        ("fetch", _fetch, "leave the verified archive in vendor/"),
        ("build", _build, "make the patched upstream"),
        ("verify", _verify, "compare a build with its record, pin and series"),
        ("status", _status, "one line a patch"),
        ("check", _check, "lint, apply, lock, export round trip, proofs"),
        ("export", _export, "write patches/ from a scratch repository"),
        ("shell", _shell, "make a scratch repository to edit the patches in"),
        ("lock", _lock, "write series.lock.json again"),
        ("revision", _revision, "check that changed behaviour has a new number"),
    ):
        verb = verbs.add_parser(name, help=text)
        verb.set_defaults(run=run)
        if name in {"build", "verify"}:
            verb.add_argument("dest", type=Path, nargs="?", help="build folder")
        if name in {"export", "shell"}:
            verb.add_argument("repository", type=Path, nargs="?")
        if name == "export":
            verb.add_argument("--base", default=BASE, help="commit of the bare tree")
        if name == "check":
            _add_check(verb)
        if name == "revision":
            verb.add_argument("--write", action="store_true", help="raise and record")
        if name not in {"status", "revision"}:
            _add_source(verb)
    add_verbs(verbs)
    return parser


def _add_source(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--source", choices=("index", "git", "file"))
    verb.add_argument("--file", type=Path, help="wheel, archive or folder")
    verb.add_argument("--git-url", help="repository, or a local mirror's path")
    verb.add_argument("--git-commit", help="40 hexadecimal digits")
    verb.add_argument("--git-tree", help="id of the commit's tree, to be checked")


def _add_check(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--no-proofs", action="store_true", help="stop before proofs")
    verb.add_argument("--only", nargs="+", default=(), help="numbers to prove")
    verb.add_argument("--repeat", type=int, default=3, help="runs of the FAIL side")
    verb.add_argument("--jobs", type=int, default=2, help="processes at once")
    verb.add_argument(
        "--no-changes", action="store_true", help="don't put changed lines back"
    )
    verb.add_argument("--leave-one-out", action="store_true", help="drop each patch")


def _source(arguments: argparse.Namespace) -> Source | None:
    if arguments.source == "index":
        return IndexSource()
    if arguments.source == "file" or arguments.file is not None:
        if arguments.file is None:
            raise unavailable("--source file needs --file")
        return FileSource(path=arguments.file)
    if arguments.source != "git" and arguments.git_url is None:
        return None
    if arguments.git_url is not None and arguments.git_commit is not None:
        return GitSource(
            url=arguments.git_url,
            commit=arguments.git_commit,
            tree=arguments.git_tree,
        )
    pinned = read_pin(arguments.root).git
    if pinned is None:
        raise unavailable("no [git] in upstream.toml, nor --git-url and --git-commit")
    return pinned


def _dest(arguments: argparse.Namespace) -> Path:
    given: Path | None = arguments.dest
    return given or arguments.root / "build" / "pageindex"


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _fetch(arguments: argparse.Namespace) -> int:
    _say(str(fetch(arguments.root, source=_source(arguments))))
    return 0


def _build(arguments: argparse.Namespace) -> int:
    dest = _dest(arguments)
    _say_record(build(arguments.root, dest, source=_source(arguments)), dest)
    return 0


def _verify(arguments: argparse.Namespace) -> int:
    dest = _dest(arguments)
    _say_record(verify(arguments.root, dest), dest)
    return 0


def _say_record(record: BuildRecord, dest: Path) -> None:
    _say(
        f"pageindex {record.pageindex_version}, {len(record.patches)} patches, "
        f"tree {record.tree_sha256[:12]}: {dest}"
    )


def _status(arguments: argparse.Namespace) -> int:
    pin, series, _ = read_locked(arguments.root)
    _say(f"upstream {pin.name} {pin.version}, revision {pin.revision}")
    for patch in series.patches:
        drop, status = (
            " ".join(patch.values(name)) for name in ("Drop-When", "Upstream-Status")
        )
        _say(f"{patch.id}  {patch.title}  |  {status}  |  drop when {drop}")
    return 0


def _check(arguments: argparse.Namespace) -> int:
    source = _source(arguments)
    findings = check_series(arguments.root, source=source)
    _, series, _ = read_locked(arguments.root)
    for question in questions(series):
        _say(f"ask   {question}")
    for finding in findings:
        _say(f"FAIL  {finding}")
    if not findings:
        _say(f"ok    {len(series.patches)} patches apply, lock and export agree")
    if arguments.no_proofs:
        return _DEFECT if findings else 0
    wanted = Wanted(
        only=frozenset(arguments.only),
        repeat=arguments.repeat,
        jobs=arguments.jobs,
        changes=not arguments.no_changes,
        leave_one_out=arguments.leave_one_out,
    )
    good = not findings
    for line in check_proofs(arguments.root, wanted, source=source):
        _say(line.text)
        good = good and line.good
    return 0 if good else _DEFECT


def _export(arguments: argparse.Namespace) -> int:
    repository = arguments.repository or arguments.root / SHELL
    source = _source(arguments)
    lock = write_series(arguments.root, repository, base=arguments.base, source=source)
    _say(f"{len(lock.patches)} patches, patch_sha256 {lock.patch_sha256}")
    return 0


def _shell(arguments: argparse.Namespace) -> int:
    repository = arguments.repository or arguments.root / SHELL
    open_shell(arguments.root, repository, source=_source(arguments))
    _say(str(repository))
    return 0


def _lock(arguments: argparse.Namespace) -> int:
    lock = write_lock(arguments.root, source=_source(arguments))
    _say(f"{len(lock.patches)} patches, patch_sha256 {lock.patch_sha256}")
    return 0


def _revision(arguments: argparse.Namespace) -> int:
    if arguments.write:
        now = write_revision(arguments.root)
        _say(f"revision {now.revision}, patch_sha256 {now.patch_sha256[:12]}")
        return 0
    findings = check_revision(arguments.root)
    for finding in findings:
        _say(f"FAIL  {finding}")
    if not findings:
        _say("ok    the revision is the one of this behaviour")
    return _DEFECT if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
