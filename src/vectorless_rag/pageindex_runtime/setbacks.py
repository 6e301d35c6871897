"""Which failures of one step leave the rest of the work worth doing."""

from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.pageindex_runtime.wiring import is_terminal


def is_fatal(error: BaseException) -> bool:
    """
    Say whether *error* ends the run.

    A prompt that failed, or a step that found nothing, does not: another way, or
    another part of the document, may still be read.
    """
    if isinstance(error, VectorlessRagError) and error.code is Code.NO_STRUCTURE:
        return False
    return is_terminal(error)
