"""``drift``, ``upgrade`` and ``edit``, as a maintainer types them."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from vectorless_rag.upstream.drift import quiet, report, reports, require_proofs
from vectorless_rag.upstream.drift_text import matrix, row_lines, summary, to_json
from vectorless_rag.upstream.releases import between, look_up, read_releases
from vectorless_rag.upstream.upgrade import STEPS, edit, upgrade
from vectorless_rag.upstream.verdicts import Report, Row

SHELL = Path("build", "patch-shell")
_OTHER = 20


def drift(
    root: Path,
    *,
    to: str | None = None,
    wanted: str | None = None,
    as_json: bool = False,
    page: Path | None = None,
    jobs: int = 1,
) -> int:
    """
    Say what becomes of each patch on other releases.

    Args:
        root: Folder that holds the pin, the series and the proofs.
        to: One release; default: the newest that is known.
        wanted: Several releases, such as ``0.4.0..0.4.7``, in its place.
        as_json: Print one object and nothing else.
        page: File that takes the whole as a page of Markdown.
        jobs: Releases at once.

    Returns:
        0 if the series could move as it is; a matrix only informs, so 0 too.

    Raises:
        VectorlessRagError: as `vectorless_rag.upstream.drift.reports`.
    """
    # Before a release is looked up: an installed package is not to be written to.
    require_proofs(root)
    if wanted is not None:
        found = _survey(root, wanted, jobs=jobs)
    else:
        release = look_up(root, to) if to else read_releases(root)[-1]
        found = [report(root, release, tell=quiet if as_json else _tell)]
    if as_json:
        _say(json.dumps(to_json(root, found)))
    elif page is None:
        for each in found:
            _summarise(each)
    if page is not None:
        page.write_text(matrix(root, found), encoding="utf-8")
    good = wanted is not None or all(each.good for each in found)
    return 0 if good else _OTHER


def add_verbs(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the three verbs to a command line."""
    verb = verbs.add_parser("drift", help="try the series on other releases")
    verb.set_defaults(run=_drift)
    which = verb.add_mutually_exclusive_group()
    which.add_argument("--to", metavar="VERSION", help="one release")
    which.add_argument("--matrix", metavar="A..B", help="several, or a list A,B")
    verb.add_argument("--json", action="store_true", help="print one object")
    verb.add_argument("--write", type=Path, help="a page of Markdown")
    verb.add_argument("--jobs", type=int, default=1, help="releases at once")
    verb = verbs.add_parser("upgrade", help="try one, and open what came of it")
    verb.set_defaults(run=_upgrade)
    verb.add_argument("version")
    verb.add_argument("repository", type=Path, nargs="?")
    verb = verbs.add_parser("edit", help="stop at one patch of a scratch repository")
    verb.set_defaults(run=_edit)
    verb.add_argument("number", help="of the patch, four digits")
    verb.add_argument("repository", type=Path, nargs="?")


def _drift(arguments: argparse.Namespace) -> int:
    return drift(
        arguments.root,
        to=arguments.to,
        wanted=arguments.matrix,
        as_json=arguments.json,
        page=arguments.write,
        jobs=arguments.jobs,
    )


def _upgrade(arguments: argparse.Namespace) -> int:
    root = arguments.root
    require_proofs(root)
    dest = arguments.repository or root / SHELL
    found = upgrade(root, look_up(root, arguments.version), dest, tell=_tell)
    _summarise(found)
    _say(f"\nwhat landed is committed in {_near(dest)}")
    _say(f"what is left to do, from its {STEPS}:\n")
    for line in (dest / STEPS).read_text(encoding="utf-8").splitlines():
        if line.startswith("- [ ] "):
            _say(line)
    return 0


def _edit(arguments: argparse.Namespace) -> int:
    repository = arguments.repository or arguments.root / SHELL
    stopped = edit(repository, arguments.number)
    place = _near(repository)
    if stopped.conflicts:
        _say(f"{stopped.number} conflicts in {', '.join(stopped.conflicts)}")
        _say(f"in {place}: resolve, git add, git rebase --continue")
    else:
        _say(f"{stopped.number} stands as the last commit of {place}")
        _say("edit, git commit --all --amend, git rebase --continue")
    _say("then: make patch-export")
    return 0


def _survey(root: Path, wanted: str, *, jobs: int) -> Sequence[Report]:
    found = []
    for each in reports(root, between(root, wanted), jobs=jobs):
        # It takes minutes a release.
        sys.stderr.write(f"{summary(each)}\n")
        found.append(each)
    return found


def _summarise(found: Report) -> None:
    for line in found.holding():
        _say(line)
    _say(summary(found))


def _near(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _tell(row: Row) -> None:
    for line in row_lines(row):
        _say(line)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
