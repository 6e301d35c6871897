"""
Run proofs against a tree, and judge how they ended.

Each run has fresh bytecode of everything that may have been edited, no network,
no key, and a fixed hash seed and time zone.
"""

import contextlib
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from vectorless_rag.canon import sha256
from vectorless_rag.upstream import environment, tool
from vectorless_rag.upstream.faults import unavailable
from vectorless_rag.upstream.mailbox import Proof
from vectorless_rag.upstream.pip import complaint, pip
from vectorless_rag.upstream.proof_plugin import NODES, OUTCOMES, within

PROOFS = Path("tests", "patches")
CHECKOUT = "VECTORLESS_RAG_CHECKOUT"
"""Environment variable that names the tree under test."""

_PLUGIN = within.__module__
_CONFIG = """
[pytest]
addopts = --import-mode=importlib
python_files = test_*.py
"""
_SOURCE = Path(__file__).resolve().parents[2]
_OLD_PARSER = (b"import PyPDF2", b"from PyPDF2")


class Verdict(StrEnum):
    """How a proof ended."""

    PASS = "PASS"  # noqa: S105  (no password)
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How one proof ended on one tree."""

    verdict: Verdict
    reason: str = ""
    """What happened, for anything but PASS."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How one test, or one case of it, ended."""

    node: str
    phases: dict[str, str]

    raised: tuple[str, ...]
    """Names of the exceptions of its call phase."""

    said: str
    """First line of the last exception."""


@dataclass(frozen=True, kw_only=True)
class Session:
    """What one run of pytest left."""

    tests: tuple[Ended, ...]

    broken: dict[str, str]
    """Files that could not be collected, and why."""

    status: int
    output: str

    def outcome(self, proof: Proof) -> Outcome:
        """Judge one proof: all its cases together."""
        cases = [test for test in self.tests if within(test.node, proof.node)]
        if not cases:
            why = self.broken.get(proof.path, "it was not collected")
            return Outcome(verdict=Verdict.INCONCLUSIVE, reason=why)
        return judge(cases, proof)


def judge(cases: Sequence[Ended], proof: Proof) -> Outcome:
    """
    Judge the cases of one proof.

    Returns:
        PASS if every case passed; FAIL if a case failed in its call phase with a
        declared exception and every other passed or failed so too; otherwise
        INCONCLUSIVE.
    """
    failed = False
    for case in cases:
        for phase in ("setup", "call", "teardown"):
            outcome = case.phases.get(phase, "not reached")
            if outcome == "passed":
                continue
            if phase != "call" or outcome != "failed":
                reason = f"{phase} {outcome}: {case.said}"
                return Outcome(verdict=Verdict.INCONCLUSIVE, reason=reason)
            strange = set(case.raised) - set(proof.exceptions)
            if strange or not case.raised:
                return Outcome(verdict=Verdict.INCONCLUSIVE, reason=case.said)
            failed = True
    if failed:
        said = next(case.said for case in cases if case.raised)
        return Outcome(verdict=Verdict.FAIL, reason=said)
    return Outcome(verdict=Verdict.PASS)


@dataclass(frozen=True, kw_only=True)
class Runner:
    """Runs the proofs of one installation."""

    root: Path
    """Folder that holds ``tests/patches`` and ``requirements``."""

    scratch: Path
    """Folder for reports, new for each check."""

    timeout_s: float = 900

    def run(
        self,
        tree: Path,
        nodes: Sequence[str],
        *,
        stop_early: bool = False,
        edited: Path | None = None,
    ) -> Session:
        """
        Run some proofs in one pytest process.

        Args:
            tree: Folder that holds the ``pageindex`` under test.
            nodes: Ids of the proofs, or folders of them.
            stop_early: Whether the first failure is enough.
            edited: The one file that changed since the last run on *tree*, nothing
                else anywhere; default: anything may have changed.

        Raises:
            VectorlessRagError: ``upstream_unavailable``: pytest ended without a
                report.
        """
        self._forget(tree, edited)
        with tempfile.TemporaryDirectory(dir=self.scratch, prefix="run-") as name:
            report = Path(name) / "outcomes.json"
            listed = Path(name) / "nodes.txt"
            listed.write_text("\n".join(nodes))
            paths = dict.fromkeys(node.partition("::")[0] for node in nodes)
            there = [path for path in paths if (self.root / path).exists()]
            config = Path(name) / "pytest.ini"
            config.write_text(_CONFIG)
            argv = (
                environment.python(), "-P", "-m", "pytest", "-q", "-c", str(config),
                "--rootdir", str(self.root), "--continue-on-collection-errors",
                "--disable-warnings", "-p", "no:cacheprovider",
                "-p", _PLUGIN, f"{OUTCOMES}={report}", f"{NODES}={listed}",
                f"--basetemp={Path(name) / 'tmp'}", f"--maxfail={int(stop_early)}",
                *there,
            )  # fmt: skip
            done = tool.run(
                argv,
                cwd=self.root,
                env=self._environment(tree, Path(name)),
                timeout_s=self.timeout_s,
            )
            output = (done.stdout + done.stderr).decode("utf-8", "replace")
            if not report.is_file():
                line = tool.last_line(done.stderr or done.stdout)
                raise unavailable(f"pytest ended with {done.status}: {line}")
            raw = json.loads(report.read_bytes())
        return Session(
            tests=tuple(
                Ended(
                    node=test["node"],
                    phases=test["phases"],
                    raised=tuple(test["raised"]),
                    said=test["said"],
                )
                for test in raw["tests"]
            ),
            broken=raw["broken"],
            status=done.status,
            output=output,
        )

    @property
    def _bytecode(self) -> Path:
        return self.root / "build" / "proof-bytecode"

    def _forget(self, tree: Path, edited: Path | None) -> None:
        """
        Drop bytecode that an edit of the same size and time could leave stale.

        That of installed packages stays: compiling it takes longer than a proof.
        """
        if edited is not None:
            cached = self._bytecode / edited.parent.relative_to(edited.anchor)
            for compiled in cached.glob(f"{edited.stem}.*.pyc"):
                compiled.unlink()
            return
        for folder in (tree, _SOURCE, self.root / PROOFS.parent):
            cached = self._bytecode / folder.relative_to(folder.anchor)
            shutil.rmtree(cached, ignore_errors=True)

    def _environment(self, tree: Path, home: Path) -> dict[str, str]:
        paths = [tree, _SOURCE, self.root / PROOFS.parent, *old_parser(self.root, tree)]
        return {
            "PATH": environment.bare_environment()["PATH"],
            "HOME": str(home),
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            # Plugins of the environment cost more time than the proofs.
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONHASHSEED": "0",
            "PYTHONPATH": ":".join(str(path) for path in paths),
            "PYTHONPYCACHEPREFIX": str(self._bytecode),
            # Upstream looks for a .env file in every folder above it.
            "PYTHON_DOTENV_DISABLED": "1",
            "HYPOTHESIS_STORAGE_DIRECTORY": str(home / "hypothesis"),
            "LITELLM_MODE": "PRODUCTION",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            CHECKOUT: str(tree),
        }


def old_parser(root: Path, tree: Path) -> tuple[Path, ...]:
    """
    Return the folder of the parser that only unpatched trees import.

    It is no dependency of this project, so it is installed beside the build,
    from its own hashed list, and seen by no other tree.

    Raises:
        VectorlessRagError: ``upstream_unavailable``: pip could not install it.
    """
    if not any(
        name in path.read_bytes() for path in tree.rglob("*.py") for name in _OLD_PARSER
    ):
        return ()
    wanted = root / "requirements" / "proofs.txt"
    if not wanted.is_file():
        return ()
    place = root / "build" / "proof-deps" / sha256(wanted.read_bytes())[:16]
    if not place.is_dir():
        _install(wanted, place)
    return (place,)


def _install(wanted: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as name:
        new = Path(name) / "packages"
        target = ("--target", str(new), "-r", str(wanted))
        done = pip(place.parent, "install", "--quiet", "--no-compile", *target)
        if done.status != 0:
            raise unavailable(f"pip did not install {wanted.name}: {complaint(done)}")
        with contextlib.suppress(FileExistsError):
            # Two runs may want it at once; the first one's is as good.
            new.rename(place)


def run_suite(root: Path, tree: Path) -> int:
    """
    Run every proof against one tree and show pytest's own report.

    Returns:
        0 only if at least one proof ran and every one passed.
    """
    with tempfile.TemporaryDirectory(prefix="proofs-") as name:
        runner = Runner(root=root.resolve(), scratch=Path(name))
        session = runner.run(tree.resolve(), [PROOFS.as_posix()])
    sys.stdout.write(session.output)
    whole = bool(session.tests) and not session.broken
    passed = all(
        case.phases == {"setup": "passed", "call": "passed", "teardown": "passed"}
        for case in session.tests
    )
    return 0 if whole and passed and session.status == 0 else 1
