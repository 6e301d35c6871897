"""The command line: the one place where a failure becomes an exit status."""

import errno
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

from vectorless_rag.errors import Code, VectorlessRagError

_FULL = frozenset({errno.ENOSPC, errno.EIO, errno.EFBIG, errno.EDQUOT})


BROKEN_PIPE = 141
"""Exit status when nobody reads on: what a shell shows for SIGPIPE."""


class Terminated(BaseException):
    """SIGTERM arrived: stop children, close the ledger, exit."""


def entrypoint() -> None:
    """Run as the program ``vectorless-rag``."""
    signal.signal(signal.SIGTERM, _terminate)
    raise SystemExit(main(sys.argv[1:]))


def main(argv: list[str]) -> int:
    """
    Carry out *argv* and return the exit status.

    A foreseen failure gets one line. Any other is a defect of ours: its
    traceback shows, and Python exits with 1.
    """
    try:
        return _carry_out(argv)
    except VectorlessRagError as error:
        return report(error)
    except Terminated:
        return report(VectorlessRagError(Code.CANCELLED))
    except BrokenPipeError:
        _print_no_more()
        return BROKEN_PIPE
    except OSError as error:
        if error.errno not in _FULL:
            raise
        why = f"standard output: {errno.errorcode[error.errno]}"
        _print_no_more()
        return report(VectorlessRagError(Code.STORE_UNWRITABLE, why))
    except KeyboardInterrupt:
        sys.stderr.write("vectorless-rag: interrupted\n")
        return 130


def _print_no_more() -> None:
    # What could not be written must not be tried again at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _carry_out(argv: list[str]) -> int:
    # Imported after the handlers, and no more than is needed.
    command = None
    if argv[:1] == ["ingest"]:
        from vectorless_rag.cli.direct import Command  # noqa: PLC0415

        command = Command.of(argv)
        if (status := command.answer()) is not None:
            return status
    from vectorless_rag.cli.app import app  # noqa: PLC0415

    return app(argv, command)


def report(error: VectorlessRagError) -> int:
    """Print *error* as one line on standard error; return its exit status."""
    sys.stderr.write(f"vectorless-rag: {error.code}: {error}\n")
    return error.failure.exit_status


def _terminate(_number: int, _frame: FrameType | None) -> NoReturn:
    raise Terminated
