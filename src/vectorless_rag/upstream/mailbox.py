"""Read a patch file: a mail with headers, reasons and trailers, then a diff."""

import email
import email.policy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from vectorless_rag.canon import sha256
from vectorless_rag.units import Sha256
from vectorless_rag.upstream.diff import FileChange, parse_diff
from vectorless_rag.upstream.faults import drift, reason
from vectorless_rag.upstream.listing import diff_of
from vectorless_rag.upstream.replaced import Replaced

FIRST_LINE = b"From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\n"
SUBJECT = "[PATCH] "

_NAME = re.compile(r"(\d{4})-[a-z0-9]+(?:-[a-z0-9]+)*\.patch")
_TRAILER = re.compile(r"([A-Z][A-Za-z]*(?:-[A-Z][A-Za-z]*)*): (\S.*)")


@dataclass(frozen=True, kw_only=True)
class Patch:
    """One patch of the series, as its file says it."""

    file: str
    """``NNNN-kebab-title.patch``."""

    raw: bytes
    """The whole file."""

    author: str
    date: str

    title: str
    """Subject without ``[PATCH]``."""

    prose: str
    """What breaks without it and why no wrapper will do."""

    trailers: tuple[tuple[str, str], ...]
    """Names and values in the order of the file; a name may come twice."""

    diff: bytes
    """Every byte from the first ``diff --git`` line on."""

    changes: tuple[FileChange, ...]

    replaces: tuple[Replaced, ...]
    """The upstream functions it supersedes."""

    @property
    def id(self) -> str:
        """The number, which is the patch's identity."""
        return self.file[:4]

    @property
    def sha256(self) -> Sha256:
        """Digest of the whole file."""
        return sha256(self.raw)

    def values(self, name: str) -> tuple[str, ...]:
        """Return the values of every trailer called *name*."""
        return tuple(value for key, value in self.trailers if key == name)

    @property
    def proofs(self) -> "tuple[Proof, ...]":
        """The tests that prove it; the lint names trailers that are none."""
        found = (Proof.parse(text) for text in self.values("Proof"))
        return tuple(proof for proof in found if proof is not None)


@dataclass(frozen=True, kw_only=True)
class Proof:
    """A test that fails before a patch and passes after it."""

    node: str
    """Its pytest id."""

    exceptions: tuple[str, ...] = ("AssertionError", "Failed")
    """Names of the exceptions that count as failing before the patch."""

    @classmethod
    def parse(cls, text: str) -> "Proof | None":
        """
        Read the value of a ``Proof`` trailer: an id, then maybe ``[Exception]``.

        Returns:
            None where it has another shape.
        """
        found = re.fullmatch(r"(\S+::\S+)(?: \[(\w+)\])?", text)
        if found is None:
            return None
        node, name = found.groups()
        return cls(node=node, exceptions=(name,)) if name else cls(node=node)

    @property
    def path(self) -> str:
        """The test's file."""
        return self.node.partition("::")[0]


def read_patch(path: Path) -> Patch:
    """
    Read one patch file.

    Raises:
        VectorlessRagError: ``upstream_drift``, naming the file and what is
            wrong with it.
    """
    try:
        return parse_patch(path.name, path.read_bytes())
    except OSError as error:
        raise drift(f"{path.name}: {reason(error)}") from None


def parse_patch(name: str, raw: bytes) -> Patch:
    """
    Read the bytes of one patch file called *name*.

    Raises:
        VectorlessRagError: ``upstream_drift``, naming the file and what is
            wrong with it.
    """
    try:
        return _parse(name, raw)
    except ValueError as error:
        raise drift(f"{name}: {error}") from None


def split_message(body: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """
    Split a commit message's body into prose and trailers.

    Args:
        body: Everything after the subject line.

    Returns:
        The prose, and the names and values of the last paragraph if each of
        its lines is a trailer or the continuation of one.
    """
    prose, _, last = body.strip("\n").rpartition("\n\n")
    trailers = tuple(_trailers(last))
    if len(trailers) < 1:
        return body.strip("\n"), ()
    return prose, trailers


def _parse(name: str, raw: bytes) -> Patch:
    if not _NAME.fullmatch(name):
        raise ValueError("the name is not NNNN-kebab-title.patch")
    if b"\r" in raw:
        raise ValueError("it holds a carriage return")
    if not raw.startswith(FIRST_LINE):
        raise ValueError("its first line is not the zero commit's")
    if not (diff := diff_of(raw)):
        raise ValueError("it holds no diff")
    head = raw[: -len(diff)]
    mail = email.message_from_bytes(
        head[len(FIRST_LINE) :], policy=email.policy.default
    )
    subject = " ".join(str(mail["Subject"]).split())
    if mail["From"] is None or mail["Date"] is None:
        raise ValueError("it has no author or no date")
    if not subject.startswith(SUBJECT):
        raise ValueError("its subject does not begin with [PATCH]")
    body = head.partition(b"\n\n")[2].decode("utf-8")
    prose, trailers = split_message(body)
    return Patch(
        file=name,
        raw=raw,
        author=str(mail["From"]),
        date=str(mail["Date"]),
        title=subject.removeprefix(SUBJECT),
        prose=prose,
        trailers=trailers,
        diff=diff,
        changes=parse_diff(diff),
        replaces=tuple(
            Replaced.parse(text) for name, text in trailers if name == "Replaces"
        ),
    )


def _trailers(paragraph: str) -> Iterator[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for line in paragraph.splitlines():
        if line[:1] in {" ", "\t"} and found:
            key, value = found[-1]
            found[-1] = (key, f"{value} {line.strip()}")
        elif match := _TRAILER.fullmatch(line):
            found.append((match[1], match[2].rstrip()))
        else:
            return
    yield from found
