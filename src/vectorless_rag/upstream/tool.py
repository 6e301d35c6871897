"""Run a tool to its end; what stops it from running is `upstream_unavailable`."""

from collections.abc import Mapping
from pathlib import Path

from vectorless_rag.process import Finished, run_tool
from vectorless_rag.upstream.faults import reason, unavailable

_LONGEST_S = 600.0


def run(
    argv: tuple[str, ...],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdin: bytes = b"",
    timeout_s: float = _LONGEST_S,
) -> Finished:
    """
    Run a program to its end and return how it ended, whatever that is.

    Args:
        argv: The program and its arguments.
        cwd: Folder it runs in.
        env: Its whole environment.
        stdin: What it may read.
        timeout_s: Longest life, in seconds.

    Raises:
        VectorlessRagError: ``upstream_unavailable``: it is not there, its
            folder is not there, or it did not end in time.
    """
    try:
        return run_tool(argv, cwd=cwd, env=env, stdin=stdin, timeout_s=timeout_s)
    except TimeoutError:
        name = Path(argv[0]).name
        raise unavailable(f"{name} ran for more than {timeout_s:g} s") from None
    except OSError as error:
        raise unavailable(f"{Path(argv[0]).name} in {cwd}: {reason(error)}") from None


def last_line(output: bytes) -> str:
    """Return the last line of *output* that is not empty, cut to a message's size."""
    lines = [line for line in output.decode("utf-8", "replace").splitlines() if line]
    return lines[-1][:200] if lines else "no message"
