"""
What a run reports: structlog events on standard error, a name and fields each.

Fields are identifiers, counts and codes. No event carries document text, a
prompt, a reply or a secret.
"""

import logging
import sys
from typing import TYPE_CHECKING, cast

import structlog

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger, Processor


def configure(level: str) -> None:
    """
    Send events of at least *level* to standard error.

    Args:
        level: ``debug``, ``info``, ``warning`` or ``error``. A terminal gets
            lines for people, anything else one JSON object an event.
    """
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


def logger() -> "FilteringBoundLogger":
    """Return the logger of this process."""
    return cast("FilteringBoundLogger", structlog.get_logger())
