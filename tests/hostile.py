"""A real child whose upstream does what a test wants."""

import os
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pdfs import pdf
from vectorless_rag.launch import Upstream, run_document
from vectorless_rag.ledger.book import Ledger
from vectorless_rag.ledger.types import Attempt
from vectorless_rag.prefork import ForkServers
from vectorless_rag.settings import Settings
from vectorless_rag.units import Sha256
from vectorless_rag.wire import Limits, Request

MODEL = "offline/extractive"

_IMPORTED_AHEAD = (
    "__init__", "page_index_classic", "tree_optimize", "utils",
    "flash/embedded_toc", "flash/heading_detection",
)  # fmt: skip


def run_hostile(
    home: Path,
    code: str,
    *,
    servers: ForkServers | None = None,
    ahead: str = "",
    **settings: Any,
) -> tuple[Any, dict[str, int]]:
    """
    Run *code* inside a confined child, as if a document had taken the parser over.

    Args:
        home: Folder for the data folder and the child's own.
        code: Body of a function that may return something; it goes through JSON.
        servers: Have one of these fork the child.
        ahead: Code of a module that servers import, and this child does not.
        settings: Of the run.

    Returns:
        What *code* returned, and the child's notes.
    """
    work, data = home / "work", home / "data"
    for folder in (work, data):
        folder.mkdir(exist_ok=True)
    document = pdf(work / "document.pdf", ["One", "Two"])
    chosen = Settings.load(data_dir=data, **settings)
    # As the pipeline does: the ledger is open while the child runs.
    with Ledger.open(chosen.effective_ledger_url) as ledger:
        ledger.start_attempt(
            Attempt(
                attempt_id="attempt",
                run_id="run",
                owner="tests",
                document_sha256=Sha256("0" * 64),
                recipe_hash=Sha256("1" * 64),
                model=chosen.model,
                price_table=None,
            )
        )
        found, notes = run_document(
            _request(chosen, document, work), chosen, work=work,
            upstream=Upstream(
                copy_to=lambda place: _plant(place / "pageindex", code, ahead),
                code=(code, ahead),
                servers=servers,
            ),
            on_progress=lambda _: None, check=lambda: None,
        )  # fmt: skip
    return found.tree[0]["title"], notes


@contextmanager
def forking() -> Iterator[ForkServers]:
    """Servers for the length of a block; a child that asked for one had one."""
    servers = ForkServers(at_once=True)
    try:
        yield servers
        assert {True} >= {server.has_served for server in servers._servers.values()}
    finally:
        servers.close()


def _plant(package: Path, code: str, ahead: str) -> None:
    (package / "flash").mkdir(parents=True)
    for name in _IMPORTED_AHEAD:
        (package / f"{name}.py").touch()
    (package / "page_index_classic.py").write_text(ahead, encoding="utf-8")
    body = textwrap.indent(textwrap.dedent(code), "    ")
    (package / "flash" / "__init__.py").write_text(
        "import errno, os, resource, signal, socket, subprocess, sys, time\n"
        f"def hostile():\n{body}\n"
        "def page_index_flash(path, summary_model):\n"
        "    node = {'title': hostile(), 'start_index': 1, 'end_index': 2}\n"
        "    return {'toc_source': 'outline', 'structure': [node]}\n",
        encoding="utf-8",
    )
    (package / "flash" / "api.py").write_text(
        "def flash_rejection_reason(result): return None\n", encoding="utf-8"
    )


def _request(settings: Settings, document: Path, work: Path) -> Request:
    return Request(
        attempt_id="attempt",
        parent_pid=os.getpid(),
        document_path=str(document),
        document_sha256=Sha256("0" * 64),
        checkout=str(work / "upstream"),
        mode="flash",
        model=settings.model,
        api_base=settings.api_base,
        ledger_url=settings.effective_ledger_url,
        budgets=("run:run",),
        limits=Limits(
            max_output_tokens=64,
            call_timeout_s=1,
            call_attempts=1,
            concurrency=1,
            provider_concurrency=1,
            max_pages=5,
            memory_bytes=settings.child_memory_bytes,
            cpu_s=settings.child_cpu_s,
            open_files=settings.child_open_files,
            file_bytes=settings.child_file_bytes,
            processes=settings.child_processes,
        ),
        gate_dir=str(settings.gate_dir),
        journal_dir=str(settings.journal_dir),
        sandbox=settings.sandbox.value,
        closed_dir=str(settings.data_dir),
    )
