"""What the store needs of a bucket, tried out under a prefix of its own."""

import secrets
import threading
from collections.abc import Callable

from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.store.bucket import Bucket
from vectorless_rag.store.promises import BrokenError, Promise, need

_RACES = 8
_RACERS = 8


def try_bucket(bucket: Bucket) -> list[Promise]:
    """
    Try every promise, and delete what was made for it where that is allowed.

    Args:
        bucket: Nothing but a fresh ``.store-doctor-...`` in it is touched.
    """
    scratch = f".store-doctor-{secrets.token_hex(8)}"
    return [
        _tried(bucket, f"{scratch}/{name}", name, words, attempt)
        for name, words, attempt in _ALL
    ]


def _tried(
    bucket: Bucket,
    place: str,
    name: str,
    words: str,
    attempt: Callable[[Bucket, str], None],
) -> Promise:
    broken = ""
    try:
        attempt(bucket, place)
    except BrokenError as error:
        broken = str(error)
    except VectorlessRagError as error:
        # The object's name says nothing here; what went wrong stands behind it.
        broken = error.detail.rpartition(": ")[2]
    _clean(bucket, place)
    return Promise(name=name, words=words, broken=broken)


def _clean(bucket: Bucket, place: str) -> None:
    try:
        for name in bucket.names(place):
            bucket.remove(f"{place}/{name}")
    except VectorlessRagError:
        # A bucket that nobody may delete from is a good one.
        return


def _keep(bucket: Bucket, place: str) -> None:
    need(bucket.create(f"{place}/file", b"first"), "a fresh name counts as taken")
    second = bucket.create(f"{place}/file", b"second")
    need(bucket.read(f"{place}/file") == b"first", "an object was overwritten")
    need(not second, "a put of a name that is taken succeeds")


def _race(bucket: Bucket, place: str) -> None:
    for race in range(_RACES):
        name = f"{place}/{race}"
        won = _racers(bucket, name)
        need(len(won) == 1, f"of {_RACERS} writers at once {len(won)} made the object")
        need(bucket.read(name) == won[0], "another writer's bytes stand there")


def _racers(bucket: Bucket, name: str) -> list[bytes]:
    """Return the bytes of those that were told that they made *name*."""
    won: list[bytes] = []
    failed: list[VectorlessRagError] = []
    start = threading.Barrier(_RACERS)

    def put(data: bytes) -> None:
        start.wait()
        try:
            if bucket.create(name, data):
                won.append(data)
        except VectorlessRagError as error:
            failed.append(error)

    threads = [
        threading.Thread(target=put, args=(b"%d" % n * 1024,)) for n in range(_RACERS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return won


def _read(bucket: Bucket, place: str) -> None:
    name = f"{place}/file"
    need(bucket.read(name) is None, "an object is there that nobody made")
    bucket.create(name, b"bytes")
    need(bucket.exists(name) and bucket.read(name) == b"bytes", "it is not there yet")


def _list(bucket: Bucket, place: str) -> None:
    bucket.create(f"{place}/one", b"1")
    bucket.create(f"{place}/folder", b"2")
    need(bucket.names(place) == ["folder", "one"], "a listing lacks what was put")


_ALL = (
    ("create", "a put is refused where the name is taken", _keep),
    ("race", "of many puts at once of one name one succeeds", _race),
    ("read", "what was put can be read at once", _read),
    ("list", "what was put is listed at once", _list),
)
