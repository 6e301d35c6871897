"""Take the files of one commit, as git stores them and not as it checks them out."""

import os
from collections.abc import Iterator
from pathlib import Path

from vectorless_rag.upstream import git
from vectorless_rag.upstream.environment import user_environment
from vectorless_rag.upstream.faults import tampered
from vectorless_rag.upstream.pin import GitSource, Pin
from vectorless_rag.upstream.tree import EXECUTABLE, FILE, LICENSE, LINK


def take_commit(source: GitSource, scratch: Path, pin: Pin) -> None:
    """
    Write the listed paths of a commit, and the licence, into ``scratch/files``.

    No checkout: attributes and line-end settings would change bytes.

    Args:
        source: Repository and commit.
        scratch: An empty folder.
        pin: Which paths to take.

    Raises:
        VectorlessRagError: ``upstream_unavailable``: the repository cannot be
            read or does not hold the commit; ``upstream_tampered``: the
            commit's tree is not the pinned one, or it holds a submodule.
    """
    store = scratch / "store"
    store.mkdir()
    git.run(store, "init", "--quiet", "--bare", "--template=")
    _fetch(source, store)
    found = git.run(store, "rev-parse", f"{source.commit}^{{tree}}").decode().strip()
    if source.tree is not None and found != source.tree:
        raise tampered(f"commit {source.commit[:12]} has tree {found[:12]}")
    for mode, blob, path in _list(store, source.commit, [*pin.include, LICENSE]):
        data = git.run(store, "cat-file", "blob", blob)
        _write(scratch / "files" / path, mode, data)


def _fetch(source: GitSource, store: Path) -> None:
    # The user's own environment: credentials, proxies and certificates apply.
    env = {**user_environment(), "GIT_TERMINAL_PROMPT": "0"}
    args = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head")
    one = git.attempt(
        store, *args, "--depth=1", "--", source.url, source.commit, env=env
    )
    if one.status != 0:
        # Old servers give out whole branches only.
        heads = "+refs/heads/*:refs/heads/*"
        tags = "+refs/tags/*:refs/tags/*"
        git.run(store, *args, "--", source.url, heads, tags, env=env)
    git.run(store, "cat-file", "-e", f"{source.commit}^{{commit}}")


def _list(store: Path, commit: str, paths: list[str]) -> Iterator[tuple[str, str, str]]:
    listed = git.run(store, "ls-tree", "-r", "-z", "--full-tree", commit, "--", *paths)
    for line in listed.split(b"\0")[:-1]:
        head, _, name = line.partition(b"\t")
        mode, _, blob = head.decode().split(" ")
        path = os.fsdecode(name)
        if mode not in {FILE, EXECUTABLE, LINK}:
            raise tampered(f"commit {commit[:12]}: {path!r} is no file")
        yield mode, blob, path


def _write(path: Path, mode: str, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if mode == LINK:
        path.symlink_to(os.fsdecode(data))
        return
    path.write_bytes(data)
    path.chmod(0o755 if mode == EXECUTABLE else 0o644)
