"""Items shared between processes: all results in order, or a word that some lack."""

import subprocess
import sys

import pytest

from conftest import REPOSITORY
from vectorless_rag.forks import shared, shared_or_alone

# Processes are made by forking, which a test process full of threads should not do.
SCRIPT = """
import os, sys
sys.path.insert(0, sys.argv[1])
from vectorless_rag.forks import ForkError, shared, shared_or_alone
os.sched_getaffinity = lambda _: {0, 1, 2}
me = os.getpid()
def work(items):
    if os.getpid() != me and sys.argv[2] == "raises":
        raise ValueError
    if os.getpid() != me and sys.argv[2] == "garbles":
        return [lambda: 0]
    return [(n, os.getpid()) for n in items]
def no_fork():
    raise BlockingIOError
if sys.argv[2] == "refused":
    os.fork = no_fork
try:
    found = shared(work, 40)
except (ForkError, OSError) as error:
    print(type(error).__name__)
    found = shared_or_alone(work, 40)
print([n for n, _ in found] == list(range(40)), len({pid for _, pid in found}))
try:
    os.wait()
except ChildProcessError:
    print("nobody left")
"""


@pytest.mark.parametrize(
    ("forks", "expected"),
    [
        ("work", ["True 2"]),
        ("raises", ["ForkError", "True 1"]),
        ("garbles", ["ForkError", "True 1"]),
        ("refused", ["BlockingIOError", "True 1"]),
    ],
)
def test_items_are_shared_between_processes(forks: str, expected: list[str]) -> None:
    """All of them end; what they do not bring is done here."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(REPOSITORY / "src"), forks],
        capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert [*expected, "nobody left"] == done.stdout.splitlines()


def test_few_items_are_done_here() -> None:
    """A process of their own would take longer to start."""
    assert [[0], []] == [shared(list, 1), shared_or_alone(list, 0)]
