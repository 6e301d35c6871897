"""A file system that does not keep a promise is found out."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.store import promises
from vectorless_rag.store.promises import try_promises


@pytest.fixture(autouse=True)
def _a_few_renames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(promises, "_SWAPS", 5)


def broken(folder: Path) -> dict[str, str]:
    found = {p.name: p.broken for p in try_promises(folder) if not p.kept}
    assert [] == list(folder.iterdir())
    return found


def test_this_file_system_keeps_them(tmp_path: Path) -> None:
    """And the scratch folder is gone afterwards."""
    assert {} == broken(tmp_path)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """No scratch folder, no answer."""
    with pytest.raises(VectorlessRagError, match="gone: ENOENT"):
        try_promises(tmp_path / "gone")


def copying(link: Path, target: Path) -> None:
    """A file system without links, under a layer that hides it."""
    link.write_bytes(Path(target).read_bytes())


def replacing(link: Path, target: Path) -> None:
    """A link that takes any name."""
    link.unlink(missing_ok=True)
    os.link(target, link)


def refusing(*_: Any, **__: Any) -> None:
    raise PermissionError(1, "SECRET")


def losing(source: Path, target: Path) -> None:
    """A rename that removes the old file, and brings the new one too late."""
    target.unlink(missing_ok=True)
    source.unlink()


def same_case(path: Path, data: bytes) -> int:
    """Names without case."""
    with path.with_name(path.name.lower()).open("wb") as file:
        return file.write(data)


@pytest.mark.parametrize(
    ("attribute", "instead", "expected"),
    [
        ("hardlink_to", copying, {"link": "a second name is a copy"}),
        ("hardlink_to", replacing, {"link": "a link took a name that was taken"}),
        ("hardlink_to", refusing, {"link": "EPERM"}),
        ("rename", losing, {"rename": "a reader saw no file, or half of one"}),
        ("write_bytes", same_case, {"case": "names lose their case"}),
        ("iterdir", lambda _: iter([]), {"names": "names come back changed"}),
        ("chmod", lambda *_: None, {"mode": "a file cannot be made read-only"}),
    ],
)
def test_a_broken_promise_is_found(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    attribute: str,
    instead: Callable[..., Any],
    expected: dict[str, str],
) -> None:
    """Each by its own name, with what went wrong."""
    with monkeypatch.context() as patch:
        patch.setattr(Path, attribute, instead)
        found = {p.name: p.broken for p in try_promises(tmp_path) if not p.kept}

    assert expected == found


def test_a_lock_that_holds_nothing_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes would build one artifact at a time, or neither."""
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)
    assert {"lock": "two processes hold one lock"} == broken(tmp_path)

    monkeypatch.undo()
    monkeypatch.setattr(promises, "_locks", lambda _: 1)
    assert {"lock": "a lock outlives its holder"} == broken(tmp_path)


def test_a_process_that_does_not_answer_is_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network file system may wait for a server that is away."""
    monkeypatch.setattr(promises, "_PATIENCE_S", 0.0)

    assert {"lock": "no answer"} == broken(tmp_path)
