"""What an operator asks: is it unaltered, is it current, what made it?"""

from vectorless_rag.audit.findings import Finding, Verdict, exit_status, in_order
from vectorless_rag.audit.ledger import verify_bills, verify_built, verify_ledger
from vectorless_rag.audit.provenance import cyclonedx
from vectorless_rag.audit.stale import Staleness, changes, staleness
from vectorless_rag.audit.store import sound_artifacts, verify_artifact, verify_store

__all__ = [
    "Finding",
    "Staleness",
    "Verdict",
    "changes",
    "cyclonedx",
    "exit_status",
    "in_order",
    "sound_artifacts",
    "staleness",
    "verify_artifact",
    "verify_bills",
    "verify_built",
    "verify_ledger",
    "verify_store",
]
