"""A child gets what it was given, answers on its own channel, and never lingers."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from vectorless_rag.process import ChildCommand, run_tool
from vectorless_rag.supervision import ChildEnd, run_child

ENV = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}


def child(code: str, tmp_path: Path, **more: Any) -> ChildCommand:
    return ChildCommand(
        argv=(sys.executable, "-c", code), cwd=tmp_path, env=ENV, stdin=b"", **more
    )


def run(command: ChildCommand, **more: Any) -> tuple[ChildEnd, list[bytes]]:
    lines: list[bytes] = []
    given = {"timeout_s": 20.0, "grace_s": 5.0, "answer_limit": 10**6, **more}
    return run_child(command, on_line=lines.append, **given), lines


def gone(pid: int) -> bool:
    """Where process 1 does not reap, a dead orphan stays as Z for ever."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return True
    return stat.rpartition(")")[2].split()[0] in {"Z", "X"}


def wait_until_gone(pid: int) -> None:
    end = time.monotonic() + 10
    while not gone(pid):
        assert time.monotonic() < end, f"process {pid} lives on"
        time.sleep(0.02)


def test_a_tool_keeps_what_it_printed(tmp_path: Path) -> None:
    """Both streams and the status come back."""
    done = run_tool(
        ("sh", "-c", "cat; echo oops >&2; exit 3"), cwd=tmp_path, env=ENV, stdin=b"in"
    )

    assert (3, b"in", b"oops\n") == (done.status, done.stdout, done.stderr)


def test_a_tool_that_runs_on_is_killed(tmp_path: Path) -> None:
    """The time limit holds for everything the tool started."""
    note = tmp_path / "pid"
    with pytest.raises(TimeoutError, match=r"sh ran for more than 0\.5 s"):
        run_tool(
            ("sh", "-c", f"sleep 60 & echo $! > {note}; wait"),
            cwd=tmp_path,
            env=ENV,
            timeout_s=0.5,
        )

    wait_until_gone(int(note.read_text(encoding="ascii")))


def test_the_answer_is_not_what_is_printed(tmp_path: Path) -> None:
    """Prints go nowhere; the answer and the progress lines have their own ways."""
    code = (
        "import os, sys; a, p = map(int, sys.argv[1:]); print('noise');"
        "os.write(p, b'one\\ntwo\\n'); os.write(a, b'answer')"
    )
    end, lines = run(child(code, tmp_path))

    assert (0, b"answer", [b"one", b"two"]) == (end.status, end.answer, lines)


def test_the_environment_is_the_given_one(tmp_path: Path) -> None:
    """Nothing of this process's environment is inherited."""
    code = "import os, sys; os.write(int(sys.argv[1]), '\\n'.join(os.environ).encode())"
    end, _ = run(child(code, tmp_path))

    assert set(ENV) == set(end.answer.decode().split("\n")) - {"LC_CTYPE"}


def test_the_request_arrives_on_standard_input(tmp_path: Path) -> None:
    """Any length, without a pipe that could fill up."""
    code = "import os, sys; os.write(int(sys.argv[1]), b'%d' % len(sys.stdin.read()))"
    command = ChildCommand(
        argv=(sys.executable, "-c", code), cwd=tmp_path, env=ENV, stdin=b"x" * 300_000
    )

    assert b"300000" == run(command)[0].answer


def test_a_signal_shows_in_the_status(tmp_path: Path) -> None:
    """A child that is killed reports the signal, and half its answer."""
    code = (
        "import os, sys; os.write(int(sys.argv[1]), b'half'); os.kill(os.getpid(), 9)"
    )
    end, _ = run(child(code, tmp_path))

    assert (-9, b"half", False) == (end.status, end.answer, end.timed_out)


def test_at_the_limit_the_child_may_settle_first(tmp_path: Path) -> None:
    """SIGTERM comes before SIGKILL, and what is answered then is kept."""
    code = (
        "import os, signal, sys, time\n"
        "def stop(*_):\n"
        "    os.write(int(sys.argv[1]), b'settled'); os._exit(0)\n"
        "signal.signal(signal.SIGTERM, stop); os.write(int(sys.argv[2]), b'up\\n')\n"
        "time.sleep(60)"
    )
    end, lines = run(child(code, tmp_path), timeout_s=2.0)

    assert (True, 0, b"settled", [b"up"]) == (
        end.timed_out,
        end.status,
        end.answer,
        lines,
    )


def test_a_limit_may_grow_while_the_child_lives(tmp_path: Path) -> None:
    """It ends by itself after a limit that it would not have met."""
    code = (
        "import os, sys, time; os.write(int(sys.argv[2]), b'up\\n'); time.sleep(1);"
        "os.write(int(sys.argv[1]), b'done')"
    )
    more = [0.0]
    lines: list[bytes] = []

    def grow(line: bytes) -> None:
        lines.append(line)
        more[0] = 60.0

    end = run_child(
        child(code, tmp_path), timeout_s=0.5, grace_s=5, on_line=grow,
        answer_limit=100, extra_s=lambda: more[0] if lines else 30.0,
    )  # fmt: skip

    assert (b"done", False) == (end.answer, end.timed_out)


def test_a_child_that_ignores_the_soft_stop_is_killed(tmp_path: Path) -> None:
    """The hard stop also takes what it started."""
    note = tmp_path / "pid"
    code = (
        "import os, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "other = subprocess.Popen(['sleep', '60'])\n"
        f"open({str(note)!r}, 'w').write(str(other.pid)); time.sleep(60)"
    )
    end, _ = run(child(code, tmp_path), timeout_s=2.0, grace_s=0.2)
    wait_until_gone(int(note.read_text(encoding="ascii")))

    assert (True, -9) == (end.timed_out, end.status)


def test_what_a_finished_child_left_behind_is_killed(tmp_path: Path) -> None:
    """A forgotten worker does not run on when the child has answered."""
    code = (
        "import os, subprocess, sys; p = subprocess.Popen(['sleep', '60']);"
        "os.write(int(sys.argv[1]), b'%d' % p.pid)"
    )
    end, _ = run(child(code, tmp_path))

    wait_until_gone(int(end.answer))


def test_a_child_that_closed_its_channels_is_still_awaited(tmp_path: Path) -> None:
    """The end is the end of the process, not of its pipes."""
    code = (
        "import os, sys, time; [os.close(int(n)) for n in sys.argv[1:]];time.sleep(1)"
    )

    assert 0 == run(child(code, tmp_path))[0].status


def test_an_answer_past_the_limit_is_cut(tmp_path: Path) -> None:
    """A runaway child can't fill this process's memory."""
    code = (
        "import os, sys\nfor _ in range(100): os.write(int(sys.argv[1]), b'x' * 65536)"
    )
    end, _ = run(child(code, tmp_path), answer_limit=100_000)

    assert len(end.answer) < 300_000


def test_an_interrupt_leaves_no_child(tmp_path: Path) -> None:
    """Ctrl-C in the parent ends the child before it is passed on."""
    pid: list[int] = []

    def interrupt(line: bytes) -> None:
        pid.append(int(line))
        threading.Timer(0.2, lambda: os.kill(os.getpid(), 2)).start()

    code = (
        "import os, sys, time; os.write(int(sys.argv[2]), b'%d\\n' % os.getpid());"
        "time.sleep(60)"
    )
    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        run_child(
            child(code, tmp_path),
            timeout_s=30,
            grace_s=1,
            on_line=interrupt,
            answer_limit=10,
        )

    assert gone(pid[0])


def test_inherited_output_reaches_standard_error(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Standard output stays free for results."""
    with contextlib.suppress(ValueError):
        run(child("print('noise')", tmp_path, inherit_output=True))

    assert ("", "noise\n") == capfd.readouterr()


def test_the_second_signal_ends_a_working_program_at_once() -> None:
    """The first asks it to end; the status tells which signal the second was."""
    code = (
        "import os, signal\n"
        "from vectorless_rag.cli.stopping import told_to_end\n"
        "stopping = told_to_end()\n"
        "assert not stopping.is_set()\n"
        "os.kill(os.getpid(), signal.SIGINT)\n"
        "assert stopping.wait(60)\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
        "raise SystemExit(0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, timeout=60)

    assert 128 + signal.SIGTERM == done.returncode
