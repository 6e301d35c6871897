"""Traps: a test that forgets to choose a folder or a server fails by name."""

import os
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# No deadline: a busy machine is no defect. A long look is asked for by a test itself.
settings.register_profile("suite", deadline=None, max_examples=30)
settings.register_profile("long", deadline=None, max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))

# Helpers of tests import it before a plugin of that name is asked for.
pytest.register_assert_rewrite("postgres_server")

# A job in the background ignores SIGINT, and so would every program tested in it.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

REPOSITORY = Path(__file__).parents[1]

# What a developer's shell may hold; a suite that reads it is not hermetic.
_AMBIENT = ("VECTORLESS_RAG_", "OPENAI_", "ANTHROPIC_", "LANGFUSE_", "LITELLM_")
_CORPUS = "VECTORLESS_RAG_CORPUS"


class YouOpenedASocketError(AssertionError):
    """Mark the test ``loopback`` and talk to a server that it starts itself."""


class YouLeftTheMachineError(AssertionError):
    """Only addresses of this machine are there for tests."""


@pytest.fixture(autouse=True)
def _hermetic(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in [n for n in os.environ if n.startswith(_AMBIENT)]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    # What one test leaves there, no other must find.
    monkeypatch.setenv("XDG_CACHE_HOME", f"{tmp_path}-cache")
    connect = socket.socket.connect
    loopback = request.node.get_closest_marker("loopback") is not None

    def trap(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX and not loopback:
            raise YouOpenedASocketError
        if self.family != socket.AF_UNIX and address[0] not in {"127.0.0.1", "::1"}:
            raise YouLeftTheMachineError
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", trap)


_CORPUS_FOLDER = os.environ.get(_CORPUS)


@pytest.fixture
def corpus() -> Path:
    """The folder of real documents that stays outside the repository."""
    if _CORPUS_FOLDER is None:
        pytest.skip(f"{_CORPUS} names no folder of documents")
    return Path(_CORPUS_FOLDER)


@pytest.fixture(scope="session")
def sample() -> Path:
    """A real 21-page paper with a printed ToC."""
    return REPOSITORY / "tests" / "samples" / "sp-intro.pdf"


@pytest.fixture
def umask_022() -> Iterator[None]:
    """The usual mask of new files, whatever the caller's shell has."""
    old = os.umask(0o022)
    yield
    os.umask(old)
