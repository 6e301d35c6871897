"""Run git, always with an environment built from nothing unless one is given."""

from collections.abc import Mapping
from pathlib import Path

from vectorless_rag.process import Finished
from vectorless_rag.upstream import tool
from vectorless_rag.upstream.environment import bare_environment, git_program
from vectorless_rag.upstream.faults import unavailable
from vectorless_rag.upstream.tool import last_line


def attempt(
    cwd: Path,
    *args: str,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
) -> Finished:
    """
    Run one git command and return how it ended, whatever that is.

    Args:
        cwd: Folder it runs in.
        args: What stands after ``git``.
        stdin: What it may read.
        env: Its whole environment; by default one built from nothing.
    """
    environment = bare_environment() if env is None else env
    return tool.run((git_program(), *args), cwd=cwd, env=environment, stdin=stdin)


def run(
    cwd: Path,
    *args: str,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
) -> bytes:
    """
    Run one git command that must succeed, and return what it printed.

    Raises:
        VectorlessRagError: ``upstream_unavailable``: git ended with an error;
            its last line is in the message.
    """
    done = attempt(cwd, *args, stdin=stdin, env=env)
    if done.status != 0:
        raise unavailable(f"git {_verb(args)}: {last_line(done.stderr)}")
    return done.stdout


def version() -> str:
    """Return git's version, for example ``2.39.5``."""
    words = run(Path("/"), "--version").decode().split()
    return words[2]


def _verb(args: tuple[str, ...]) -> str:
    # Skips "-c name=value" pairs.
    words = iter(args)
    for word in words:
        if word != "-c":
            return word
        next(words)
    return ""
