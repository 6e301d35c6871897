"""Importing the package reads nothing that it was not given."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from patches.tree_under_test import utils

SHOW = """
import os, sys
import patches.tree_under_test
print(os.environ.get("FROM_A_FILE"), os.environ.get("OPENAI_API_KEY"))
"""


def imported(folder: Path, **environment: str) -> list[str]:
    """Import the tree in a fresh process started in *folder*."""
    tree = Path(utils.__file__).parents[1]
    path = os.pathsep.join([str(tree), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SHOW],
        cwd=folder,
        env={"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


@pytest.mark.parametrize("depth", ["", "below/it"])
def test_no_env_file_is_read(depth: str, tmp_path: Path) -> None:
    """Neither in the working folder nor in one above it."""
    (tmp_path / ".env").write_text("FROM_A_FILE=1\nOPENAI_API_KEY=secret\n")
    folder = tmp_path / depth
    folder.mkdir(parents=True, exist_ok=True)

    assert ["None", "None"] == imported(folder)


def test_a_key_keeps_its_name(tmp_path: Path) -> None:
    """No variable is copied to another name."""
    assert ["None", "None"] == imported(tmp_path, CHATGPT_API_KEY="secret")
