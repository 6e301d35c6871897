"""``vectorless-rag doctor``: what is installed, built, configured and reachable."""

import json
import platform
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from urllib.parse import urlsplit

from vectorless_rag import landlock, upstream
from vectorless_rag.audit import Verdict, verify_store
from vectorless_rag.cli.printing import console, marked
from vectorless_rag.environment import provider_environment
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.ledger.book import Ledger
from vectorless_rag.prices import Prices
from vectorless_rag.running import build_folder
from vectorless_rag.settings import Sandbox, Settings
from vectorless_rag.store import open_reader

_PACKAGES = ("pypdf", "cryptography", "pypdfium2", "litellm", "langfuse", "sqlalchemy")
_CONNECT_S = 3.0


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    what: str
    state: str
    """``ok``, ``note`` for something to know, or ``fail``."""

    words: str
    exit_status: int = 0


def doctor(settings: Settings, *, as_json: bool) -> int:
    """Look at everything a run needs; return 0, or the gravest exit status."""
    findings = list(_findings(settings))
    if as_json:
        sys.stdout.write(json.dumps([asdict(f) for f in findings]) + "\n")
    else:
        out = console()
        for finding in findings:
            words = f"{finding.what:<12} {finding.words}"
            out.print(marked(finding.state, words), soft_wrap=True)
    return max((f.exit_status for f in findings), default=0)


def _findings(settings: Settings) -> Iterator[Finding]:
    yield Finding("python", "ok", platform.python_version())
    for name in _PACKAGES:
        yield _package(name)
    yield _checked("upstream", lambda: _upstream(settings))
    yield _sandbox(settings)
    yield _checked("data", lambda: _data(settings))
    yield _checked("store", lambda: _store(settings))
    yield _checked("ledger", lambda: _ledger(settings))
    yield from _model(settings)


def _checked(what: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(what, "ok", look())
    except VectorlessRagError as error:
        return Finding(what, "fail", str(error), error.failure.exit_status)


def _package(name: str) -> Finding:
    try:
        return Finding(name, "ok", version(name))
    except PackageNotFoundError:
        return Finding(name, "fail", "not installed; run `make setup`", 10)


def _upstream(settings: Settings) -> str:
    folder = build_folder(settings)
    record = upstream.verify(upstream.resources_root(), folder)
    patches = f"{len(record.patches)} patches"
    return f"pageindex {record.pageindex_version}, {patches}, every file intact"


def _sandbox(settings: Settings) -> Finding:
    version = landlock.version()
    if settings.sandbox is Sandbox.OFF:
        return Finding("sandbox", "note", "off: the child can read the store")
    if version:
        words = f"Landlock {version}: the child cannot read the store"
        return Finding("sandbox", "ok", words)
    words = "this kernel offers no Landlock: the child can read the store"
    if settings.sandbox is Sandbox.AUTO:
        return Finding("sandbox", "note", words)
    return Finding("sandbox", "fail", f"{words}; VECTORLESS_RAG_SANDBOX=required", 2)


def _data(settings: Settings) -> str:
    folder = settings.data_dir.absolute()
    if not folder.exists():
        parent = next(p for p in folder.parents if p.exists())
        _try_to_write(parent)
        return f"{folder} will be made on first use"
    _try_to_write(folder)
    return f"{folder} is writable"


def _try_to_write(folder: Path) -> None:
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".doctor-"):
            pass
    except OSError as error:
        raise VectorlessRagError(
            Code.STORE_UNWRITABLE, f"{folder}: {error.strerror}"
        ) from None


def _store(settings: Settings) -> str:
    """Look at the records, not at the contents: that may take long."""
    store = open_reader(settings)
    found = verify_store(store, read_data=False)
    if wrong := [f for f in found if f.verdict is Verdict.MISMATCH]:
        raise VectorlessRagError(
            Code.STORE_CORRUPT, f"{wrong[0].file}: {wrong[0].what}"
        )
    if unread := [f for f in found if f.verdict is Verdict.UNDECIDED]:
        raise VectorlessRagError(Code.STORE_UNWRITABLE, unread[0].what)
    count = len(store.recipes())
    return f"{count} recipes, every record as it was written; see `audit verify`"


def _ledger(settings: Settings) -> str:
    path = settings.ledger_file
    if settings.owns_ledger and not path.exists():
        return "SQLite in the data folder, made on first use"
    with closing(Ledger.open(settings.effective_ledger_url)) as ledger:
        problems = ledger.check()
    if problems:
        raise VectorlessRagError(Code.LEDGER_CONFLICT, problems[0])
    return "opens, and its entries add up"


def _model(settings: Settings) -> Iterator[Finding]:
    name = settings.model
    if settings.offline:
        yield Finding("model", "ok", f"{name}: answers here, no key and no network")
        return
    yield _key(name)
    yield _price(settings)
    if settings.api_base is not None:
        yield _reach(settings.api_base)


def _key(model: str) -> Finding:
    try:
        variables = provider_environment(model)
    except VectorlessRagError as error:
        return Finding("key", "fail", str(error), error.failure.exit_status)
    if any("KEY" in name for name in variables):
        return Finding("key", "ok", f"a key variable is set for {model}")
    return Finding("key", "note", f"no key variable is set for {model}")


def _price(settings: Settings) -> Finding:
    if Prices(settings.prices).find(settings.model) is not None:
        return Finding("price", "ok", f"{settings.model} has a price")
    unpriced = VectorlessRagError(Code.UNPRICED_MODEL, settings.model)
    if settings.allow_unpriced:
        return Finding("price", "note", str(unpriced))
    return Finding("price", "fail", str(unpriced), unpriced.failure.exit_status)


def _reach(address: str) -> Finding:
    parts = urlsplit(address)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    host = parts.hostname or ""
    try:
        socket.create_connection((host, port), timeout=_CONNECT_S).close()
    except OSError as error:
        why = error.strerror or "no answer"
        return Finding("server", "fail", f"{host}:{port}: {why}", 3)
    return Finding("server", "ok", f"{host}:{port} accepts connections")
