"""Run pip as the user would: index, mirror, proxy and certificates are theirs."""

import re
from pathlib import Path

from vectorless_rag.process import Finished
from vectorless_rag.upstream import tool
from vectorless_rag.upstream.environment import python, user_environment

# Wheels only, so that no build code runs.
_WHEELS = ("--no-deps", "--only-binary", ":all:", "--no-input")


def pip(cwd: Path, verb: str, *args: str) -> Finished:
    """
    Run one pip command on listed, hashed wheels and nothing they depend on.

    Args:
        cwd: Folder it runs in.
        verb: ``download`` or ``install``.
        args: What follows.
    """
    return _run(cwd, verb, *_WHEELS, "--require-hashes", *args)


def first_download(cwd: Path, requirement: str) -> Finished:
    """
    Download a wheel whose digest no one has recorded yet.

    Args:
        cwd: Folder that takes the wheel.
        requirement: ``name==version``.
    """
    return _run(cwd, "download", *_WHEELS, "--dest", ".", requirement)


def complaint(done: Finished) -> str:
    """Return what pip says went wrong, in one short line without a password."""
    lines = done.stderr.decode("utf-8", "replace").splitlines()
    errors = [line for line in lines if line.startswith("ERROR:")] or lines[-1:]
    # An index address may hold a password.
    said = re.sub(r"//[^/@\s]+@", "//", errors[-1] if errors else "it said nothing")
    return said.removeprefix("ERROR: ")[:200]


def _run(cwd: Path, *args: str) -> Finished:
    argv = (python(), "-m", "pip", *args)
    return tool.run(argv, cwd=cwd, env=user_environment())
