"""
Whether a worker that has just begun can do its work at all.

One that does not see the folder of the documents, or was given another server's
address than the jobs are for, fails every job in a moment. Without a trial it would
go through the whole queue like that, while the others build.
"""

import threading
from dataclasses import dataclass, field

from vectorless_rag.errors import Code, Failure

MOST_REFUSALS = 3
"""Jobs that a worker may hand back before it ends for what is wrong with it."""

# It may be the job that is wrong; of several jobs in a row it is the worker.
_OF_THE_WORKER = frozenset({
    Code.SETTINGS_INVALID, Code.SOURCE_UNREADABLE, Code.SOURCE_FORBIDDEN,
    Code.UPSTREAM_UNAVAILABLE, Code.UPSTREAM_DRIFT, Code.UPSTREAM_TAMPERED,
})  # fmt: skip


@dataclass
class Trial:
    """
    Ends with the first job that the worker could begin, and passes for good.

    Any number of threads may tell it of jobs.
    """

    failure: Failure | None = None
    """Why the worker has to end; None: it need not."""

    _passed: bool = False
    _refused: set[str] = field(default_factory=set)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def blames_worker(self, recipe: str, failure: Failure | None) -> bool:
        """
        Tell whether it may be the worker's fault how a job ended, and not the job's.

        Args:
            recipe: The job. The second time it is to blame itself.
            failure: Why it was not built; None: it was.
        """
        with self._guard:
            if failure is None or failure.code not in _OF_THE_WORKER:
                self._passed = True
                return False
            if self._passed or recipe in self._refused:
                return False
            self._refused.add(recipe)
            if len(self._refused) >= MOST_REFUSALS:
                self.failure = failure
            return True
