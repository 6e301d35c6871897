"""
A store in a bucket that speaks S3: objects made by conditional puts alone.

The one door to ``obstore``, which is loaded when a bucket is opened: it comes with
the extra ``s3``. Its own messages may hold addresses and headers, and never leave
here.
"""

import contextlib
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.store.disk import Disk
from vectorless_rag.store.medium import SCHEME, Address, numbered

if TYPE_CHECKING:
    from obstore.store import S3Store

# A document waits meanwhile, and its lock is held.
_RETRIES = 4
_PATIENCE = timedelta(seconds=30)

_URL = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/([\w./-]*))?", re.ASCII)


@dataclass(frozen=True, kw_only=True, repr=False)
class Access:
    """How a bucket is reached. Nothing of it is in any message."""

    endpoint: str | None = None
    """Address of the server; None: that of the service whose name the scheme is."""

    variables: dict[str, str]
    """``AWS_...`` of the environment: keys, session, region."""


class Bucket:
    """
    A prefix of a bucket.

    Args:
        url: ``s3://bucket/prefix``.
        access: Server and keys.
        lock_dir: Folder of this machine's locks. Between machines none is needed:
            of two that build the same, the first manifest stays.

    Raises:
        VectorlessRagError: ``settings_invalid``.
    """

    def __init__(self, url: str, access: Access, lock_dir: Path) -> None:
        self._bucket, self._prefix = parse(url)
        self._access = access
        self._locks = Disk(lock_dir)

    @property
    def root(self) -> Path:
        """Its address."""
        return Address(SCHEME + "/".join(filter(None, (self._bucket, self._prefix))))

    def path(self, name: str) -> Path:
        """Return the address of *name*."""
        return self.root / name

    def read(self, name: str) -> bytes | None:
        """Return the bytes of *name*; None if there is no such object."""
        with _faults(name):
            try:
                return bytes(_library().get(self._store, self._key(name)).bytes())
            except FileNotFoundError:
                return None

    def exists(self, name: str) -> bool:
        """Whether there is an object *name*."""
        return self._head(name) is not None

    def size(self, name: str) -> int:
        """Return the length of *name* in bytes; 0 if there is none."""
        found = self._head(name)
        return 0 if found is None else int(found["size"])

    def names(self, folder: str) -> list[str]:
        """Return what is below *folder*, sorted."""
        prefix = self._key(folder) if folder else self._prefix
        with _faults(folder or "/"):
            listed = _library().list_with_delimiter(self._store, prefix or None)
        paths = [*listed["common_prefixes"], *(o["path"] for o in listed["objects"])]
        return sorted({path.rstrip("/").rpartition("/")[2] for path in paths})

    def numbers(self, folder: str, form: str) -> list[int]:
        """Return the numbers listed, and those that a listing may not have yet."""
        found = numbered(self.names(folder), form.partition("/")[0])
        if "/" in form:
            found = [n for n in found if self.exists(f"{folder}/{form.format(n)}")]
        number = found[-1] + 1 if found else 0
        while self.exists(f"{folder}/{form.format(number)}"):
            found.append(number)
            number += 1
        return found

    def create(self, name: str, data: bytes) -> bool:
        """Put an object that must not be there yet."""
        with _faults(name):
            try:
                # In one request: parts would be put together without the condition.
                _library().put(
                    self._store,
                    self._key(name),
                    data,
                    mode="create",
                    use_multipart=False,
                )
            except _library().exceptions.AlreadyExistsError:
                return False
            return True

    def link(self, source: str, name: str) -> bool:
        """
        Put a copy of *source*, unless the name is taken.

        Returns:
            Whether this call put it. A lost answer looks like a lost race, since the
            client tries a put again and then meets its own object: where the bytes
            are the same, it is this call's.
        """
        if self.exists(name):
            return False
        data = self.read(source)
        if data is None:
            raise VectorlessRagError(Code.STORE_CORRUPT, f"{source}: missing")
        return self.create(name, data) or self.read(name) == data

    def sync(self, folder: str) -> None:
        """Do nothing: what was put lasts."""

    def move(self, name: str, target: str) -> None:
        """Copy *name* to *target*, and delete it."""
        data = self.read(name)
        if data is not None and self.create(target, data):
            with _faults(name):
                _library().delete(self._store, self._key(name))

    def sweep(self, *, older_than_s: float) -> int:
        """Do nothing: a put that did not end leaves no object."""
        del older_than_s
        return 0

    def remove(self, name: str) -> None:
        """Delete *name*; for what a test of the bucket made."""
        with _faults(name):
            _library().delete(self._store, self._key(name))

    def lock(
        self,
        name: str,
        *,
        timeout_s: float | None = None,
        on_wait: Callable[[], None] | None = None,
        check: Callable[[], None] | None = None,
    ) -> AbstractContextManager[None]:
        """Hold a lock against other processes of this machine; see `Disk.lock`."""
        return self._locks.lock(name, timeout_s=timeout_s, on_wait=on_wait, check=check)

    def _head(self, name: str) -> Any:  # noqa: ANN401  (obstore's own shape)
        with _faults(name):
            try:
                return _library().head(self._store, self._key(name))
            except FileNotFoundError:
                return None

    def _key(self, name: str) -> str:
        return f"{self._prefix}/{name}" if self._prefix else name

    @cached_property
    def _store(self) -> "S3Store":
        given = {
            option: value
            for variable, option in _OPTIONS.items()
            if (value := self._access.variables.get(variable))
        }
        endpoint = self._access.endpoint
        if endpoint is not None:
            given["endpoint"] = endpoint
        made: S3Store = _library().store.S3Store(
            self._bucket,
            client_options={
                "allow_http": bool(endpoint and endpoint.startswith("http://"))
            },
            virtual_hosted_style_request=False,
            retry_config={"max_retries": _RETRIES, "retry_timeout": _PATIENCE},
            **given,
        )
        return made


_OPTIONS = {
    "AWS_ACCESS_KEY_ID": "access_key_id",
    "AWS_SECRET_ACCESS_KEY": "secret_access_key",
    "AWS_SESSION_TOKEN": "session_token",
    "AWS_DEFAULT_REGION": "region",
    "AWS_REGION": "region",
}


def parse(url: str) -> tuple[str, str]:
    """
    Return the bucket and the prefix that *url* names.

    Raises:
        VectorlessRagError: ``settings_invalid``: it names none.
    """
    match = _URL.fullmatch(url)
    parts = (match[2] or "").removesuffix("/").split("/") if match else []
    if match is None or (parts != [""] and set(parts) & {"", ".", ".."}):
        raise VectorlessRagError(
            Code.SETTINGS_INVALID, "VECTORLESS_RAG_STORE_URL: s3://bucket/prefix"
        )
    return match[1], "/".join(parts)


def _library() -> Any:  # noqa: ANN401  (a module that may not be there)
    """
    Load ``obstore``.

    Raises:
        VectorlessRagError: ``settings_invalid``: it is not installed.
    """
    try:
        import obstore  # noqa: PLC0415
        import obstore.exceptions  # noqa: PLC0415
        import obstore.store  # noqa: PLC0415
    except ImportError:
        raise VectorlessRagError(
            Code.SETTINGS_INVALID, "a store in a bucket needs the extra s3"
        ) from None
    return obstore


@contextlib.contextmanager
def _faults(name: str) -> Iterator[None]:
    """Turn what the client raises into a failure of the store, without its words."""
    known = (_library().exceptions.BaseError, OSError, ValueError)
    try:
        yield
    except FileNotFoundError:
        kind = "no such bucket"
    except known as error:
        kind = type(error).__name__
    else:
        return
    raise VectorlessRagError(Code.STORE_UNWRITABLE, f"{name}: {kind}")
