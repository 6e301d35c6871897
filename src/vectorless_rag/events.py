"""
What a run reports: structlog events on standard error, a name and fields each.

Fields are identifiers, counts and codes. No event carries document text, a
prompt, a reply or a secret.
"""

import logging
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from structlog.typing import Processor


class Log:
    """
    Reports events; what is below the least level asked for costs nothing.

    structlog is imported with the first event that is reported: most runs report
    none, and the import takes longer than to look an artifact up.
    """

    def __init__(self) -> None:
        self._level = "warning"
        self._ready = False

    def configure(self, level: str) -> None:
        """Report events of at least *level* from now on."""
        self._level = level
        self._ready = False

    def info(self, event: str, **fields: object) -> None:
        """Report what happened."""
        self._report("info", event, fields)

    def warning(self, event: str, **fields: object) -> None:
        """Report what somebody should look at."""
        self._report("warning", event, fields)

    def error(self, event: str, **fields: object) -> None:
        """Report a defect."""
        self._report("error", event, fields)

    def _report(self, level: str, event: str, fields: dict[str, object]) -> None:
        levels = logging.getLevelNamesMapping()
        if levels[level.upper()] < levels[self._level.upper()]:
            return
        import structlog  # noqa: PLC0415  (see the class)

        if not self._ready:
            _configure(self._level)
            self._ready = True
        getattr(structlog.get_logger(), level)(event, **fields)


_LOG = Log()


def configure(level: str) -> None:
    """
    Send events of at least *level* to standard error.

    Args:
        level: ``debug``, ``info``, ``warning`` or ``error``. A terminal gets
            lines for people, anything else one JSON object an event.
    """
    _LOG.configure(level)


def logger() -> Log:
    """Return the logger of this process."""
    return _LOG


def _configure(level: str) -> None:
    import structlog  # noqa: PLC0415  (see `Log`)

    for_people = sys.stderr.isatty()
    last: Processor = (
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
        if for_people
        else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            last,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[level.upper()]
        ),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
