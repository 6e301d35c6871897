"""What an operator asks: is it unaltered, is it current, what made it?"""

from vectorless_rag.audit.findings import Finding, Verdict, exit_status, in_order
from vectorless_rag.audit.ledger import verify_bills, verify_ledger
from vectorless_rag.audit.store import verify_artifact, verify_store

__all__ = [
    "Finding",
    "Verdict",
    "exit_status",
    "in_order",
    "verify_artifact",
    "verify_bills",
    "verify_ledger",
    "verify_store",
]
