"""``vectorless-rag audit report``: a page for a browser."""

import json
import sys
from pathlib import Path

from vectorless_rag.cli.accounting import require_folder
from vectorless_rag.cli.words import counted
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.reporting import Written, make_report
from vectorless_rag.settings import Settings
from vectorless_rag.source import displayable, storable


def report(settings: Settings, path: Path | None, *, html: bool, as_json: bool) -> int:
    """
    Write the report and say where it is.

    Args:
        settings: Which data folder, and what would run now.
        path: The file; None for the default.
        html: Asked for by name, since other forms may come.
        as_json: Print what the report counts.

    Returns:
        0; 20 if something is not what was written; 21 if it could not be told.
    """
    if not html:
        raise VectorlessRagError(Code.SETTINGS_INVALID, "audit report takes --html")
    require_folder(settings)
    written = make_report(settings, path)
    if as_json:
        spelled = written.to_json() | {"path": storable(str(written.path))}
        sys.stdout.write(json.dumps(spelled) + "\n")
    else:
        sys.stdout.write(displayable(_line(written)) + "\n")
    return written.exit_status


def _line(written: Written) -> str:
    facts = written.facts
    state = {20: "the audit found damage", 21: "the audit could not see everything"}
    return (
        f"{written.path}: {counted(f'{len(facts.documents):,}', 'document')},"
        f" {counted(f'{facts.node_count:,}', 'section')}, {written.size_bytes:,} bytes;"
        f" {state.get(written.exit_status, 'every byte is as it was written')}"
    )
