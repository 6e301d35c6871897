"""
Which code builds a job: its version, and what the one who submits asks for.

A recipe names both. Workers share what is asked for through the board; which code
they run is their own, and a job is handed only to workers that run the code of its
recipe.
"""

import json
from typing import Any

from vectorless_rag.canon import Json, canonical, digest
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.recipe import Configuration
from vectorless_rag.settings import Settings

CODE = frozenset({
    "pageindex_version", "patch_sha256", "runtime_sha256", "tree_sha256", "pypdf",
    "pypdfium2", "schema_version",
})  # fmt: skip
"""Fields of a configuration that are the code's."""

ASKED = frozenset({"mode", "model", "max_output_tokens", "call_attempts"})
"""Fields that the one who submits decides, and a worker takes from the job."""

WORKERS = frozenset({"api_base_sha256"})
"""
Fields that a worker's own settings decide, and that must be as submitted.

Where documents and keys are sent is not for whoever can write to the board to say.
"""

_SHOWN_DIGITS = 12


def version_of(configuration: Configuration) -> str:
    """Name the code of *configuration*: its readable revision, and a digest."""
    fields = configuration.to_json()
    code: Json = {name: fields[name] for name in sorted(CODE)}
    name = digest("code/1", code)[:_SHOWN_DIGITS]
    return f"{configuration.pageindex_version}-{name}"


def options_of(configuration: Configuration) -> str:
    """Spell what was asked for, and which server was meant, as JSON."""
    fields = configuration.to_json()
    wanted: Json = {name: fields[name] for name in sorted(ASKED | WORKERS)}
    return canonical(wanted).decode("utf-8")


def server_of(options: str) -> str | None:
    """Tell which server a job is for, by its digest; None: the provider's own."""
    server = _read(options)["api_base_sha256"]
    return None if server is None else str(server)


def settings_for(options: str, owner: str, settings: Settings) -> Settings:
    """
    Return the settings that a job is built with on this worker.

    Args:
        options: From `options_of`.
        owner: Who pays.
        settings: The worker's own.

    Raises:
        VectorlessRagError: ``settings_invalid``: the options make no sense.
    """
    asked = {name: value for name, value in _read(options).items() if name in ASKED}
    return Settings.load(**{**settings.model_dump(), "owner": owner, **asked})


def _read(options: str) -> dict[str, Any]:
    try:
        read = json.loads(options)
    except ValueError:
        read = None
    if not isinstance(read, dict) or read.keys() != ASKED | WORKERS:
        raise VectorlessRagError(Code.SETTINGS_INVALID, "options of the job")
    return read
