"""The TAB key completes commands and options, in a real bash on a real terminal."""

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from acceptance.program import environment

BASH = shutil.which("bash") or ""

pytestmark = pytest.mark.skipif(not BASH, reason="there is no bash here")

PATIENCE_S = 120


@pytest.fixture
def reader(tmp_path: Path) -> dict[str, str]:
    """An environment in which the program is on the path and completes itself."""
    program = tmp_path / "bin" / "vectorless-rag"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable}\nfrom vectorless_rag.cli import entrypoint\nentrypoint()\n"
    )
    program.chmod(0o755)
    inherited = environment(tmp_path)
    env = {**inherited, "PATH": f"{program.parent}:{inherited['PATH']}"}
    # It asks which shell it was started from.
    installed = subprocess.run(
        [BASH, "-c", "vectorless-rag --install-completion && true"],
        env=env, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "bash completion installed" in installed.stdout
    # A system's own settings, read before these, set a prompt.
    with (tmp_path / ".bashrc").open("a") as settings:
        settings.write("\nPS1='ready>'\n")
    return env


def test_a_real_bash_completes_the_command_line(reader: dict[str, str]) -> None:
    """Half a command, half a subcommand and half an option are each made whole."""
    home = Path(reader["HOME"])
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(home)
        os.execve(  # noqa: S606  (a terminal is what it needs)
            BASH,
            ["bash", "--noprofile", "-i"],
            {**reader, "TERM": "dumb", "COLUMNS": "200"},
        )
    try:
        _until(terminal, "ready>")
        for typed, completed in (
            ("vectorless-rag led", "vectorless-rag ledger "),
            ("rep", "report "),
            ("--b", "--by "),
        ):
            os.write(terminal, typed.encode() + b"\t")
            _until(terminal, completed.removeprefix(typed))
    finally:
        os.close(terminal)
        os.waitpid(child, 0)


def _until(terminal: int, wanted: str) -> None:
    """Read what the terminal shows until *wanted* stands in it."""
    shown, end = "", time.monotonic() + PATIENCE_S
    while wanted not in shown:
        ready, _, _ = select.select([terminal], [], [], 1)
        if ready:
            shown += os.read(terminal, 4096).decode(errors="replace")
        assert time.monotonic() < end, shown
