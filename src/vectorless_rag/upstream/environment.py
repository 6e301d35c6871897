"""
What the tools that fetch and build the upstream may see.

`vectorless_rag.settings` needs pydantic, and the build also runs in a bare
image stage that holds Python and git alone; so this folder has a door of its
own to the environment.
"""

import os
import shutil
import sys
from pathlib import Path

from vectorless_rag.upstream.faults import unavailable


def user_environment() -> dict[str, str]:
    """Return the environment of this process, for pip: mirrors, proxies, keys."""
    return dict(os.environ)  # noqa: TID251  (the module docstring says why)


def python() -> str:
    """Return the interpreter that runs this process."""
    return sys.executable


def git_program() -> str:
    """
    Return the path of git.

    Raises:
        VectorlessRagError: ``upstream_unavailable``: it is not installed.
    """
    found = shutil.which("git")
    if found is None:
        raise unavailable("git is not installed")
    return found


def bare_environment() -> dict[str, str]:
    """
    Build an environment from nothing, so that no one's git settings shape bytes.

    ``diff.noprefix``, ``core.autocrlf``, ``GIT_DIFF_OPTS`` and a dozen more
    change what git writes or where a hunk lands.
    """
    return {
        "PATH": os.pathsep.join([str(Path(git_program()).parent), os.defpath]),
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "TZ": "UTC",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
    }
