"""
What this process's environment holds for others: children, tools, caches.

Beside `vectorless_rag.settings` and its `variables` the one reader of
``os.environ``; the linter refuses it elsewhere.
"""

import os
import sys
from pathlib import Path

from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.units import OFFLINE_PREFIX

# What each provider's client reads. Anything else stays with the parent.
_PROVIDER_VARIABLES = {
    "azure": ("AZURE_",),
    "bedrock": ("AWS_",),
    "gemini": ("GEMINI_", "GOOGLE_API_KEY"),
    "vertex_ai": ("VERTEXAI_", "GOOGLE_APPLICATION_CREDENTIALS"),
    "together_ai": ("TOGETHERAI_", "TOGETHER_AI_"),
}
_TRACING_KEYS = ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY")
_TRACING_VARIABLES = (
    "LANGFUSE_BASE_URL", "LANGFUSE_HOST", "LANGFUSE_TRACING_ENABLED",
    "LANGFUSE_TRACING_ENVIRONMENT", "LANGFUSE_RELEASE",
)  # fmt: skip
_BUCKET_VARIABLES = (
    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
    "AWS_DEFAULT_REGION", "AWS_REGION",
)  # fmt: skip
# Which server answers is part of the recipe: only ``api_base`` decides it.
_ADDRESSES = ("_BASE", "_BASE_URL", "_ENDPOINT")
# What travels in a header.
_KEYS = ("KEY", "TOKEN")
_NETWORK_VARIABLES = (
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY",
    "http_proxy", "https_proxy", "no_proxy", "all_proxy",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE",
)  # fmt: skip


def provider_environment(model: str) -> dict[str, str]:
    """
    Pick the variables the child needs to reach the provider of *model*.

    Args:
        model: ``provider/name``. Offline models need none.

    Returns:
        The provider's own variables, and those of proxies and certificates.

    Raises:
        VectorlessRagError: ``pageindex_auth``: a key that no request can carry.
    """
    provider, _, _ = model.partition("/")
    if model.startswith(OFFLINE_PREFIX):
        return {}
    wanted = _PROVIDER_VARIABLES.get(provider, (provider.upper() + "_",))
    found = {
        name: value
        for name, value in os.environ.items()
        if (name.startswith(wanted) and not name.endswith(_ADDRESSES))
        or name in _NETWORK_VARIABLES
    }
    for name, value in found.items():
        # A placeholder's … or a line break would fail each request unsent, and
        # each would count as one that may have been billed.
        if name.endswith(_KEYS) and not (value.isascii() and value.isprintable()):
            raise VectorlessRagError(Code.AUTH, f"{name} holds what no key can hold")
    return found


def bucket_environment() -> dict[str, str]:
    """Return what reaches a store in a bucket: keys, session and region."""
    return {name: os.environ[name] for name in _BUCKET_VARIABLES if name in os.environ}


def tracing_environment() -> dict[str, str]:
    """
    Return the tracer's own variables, and those of proxies and certificates.

    Nothing without its keys: tracing is off then.
    """
    if not all(os.environ.get(name) for name in _TRACING_KEYS):
        return {}
    wanted = (*_TRACING_KEYS, *_TRACING_VARIABLES, *_NETWORK_VARIABLES)
    return {name: os.environ[name] for name in wanted if name in os.environ}


def measuring_environment() -> dict[str, str]:
    """Return what a coverage run needs to follow into children."""
    return {k: v for k, v in os.environ.items() if k.startswith("COVERAGE_")}


def tool_environment() -> dict[str, str]:
    """Return this process's environment for tools such as pip that must see it."""
    return dict(os.environ)


def cache_folder() -> Path:
    """Return the folder for what can be made again."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "vectorless-rag"


def deciding_environment() -> dict[str, str]:
    """Return what may decide how settings and command line are read, and by what."""
    mine, heads = "VECTORLESS_RAG", ("PYTHON", "LC_", "TYPER_", "_TYPER_")
    return {
        name: value
        for name, value in os.environ.items()
        if mine in name.upper()
        or name.startswith(heads)
        or name in {"HOME", "XDG_CACHE_HOME", "LANG"}
    }


def wants_drawing() -> bool:
    """Whether standard error may be drawn on: a terminal, or said to be one."""
    # Rich's own variables; what they say, it finds out.
    said = ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
    return sys.stderr.isatty() or any(name in os.environ for name in said)


def search_path() -> str:
    """Return the ``PATH`` that children look up programs on."""
    return os.environ.get("PATH", os.defpath)


def python_executable() -> str:
    """Return the interpreter that children run."""
    return sys.executable


def forget(prefix: str) -> None:
    """Take every variable that begins with *prefix* out of this process."""
    for name in [n for n in os.environ if n.startswith(prefix)]:
        del os.environ[name]
