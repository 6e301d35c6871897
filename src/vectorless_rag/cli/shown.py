"""What is told while documents are built, by a display that shows nothing."""

from vectorless_rag.results import IngestResult
from vectorless_rag.wire import Progress


class Shown:
    """Shows nothing while documents are built."""

    def started(self, number: int, name: str) -> None:
        """Take note that document *number* is being worked on."""

    def progressed(self, number: int, progress: Progress) -> None:
        """Take note of how far it is."""

    def done(self, number: int, result: IngestResult) -> None:
        """Take note of how it ended."""
