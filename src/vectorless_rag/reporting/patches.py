"""The patch series as a report tells it: what breaks without each patch."""

import re
from pathlib import Path

from vectorless_rag.reporting.facts import PatchFacts
from vectorless_rag.upstream.mailbox import Patch
from vectorless_rag.upstream.series import read_series

_SENTENCE = re.compile(r"(?<=[.])\s+(?=[A-Z])")
_SENTENCES = 2
_LONGEST = 320


def patches_of(root: Path) -> tuple[PatchFacts, ...]:
    """
    Read the series of an installation.

    Raises:
        VectorlessRagError: ``upstream_unavailable`` or ``upstream_drift``.
    """
    return tuple(_facts(patch) for patch in read_series(root).patches)


def _facts(patch: Patch) -> PatchFacts:
    return PatchFacts(
        id=patch.id,
        title=patch.title,
        reason=_reason(patch.prose),
        prose=patch.prose,
        upstream_status=" ".join(patch.values("Upstream-Status")),
        drop_when=" ".join(patch.values("Drop-When")),
        proofs=tuple(proof.node for proof in patch.proofs),
    )


def _reason(prose: str) -> str:
    """Take the first two sentences, or one if they are long."""
    first = " ".join(prose.partition("\n\n")[0].split())
    sentences = _SENTENCE.split(first)
    taken = " ".join(sentences[:_SENTENCES])
    return taken if len(taken) <= _LONGEST else sentences[0]
