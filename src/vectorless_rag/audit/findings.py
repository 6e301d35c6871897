"""What an audit has to say, and how bad it is."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum

from vectorless_rag.canon import Json


class Verdict(StrEnum):
    """How bad a finding is."""

    MISMATCH = "mismatch"
    """Not what was written; exit status 20."""

    UNDECIDED = "undecided"
    """Could not be looked at; exit status 21."""

    NOTE = "note"
    """Nothing wrong: a leftover of a crash, a later correction, a file not ours."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing an audit has to say."""

    verdict: Verdict

    file: str
    """Which file or folder, relative to the store; ``ledger`` for its rows."""

    what: str
    """What is the matter with it."""

    def to_json(self) -> dict[str, Json]:
        """Spell the finding."""
        return asdict(self)


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Sort findings by file, each once."""
    return sorted(set(findings), key=lambda f: (f.file, f.what))


def exit_status(findings: Iterable[Finding]) -> int:
    """Return 20 if something was altered, 21 if something could not be told, or 0."""
    verdicts = {finding.verdict for finding in findings}
    if Verdict.MISMATCH in verdicts:
        return 20
    return 21 if Verdict.UNDECIDED in verdicts else 0
