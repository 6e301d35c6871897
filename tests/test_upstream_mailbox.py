"""A patch file is read whole or refused with its name."""

import difflib
from pathlib import Path

import pytest
from hypothesis import assume, given

from strategies_upstream import texts
from toy_upstream import TRAILERS, WHY
from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.upstream.changes import put_back
from vectorless_rag.upstream.diff import ABSENT, Run, parse_diff
from vectorless_rag.upstream.mailbox import (
    Patch,
    Proof,
    parse_patch,
    read_patch,
    split_message,
)

A, B = "a" * 40, "b" * 40
HUNK = "@@ -1,2 +1,3 @@ def f():\n one\n-two\n+2\n+zwei\n"
DIFF = (
    f"diff --git a/toy/x.py b/toy/x.py\nindex {A}..{B} 100644\n"
    f"--- a/toy/x.py\n+++ b/toy/x.py\n{HUNK}"
)
DIGEST = "d" * 64


def mail(diff: str = DIFF, *, body: str = "", head: str | None = None) -> bytes:
    body = body or f"{WHY}\n\n" + "\n".join(TRAILERS)
    head = head or (
        "From: A Maintainer <maintainer@example.invalid>\n"
        "Date: Mon, 30 Nov 2026 09:00:00 +0000\n"
        "Subject: [PATCH] core: a title that is long enough to be folded onto\n"
        " a second line\n"
    )
    first = f"From {'0' * 40} Mon Sep 17 00:00:00 2001\n"
    return f"{first}{head}\n{body}\n\n{diff}".encode()


def read(raw: bytes, name: str = "0010-a.patch") -> Patch:
    return parse_patch(name, raw)


def test_a_patch_is_read_whole(tmp_path: Path) -> None:
    """Headers, prose, trailers, diff and changed lines."""
    (tmp_path / "0010-a.patch").write_bytes(mail())
    patch = read_patch(tmp_path / "0010-a.patch")
    (change,) = patch.changes

    assert "0010" == patch.id
    assert (
        "core: a title that is long enough to be folded onto a second line"
        == patch.title
    )
    assert "A Maintainer <maintainer@example.invalid>" == patch.author
    assert WHY == patch.prose
    assert ("none",) == patch.values("Bug")
    assert DIFF.encode() == patch.diff
    assert ("toy/x.py", A, B, "100644") == (
        change.path,
        change.before,
        change.after,
        change.mode,
    )
    assert (
        Run(old_start=2, old=(b"two\n",), new_start=2, new=(b"2\n", b"zwei\n")),
    ) == change.runs
    assert {2, 3} == change.added_lines


def test_new_and_deleted_files_have_no_blob() -> None:
    """Git writes forty zeros where there is no file."""
    new = (
        f"diff --git a/n b/n\nnew file mode 100755\nindex {ABSENT}..{A}\n"
        "--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n"
    )
    old = (
        f"diff --git a/o b/o\ndeleted file mode 100644\nindex {A}..{ABSENT}\n"
        "--- a/o\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
    )
    created, deleted = parse_diff((new + old).encode())

    assert ("n", ABSENT, A, "100755") == (
        created.path,
        created.before,
        created.after,
        created.mode,
    )
    assert (Run(old_start=1, old=(), new_start=1, new=(b"x",)),) == created.runs
    assert (Run(old_start=1, old=(b"x\n",), new_start=1, new=()),) == deleted.runs


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        pytest.param(mail().replace(b"\n", b"\r\n"), "carriage return", id="crlf"),
        pytest.param(mail()[5:], "first line", id="no-first-line"),
        pytest.param(mail().replace(b"From 0000", b"From 1000"), "first", id="commit"),
        pytest.param(mail(""), "holds no diff", id="no-diff"),
        pytest.param(mail(head="Subject: [PATCH] x\n"), "no author", id="no-author"),
        pytest.param(mail(head="From: a\nDate: b\n"), "PATCH", id="no-subject"),
        pytest.param(
            mail(head="From: a\nDate: b\nSubject: x\n"), "PATCH", id="subject"
        ),
        pytest.param(mail(DIFF.replace(A, "abc")), "'index abc", id="short-id"),
        pytest.param(mail(DIFF.replace(" 100644", "")), "a mode", id="no-mode"),
        pytest.param(
            mail(DIFF.replace("b/toy/x.py\nindex", "b/y\nindex")), "rename", id="rename"
        ),
        pytest.param(
            mail('diff --git "a/\\303" "b/\\303"\n'), "quoted name", id="quoted"
        ),
        pytest.param(
            mail(DIFF.replace(HUNK, "GIT binary patch\n")), "GIT binary", id="binary"
        ),
        pytest.param(mail(DIFF + "-- \n2.39.5\n"), "after the last", id="signature"),
        pytest.param(mail(DIFF + "\n"), "after the last", id="empty-line"),
        pytest.param(mail(DIFF + DIFF), "one file twice", id="twice"),
        pytest.param(mail(DIFF.replace("+zwei\n", "")), "as many lines", id="cut"),
        pytest.param(
            mail(DIFF.replace("+zwei", "zwei")), "as many lines", id="no-sign"
        ),
        pytest.param(
            mail(body="x\n\nReplaces: toy/x.py sha256:abc"), "path::qualname", id="sha"
        ),
        pytest.param(mail(DIFF.replace("old mode", "")) + b"\xff", "after", id="bytes"),
        pytest.param(
            mail(DIFF.replace("index", "old mode 100644\nindex")), "old mode", id="mode"
        ),
    ],
)
def test_what_the_export_does_not_write_is_refused(raw: bytes, why: str) -> None:
    """Each is drift, with the patch's name in front."""
    with pytest.raises(VectorlessRagError, match=rf"0010-a\.patch: .*{why}"):
        read(raw)


@pytest.mark.parametrize(
    "name", ["10-a.patch", "0010-A.patch", "0010.patch", "0010-a.diff", "0010-a-.patch"]
)
def test_names_have_one_form(name: str) -> None:
    """Four digits, then words in lower case."""
    with pytest.raises(VectorlessRagError, match="NNNN-kebab-title"):
        read(mail(), name)


def test_a_missing_patch_is_named(tmp_path: Path) -> None:
    """A file in the series that cannot be read is drift."""
    with pytest.raises(VectorlessRagError, match=r"0010-a\.patch: No such file"):
        read_patch(tmp_path / "0010-a.patch")


def test_trailers_are_the_last_paragraph() -> None:
    """Continued lines belong to the trailer above; other paragraphs are prose."""
    body = "Why: because.\n\nProof: a::b\nDrop-When: never [it\n  is ours]\n"

    assert (
        "Why: because.",
        (("Proof", "a::b"), ("Drop-When", "never [it is ours]")),
    ) == split_message(body)
    assert ("a\n\nnot: a trailer", ()) == split_message("a\n\nnot: a trailer\n")
    assert ("Only: x\nand prose", ()) == split_message("Only: x\nand prose")


def test_a_proof_names_a_test_and_maybe_an_exception() -> None:
    """Without a name an assertion or pytest.fail is expected."""
    assert Proof(node="t.py::a", exceptions=("ValueError",)) == Proof.parse(
        "t.py::a [ValueError]"
    )
    assert ("AssertionError", "Failed") == Proof(node="t.py::a[1]").exceptions
    assert None is Proof.parse("none")


def test_proofs_and_replaced_functions_come_from_trailers() -> None:
    """Malformed proofs are left to the lint; replaced functions are not."""
    patch = read(
        mail(
            body=f"x\n\nProof: t.py::a\nProof: none\n"
            f"Replaces: toy/x.py::A.f sha256:{DIGEST}"
        )
    )

    assert (Proof(node="t.py::a"),) == patch.proofs
    assert ("toy/x.py", "A.f", DIGEST) == (
        patch.replaces[0].path,
        patch.replaces[0].qualname,
        patch.replaces[0].sha256,
    )


@given(texts, texts)
def test_a_diff_can_be_taken_back(old: bytes, new: bytes) -> None:
    """With every run put back, the new file is the old one."""
    assume(old != new)
    hunks = difflib.diff_bytes(
        difflib.unified_diff,
        old.splitlines(keepends=True),
        new.splitlines(keepends=True),
        b"a/f",
        b"b/f",
        n=1,
    )
    head = f"diff --git a/f b/f\nindex {A}..{B} 100644\n".encode()
    (change,) = parse_diff(head + b"".join(hunks))

    assert old == put_back(new, change.runs)


def test_lines_are_put_back_only_where_they_stand() -> None:
    """Putting back in another tree than the patched one is a defect of ours."""
    (change,) = parse_diff(DIFF.encode())

    with pytest.raises(AssertionError, match="BUG"):
        put_back(b"one\ntwo\n", change.runs)
